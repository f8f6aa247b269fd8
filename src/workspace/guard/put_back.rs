//! Puts held files back, and keeps the versions that were there instead.

use std::ffi::OsStr;
use std::fs::Permissions;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::files::{self, Dir, free_name, nofollow};
use crate::workspace::checkout::remove_if_there;
use crate::workspace::error::file_error;
use crate::workspace::locks::private_parent;
use crate::workspace::{CHANGED, OWN_GIT_FOLDER, Result, WorkTree};

use super::held::{HeldContent, HeldFiles, first_link};

impl WorkTree {
    /// Where the other versions of what an attempt, or anything else that ran, changed are kept.
    pub fn changed_by(&self, ran: &str) -> PathBuf {
        self.git_dir.join(OWN_GIT_FOLDER).join(CHANGED).join(ran)
    }

    /// The same folder, made. Whatever is in its place, such as a link, gets another name.
    pub fn make_changed_by(&self, ran: &str) -> io::Result<PathBuf> {
        let folder = self.changed_by(ran);
        self.make_own(&folder).map(|_| folder)
    }

    /// Keeps a version of a file there; returns where, for people.
    pub fn keep_version(&self, folder: &Path, name: &Path, bytes: &[u8]) -> Result<String> {
        let keep = || self.make_own(folder)?.keep_bytes(name, bytes);
        let kept = folder.join(keep().map_err(file_error("write", &folder.join(name)))?);
        Ok(kept.strip_prefix(&self.root).unwrap_or(&kept).to_string_lossy().into_owned())
    }

    fn make_own(&self, folder: &Path) -> io::Result<Dir> {
        let below = folder.strip_prefix(&self.git_dir).map_err(io::Error::other)?;
        Dir::open_real(&self.git_dir)?.make_way(below)
    }

    /// What is at these paths becomes what it was. The current versions are kept in the folder.
    pub(super) fn put_back(
        &self,
        before: &HeldFiles,
        paths: &[PathBuf],
        folder: &Path,
    ) -> Result<()> {
        // Removals first: another file may need the place.
        let (gone, others): (Vec<&PathBuf>, Vec<&PathBuf>) =
            paths.iter().partition(|path| before.get(path).is_none());
        for path in gone.into_iter().chain(others) {
            let done = self.put_back_one(path, before.get(path), folder);
            done.map_err(file_error("restore", path))?;
        }
        Ok(())
    }

    fn put_back_one(
        &self,
        path: &Path,
        before: Option<&HeldContent>,
        folder: &Path,
    ) -> io::Result<()> {
        if first_link(&self.root, path).is_some() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "its folder is now a link"));
        }
        // The content of what was too large or not a file is unknown: it stays as it is.
        if matches!(before, Some(HeldContent::Large { .. } | HeldContent::Other)) {
            return Ok(());
        }
        self.keep(path, &folder.join(self.shown(path)))?;
        match before {
            Some(content) => self.write_held(path, content),
            None => remove_if_there(path),
        }
    }

    /// `kept`: its new place, in the git folder.
    pub(super) fn keep(&self, path: &Path, kept: &Path) -> io::Result<()> {
        let name = kept.strip_prefix(&self.git_dir).map_err(io::Error::other)?;
        files::keep(path, &self.git_dir, name).map(drop)
    }

    pub(super) fn write_held(&self, path: &Path, content: &HeldContent) -> io::Result<()> {
        match content {
            HeldContent::File { bytes, mode } => {
                if let Some(folder) = path.parent() {
                    nofollow::make_folders(folder)?;
                }
                self.write_whole(path, bytes, *mode)
            }
            HeldContent::Link(target) => {
                if let Some(folder) = path.parent() {
                    nofollow::make_folders(folder)?;
                }
                remove_if_there(path)?;
                nofollow::make_link(Path::new(OsStr::from_bytes(target)), path)
            }
            HeldContent::Large { .. } | HeldContent::Other => Ok(()),
        }
    }

    /// A held file's name for people: below the root, in `.git`, or its file name.
    pub(in crate::workspace) fn shown(&self, path: &Path) -> PathBuf {
        if let Ok(inside) = path.strip_prefix(&self.root) {
            return inside.to_owned();
        }
        let folders = [&self.git_dir, &self.common_dir];
        let in_git = folders.into_iter().find_map(|folder| path.strip_prefix(folder).ok());
        match in_git {
            Some(inside) => Path::new(".git").join(inside),
            None => path.file_name().map(PathBuf::from).unwrap_or_default(),
        }
    }

    /// Atomic, even in a power cut.
    pub(in crate::workspace) fn write_whole(
        &self,
        path: &Path,
        bytes: &[u8],
        mode: u32,
    ) -> io::Result<()> {
        let new = self.git_dir.join(OWN_GIT_FOLDER).join("new");
        match replace_file(&new, path, bytes, mode) {
            // The repository is on another disk than its files.
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
                remove_if_there(&new)?;
                replace_file(&free_name(&path.with_added_extension("new")), path, bytes, mode)
            }
            replaced => replaced,
        }
    }
}

fn replace_file(new: &Path, path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    private_parent(new)?;
    remove_if_there(new)?;
    let mut file = nofollow::create_new(new, 0o600)?;
    file.write_all(bytes)?;
    file.set_permissions(Permissions::from_mode(mode))?;
    file.sync_all()?;
    nofollow::rename(new, path)
}
