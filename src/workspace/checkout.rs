//! Writes files of a tree to disk.

use std::collections::BTreeSet;
use std::io::{self, ErrorKind};
use std::path::Path;

use git2::build::CheckoutBuilder;
use git2::{Index, Repository, Tree};

use crate::files::{Dir, FileKind, nofollow};

use super::error::{GitContext, LibResult, file_error};
use super::tree::{TreeChange, TreeEntry};
use super::{OWN_GIT_FOLDER, Result, WorkTree};

/// A folder in the work tree's own git folder: files are written there, then renamed.
const HALF_DONE: &str = "half-done";

impl WorkTree {
    /// Writes the new side of the changes, which is in `tree`, to disk.
    pub(super) fn write_files(&self, tree: &Tree<'_>, changes: &[TreeChange]) -> Result<()> {
        let mut gone = changes.iter().filter(|change| must_go(change));
        gone.try_for_each(|change| self.delete_file(&change.path))?;
        self.make_way(changes)?;
        let written = changes.iter().filter(|c| c.new.is_some_and(|e| !e.is_nested_repository()));
        let paths = written.map(|change| change.path.as_path());
        // Attributes decide how the other files are written.
        let (rules, others): (Vec<_>, Vec<_>) = paths.partition(|path| is_rules(path));
        self.check_out(tree, &rules, &self.root)?;
        self.check_out(tree, &others, &self.root)
    }

    /// Restores ignore rules first: files that the base ignored must not be deleted because the
    /// agent changed the rules.
    pub(super) fn restore_files(&self, tree: &Tree<'_>, changes: Vec<TreeChange>) -> Result<()> {
        let (rules, others): (Vec<_>, Vec<_>) =
            changes.into_iter().partition(|change| is_rules(&change.path));
        self.write_files(tree, &rules)?;
        let mut wanted = Vec::new();
        for change in others {
            let added = change.new.is_none();
            if !(added && self.is_ignored(&change.path)?) {
                wanted.push(change);
            }
        }
        self.write_files(tree, &wanted)
    }

    pub(super) fn require_writable(&self, changes: &[TreeChange]) -> Result<()> {
        let written = changes.iter().filter(|change| change.new.is_some());
        written.map(|change| &change.path).try_for_each(|path| self.require_plain(path))
    }

    /// An ignored file is in no snapshot: overwriting it would lose it.
    pub(super) fn is_in_the_way(&self, change: &TreeChange) -> bool {
        let is_there = || self.dir().is_ok_and(|root| root.kind(&change.path).is_in_the_way());
        change.old.is_none() && is_there()
    }

    pub(super) fn files_in_the_way(&self, changes: &[TreeChange]) -> Vec<String> {
        let hidden = changes.iter().filter(|change| self.is_in_the_way(change));
        hidden.map(|change| change.path.display().to_string()).collect()
    }

    /// Like `write_files`, but atomic for each file: after a kill, half a file would look like an
    /// edit.
    pub(super) fn replace_files(&self, tree: &Tree<'_>, changes: &[TreeChange]) -> Result<()> {
        let (written, gone): (Vec<_>, Vec<_>) = changes.iter().partition(|c| c.new.is_some());
        gone.into_iter().try_for_each(|change| self.delete_file(&change.path))?;
        self.make_way(changes)?;
        let paths = written.into_iter().map(|change| &change.path);
        let (rules, others): (Vec<_>, Vec<_>) = paths.partition(|path| is_rules(path));
        rules.into_iter().chain(others).try_for_each(|path| self.replace_file(tree, path))
    }

    fn replace_file(&self, tree: &Tree<'_>, path: &Path) -> Result<()> {
        let folder = self.git_dir.join(OWN_GIT_FOLDER).join(HALF_DONE);
        let file = self.root.join(path);
        let prepare = || {
            nofollow::remove_tree(&folder)?;
            nofollow::make_folders(&folder)?;
            file.parent().map_or(Ok(()), nofollow::make_folders)
        };
        prepare().map_err(file_error("write", &file))?;
        self.check_out(tree, &[path], &folder)?;
        let rename = || Dir::open(&folder)?.rename(path, &self.dir()?, path);
        match rename() {
            // The git folder is on another file system than the work tree.
            Err(error) if error.kind() == ErrorKind::CrossesDevices => {
                self.check_out(tree, &[path], &self.root)?;
            }
            renamed => renamed.map_err(file_error("write", &file))?,
        }
        nofollow::remove_tree(&folder).map_err(file_error("delete", &folder))
    }

