//! Stores the refs for a driver after a crash, and keeps what they point to from `git gc`.
//!
//! One commit at a ref of this work tree has it all: the list, as parents the commits, as entries of
//! its tree the other objects, and the texts of annotated tags, which no tree can name. It is
//! written only when a ref changed.

use std::collections::{BTreeMap, BTreeSet};

use git2::{ObjectType, Odb, Oid, Repository};

use crate::workspace::error::{GitContext, LibResult, if_found};
use crate::workspace::{Result, WorkTree};

use super::refs::Refs;

const HELD_REFS: &str = "refs/worktree/ralph/refs";
const LIST: &str = "refs";
const TAG_TEXTS: &str = "tags";
const FILE_MODE: i32 = 0o100_644;
const FOLDER_MODE: i32 = 0o040_000;
/// The same refs make the same commit.
const BY: &str = "ralph <ralph@localhost> 0 +0000";

/// What was there before something untrusted ran.
#[derive(Clone, Debug)]
pub(super) struct HeldRefs {
    pub refs: Refs,
    /// Where it is stored.
    pub commit: Oid,
}

impl HeldRefs {
    /// Writes the annotated tags again that `git gc` deleted.
    pub fn restore_tags(&self, repo: &Repository) -> Option<()> {
        let tree = repo.find_commit(self.commit).ok()?.tree().ok()?;
        let texts = repo.find_blob(tree.get_name(TAG_TEXTS)?.id()).ok()?;
        let odb = repo.odb().ok()?;
        let mut rest = texts.content();
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let (length, text) = rest.split_at_checked(end)?;
            let length: usize = std::str::from_utf8(length).ok()?.parse().ok()?;
            let (text, next) = text.get(1..)?.split_at_checked(length)?;
            odb.write(ObjectType::Tag, text).ok()?;
            rest = next;
        }
        Some(())
    }
}

/// The objects that refs point to.
#[derive(Default)]
struct Targets {
    commits: BTreeSet<Oid>,
    others: BTreeMap<Oid, i32>,
    tags: BTreeMap<Oid, Vec<u8>>,
}

impl Targets {
    fn add(&mut self, odb: &Odb<'_>, mut id: Oid) {
        // A tag may name a tag.
        while !self.tags.contains_key(&id) {
            // What is not there cannot be held.
            let Ok((_, kind)) = odb.read_header(id) else { return };
            match kind {
                ObjectType::Commit => _ = self.commits.insert(id),
                ObjectType::Tree => _ = self.others.insert(id, FOLDER_MODE),
                ObjectType::Blob => _ = self.others.insert(id, FILE_MODE),
                _ => {
                    let Some((text, target)) = odb.read(id).ok().and_then(|tag| {
                        let target = target_of(tag.data())?;
                        Some((tag.data().to_owned(), target))
                    }) else {
                        return;
                    };
                    self.tags.insert(id, text);
                    id = target;
                    continue;
                }
            }
            return;
        }
    }

    /// The length goes before each text.
    fn tag_texts(&self) -> Vec<u8> {
        let text = |text: &Vec<u8>| [format!("{}\n", text.len()).as_bytes(), text].concat();
        self.tags.values().flat_map(text).collect()
    }
}

fn target_of(tag: &[u8]) -> Option<Oid> {
    let first = tag.split(|byte| *byte == b'\n').next()?;
    Oid::from_str(std::str::from_utf8(first).ok()?.strip_prefix("object ")?).ok()
}

impl WorkTree {
    /// All refs except the run's branch, which has a part of its own.
    pub(super) fn hold_refs(&self) -> Result<HeldRefs> {
        let mut refs = self.refs_now();
        if let Some(own) = &self.run_branch {
            refs.all.remove(own);
        }
        let text = refs.to_text();
        let list = Oid::hash_object(ObjectType::Blob, text.as_bytes()).doing("hash the refs")?;
        let stored = if_found(self.repo.refname_to_id(HELD_REFS)).doing("look for stored refs")?;
        let is_this = |id: &Oid| self.list_of(*id).is_some_and(|found| found == list);
        if let Some(commit) = stored.filter(is_this) {
            return Ok(HeldRefs { refs, commit });
        }
        let commit = self.store_refs(&refs, &text).doing("store the refs")?;
        self.set_ref(HELD_REFS, commit, "ralph", "store the refs")?;
        Ok(HeldRefs { refs, commit })
    }

    fn store_refs(&self, refs: &Refs, text: &str) -> LibResult<Oid> {
        let odb = self.repo.odb()?;
        let mut targets = Targets::default();
        let objects = refs.held().filter_map(|(_, value)| value.object());
        objects.for_each(|id| targets.add(&odb, id));
        let mut tree = self.repo.treebuilder(None)?;
        tree.insert(LIST, odb.write(ObjectType::Blob, text.as_bytes())?, FILE_MODE)?;
        if !targets.tags.is_empty() {
            let texts = odb.write(ObjectType::Blob, &targets.tag_texts())?;
            tree.insert(TAG_TEXTS, texts, FILE_MODE)?;
        }
        for (id, mode) in &targets.others {
            tree.insert(id.to_string(), *id, *mode)?;
        }
        let parents = targets.commits.iter().map(|id| format!("parent {id}\n"));
        let parents: String = parents.collect();
        let commit = format!(
            "tree {}\n{parents}author {BY}\ncommitter {BY}\n\nralph: the branches and tags\n",
            tree.write()?
        );
        odb.write(ObjectType::Commit, commit.as_bytes())
    }

    fn list_of(&self, commit: Oid) -> Option<Oid> {
        Some(self.repo.find_commit(commit).ok()?.tree().ok()?.get_name(LIST)?.id())
    }

    /// None: they were deleted, or changed.
    pub(super) fn stored_refs(&self, commit: &str) -> Option<HeldRefs> {
        let commit = Oid::from_str(commit).ok()?;
        let odb = self.repo.odb().ok()?;
        let sound = |id: Oid| {
            let found = odb.read(id).ok()?;
            let hash = Oid::hash_object(found.kind(), found.data()).ok()?;
            (hash == id).then(|| found.data().to_owned())
        };
        sound(commit)?;
        sound(self.repo.find_commit(commit).ok()?.tree_id())?;
        let text = String::from_utf8(sound(self.list_of(commit)?)?).ok()?;
        Some(HeldRefs { refs: Refs::from_text(&text), commit })
    }
}
