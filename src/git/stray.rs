//! Whether an agent left the branch, and coming back to it.

use git2::Oid;

use super::WorkTree;
use super::error::{Doing, GitError};
use super::head::{self, Tip, short};
use crate::core::event::{Base, Stray};

/// Where HEAD is, compared with where the run works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whereabouts {
    Home,
    /// On a branch of its own that has all of the run's: that can simply be moved forward.
    Ahead {
        on: String,
    },
    /// What the story began with is not in HEAD's history any more.
    Strayed(Stray),
}

impl WorkTree {
    pub fn whereabouts(&self, base: &Base) -> Result<Whereabouts, GitError> {
        let head = head::tip(&self.repo)?;
        let at_home = head.reference == self.home;
        let on = head.reference.as_deref().map_or("a detached HEAD", short).to_owned();
        if !self.contains(&head, base)? {
            let stray = if at_home { Stray::Rewritten } else { Stray::Elsewhere };
            return Ok(Whereabouts::Strayed(stray));
        }
        if at_home {
            return Ok(Whereabouts::Home);
        }
        let home = self.home_commit(&head)?;
        Ok(match self.require_forward(&head, home) {
            Ok(()) => Whereabouts::Ahead { on },
            Err(_) => Whereabouts::Strayed(Stray::Elsewhere),
        })
    }

    /// Moves the run's branch forward to HEAD, and HEAD to it.
    pub fn come_home(&self) -> Result<(), GitError> {
        let head = head::tip(&self.repo)?;
        let home = self.home_commit(&head)?;
        self.require_forward(&head, home)?;
        self.move_home(home, head.commit, "ralph: back on the run's branch")
    }

    fn contains(&self, head: &Tip, base: &Base) -> Result<bool, GitError> {
        let base = base.commit.as_deref().map(Oid::from_str).transpose().doing("read the base")?;
        match (head.commit, base) {
            (_, None) => Ok(true),
            (None, Some(_)) => Ok(false),
            (Some(head), Some(base)) if head == base => Ok(true),
            (Some(head), Some(base)) => {
                self.repo.graph_descendant_of(head, base).doing("compare the branches")
            }
        }
    }
}
