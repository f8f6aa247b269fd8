//! Git's index: what the user staged, and which files git knows.
//!
//! An agent may stage its own work. But it may not remove the index or empty it, nor change the
//! entries of files that the user had not committed.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use git2::{Index, IndexEntry, ObjectType, Oid, Tree};

use crate::files::nofollow;
use crate::model::Base;
use crate::workspace::branch::tip;
use crate::workspace::checkout::is_absence;
use crate::workspace::error::{GitContext, file_error};
use crate::workspace::index::{Staged, is_hidden, stage_of, unstatted};
use crate::workspace::known::stamp;
use crate::workspace::tree::{TreeEntry, between, entry_at, path_of};
use crate::workspace::{OWN_GIT_FOLDER, Result, WorkTree};

/// A copy, in the work tree's own git folder.
const HELD: &str = "index";
/// A tree with the blobs that were staged.
const HELD_STAGED: &str = "refs/worktree/ralph/staged";
/// Larger ones are not held.
const LARGEST: u64 = 256 << 20;
/// An index ends with its checksum.
const CHECKSUM: u64 = 20;
const MODE: u32 = 0o644;

/// What is wrong with the index.
pub(super) enum IndexDamage {
    /// It is gone, cannot be read or is something else.
    Whole,
    /// The entries as they were.
    Entries(Vec<Staged>),
}

impl WorkTree {
    /// Call before anything untrusted starts. Returns the hash of the copy.
    pub(super) fn hold_index(&self) -> Result<Option<String>> {
        self.believe_index()?;
        let (index, held) = (self.index_file(), self.held_index());
        let stamps = || (stamp(&index), stamp(&held));
        if let Some((at, hash)) = &*self.held_index_hash.borrow()
            && *at == stamps()
        {
            return Ok(Some(hash.clone()));
        }
        clear(&held).map_err(file_error("delete", &held))?;
        let before = stamp(&index);
        let mut hash = None;
        if let Ok(bytes) = nofollow::read(&index, LARGEST) {
            self.write_whole(&held, &bytes, 0o600).map_err(file_error("write", &held))?;
            self.keep_staged()?;
            hash = hash_of(&bytes);
        }
        let at = (before, stamp(&held));
        *self.held_index_hash.borrow_mut() = hash.clone().map(|hash| (at, hash));
        self.holds_index.set(hash.is_some());
        Ok(hash)
    }

    /// What was staged stays whatever becomes of the index and of git's garbage.
    fn keep_staged(&self) -> Result<()> {
        let Some(held) = self.sound_held_index() else { return Ok(()) };
        let head = self.tree_at(tip(&self.repo)?.commit)?;
        let changed = self.repo.diff_tree_to_index(head.as_ref(), Some(&held), None);
        let changed = changed.doing("compare the index")?;
        let staged: BTreeSet<Oid> = changed.deltas().map(|delta| delta.new_file().id()).collect();
        self.keep_blobs(staged.into_iter().filter(|id| self.repo.find_blob(*id).is_ok()))
    }

    fn keep_blobs(&self, blobs: impl Iterator<Item = Oid>) -> Result<()> {
        let store = || {
            let mut tree = self.repo.treebuilder(None)?;
            for id in blobs {
                tree.insert(id.to_string(), id, 0o100_644)?;
            }
            tree.write()
        };
        let tree = store().doing("store what is staged")?;
        self.set_ref(HELD_STAGED, tree, "ralph", "store what is staged")
    }

    /// After a crash: whether the copy is the one that was made.
    pub(super) fn check_held_index(&self, hash: Option<&str>) {
        let found = nofollow::read(&self.held_index(), LARGEST).ok();
        let found = found.as_deref().and_then(hash_of);
        self.holds_index.set(hash.is_some() && found.as_deref() == hash);
        match self.index_before() {
            Some(index) => self.believe_only(&index),
            None => self.believe_nothing(),
        }
    }

    /// The copy, if it can be used.
    fn sound_held_index(&self) -> Option<Index> {
        end_of(&self.held_index())?;
        Index::open(&self.held_index()).ok()
    }

    /// The same, if it is from right before what ran last.
    pub(in crate::workspace) fn index_before(&self) -> Option<Index> {
        if self.holds_index.get() { self.sound_held_index() } else { None }
    }

    /// `began`: HEAD's commit then.
    pub(super) fn index_damage(
        &self,
        base: &Base,
        began: Option<&str>,
    ) -> Result<Option<IndexDamage>> {
        let (index, held) = (self.index_file(), self.held_index());
        if is_the_same(&index, &held) {
            return Ok(None);
        }
        if self.index_is_unusable() {
            return Ok(Some(IndexDamage::Whole));
        }
        let Some(held) = self.index_before() else { return Ok(None) };
        let now = Index::open(&index).doing("read the index")?;
        let entries = self.changed_entries(&held, &now, base, self.tree_began(began)?.as_ref())?;
        Ok((!entries.is_empty()).then_some(IndexDamage::Entries(entries)))
    }

