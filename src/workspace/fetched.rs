//! What was fetched from other repositories before anything of the run worked: an agent may merge it.

use std::collections::HashSet;
use std::path::Path;

use git2::Oid;
use serde::{Deserialize, Serialize};

use crate::files::Dir;
use crate::model::Base;

use super::error::{GitContext, file_error};
use super::{OWN_GIT_FOLDER, Result, WorkTree};

/// In ralph's folder of the git folder.
const RECORD: &str = "fetched";
const LARGEST_RECORD: u64 = 64 << 20;
const READ: &str = "read the fetched commits";

#[derive(Serialize, Deserialize)]
struct Fetched {
    run: String,
    /// Commits that refs of other repositories had.
    tips: Vec<String>,
}

impl WorkTree {
    /// Call when a process of a run begins. What a run's attempts leave at refs of other repositories is
    /// theirs, so the first process records what is there. `is_new`: nothing of the run has worked.
    pub fn know_fetched_by(&self, run: &str, is_new: bool, base: Option<&Base>) -> Result<()> {
        let own = Dir::open(&self.git_dir).and_then(|dir| dir.make_way(Path::new(OWN_GIT_FOLDER)));
        let own = own.map_err(file_error("open", &self.git_dir.join(OWN_GIT_FOLDER)))?;
        let text = own.read(Path::new(RECORD), LARGEST_RECORD).unwrap_or_default();
        let record = serde_json::from_slice::<Fetched>(&text).ok();
        if let Some(record) = record.filter(|record| record.run == run) {
            let ids = record.tips.iter().filter_map(|tip| Oid::from_str(tip).ok());
            let ids = ids.filter(|id| self.repo.find_commit(*id).is_ok());
            *self.fetched.borrow_mut() = ids.map(Some).collect();
            return Ok(());
        }
        if !is_new {
            // It was deleted, or an earlier version began the run.
            self.fetched.borrow_mut().clear();
            return Ok(());
        }
        self.know_fetched(base)?;
        let tips = self.fetched.borrow().iter().flatten().map(ToString::to_string).collect();
        let record = Fetched { run: run.to_owned(), tips };
        let text = serde_json::to_vec(&record).unwrap_or_default();
        own.publish(Path::new(RECORD), &text).map_err(file_error("write", Path::new(RECORD)))
    }

    /// Before anything untrusted runs. What was fetched until now may be merged by an agent; its own
    /// commits may be pushed later, or were pushed: those since a story's base do not count.
    pub fn know_fetched(&self, base: Option<&Base>) -> Result<()> {
        let own = match (self.head_commit()?, base) {
            (Some(head), Some(base)) => self.ids_since(&head, base)?,
            _ => HashSet::new(),
        };
        let refs = self.repo.references_glob("refs/remotes/*").doing("list the refs")?;
        let mut known = Vec::new();
        for tip in refs.flatten().filter_map(|one| one.peel_to_commit().ok()) {
            let is_new = !own.is_empty() && base.is_some();
            let above = match base.filter(|_| is_new) {
                Some(base) => self.ids_since(&tip.id().to_string(), base)?,
                None => HashSet::new(),
            };
            if above.is_disjoint(&own) {
                known.push(Some(tip.id()));
            }
        }
        *self.fetched.borrow_mut() = known;
        Ok(())
    }

    /// The commits from a base up to this one.
    fn ids_since(&self, tip: &str, base: &Base) -> Result<HashSet<Oid>> {
        let id = |text: &str| Oid::from_str(text).doing(READ);
        let base = base.commit.as_deref().map(id).transpose()?;
        Ok(self.commits_between(id(tip)?, &[base])?.into_iter().collect())
    }
}
