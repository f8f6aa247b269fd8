//! The loop's side of the display: the loop words the lines, a thread draws them.
//!
//! A terminal that accepts nothing (Ctrl-S, a stopped reader) blocks only that thread, so timeouts
//! and signals still work.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use crate::model::{Event, Notice, NudgedBy, Recorded, StoryId, StuckEvent, Wait, WaitFor};
use crate::ports::{Activity, Asked, Clock, Doing, Reporter, View};
use crate::state::{Health, Stage};

use super::look::{Line, LiveAgent, TextLine, Tone, of_story};
use super::printer::LAST_WORDS;
use super::screen::Screen;
use super::{GLANCE, UiOptions, events, notices};

/// The most bytes of activity that may be queued. Events and notices are always queued.
const ROOM: usize = 4 << 20;

/// Something to draw; None ends the thread.
type DrawJob = Option<Box<dyn FnOnce(&mut Screen) + Send>>;

pub struct Display {
    quiet: bool,
    verbose: bool,
    /// For menus too, which share the terminal with this display.
    pub queue: DisplayQueue,
    /// Bytes of activity that wait to be drawn.
    waiting: Arc<AtomicUsize>,
    /// Some text of the agent did not fit.
    left_out: bool,
    /// The end of the wait that was reported last.
    reported_wait: Option<i64>,
    /// A live line counts down.
    counting: bool,
    /// Attempts that may have a live line.
    attempts: BTreeMap<String, StoryId>,
    /// Closed when the thread has ended.
    over: Receiver<Infallible>,
}

impl Display {
    pub fn start(screen: Screen, options: &UiOptions) -> Self {
        let (jobs, received) = channel();
        let (alive, over) = channel();
        let work = move || {
            draw(screen, &received);
            drop(alive);
        };
        // Without a thread nothing is shown; the run continues.
        let _ = thread::Builder::new().name("display".to_owned()).spawn(work);
        Self {
            quiet: options.quiet,
            verbose: options.verbose,
            queue: DisplayQueue { jobs, clock: options.clock.clone() },
            waiting: Arc::default(),
            left_out: false,
            reported_wait: None,
            counting: false,
            attempts: BTreeMap::new(),
            over,
        }
    }

    /// The attempts whose agent or gates still run after an event.
    fn running(&mut self, event: &Event, view: View<'_>) -> BTreeSet<String> {
        match event {
            Event::AttemptStarted(start) => {
                self.attempts.insert(start.attempt.clone(), start.story.clone());
            }
            Event::RunInterrupted { .. } | Event::RunEnded { .. } => self.attempts.clear(),
            _ => {}
        }
        self.attempts.retain(|attempt, story| is_undecided(attempt, story, view));
        let is_over = |attempt: &String| match event {
            Event::AttemptEnded(end) => end.attempt == *attempt,
            _ => false,
        };
        let baseline = (!view.state.has_baseline).then(String::new);
        let running = self.attempts.keys().filter(|attempt| !is_over(attempt)).cloned();
        running.chain(baseline).collect()
    }

    fn said(&mut self, attempt: &str, text: &str) {
        if self.quiet || !self.verbose || text.trim().is_empty() {
            return;
        }
        let gap = "  (some text left out: it came faster than it could be shown)".to_owned();
        let story = self.attempts.get(attempt).filter(|_| self.attempts.len() > 1);
        let text = format!("{}{}", of_story(story), text.trim());
        let indented = text.lines().map(|line| format!("  {line}").trim_end().to_owned());
        let all = self.left_out.then_some(gap).into_iter().chain(indented);
        let lines: Vec<Line> =
            all.map(|line| TextLine::new().with(Tone::Dim, line).into()).collect();
        self.left_out = !self.activity(text.len(), move |screen| screen.print(&lines));
    }

    /// False if there is no room for it.
    fn activity(&self, size: usize, job: impl FnOnce(&mut Screen) + Send + 'static) -> bool {
        let has_room = self.waiting.load(Ordering::Relaxed) < ROOM;
        if has_room {
            self.waiting.fetch_add(size, Ordering::Relaxed);
            let waiting = Arc::clone(&self.waiting);
            self.queue.send(move |screen| {
                job(screen);
                waiting.fetch_sub(size, Ordering::Relaxed);
            });
        }
        has_room
    }
}

impl Reporter for Display {
    fn on_event(&mut self, recorded: &Recorded, view: View<'_>) {
        let is_shown = !self.quiet || events::is_essential(&recorded.event);
        let lines = if is_shown { events::lines(recorded, view) } else { vec![] };
        if let Some((story, health)) = agent_health(&recorded.event) {
            let attempt = view.state.attempts.at(story).map(|flight| flight.start.attempt.clone());
            self.queue.send(move |screen| {
                screen.print(&lines);
                screen.health(&attempt.unwrap_or_default(), health);
            });
            return;
        }
        self.counting = false;
        let running = self.running(&recorded.event, view);
        self.queue.send(move |screen| screen.fact(lines, &running));
    }

