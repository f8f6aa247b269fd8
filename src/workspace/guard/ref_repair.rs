//! Puts refs back, and keeps where they were instead.

use std::collections::BTreeMap;
use std::path::Path;

use git2::{Oid, Repository};

use crate::files::nofollow;
use crate::model::Violation;
use crate::workspace::checkout::remove_if_there;
use crate::workspace::error::{GitContext, file_error};
use crate::workspace::{Result, WorkTree};

use super::below;
use super::ref_store::HeldRefs;
use super::refs::{RefChanges, RefValue, Refs};

/// The folder of refs to what was there instead.
const CHANGED: &str = "refs/ralph/changed";
/// More names make the journal large, and nobody reads them.
const MOST_NAMES: usize = 50;

impl WorkTree {
    pub(super) fn refs_violation(&self, held: &HeldRefs, ran: &str) -> Option<Violation> {
        let now = self.refs_now();
        let mut changes = self.changed_refs(&held.refs, &now);
        changes.extend(self.lost_own_refs(&now));
        if changes.is_empty() {
            return None;
        }
        let lost = self.lost(held, &changes);
        let count = changes.len() - lost.len();
        let files = below(&self.root, &self.changed_by(ran));
        let mut replaced = changes.keys().filter_map(|name| now.all.get(name));
        let kept = replaced.next().map(|first| match first {
            RefValue::Object(_) => format!("{CHANGED}/{ran}"),
            _ => files,
        });
        let short = |name: &String| name.strip_prefix("refs/").unwrap_or(name).to_owned();
        let is_back = |name: &&String| !lost.contains(name);
        Some(Violation::Refs {
            names: changes.keys().filter(is_back).take(MOST_NAMES).map(short).collect(),
            count,
            lost: lost.into_iter().take(MOST_NAMES).map(short).collect(),
            kept,
        })
    }

    /// Refs whose objects are gone.
    fn lost<'a>(&self, held: &HeldRefs, changes: &'a RefChanges) -> Vec<&'a String> {
        // An open repository still has packs that `git gc` deleted.
        let Ok(repo) = Repository::open(&self.root) else { return Vec::new() };
        let Ok(odb) = repo.odb() else { return Vec::new() };
        let is_lost = |value: &Option<RefValue>| {
            value.as_ref().and_then(RefValue::object).is_some_and(|id| !odb.exists(id))
        };
        if !changes.values().any(is_lost) {
            return Vec::new();
        }
        held.restore_tags(&repo);
        changes.iter().filter(|(_, value)| is_lost(value)).map(|(name, _)| name).collect()
    }

    pub(super) fn repair_refs(&self, held: &HeldRefs, ran: &str) -> Result<()> {
        let now = self.refs_now();
        let mut back = self.changed_refs(&held.refs, &now);
        back.extend(self.lost_own_refs(&now));
        let lost: Vec<String> = self.lost(held, &back).into_iter().cloned().collect();
        back.retain(|name, _| !lost.contains(name));
        add_those_in_the_way(&mut back, &now);
        self.leave_branch_of(&back, &now)?;
        self.remove_odd_places(&back, &now, ran)?;
        let mut changes: BTreeMap<String, Option<Oid>> = BTreeMap::new();
        if now.lost_packed() {
            let objects = now.all.iter().filter(|(name, _)| name.starts_with("refs/"));
            let objects = objects.map(|(name, value)| (name.clone(), value.object()));
            changes.extend(objects.filter(|(_, id)| id.is_some()));
        }
        for (name, then) in &back {
            if let Some(id) = now.all.get(name).and_then(RefValue::object) {
                let short = name.strip_prefix("refs/").unwrap_or(name);
                changes.insert(format!("{CHANGED}/{ran}/{short}/{id}"), Some(id));
            }
            changes.insert(name.clone(), then.as_ref().and_then(RefValue::object));
        }
        changes.retain(|name, _| name.starts_with("refs/"));
        self.change_packed(&changes)?;
        let replaced = back.keys().filter(|name| nofollow::is_file(&self.common_dir.join(name)));
        let replaced =
            replaced.filter_map(|name| Some((name.as_str(), now.all.get(name)?.object()?)));
        self.delete_loose(&replaced.collect())?;
        back.iter().try_for_each(|(name, then)| match then {
            Some(RefValue::Symbolic(target)) => self.point_to_ref(name, target),
            Some(_) => Ok(()),
            None => {
                let log = self.common_dir.join("logs").join(name);
                remove_if_there(&log).map_err(file_error("delete", &log))
            }
        })
    }

    /// Otherwise HEAD would move with its branch: what the agent committed there can still be taken.
    fn leave_branch_of(&self, back: &RefChanges, now: &Refs) -> Result<()> {
        let head = self.repo.find_reference("HEAD").doing("read HEAD")?;
        let branch = head.symbolic_target_bytes().and_then(|name| std::str::from_utf8(name).ok());
        let branch = branch.filter(|name| back.contains_key(*name));
        let commit = branch.and_then(|name| now.all.get(name)?.object());
        let Some(commit) = commit.filter(|id| self.repo.find_commit(*id).is_ok()) else {
            return Ok(());
        };
        self.with_lock(&self.ref_lock("HEAD"), || {
            self.repo.set_head_detached(commit).doing("leave the branch")
        })
    }

    /// What has no id: pipes, links, files that are no refs. They are kept as files.
    fn remove_odd_places(&self, back: &RefChanges, now: &Refs, ran: &str) -> Result<()> {
        let is_odd =
            |name: &&String| now.all.get(*name).is_some_and(|value| value.object().is_none());
        for name in back.keys().filter(is_odd) {
            let path = self.common_dir.join(name);
            let kept = self.changed_by(ran).join(Path::new(".git").join(name));
            let moved = self.keep(&path, &kept).and_then(|()| remove_if_there(&path));
            moved.map_err(file_error("restore", &path))?;
        }
        Ok(())
    }

    fn point_to_ref(&self, name: &str, target: &str) -> Result<()> {
        self.with_lock(&self.ref_lock(name), || {
            let made = self.repo.reference_symbolic(name, target, true, "ralph");
            made.map(drop).doing("restore a ref")
        })
    }
}

/// New refs whose names need the place: `topic/a` and `topic` cannot both be.
fn add_those_in_the_way(back: &mut RefChanges, now: &Refs) {
    let wanted = back.iter().filter(|(_, then)| then.is_some()).map(|(name, _)| name);
    let mut in_the_way = Vec::new();
    for name in wanted {
        let below = format!("{name}/");
        let inside = now.all.range(below.clone()..).map(|(found, _)| found);
        in_the_way.extend(inside.take_while(|found| found.starts_with(&below)).cloned());
        let parents = name.match_indices('/').filter_map(|(end, _)| name.get(..end));
        in_the_way.extend(parents.filter(|name| now.all.contains_key(*name)).map(str::to_owned));
    }
    for name in in_the_way {
        back.entry(name).or_insert(None);
    }
}
