//! Refs of snapshots, and of what was put back: without them git deletes the versions that people
//! are told about.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use git2::Oid;

use crate::files::{FileKind, nofollow};
use crate::workspace::WorkTree;

use super::refs::{LARGEST, RefChanges, RefValue, Refs, read_ref};

/// Ralph makes new ones while something untrusted runs, and changes none.
const FOLDERS: [&str; 3] = ["refs/ralph/snapshots", "refs/ralph/checkpoints", "refs/ralph/changed"];

/// Each with what it points to.
pub(in crate::workspace) type OwnRefs = BTreeMap<String, Oid>;

impl WorkTree {
    /// Those that are there now. Only new ones are read.
    pub(super) fn hold_own_refs(&self, now: &Refs) -> Vec<(String, String)> {
        let mut known = self.own_refs.borrow_mut();
        let names = self.own_names(now);
        known.retain(|name, _| names.contains(name));
        for name in names {
            if !known.contains_key(&name)
                && let Some(id) = self.own_value(now, &name)
            {
                known.insert(name, id);
            }
        }
        known.iter().map(|(name, id)| (name.clone(), id.to_string())).collect()
    }

    fn own_value(&self, now: &Refs, name: &str) -> Option<Oid> {
        let loose = read_ref(nofollow::read(&self.common_dir.join(name), LARGEST));
        loose.as_ref().or_else(|| now.all.get(name)).and_then(RefValue::object)
    }

    /// After a crash.
    pub(super) fn know_own_refs(&self, held: &[(String, String)]) {
        let is_own = |name: &str| FOLDERS.iter().any(|folder| name.starts_with(folder));
        let known = held.iter().filter(|(name, _)| is_own(name));
        let known = known.filter_map(|(name, id)| Some((name.clone(), Oid::from_str(id).ok()?)));
        self.own_refs.borrow_mut().extend(known);
    }

    pub(in crate::workspace) fn add_own_ref(&self, name: &str, id: Oid) {
        if FOLDERS.iter().any(|folder| name.starts_with(folder)) {
            self.own_refs.borrow_mut().insert(name.to_owned(), id);
        }
    }

    pub(super) fn lost_own_refs(&self, now: &Refs) -> RefChanges {
        let (known, names) = (self.own_refs.borrow(), self.own_names(now));
        let lost = known.iter().filter(|(name, _)| !names.contains(*name));
        lost.map(|(name, id)| (name.clone(), Some(RefValue::Object(*id)))).collect()
    }

    fn own_names(&self, now: &Refs) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        for folder in FOLDERS {
            add_names(&self.common_dir, folder, &mut names);
            let below = format!("{folder}/");
            let packed = now.all.range(below.clone()..).map(|(name, _)| name);
            names.extend(packed.take_while(|name| name.starts_with(&below)).cloned());
        }
        names
    }
}

fn add_names(git: &Path, folder: &str, names: &mut BTreeSet<String>) {
    for entry in nofollow::list(&git.join(folder)).unwrap_or_default() {
        let Ok(name) = entry.name.into_string() else { continue };
        let name = format!("{folder}/{name}");
        match entry.kind {
            FileKind::Folder => add_names(git, &name, names),
            FileKind::File if !name.ends_with(".lock") => _ = names.insert(name),
            _ => {}
        }
    }
}
