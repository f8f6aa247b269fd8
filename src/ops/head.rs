//! After a crash: HEAD, and the files of its commit, where an agent left them.

use crate::model::{AttemptStarted, LaneId};
use crate::state::RunState;
use crate::workspace::{BranchState, WorkTree};

use super::error::Result;
use super::place::BacklogPlace;

/// The run's branch is still the one before; the loop rolls back to it. PRD.json is needed earlier.
/// What the human did since counts: then HEAD is left alone.
pub fn return_to_branch(tree: &mut WorkTree, place: &BacklogPlace, state: &RunState) -> Result<()> {
    let flights = state.attempts.iter().filter(|one| one.start.lane == LaneId::HOME);
    let starts: Vec<&AttemptStarted> = flights.map(|flight| &flight.start).collect();
    let branch = state.run.as_ref().and_then(|run| run.branch.as_ref());
    let Some(branch) = branch.filter(|_| !starts.is_empty()) else {
        return Ok(tree.require_ready()?);
    };
    for start in starts {
        if !tree.head_is_as_left(start)? {
            return Ok(tree.require_ready()?);
        }
        tree.work_on(branch);
        let base = state.story(&start.story).and_then(|known| known.base());
        let is_lost =
            matches!(tree.branch_state(base.unwrap_or(&start.base))?, BranchState::Lost(_));
        if let (true, Some(path)) = (is_lost, &place.in_tree) {
            tree.return_file(start.before(), path, &tree.changed_by(&start.attempt))?;
        }
    }
    Ok(())
}
