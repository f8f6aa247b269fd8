//! Git folders of submodules: their configuration and hooks name programs, too.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use crate::files::nofollow;
use crate::model::HeldKind;

use super::held::{HeldFile, HeldPlace};
use super::look::look;

/// In a git folder.
pub(super) const MODULES: &str = "modules";
const CONFIGURATION: [&str; 2] = ["config", "config.worktree"];
const HOOKS: &str = "hooks";
const SETUP: [&str; 3] = ["config", "config.worktree", HOOKS];
/// What every git folder has.
const IN_GIT_FOLDERS: [&str; 2] = ["HEAD", "objects"];

pub(super) fn has_modules(place: &HeldPlace) -> bool {
    let is_named = place.path.file_name().is_some_and(|name| name == MODULES);
    is_named && place.kind == HeldKind::GitSetup
}

/// A module's name may have more than one part. Returns whether there were few enough.
pub(super) fn look_at_modules(
    folder: &Path,
    found: &mut BTreeMap<PathBuf, HeldFile>,
) -> io::Result<bool> {
    if !nofollow::is_folder(folder) {
        return look(folder, HeldKind::GitSetup, found);
    }
    for entry in nofollow::list(folder)? {
        let path = folder.join(entry.name);
        let is_git_folder = IN_GIT_FOLDERS.iter().any(|name| nofollow::exists(&path.join(name)));
        let mut names = SETUP.iter().map(|name| path.join(name));
        let is_few = match nofollow::is_folder(&path) {
            true => {
                let inside = if is_git_folder { path.join(MODULES) } else { path.clone() };
                names.try_fold(true, |few, name| {
                    Ok::<_, io::Error>(few && look(&name, HeldKind::GitSetup, found)?)
                })? && look_at_modules(&inside, found)?
            }
            false => look(&path, HeldKind::GitSetup, found)?,
        };
        if !is_few {
            return Ok(false);
        }
    }
    Ok(true)
}

/// And no hook, which could look like one.
pub(super) fn is_configuration(path: &Path) -> bool {
    let is_named = |name: &OsStr| CONFIGURATION.iter().any(|known| name == *known);
    let is_hook = path.parent().and_then(Path::file_name).is_some_and(|name| name == HOOKS);
    path.file_name().is_some_and(is_named) && !is_hook
}

/// The module that a file of its setup was of is gone.
pub(super) fn is_gone(path: &Path) -> bool {
    let is_setup = |path: &&Path| path.file_name().is_some_and(|it| SETUP.iter().any(|n| it == *n));
    let module = path.ancestors().find(is_setup).and_then(Path::parent);
    module.is_some_and(|module| !nofollow::exists(module))
}
