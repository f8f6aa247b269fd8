//! Damaged objects. libgit2 waits for ever for the rest of one that was cut, and takes the content of
//! the others as it is.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use git2::{Commit, ObjectType, Odb, Oid, Tree};

use crate::files::{FolderEntry, nofollow};

use super::error::{GitContext, GitError, LibResult};
use super::reading::Reading;
use super::{Result, WorkTree, branch};

/// Before a job at the repository is suspicious.
pub const PATIENCE: Duration = Duration::from_secs(3);
/// For work that ends in spite of a damaged object.
pub const GRACE: Duration = Duration::from_secs(1);
/// An object of few bytes is read long before.
const PATIENCE_FOR_ONE: Duration = Duration::from_secs(2);
/// What is read at least in a second.
const SLOWEST: u64 = 10 << 20;
/// Of the branch, from its tip.
const COMMITS: usize = 1000;

/// A loose object that libgit2 cannot read, if any. Ends soon, but may leave a thread that does not.
pub fn damaged_object(common_dir: &Path) -> Option<PathBuf> {
    let objects = common_dir.join("objects");
    let (tell, told) = channel();
    thread::Builder::new()
        .name("objects".to_owned())
        .spawn(move || read_all(&objects, &tell))
        .ok()?;
    let mut current = None;
    loop {
        let size = |path: &PathBuf| nofollow::look(path).map_or(0, |found| found.len());
        let most = current.as_ref().map_or(0, size) / SLOWEST;
        match told.recv_timeout(PATIENCE_FOR_ONE + Duration::from_secs(most)) {
            Ok(Look::At(path)) => current = Some(path),
            Ok(Look::Damaged(path)) => return Some(path),
            Err(RecvTimeoutError::Timeout) => return current,
            Err(RecvTimeoutError::Disconnected) => return None,
        }
    }
}

enum Look {
    At(PathBuf),
    Damaged(PathBuf),
}

/// Of loose objects, through a database of its own: what another one has read does not count.
fn read_all(objects: &Path, tell: &Sender<Look>) {
    let Ok(odb) = fresh(objects) else { return };
    for folder in entries(objects).filter(|folder| folder.name.len() == 2) {
        let path = objects.join(&folder.name);
        for file in entries(&path) {
            let name = format!("{}{}", shown(&folder), shown(&file));
            let Ok(id) = Oid::from_str(&name) else { continue };
            let path = path.join(&file.name);
            if tell.send(Look::At(path.clone())).is_err() {
                return;
            }
            if !is_whole(&odb, id) {
                let _ = tell.send(Look::Damaged(path));
                return;
            }
        }
    }
}

pub(super) fn fresh(objects: &Path) -> LibResult<Odb<'static>> {
    let odb = Odb::new()?;
    odb.add_disk_alternate(&objects.to_string_lossy())?;
    Ok(odb)
}

fn is_whole(odb: &Odb<'_>, id: Oid) -> bool {
    odb.read(id).and_then(|found| Oid::hash_object(found.kind(), found.data())) == Ok(id)
}

fn entries(folder: &Path) -> impl Iterator<Item = FolderEntry> {
    nofollow::list(folder).unwrap_or_default().into_iter()
}

fn shown(entry: &FolderEntry) -> String {
    entry.name.to_string_lossy().into_owned()
}

impl WorkTree {
    /// The newest commits of the branch, and all that the newest one has, are in the repository, whole
    /// and with the content of their names.
    pub fn require_whole_tip(&self) -> Result<()> {
        let _reading = Reading::begin();
        let Some(tip) = branch::tip(&self.repo)?.commit else { return Ok(()) };
        let odb = fresh(&self.common_dir.join("objects")).doing(OPEN)?;
        let require = |id: Oid| {
            let path = self.object_file(id);
            if is_whole(&odb, id) { Ok(()) } else { Err(GitError::DamagedObject { path }) }
        };
        let mut next = Some(tip);
        for _ in 0..COMMITS {
            let Some(id) = next else { break };
            require(id)?;
            let commit = self.repo.find_commit(id).doing(OPEN)?;
            next = self.parent_in(&commit);
        }
        let commit = self.repo.find_commit(tip).doing(OPEN)?;
        self.require_tree(commit.tree_id(), &require)
    }

    /// The parents of a shallow clone's oldest commits are elsewhere.
    fn parent_in(&self, commit: &Commit<'_>) -> Option<Oid> {
        commit.parent_ids().next().filter(|_| !self.repo.is_shallow())
    }

    fn require_tree(&self, id: Oid, require: &impl Fn(Oid) -> Result<()>) -> Result<()> {
        require(id)?;
        let tree: Tree<'_> = self.repo.find_tree(id).doing(OPEN)?;
        for entry in &tree {
            match entry.kind() {
                Some(ObjectType::Tree) => self.require_tree(entry.id(), require)?,
                Some(ObjectType::Blob) => require(entry.id())?,
                _ => {}
            }
        }
        Ok(())
    }

    fn object_file(&self, id: Oid) -> PathBuf {
        let name = id.to_string();
        let (folder, file) = name.split_at_checked(2).unwrap_or_default();
        self.common_dir.join("objects").join(folder).join(file)
    }
}

const OPEN: &str = "read the objects of the branch";
