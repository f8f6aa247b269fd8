//! After a crash: HEAD, and the files of its commit, where an agent or a gate left them.

use crate::model::{AttemptStarted, BranchLoss, Event, GatesStarted, LaneId, Violation};
use crate::state::RunState;
use crate::workspace::{BranchState, GATES, WorkTree};

use super::error::Result;
use super::place::BacklogPlace;

/// The run's branch is still the one before; the loop rolls back to it. PRD.json is needed earlier.
/// What the human did since counts: then HEAD is left alone. Returns what gates did to the branch.
pub fn return_to_branch(
    tree: &mut WorkTree,
    place: &BacklogPlace,
    state: &RunState,
) -> Result<Option<Event>> {
    let flights = state.attempts.iter().filter(|one| one.start.lane == LaneId::HOME);
    let starts: Vec<&AttemptStarted> = flights.map(|flight| &flight.start).collect();
    let branch = state.run.as_ref().and_then(|run| run.branch.as_ref());
    let Some(branch) = branch else {
        tree.require_ready()?;
        return Ok(None);
    };
    if starts.is_empty() {
        let repaired = match &state.gates {
            Some(gates) => return_from_gates(tree, branch, gates)?,
            None => None,
        };
        tree.require_ready()?;
        return Ok(repaired);
    }
    for start in starts {
        let before = start.before();
        let is_as_left = tree.head_is_as_left(before, &start.attempt)?;
        if !is_as_left && !tree.is_astray(branch, before)? {
            tree.require_ready()?;
            return Ok(None);
        }
        tree.work_on(branch);
        let base = state.story(&start.story).and_then(|known| known.base());
        let is_lost =
            matches!(tree.branch_state(base.unwrap_or(&start.base))?, BranchState::Lost(_));
        if let (true, Some(path)) = (is_lost, &place.in_tree) {
            tree.return_file(start.before(), path, &tree.changed_by(&start.attempt))?;
        }
    }
    Ok(None)
}

/// The tree before them is known as a whole. What they left is kept.
fn return_from_gates(
    tree: &mut WorkTree,
    branch: &str,
    gates: &GatesStarted,
) -> Result<Option<Event>> {
    let before = &gates.before;
    let is_as_left = tree.head_is_as_left(before, GATES)?;
    if !tree.has_tree(before) || !(is_as_left || tree.is_astray(branch, before)?) {
        return Ok(None);
    }
    tree.work_on(branch);
    let how = match tree.branch_state(before)? {
        BranchState::Lost(how) => how,
        BranchState::Ahead { .. } => BranchLoss::Elsewhere,
        BranchState::OnBranch if tree.operation().is_some() => BranchLoss::Rewritten,
        BranchState::OnBranch if tree.gates_committed(before)? => BranchLoss::Rewritten,
        BranchState::OnBranch => return Ok(None),
    };
    tree.keep_written()?;
    tree.return_to(before)?;
    let violation = Violation::BranchLost { how };
    Ok(Some(Event::Repaired { after: gates.after, story: gates.story.clone(), violation }))
}
