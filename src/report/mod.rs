//! A run's status and result for other programs: `.ralph/status.json` while it runs and
//! `.ralph/report.json` when its process ends. Both have the format that docs/files.md describes.
//!
//! [`RunReport`] is a pure fold of the run's events. The loop only changes it in memory; a thread of
//! the [`Publisher`] renders and writes it when something changed, at most four times a second, and
//! at least every five seconds. A full or blocked disk affects only these files.

mod document;
mod fold;
mod iterations;
#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::model::Recorded;
use crate::ports::{Activity, Clock, Doing, Reporter, View};
use crate::state::RunState;
use crate::store::ralph_dir::RalphDir;

pub use document::{AppliedGate, AppliedSettings, BreakerState, Waits};
pub use fold::RunReport;

const STATUS: &str = "status.json";
const REPORT: &str = "report.json";
/// The shortest time between two writes.
const PACE: Duration = Duration::from_millis(250);
/// The longest: readers see that the run is alive.
const HEARTBEAT: Duration = Duration::from_secs(5);
/// How many iterations the status has; the report has all.
const LATEST: usize = 100;
/// How long the end of the process waits for a disk that accepts nothing.
const FINAL_WRITE: Duration = Duration::from_secs(2);

/// Both files of one process. Without [`finish`](Self::finish) there is no report.
pub struct Publisher {
    report: Arc<SharedReport>,
    clock: Clock,
    /// Closed when the thread has ended.
    over: Receiver<Infallible>,
}

/// Shared by the loop and the thread.
#[derive(Default)]
struct SharedReport {
    draft: Mutex<DraftReport>,
    changed: Condvar,
}

#[derive(Default)]
struct DraftReport {
    report: RunReport,
    /// This process recorded something, so the files are its own from here on.
    begun: bool,
    changed: bool,
    finished: bool,
}

impl Publisher {
    pub fn start(ralph_dir: RalphDir, settings: AppliedSettings, clock: Clock) -> Self {
        let draft = DraftReport { report: RunReport::new(settings), ..DraftReport::default() };
        let report = Arc::new(SharedReport { draft: Mutex::new(draft), ..SharedReport::default() });
        let (alive, over) = channel();
        let (shared, time) = (Arc::clone(&report), clock.clone());
        let work = move || {
            shared.write(&ralph_dir, &time);
            drop(alive);
        };
        // Without a thread nothing is written; the run continues.
        let _ = thread::Builder::new().name("report".to_owned()).spawn(work);
        Self { report, clock, over }
    }

    /// The loop's end of it.
    pub fn reporter(&self) -> Box<dyn Reporter> {
        Box::new(Arc::clone(&self.report))
    }

    /// Writes both files for the last time. `error`: why ralph itself failed.
    pub fn finish(self, error: Option<&str>) {
        let now = self.clock.now().wall;
        self.report.change(|draft| {
            if let Some(error) = error {
                draft.report.fail(error, now);
            }
            draft.finished = true;
            true
        });
        let _ = self.over.recv_timeout(FINAL_WRITE);
    }
}

impl Reporter for Arc<SharedReport> {
    /// A continued run is reported as a whole.
    fn on_earlier(&mut self, events: &[Recorded], state: &RunState) {
        self.change(|draft| {
            draft.report.take_up(events, state);
            false
        });
    }

    fn on_event(&mut self, recorded: &Recorded, view: View<'_>) {
        self.change(|draft| {
            draft.report.apply(recorded);
            draft.report.set_stories(view.backlog.stories.len());
            draft.begun = true;
            true
        });
    }

    fn on_activity(&mut self, activity: &Activity) {
        let attempt = &activity.attempt;
        self.change(|draft| match &activity.doing {
            Doing::Step { kind, what } => draft.report.doing(attempt, *kind, what),
            Doing::Checking { .. } => draft.report.checking(attempt),
            Doing::Said(_) => false,
        });
    }
}

impl SharedReport {
    fn draft(&self) -> MutexGuard<'_, DraftReport> {
        self.draft.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `change` returns whether it changed anything.
    fn change(&self, change: impl FnOnce(&mut DraftReport) -> bool) {
        let mut draft = self.draft();
        if change(&mut draft) {
            draft.changed = true;
            self.changed.notify_one();
        }
    }

    /// Until the report is finished.
    fn write(&self, ralph_dir: &RalphDir, clock: &Clock) {
        let mut next = Duration::ZERO;
        loop {
            let idle = |draft: &mut DraftReport| !draft.changed && !draft.finished;
            let waited = self.changed.wait_timeout_while(self.draft(), HEARTBEAT, idle);
            let (draft, _) = waited.unwrap_or_else(PoisonError::into_inner);
            let pause = next.saturating_sub(clock.now().steady);
            let paced = self.changed.wait_timeout_while(draft, pause, |draft| !draft.finished);
            let (mut draft, _) = paced.unwrap_or_else(PoisonError::into_inner);
            let (begun, finished) = (draft.begun, draft.finished);
            draft.changed = false;
            let mut render = |latest| draft.report.render(clock.now().wall, latest).ok();
            let status = render(Some(LATEST));
            let report = if finished { render(None) } else { None };
            drop(draft);
            for (name, text) in [(STATUS, status), (REPORT, report)] {
                // A file that cannot be written is written the next time.
                if let Some(text) = text.filter(|_| begun) {
                    let _ = ralph_dir.put(name, &text);
                }
            }
            if finished {
                return;
            }
            next = clock.now().steady + PACE;
        }
    }
}