    fn tree_began(&self, began: Option<&str>) -> Result<Option<Tree<'_>>> {
        let id = began.filter(|id| !id.is_empty()).map(Oid::from_str).transpose();
        self.tree_at(id.doing("read where the attempt began")?)
    }

    /// Nothing is opened that is not a file: that could wait for ever.
    pub(super) fn index_is_unusable(&self) -> bool {
        let index = self.index_file();
        match nofollow::look(&index) {
            Ok(found) => !found.is_file() || Index::open(&index).is_err(),
            Err(_) => self.holds_index.get() || nofollow::exists(&self.held_index()),
        }
    }

    fn changed_entries(
        &self,
        held: &Index,
        now: &Index,
        base: &Base,
        before: Option<&Tree<'_>>,
    ) -> Result<Vec<Staged>> {
        let head = self.tree_at(tip(&self.repo)?.commit)?;
        // What the agent committed is for the close.
        let is_as_before = |path: &Path| -> Result<bool> {
            Ok(entry_at(before, path)? == entry_at(head.as_ref(), path)?)
        };
        let mut changed = BTreeMap::new();
        for entry in held.iter().filter(|entry| stage_of(entry) == 0) {
            let path = path_of(&entry.path);
            let is_lost = (0..=3).all(|stage| now.get_path(&path, stage).is_none());
            if is_lost && self.is_there_for_git(&path)? && is_as_before(&path)? {
                changed.insert(path, Some(entry));
            }
        }
        for path in self.uncommitted_at(base)?.into_iter().map(|change| change.path) {
            let (wanted, found) = (held.get_path(&path, 0), now.get_path(&path, 0));
            if plain(wanted.as_ref()) != plain(found.as_ref()) && is_as_before(&path)? {
                changed.insert(path, wanted);
            }
        }
        for entry in now.iter().filter(is_hidden) {
            let path = path_of(&entry.path);
            if !held.get_path(&path, 0).is_some_and(|entry| is_hidden(&entry)) {
                let shown = unstatted(&path, TreeEntry::from(&entry));
                changed.entry(path).or_insert(Some(shown));
            }
        }
        Ok(changed.into_iter().collect())
    }

    /// An ignored file may leave the index for good: that is how git forgets one.
    fn is_there_for_git(&self, path: &Path) -> Result<bool> {
        let found = nofollow::look(&self.root.join(path));
        Ok(found.is_ok_and(|found| !found.is_dir()) && !self.is_ignored(path)?)
    }

    /// `began`: HEAD's commit then. `folder`: for the version that was there.
    pub(super) fn repair_index(
        &self,
        damage: IndexDamage,
        began: Option<&str>,
        folder: &Path,
    ) -> Result<()> {
        let IndexDamage::Entries(entries) = damage else {
            return self.replace_index(began, folder);
        };
        self.update_index(&entries)
    }

    fn replace_index(&self, began: Option<&str>, folder: &Path) -> Result<()> {
        let (index, held) = (self.index_file(), self.held_index());
        let kept = folder.join(self.shown(&index));
        self.keep(&index, &kept).map_err(file_error("keep", &index))?;
        clear(&index).map_err(file_error("delete", &index))?;
        self.index_is_modified.set(true);
        let head = self.tree_at(tip(&self.repo)?.commit)?;
        let Some(before) = self.sound_held_index() else {
            // Nothing is known of what was staged.
            let staged = between(&self.repo, None, head.as_ref())?.into_iter();
            let staged = staged.map(|change| {
                let entry = change.new.map(|new| unstatted(&change.path, new));
                (change.path, entry)
            });
            return self.update_index(&staged.collect::<Vec<_>>());
        };
        let bytes = nofollow::read(&held, LARGEST).map_err(io::Error::from);
        let bytes = bytes.map_err(file_error("read", &held))?;
        self.write_whole(&index, &bytes, MODE).map_err(file_error("restore", &index))?;
        let began = self.tree_began(began)?;
        let staged = self.committed_since(&before, began.as_ref(), head.as_ref())?;
        self.update_index(&staged)
    }

    /// Entries of what was committed since, where the user had staged nothing.
    fn committed_since(
        &self,
        held: &Index,
        before: Option<&Tree<'_>>,
        head: Option<&Tree<'_>>,
    ) -> Result<Vec<Staged>> {
        let changes = between(&self.repo, before, head)?.into_iter();
        let is_free = |path: &Path, old| plain(held.get_path(path, 0).as_ref()) == old;
        let free = changes.filter(|change| is_free(&change.path, change.old));
        let staged = free.map(|change| {
            let entry = change.new.map(|new| unstatted(&change.path, new));
            (change.path, entry)
        });
        Ok(staged.collect())
    }

    fn index_file(&self) -> PathBuf {
        self.git_dir.join("index")
    }

    fn held_index(&self) -> PathBuf {
        self.git_dir.join(OWN_GIT_FOLDER).join(HELD)
    }
}

/// Whatever is there: a folder has no place in the git folder.
fn clear(path: &Path) -> io::Result<()> {
    match nofollow::remove_tree(path) {
        Err(error) if !is_absence(&error) => Err(error),
        _ => Ok(()),
    }
}

fn hash_of(bytes: &[u8]) -> Option<String> {
    Oid::hash_object(ObjectType::Blob, bytes).ok().map(|hash| hash.to_string())
}

fn plain(entry: Option<&IndexEntry>) -> Option<TreeEntry> {
    entry.map(TreeEntry::from)
}

fn is_the_same(one: &Path, other: &Path) -> bool {
    let (one, other) = (end_of(one), end_of(other));
    one.is_some() && one == other
}

/// Length and checksum; None for anything but an index, or if it was written without a checksum.
fn end_of(path: &Path) -> Option<(u64, Vec<u8>)> {
    let mut file = nofollow::open(path).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.checked_sub(CHECKSUM)?)).ok()?;
    let mut end = Vec::new();
    file.take(CHECKSUM).read_to_end(&mut end).ok()?;
    end.iter().any(|byte| *byte != 0).then_some((length, end))
}
