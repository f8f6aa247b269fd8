//! Whether a file can be committed.

use std::path::{Path, PathBuf};

use super::error::{GitError, file_error};
use super::{OWN_FOLDER, WorkTree};

/// Where a path stands; paths are relative to the root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// Tracked, or could be.
    Inside(PathBuf),
    Ignored(PathBuf),
    /// Outside of the work tree, in the git folder, or in a nested repository.
    Outside,
}

impl WorkTree {
    /// The file need not exist; links are followed.
    pub fn place_of(&self, path: &Path) -> Result<Place, GitError> {
        let path = resolved(path)?;
        let Ok(inside) = path.strip_prefix(&self.root) else {
            return Ok(Place::Outside);
        };
        if inside.as_os_str().is_empty() || self.is_anothers(inside) {
            return Ok(Place::Outside);
        }
        let inside = inside.to_owned();
        if inside.starts_with(OWN_FOLDER) {
            return Ok(Place::Ignored(inside));
        }
        let tracked = self.fresh_index()?.get_path(&inside, 0).is_some();
        let ignored = !tracked && self.is_ignored(&inside)?;
        Ok(if ignored { Place::Ignored(inside) } else { Place::Inside(inside) })
    }

    fn is_anothers(&self, inside: &Path) -> bool {
        let in_git_folder = inside.components().any(|part| part.as_os_str() == ".git");
        let folders = inside.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty());
        in_git_folder || folders.into_iter().any(|f| self.root.join(f).join(".git").exists())
    }
}

fn resolved(path: &Path) -> Result<PathBuf, GitError> {
    if let Ok(path) = path.canonicalize() {
        return Ok(path);
    }
    let path = std::path::absolute(path).map_err(file_error("find", path))?;
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Ok(path);
    };
    // Neither needs the folder to exist.
    Ok(folder.canonicalize().map_or_else(|_| path.clone(), |folder| folder.join(name)))
}
