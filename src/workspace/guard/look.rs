//! A look at a held file, or at a folder with all that is in it.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::files::nofollow;
use crate::model::HeldKind;
use crate::workspace::checkout::is_absence;

use super::held::{HeldContent, HeldFile};

/// Larger files are compared by size.
const LARGEST: u64 = 16 << 20;
/// Of a folder; with more it is held as one thing.
pub(super) const MOST_ENTRIES: usize = 2000;
/// An agent's folder may have a package manager's in it, which are no settings.
const PACKAGES: &str = "node_modules";
/// Git's examples; it runs none of them.
const EXAMPLE: &str = ".sample";

/// Adds a file, or all files of a folder. Returns whether there were few enough.
pub(super) fn look(
    path: &Path,
    kind: HeldKind,
    found: &mut BTreeMap<PathBuf, HeldFile>,
) -> io::Result<bool> {
    let meta = match nofollow::look(path) {
        Err(error) if is_absence(&error) => return Ok(true),
        meta => meta?,
    };
    if !meta.is_dir() {
        let is_example = kind == HeldKind::GitSetup && path.to_string_lossy().ends_with(EXAMPLE);
        if !is_example {
            found.insert(path.to_owned(), HeldFile { kind, content: content(path, &meta)? });
        }
        return Ok(found.len() <= MOST_ENTRIES);
    }
    let entries = match nofollow::list(path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            found.insert(path.to_owned(), HeldFile { kind, content: HeldContent::Other });
            return Ok(true);
        }
        entries => entries?,
    };
    for entry in entries {
        if entry.name == PACKAGES && kind == HeldKind::AgentSettings {
            continue;
        }
        if !look(&path.join(entry.name), kind, found)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn content(path: &Path, meta: &Metadata) -> io::Result<HeldContent> {
    if meta.is_symlink() {
        return Ok(HeldContent::Link(nofollow::read_link(path)?.into_os_string().into_vec()));
    }
    if !meta.is_file() {
        return Ok(HeldContent::Other);
    }
    if meta.len() > LARGEST {
        return Ok(HeldContent::Large { size: meta.len() });
    }
    match nofollow::read(path, LARGEST).map_err(io::Error::from) {
        Ok(bytes) => Ok(HeldContent::File { bytes, mode: meta.permissions().mode() & 0o777 }),
        // It can be restored all the same if it was readable before.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(HeldContent::Other),
        Err(error) => Err(error),
    }
}
