//! Traits for the display and the human, and the clock.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::files;
use crate::model::{
    Answer, Backlog, Escalation, Notice, Recorded, StepKind, Story, Wait, unique_id,
};
use crate::state::RunState;

/// The time and the time zone. There is one clock per process, passed in, so that tests choose
/// their own.
#[derive(Clone)]
pub struct Clock {
    read: Arc<dyn Fn() -> Moment + Send + Sync>,
    pub zone: TimeZone,
}

impl Clock {
    pub fn new(zone: TimeZone, read: impl Fn() -> Moment + Send + Sync + 'static) -> Self {
        Self { read: Arc::new(read), zone }
    }

    /// The machine's.
    pub fn system() -> Self {
        let (start, wall) = (Instant::now(), || Timestamp::now().as_millisecond());
        Self::new(time_zone(), move || Moment { wall: wall(), steady: start.elapsed() })
    }

    pub fn now(&self) -> Moment {
        (self.read)()
    }

    /// When today began, in milliseconds since the Unix epoch.
    pub fn start_of_day(&self) -> i64 {
        let now = self.now().wall;
        let start = || {
            let moment = Timestamp::from_millisecond(now).ok()?.to_zoned(self.zone.clone());
            Some(moment.start_of_day().ok()?.timestamp().as_millisecond())
        };
        start().unwrap_or(now)
    }
}

/// Of a run or an attempt.
pub fn new_id() -> String {
    unique_id(Timestamp::now().as_nanosecond())
}

/// `TimeZone::system` would first list every time zone that the machine knows.
fn time_zone() -> TimeZone {
    const LOCAL_TIME: &str = "/etc/localtime";
    const LARGEST: u64 = 1 << 20;
    let chosen = std::env::var_os("TZ").map(|_| TimeZone::system());
    let local = || TimeZone::tzif("local", &files::read(Path::new(LOCAL_TIME), LARGEST).ok()?).ok();
    chosen.or_else(local).unwrap_or_else(TimeZone::system)
}

#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// Milliseconds since the Unix epoch.
    pub wall: i64,
    /// Since an arbitrary start, without the time that the machine slept.
    pub steady: Duration,
}

/// Context for an event.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// After the event: a story that was just closed passes in it.
    pub backlog: &'a Backlog,
    /// The state after the event.
    pub state: &'a RunState,
}

/// Shows events and notices. Never fails the run: text that cannot be shown is dropped.
pub trait Reporter {
    /// The state before this process, and the earlier events of its run if that is open.
    fn on_earlier(&mut self, _events: &[Recorded], _state: &RunState) {}
    /// An event, right after it was recorded.
    fn on_event(&mut self, recorded: &Recorded, view: View<'_>);
    /// For the live line.
    fn on_activity(&mut self, _activity: &Activity) {}
    /// The run waits. Called repeatedly; the next event ends it.
    fn on_wait(&mut self, _wait: &Wait) {}
    /// Not an event of the run.
    fn on_notice(&mut self, _notice: &Notice) {}
}

/// Reports to each of them.
impl Reporter for Vec<Box<dyn Reporter>> {
    fn on_earlier(&mut self, events: &[Recorded], state: &RunState) {
        self.iter_mut().for_each(|reporter| reporter.on_earlier(events, state));
    }

    fn on_event(&mut self, recorded: &Recorded, view: View<'_>) {
        self.iter_mut().for_each(|reporter| reporter.on_event(recorded, view));
    }

    fn on_activity(&mut self, activity: &Activity) {
        self.iter_mut().for_each(|reporter| reporter.on_activity(activity));
    }

    fn on_wait(&mut self, wait: &Wait) {
        self.iter_mut().for_each(|reporter| reporter.on_wait(wait));
    }

    fn on_notice(&mut self, notice: &Notice) {
        self.iter_mut().for_each(|reporter| reporter.on_notice(notice));
    }
}

/// What an attempt is doing right now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Activity {
    /// Empty for the baseline.
    pub attempt: String,
    pub doing: Doing,
}

