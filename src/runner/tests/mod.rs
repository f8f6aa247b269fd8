//! The dispatcher's rules, one by one: no repository, no process, no terminal.

mod claims;
mod ends;
pub mod fake;
mod interrupts;
mod questions;
mod turns;

use std::num::NonZeroU32;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use jiff::tz::TimeZone;

use crate::decide::samples::{attended, backlog, escalation, id, story};
use crate::model::{AgentSignals, Answer, Event, Gate, Outcome, Policy, RunStarted, StopReason};
use crate::ports::{Asked, Clock, Moment};
use crate::runner::RunConfig;
use crate::runner::dispatcher::{Dispatcher, Ending};
use crate::runner::effects::{About, GatesOf, Happened};
use crate::runner::error::{Result, RunnerError};
use crate::runner::log::RunLog;

use fake::{Fake, Kept, Silent, config, ended};

/// A run that the test goes through turn by turn.
struct Run {
    dispatcher: Dispatcher<Fake>,
    kept: Kept,
}

/// How a run's process ended, if it did.
type End = Option<Result<Ending>>;

impl Run {
    /// A, B and C can be started; a gate decides over every claim.
    fn new(policy: Policy) -> Self {
        Self::of(policy, &["A", "B", "C"])
    }

    fn of(policy: Policy, stories: &[&str]) -> Self {
        Self::with(config(policy), stories)
    }

    fn with(config: RunConfig, stories: &[&str]) -> Self {
        let backlog = backlog(stories.iter().map(|name| story(name)));
        let config = Arc::new(config);
        let (fake, kept) = (Fake::new(backlog), Kept::default());
        let time = Arc::clone(&fake.time);
        let now = move || Moment { wall: time.load(Ordering::Relaxed), steady: Duration::ZERO };
        let clock = Clock::new(TimeZone::UTC, now);
        let mut log = RunLog::new(Box::new(kept.clone()), Box::new(Silent), clock);
        let started = RunStarted {
            run: "run".into(),
            backlog: "PRD.json".into(),
            project: "p".into(),
            description: String::new(),
            agent: "mock".into(),
            branch: None,
            allow_dirty: false,
            boot: None,
            carried: vec![],
        };
        log.record(&fake.file, vec![Event::RunStarted(started)]).unwrap();
        let mut run = Self { dispatcher: Dispatcher::new(fake, log, config), kept };
        assert!(run.turn().is_none(), "it ends at once");
        run
    }

    fn fake(&mut self) -> &mut Fake {
        &mut self.dispatcher.effects
    }

    /// The human changes A's gates: its claim has to be looked at.
    fn change_gates(&mut self) {
        self.fake().file.stories[0].verify = vec![Gate::shell("true")];
    }

    /// Until nothing can be started and nothing more happened.
    fn turn(&mut self) -> End {
        let polled = pin!(self.dispatcher.run()).poll(&mut Context::from_waker(Waker::noop()));
        match polled {
            Poll::Ready(end) => Some(end),
            Poll::Pending => None,
        }
    }

    fn then(&mut self, happened: Happened) -> End {
        self.fake().happens.push_back(happened);
        self.turn()
    }

    fn tick(&mut self) -> End {
        self.then(Happened::Tick)
    }

    fn later(&mut self, minutes: i64) -> End {
        self.seconds_later(minutes * 60)
    }

    fn seconds_later(&mut self, seconds: i64) -> End {
        self.fake().time.fetch_add(seconds * 1000, Ordering::Relaxed);
        self.tick()
    }

    /// The attempt ends, and claims its story.
    fn claims(&mut self, attempt: &str) -> End {
        self.then(claimed(attempt))
    }

    /// The attempt ends with a question.
    fn asks(&mut self, attempt: &str) -> End {
        let asks =
            AgentSignals { escalation: Some(escalation("which?")), ..AgentSignals::default() };
        self.then(ended(attempt, Outcome::Completed, asks))
    }

    fn is_ended(&mut self, attempt: &str) -> End {
        self.then(ended(attempt, Outcome::EndedByUs, AgentSignals::default()))
    }

    fn gates_of(story: &str, attempt: &str) -> GatesOf {
        GatesOf::Claim { story: id(story), attempt: attempt.into() }
    }

    fn passes(&mut self, story: &str, attempt: &str) -> End {
        let of = Self::gates_of(story, attempt);
        self.then(Happened::GatesEnded {
            of,
            items: Some(vec![fake::passed()]),
            found: fake::changed(),
        })
    }

    fn are_stopped(&mut self, of: GatesOf) -> End {
        self.then(Happened::GatesEnded { of, items: None, found: fake::changed() })
    }

    fn answers(&mut self, story: &str, answer: Answer) -> End {
        let (about, asked) = (About::Story(id(story)), Asked::Answered(answer));
        self.then(Happened::Answered { about, asked })
    }

    /// Nobody answers, or the question was withdrawn.
    fn is_silent(&mut self, story: &str) -> End {
        let (about, asked) = (About::Story(id(story)), Asked::NoAnswer);
        self.then(Happened::Answered { about, asked })
    }

    /// What was done since the last time somebody asked.
    fn did(&mut self) -> Vec<String> {
        std::mem::take(&mut self.fake().did)
    }

    #[track_caller]
    fn expect(&mut self, expected: &[&str]) {
        assert_eq!(self.did(), expected);
    }

    fn last(&self) -> Event {
        self.kept.events.borrow().last().cloned().unwrap().event
    }
}

fn claimed(attempt: &str) -> Happened {
    let claim = AgentSignals { claims_story: true, ..AgentSignals::default() };
    ended(attempt, Outcome::Completed, claim)
}

fn lanes(count: u32) -> Policy {
    Policy { lanes: NonZeroU32::new(count).unwrap(), ..attended() }
}

/// With a floor under the free room of the disk.
fn floor(policy: Policy) -> Policy {
    Policy { min_free_disk: Some(1000), ..policy }
}

fn minutes(count: u64) -> Duration {
    Duration::from_mins(count)
}

#[track_caller]
fn stopped(end: End) -> StopReason {
    match end {
        Some(Ok(Ending::Stopped(reason))) => reason,
        other => panic!("{other:?}"),
    }
}
