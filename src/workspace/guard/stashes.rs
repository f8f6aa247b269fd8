//! The user's stashes.

use git2::Oid;

use crate::workspace::error::{GitContext, if_found};
use crate::workspace::{Result, WorkTree};

const STASH: &str = "refs/stash";
const HELD_STASHES: &str = "refs/ralph/stashes";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stash {
    id: Oid,
    /// Its message in `git stash list`.
    pub message: String,
}

impl Stash {
    pub fn stored(&self) -> (String, String) {
        (self.id.to_string(), self.message.clone())
    }

    pub fn from_stored((id, message): &(String, String)) -> Option<Self> {
        Some(Self { id: Oid::from_str(id).ok()?, message: message.clone() })
    }
}

impl WorkTree {
    /// All stashes, newest first; protects them from `git gc`.
    pub fn hold_stashes(&self) -> Result<Vec<Stash>> {
        let stashes = self.stashes()?;
        for stash in &stashes {
            let name = format!("{HELD_STASHES}/{}", stash.id);
            self.set_ref(&name, stash.id, "ralph", "protect the stashes")?;
        }
        Ok(stashes)
    }

    /// Dropped ones, and new ones.
    pub(super) fn other_stashes(&self, before: &[Stash]) -> Result<(Vec<Stash>, Vec<Stash>)> {
        let now = self.stashes()?;
        let only = |these: &[Stash], others: &[Stash]| -> Vec<Stash> {
            these.iter().filter(|stash| !others.contains(stash)).cloned().collect()
        };
        let mut new = only(&now, before);
        new.retain(|stash| !self.ignored.borrow().told.contains(&stash.id.to_string()));
        Ok((only(before, &now), new))
    }

    /// Restores dropped stashes as the newest, and returns them.
    pub fn repair_stashes(&self, before: &[Stash]) -> Result<Vec<Stash>> {
        let (gone, new) = self.other_stashes(before)?;
        self.ignored.borrow_mut().told.extend(new.iter().map(|stash| stash.id.to_string()));
        for stash in gone.iter().rev() {
            self.repo.reference_ensure_log(STASH).doing("restore a stash")?;
            self.set_ref(STASH, stash.id, &stash.message, "restore a stash")?;
        }
        Ok(gone)
    }

    /// Releases stashes that the human dropped.
    pub(in crate::workspace) fn release_stashes(&self) -> Result<()> {
        let held = self.repo.references_glob(&format!("{HELD_STASHES}/*"));
        let known = self.stashes()?;
        for held in held.doing("list the stashes")?.flatten() {
            if !known.iter().any(|stash| Some(stash.id) == held.target()) {
                // The next run tries again.
                let _ = self.delete_ref(held);
            }
        }
        Ok(())
    }

    fn stashes(&self) -> Result<Vec<Stash>> {
        if if_found(self.repo.refname_to_id(STASH)).doing("look for stashes")?.is_none() {
            return Ok(Vec::new());
        }
        let log = self.repo.reflog(STASH).doing("list the stashes")?;
        let stash = |entry: git2::ReflogEntry<'_>| Stash {
            id: entry.id_new(),
            message: String::from_utf8_lossy(entry.message_bytes().unwrap_or_default()).into(),
        };
        Ok(log.iter().map(stash).collect())
    }
}