    /// Uses libgit2's checkout, which handles line endings, links and modes.
    fn check_out(&self, tree: &Tree<'_>, paths: &[&Path], into: &Path) -> Result<()> {
        // Without any path, libgit2 would check out all of them.
        if paths.is_empty() {
            return Ok(());
        }
        let mut options = CheckoutBuilder::new();
        options.force().recreate_missing(true).update_index(false).disable_pathspec_match(true);
        if into != self.root {
            options.target_dir(into);
        }
        for path in paths {
            options.path(*path);
        }
        let repo = self.without_index().doing("open the repository again")?;
        let tree = repo.find_object(tree.id(), None).doing("read a tree")?;
        self.without_pipes(|| repo.checkout_tree(&tree, Some(&mut options))).doing("write files")
    }

    /// With an index, a checkout skips files whose kind differs from HEAD. Without one, it writes
    /// every path. Whatever the configuration says by now, the work tree is this one.
    fn without_index(&self) -> LibResult<Repository> {
        let repo = Repository::open(&self.git_dir)?;
        repo.set_workdir(&self.root, false)?;
        let mut none = Index::open(&self.git_dir.join("ralph-has-no-index"))?;
        repo.set_index(&mut none)?;
        Ok(repo)
    }

    fn delete_file(&self, path: &Path) -> Result<()> {
        let remove = || match self.dir()? {
            root if root.kind(path) == FileKind::Folder => Ok(()),
            root => root.remove(path),
        };
        match remove() {
            Err(error) if !is_absence(&error) => {
                Err(error).map_err(file_error("delete", &self.root.join(path)))
            }
            _ => {
                self.prune_folders(path);
                Ok(())
            }
        }
    }

    /// Whatever is in the place of a file's folder moves away, mostly a link: nothing is written
    /// through it. What the work tree had of it is in a snapshot, so this was ignored. The same with
    /// a pipe in the place of a file, which no snapshot has: libgit2 would open it.
    pub(super) fn make_way(&self, changes: &[TreeChange]) -> Result<()> {
        let written = changes.iter().filter(|change| change.new.is_some());
        let folders: BTreeSet<&Path> =
            written.clone().flat_map(|change| change.path.ancestors().skip(1)).collect();
        // A folder comes before those in it.
        for folder in folders.into_iter().filter(|folder| !folder.as_os_str().is_empty()) {
            self.move_away_if(folder, FileKind::is_in_the_way)?;
        }
        written
            .map(|change| &change.path)
            .try_for_each(|path| self.move_away_if(path, |kind| kind == FileKind::Other))
    }

    /// Moves away what is in the place of a folder on the way to a file in the work tree. Returns whether
    /// something was.
    pub fn clear_way_to(&self, path: &Path) -> Result<bool> {
        let Some(file) = path.is_relative().then(|| self.root.join(path)) else { return Ok(false) };
        let mut folders: Vec<&Path> = file.ancestors().skip(1).collect();
        folders.reverse();
        let below = folders.into_iter().filter_map(|folder| folder.strip_prefix(&self.root).ok());
        let before = below.filter(|folder| !folder.as_os_str().is_empty()).map(|folder| {
            let is_led = self.dir().is_ok_and(|root| root.kind(folder).is_in_the_way());
            self.move_away_if(folder, FileKind::is_in_the_way).map(|()| is_led)
        });
        before.collect::<Result<Vec<bool>>>().map(|led| led.contains(&true))
    }

    fn move_away_if(&self, path: &Path, is_in_the_way: impl Fn(FileKind) -> bool) -> Result<()> {
        let place = self.root.join(path);
        let move_away = || match self.dir()?.kind(path) {
            kind if is_in_the_way(kind) => self.moved_away.take(&place, path),
            _ => Ok(()),
        };
        move_away().map_err(file_error("move", &place))
    }

    fn dir(&self) -> io::Result<Dir> {
        Dir::open(&self.root)
    }

    /// Git has no empty folders, so a restored tree must not have any either.
    pub(super) fn prune_folders(&self, path: &Path) {
        let folders = path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty());
        for folder in folders {
            if self.dir().and_then(|root| root.remove_dir(folder)).is_err() {
                break;
            }
        }
    }
}

/// Files that control how git treats other files.
pub(super) fn is_rules(path: &Path) -> bool {
    path.ends_with(".gitignore") || path.ends_with(".gitattributes")
}

/// Never deletes a nested repository. A file whose kind changes is deleted first, so that nothing
/// is written through a link.
fn must_go(change: &TreeChange) -> bool {
    let Some(old) = change.old.filter(|old| !old.is_nested_repository()) else { return false };
    !change.new.is_some_and(|new: TreeEntry| new.is_like(old))
}

pub(super) fn remove_if_there(path: &Path) -> io::Result<()> {
    match nofollow::remove(path) {
        Err(error) if is_absence(&error) => Ok(()),
        removed => removed,
    }
}

pub(super) fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}
