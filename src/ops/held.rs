//! After a crash: puts back what untrusted code changed, before any of it is used.

use std::path::Path;

use crate::model::{AttemptStarted, Event, Untrusted, Violation};
use crate::runner::log::JournalHistory;
use crate::ui;
use crate::workspace::{Guard, GuardPart, Guarded, WorkTree};

use super::error::Result;
use super::place::open_tree;
use super::preflight::Preflight;
use super::terminal::ask;

/// Git's setup says where the work tree is: opens it again if that was put back.
pub fn restore_setup(tree: WorkTree, prd: &Path) -> Result<(WorkTree, Option<Event>)> {
    let Some(violation) = Guard::restore_setup(&tree)? else { return Ok((tree, None)) };
    let repaired = Event::Repaired { after: Untrusted::Attempt, story: None, violation };
    Ok((open_tree(prd)?, Some(repaired)))
}

impl Preflight {
    /// For each attempt whose driver died.
    pub fn restore_held(&mut self, history: &mut JournalHistory) -> Result<()> {
        let flights = history.state.attempts.iter().filter(|one| one.start.lane.is_home());
        let starts: Vec<AttemptStarted> = flights.map(|flight| flight.start.clone()).collect();
        for start in starts {
            let guarded = Guarded {
                ran: start.attempt.clone(),
                base: start.base.clone(),
                before: start.before().clone(),
                snapshot: start.snapshot.clone(),
            };
            let guard = Guard::recovered(&self.tree, guarded, start.held.as_deref());
            for part in GuardPart::held_after_crash() {
                let Some(violation) = guard.check(&self.tree, *part)? else { continue };
                if self.are_the_humans(&violation)? {
                    continue;
                }
                guard.repair(&self.tree, &violation)?;
                let (after, story) = (Untrusted::Attempt, Some(start.story.clone()));
                history.repaired.push(Event::Repaired { after, story, violation });
            }
        }
        Ok(())
    }

    /// Without an answer they are not.
    fn are_the_humans(&self, violation: &Violation) -> Result<bool> {
        let Violation::Held { paths, .. } = violation else { return Ok(false) };
        let (facts, patience) = (paths.join("\n"), self.in_force.plan.answer_timeout);
        let asked =
            ask(&self.human, move |human| human.confirm(&ui::CHANGED_MEANWHILE, &facts, patience))?;
        Ok(asked == Some(true))
    }
}
