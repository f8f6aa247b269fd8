//! Writes the document from a thread of its own.
//!
//! The loop only changes the report in memory. The thread renders and writes it when something
//! changed, at most four times a second, and as a sign of life when nothing does. A disk that is
//! full or hangs costs the files and nothing else.

use std::convert::Infallible;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::model::Recorded;
use crate::ports::{Activity, Clock, Doing, Reporter, View};
use crate::store::ralph_dir::RalphDir;

use super::document::AppliedSettings;
use super::fold::{Extent, RunReport};

const STATUS: &str = "status.json";
const REPORT: &str = "report.json";
/// The shortest time between two writes.
const PACE: Duration = Duration::from_millis(250);
/// The longest.
const SIGN_OF_LIFE: Duration = Duration::from_secs(5);
/// How many iterations the status has; the report has all.
const LATEST: usize = 100;
/// How long the end of the process waits for a disk that takes nothing.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Both files of one process. Without [`finish`](Self::finish) there is no report.
pub struct Publisher {
    desk: Arc<ReportDesk>,
    clock: Clock,
    /// Closed when the thread has ended.
    over: Receiver<Infallible>,
}

/// What the loop and the thread share.
#[derive(Default)]
struct ReportDesk {
    draft: Mutex<PendingReport>,
    changed: Condvar,
}

#[derive(Default)]
struct PendingReport {
    report: RunReport,
    /// This process recorded something: from here on the files are its own.
    begun: bool,
    changed: bool,
    finished: bool,
}

impl Publisher {
    pub fn start(ralph_dir: RalphDir, settings: AppliedSettings, clock: Clock) -> Self {
        let draft = PendingReport { report: RunReport::new(settings), ..PendingReport::default() };
        let desk = Arc::new(ReportDesk { draft: Mutex::new(draft), changed: Condvar::new() });
        let (alive, over) = channel();
        let writer = ReportWriter {
            desk: Arc::clone(&desk),
            ralph_dir,
            clock: Arc::clone(&clock),
            _alive: alive,
        };
        // Without a thread nothing can be written; the run goes on all the same.
        let _ = thread::Builder::new().name("report".to_owned()).spawn(move || writer.write());
        Self { desk, clock, over }
    }

    /// The loop's end of it.
    pub fn teller(&self) -> ReportTeller {
        ReportTeller { desk: Arc::clone(&self.desk) }
    }

    /// Writes both files for the last time; `error` is why ralph itself could not go on.
    pub fn finish(self, error: Option<&str>) {
        let now = (self.clock)().wall;
        self.desk.change(|draft| {
            if let Some(error) = error {
                draft.report.fail(error, now);
            }
            draft.finished = true;
            true
        });
        let _ = self.over.recv_timeout(LAST_WORDS);
    }
}

impl ReportDesk {
    fn draft(&self) -> MutexGuard<'_, PendingReport> {
        self.draft.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut PendingReport) -> bool) {
        let mut draft = self.draft();
        if change(&mut draft) {
            draft.changed = true;
            self.changed.notify_one();
        }
    }

    /// Waits as long as there is nothing to do, but not longer than that.
    fn wait<'a>(
        &self,
        draft: MutexGuard<'a, PendingReport>,
        longest: Duration,
        idle: fn(&mut PendingReport) -> bool,
    ) -> MutexGuard<'a, PendingReport> {
        let waited = self.changed.wait_timeout_while(draft, longest, idle);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

pub struct ReportTeller {
    desk: Arc<ReportDesk>,
}

impl Reporter for ReportTeller {
    /// A run that is continued is told as a whole.
    fn on_earlier(&mut self, events: &[Recorded]) {
        self.desk.change(|draft| {
            events.iter().for_each(|recorded| draft.report.apply(recorded));
            false
        });
    }

    fn on_event(&mut self, recorded: &Recorded, view: View<'_>) {
        self.desk.change(|draft| {
            draft.report.apply(recorded);
            draft.report.set_stories(view.backlog.stories.len());
            draft.begun = true;
            true
        });
    }

    fn on_activity(&mut self, activity: &Activity) {
        self.desk.change(|draft| match &activity.doing {
            Doing::Step(what) => draft.report.doing(what),
            Doing::Checking { .. } => draft.report.checking(),
            Doing::Said(_) => false,
        });
    }
}

struct ReportWriter {
    desk: Arc<ReportDesk>,
    ralph_dir: RalphDir,
    clock: Clock,
    _alive: Sender<Infallible>,
}

impl ReportWriter {
    fn write(self) {
        self.ralph_dir.remove_leftovers(STATUS);
        self.ralph_dir.remove_leftovers(REPORT);
        let mut last = None;
        loop {
            let mut draft = self.wait_for_news(last);
            let (begun, finished) = (draft.begun, draft.finished);
            draft.changed = false;
            let render = |draft: &mut PendingReport, extent| {
                draft.report.render((self.clock)().wall, extent).ok().filter(|_| begun)
            };
            let status = render(&mut draft, Extent::Latest(LATEST));
            let report = if finished { render(&mut draft, Extent::Whole) } else { None };
            drop(draft);
            self.put(STATUS, status);
            self.put(REPORT, report);
            if finished {
                return;
            }
            last = Some((self.clock)().steady);
        }
    }

    fn wait_for_news(&self, last: Option<Duration>) -> MutexGuard<'_, PendingReport> {
        let idle = |draft: &mut PendingReport| !draft.changed && !draft.finished;
        let draft = self.desk.wait(self.desk.draft(), SIGN_OF_LIFE, idle);
        let now = (self.clock)().steady;
        let left = last.map_or(Duration::ZERO, |last| (last + PACE).saturating_sub(now));
        self.desk.wait(draft, left, |draft| !draft.finished)
    }

    /// A file that cannot be written is written the next time.
    fn put(&self, name: &str, text: Option<Vec<u8>>) {
        if let Some(text) = text {
            let _ = self.ralph_dir.put(name, &text);
        }
    }
}