    fn on_activity(&mut self, activity: &Activity) {
        let attempt = activity.attempt.clone();
        match &activity.doing {
            Doing::Step { what, .. } => {
                let (size, what) = (what.len(), what.clone());
                self.activity(size, move |screen| screen.doing(&attempt, &what));
            }
            Doing::Said(text) => self.said(&attempt, text),
            Doing::Checking { at, gate } if !self.quiet => {
                let (story, name) = (self.attempts.get(&attempt).cloned(), gate.clone());
                let agent = LiveAgent { story, name, ..LiveAgent::default() };
                let running = Line::Running { at: *at, attempt, agent };
                self.queue.send(move |screen| screen.start(vec![running]));
            }
            Doing::Checking { .. } => {}
        }
    }

    /// One line per wait, and a countdown that returns after each event.
    fn on_wait(&mut self, wait: &Wait) {
        // The events before a retry or a cool-down have reported these.
        let is_news = matches!(wait.what, WaitFor::Limit | WaitFor::Service | WaitFor::Budget);
        if is_news && self.reported_wait.replace(wait.until) != Some(wait.until) {
            self.queue.print(vec![Line::Waiting(wait.clone())]);
        }
        if !std::mem::replace(&mut self.counting, true) {
            let wait = wait.clone();
            self.queue.send(move |screen| screen.wait(wait));
        }
    }

    fn on_notice(&mut self, notice: &Notice) {
        if !self.quiet || notices::is_warning(notice) {
            self.queue.print(notices::lines(notice));
        }
    }
}

impl Drop for Display {
    /// Waits until everything is drawn, if the terminal accepts it in time.
    fn drop(&mut self) {
        let _ = self.queue.jobs.send(None);
        let _ = self.over.recv_timeout(LAST_WORDS);
    }
}

/// Its agent runs, or the gates decide about its claim.
fn is_undecided(attempt: &str, story: &StoryId, view: View<'_>) -> bool {
    let stage = view.state.story(story).map(|known| &known.stage);
    let is_claimed = matches!(stage, Some(Stage::Claimed(claim)) if claim.attempt == attempt);
    view.state.attempts.get(attempt).is_some() || (is_claimed && view.backlog.is_open(story))
}

/// The new health of a story's agent, if the event is about that.
fn agent_health(event: &Event) -> Option<(&StoryId, Option<&'static str>)> {
    let stuck = Some(Health::Stuck.word());
    match event {
        Event::Nudged { story, by: NudgedBy::Driver, .. }
        | Event::Stuck { story, step: StuckEvent::Asked { .. } | StuckEvent::Ended { .. } } => {
            Some((story, stuck))
        }
        Event::Nudged { story, .. } | Event::Stuck { story, .. } => Some((story, None)),
        _ => None,
    }
}

fn draw(mut screen: Screen, jobs: &Receiver<DrawJob>) {
    loop {
        let job = match screen.tick() {
            Some(wait) => jobs.recv_timeout(wait),
            None => jobs.recv().map_err(RecvTimeoutError::from),
        };
        match job {
            Ok(Some(job)) => job(&mut screen),
            Err(RecvTimeoutError::Timeout) => {}
            Ok(None) | Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// Jobs for the display's thread.
#[derive(Clone)]
pub struct DisplayQueue {
    jobs: Sender<DrawJob>,
    clock: Clock,
}

impl DisplayQueue {
    /// Without effect after the display has ended.
    pub fn send(&self, job: impl FnOnce(&mut Screen) + Send + 'static) {
        let _ = self.jobs.send(Some(Box::new(job)));
    }

    /// Above an open menu, without ending a live line.
    pub fn print(&self, lines: Vec<Line>) {
        self.send(move |screen| screen.print(&lines));
    }

    /// On the steady clock. None if it overflows: then there is no limit.
    pub fn deadline(&self, patience: Duration) -> Option<Duration> {
        self.clock.now().steady.checked_add(patience)
    }

    pub fn is_over(&self, deadline: Option<Duration>) -> bool {
        deadline.is_some_and(|end| self.clock.now().steady >= end)
    }

    /// Waits until everything that was sent is drawn. Nothing more is drawn, and another program has
    /// the terminal, until the result is dropped.
    pub fn hold(
        &self,
        patience: Duration,
        is_withdrawn: impl Fn() -> bool,
    ) -> Result<Sender<Infallible>, Asked> {
        let (held, is_held) = channel();
        let (release, released) = channel();
        self.send(move |screen| screen.hold(&held, &released));
        let deadline = self.deadline(patience);
        while !is_withdrawn() {
            match is_held.recv_timeout(GLANCE) {
                // A display that has ended draws nothing.
                Ok(()) | Err(RecvTimeoutError::Disconnected) => return Ok(release),
                // If the terminal accepts no output, the human cannot answer.
                Err(RecvTimeoutError::Timeout) if self.is_over(deadline) => break,
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
        Err(Asked::NoAnswer)
    }
}