/// Its texts are untrusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Doing {
    /// A tool call, a retry, a wait: one short line.
    Step { kind: StepKind, what: String },
    /// The main agent's text; for `--verbose`.
    Said(String),
    /// A gate runs from now on, in milliseconds since the Unix epoch.
    Checking { at: i64, gate: String },
}

/// How long a menu may take to release the terminal when it is closed.
pub const WITHDRAWAL: Duration = Duration::from_secs(1);

/// A question to show.
#[derive(Clone, Debug)]
pub struct Ask {
    pub story: Story,
    pub question: Escalation,
    /// How long to wait for an answer.
    pub patience: Duration,
    /// Without an answer, the agent is ended. Otherwise the question is parked.
    pub ends_agent: bool,
    pub withdrawal: Arc<Withdrawal>,
}

/// Takes a question back. Other questions are not affected.
#[derive(Debug, Default)]
pub struct Withdrawal {
    is_withdrawn: AtomicBool,
    is_closed: AtomicBool,
    /// The human's editor has the terminal; `ask` returns when it ends.
    pub in_editor: AtomicBool,
}

impl Withdrawal {
    /// `ask` returns soon, but lets the human finish a text first.
    pub fn withdraw(&self) {
        self.is_withdrawn.store(true, Ordering::SeqCst);
    }

    /// `ask` returns `NoAnswer` within [`WITHDRAWAL`], unless an answer was just given or the human's
    /// editor is open.
    pub fn close(&self) {
        self.withdraw();
        self.is_closed.store(true, Ordering::SeqCst);
    }

    pub fn is_withdrawn(&self) -> bool {
        self.is_withdrawn.load(Ordering::SeqCst)
    }

    pub fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::SeqCst)
    }
}

/// The person at the terminal, if there is one. `ask` and `wait_skipped` block; call them outside
/// the loop. Reports during an open question are shown above it.
pub trait Human: Send + Sync {
    /// One question at a time: a second call waits for the first to return.
    fn ask(&self, ask: &Ask) -> Asked;
    /// How many questions are open now, the one that is shown included.
    fn open_questions(&self, _count: usize) {}
    /// During a wait: true when the human skips it. False without a terminal, and soon after the
    /// wait is `over`.
    fn wait_skipped(&self, _over: &AtomicBool) -> bool {
        false
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    Answered(Answer),
    /// No answer in time, no terminal, or the question was withdrawn.
    NoAnswer,
    /// Ctrl-C in the menu.
    Interrupted,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_has_a_start_whatever_the_clock_says() {
        let day = 24 * 60 * 60 * 1000;
        for (now, start) in [
            (-1, -day),
            (-day, -day),
            (0, 0),
            (day + 1, day),
            (i64::MIN, i64::MIN),
            (i64::MAX, i64::MAX),
        ] {
            let clock =
                Clock::new(TimeZone::UTC, move || Moment { wall: now, steady: Duration::ZERO });
            assert_eq!(clock.start_of_day(), start, "{now}");
        }
    }

    #[test]
    fn a_day_begins_before_1970_too() {
        let day = 86_400_000;
        for (now, began) in
            [(-1, -day), (-day, -day), (day + 1, day), (i64::MIN, i64::MIN), (i64::MAX, i64::MAX)]
        {
            let moment = move || Moment { wall: now, steady: Duration::ZERO };
            assert_eq!(Clock::new(TimeZone::UTC, moment).start_of_day(), began);
        }
    }

    #[test]
    fn the_time_zone_is_the_systems() {
        let (own, systems) = (time_zone(), TimeZone::system());
        for month in 0..12 {
            let at = Timestamp::from_second(month * 30 * 86_400).unwrap();
            assert_eq!(own.to_offset(at), systems.to_offset(at), "{at}");
        }
    }
}
