//! What the human approves, and who must know.

use std::thread;
use std::time::Duration;

use crate::model::{Approval, Event, Request};
use crate::ports::Clock;
use crate::process::supervised::requester;
use crate::state::RunState;
use crate::store::{Journal, Requests, Store};

use super::error::Result;

/// How long a run may take to look at a request, and how often to see whether it has. It takes
/// requests four times a second.
pub const PATIENCE: Duration = Duration::from_secs(5);
pub const GLANCE: Duration = Duration::from_millis(20);

/// Active runs take what they were not told for an agent's. `and_own`: the run of this work tree too,
/// which is not this process.
pub fn tell_runs(store: &Store, and_own: bool, all: Vec<Approval>, clock: &Clock) -> Result<()> {
    let request = Request::Approved { all };
    for requests in store.requests_to_runs(and_own)? {
        let number = requests.make(clock.now().wall, &request, requester())?;
        await_taken(&requests, number, clock)?;
    }
    Ok(())
}

/// Until the run has looked who asks. Returns whether it has.
pub fn await_taken(requests: &Requests, number: i64, clock: &Clock) -> Result<bool> {
    let end = clock.now().steady + PATIENCE;
    while clock.now().steady < end {
        if !requests.is_pending(number)? {
            return Ok(true);
        }
        thread::sleep(GLANCE);
    }
    Ok(false)
}

/// So that the run that continues after a crash does not take them for an agent's.
pub fn note_in_journal(store: &Store, key: &str, state: &RunState, clock: &Clock) -> Result<()> {
    let Some(run) = state.run.as_ref().filter(|_| state.is_open()) else { return Ok(()) };
    let sums = store.answers()?.all()?.sums().into_iter().collect();
    let mut journal = store.journal(key)?;
    journal.append(&run.run, clock.now().wall, &[Event::ApprovalsSeen { sums }])?;
    Ok(journal.sync_point().wait()?)
}

/// After a crash: what appeared since the journal was told is not the human's.
pub fn restore(store: &Store, state: &RunState, clock: &Clock) -> Result<Option<Event>> {
    let Some(sums) = state.approvals_to_keep() else { return Ok(None) };
    let answers = store.answers()?;
    let mut known = answers.all()?;
    known.retain(sums);
    let names = answers.put_back(&known, clock.now().wall)?;
    Ok((!names.is_empty()).then_some(Event::ApprovalsPutBack { names }))
}
