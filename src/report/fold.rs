//! The fold of a run's events into the document.

use serde::Serialize;

use crate::decide::figures::{Efficiency, Figures, forecast};
use crate::model::{
    Answer, AttemptEnded, EscalationKind, Event, IterationResult, NudgedBy, Recorded, RunStarted,
    StepKind, StoryId, StuckEvent, Usage, Verdict, shorten,
};
use crate::state::{Health, RunState};

use super::document::{
    AppliedSettings, BreakerState, Goal, NoticeRecord, ReportTime, RunPhase, StopRecord, Summary,
    VERSION,
};
use super::iterations::{Iteration, IterationPhase, Iterations};

const LONGEST_GOAL: usize = 2000;
/// The latest of them.
const MOST_NOTICES: usize = 100;

/// The whole document, with some or all iterations.
#[derive(Serialize)]
struct ReportPage<'a> {
    #[serde(flatten)]
    summary: &'a Summary,
    iterations_left_out: usize,
    iterations: &'a [Iteration],
}

/// The latest run.
#[derive(Debug, Default)]
pub struct RunReport {
    summary: Summary,
    iterations: Iterations,
    state: RunState,
    /// Of all ended attempts.
    usage: Usage,
    /// This process started an attempt.
    has_tried: bool,
    /// Set if the process ends before the run does.
    left_in: Option<RunPhase>,
    /// When the present process started or continued the run, and how long others worked before.
    since: ReportTime,
    worked_ms: u64,
    last_at: ReportTime,
}

impl RunReport {
    pub fn new(settings: AppliedSettings) -> Self {
        Self { summary: Summary { settings, ..Summary::default() }, ..Self::default() }
    }

    /// The events so far of a run that may be continued, and the state after them.
    pub fn take_up(&mut self, events: &[Recorded], state: &RunState) {
        events.iter().for_each(|recorded| self.follow(recorded));
        self.state = state.clone();
    }

    /// A new run starts from zero.
    pub fn apply(&mut self, recorded: &Recorded) {
        self.state.apply(recorded);
        self.follow(recorded);
    }

    fn follow(&mut self, recorded: &Recorded) {
        let at = ReportTime(recorded.at);
        match &recorded.event {
            Event::RunStarted(start) => self.start(start, at),
            Event::RunContinued => self.resume(at),
            Event::AttemptStarted(start) => {
                self.has_tried = true;
                self.iterations.start(start, at);
            }
            Event::AttemptEnded(end) => self.end_attempt(end, at),
            Event::ClaimRejected { story, error, .. }
            | Event::CloseRefused { story, error, .. } => self.reject(story, Some(error)),
            Event::SecondLookWanted { story } => self.reject(story, None),
            Event::QuestionAnswered { story, answer } => self.answer(story, answer),
            Event::StoryClosed(closed) => {
                let index = self.iterations.of_attempt(&closed.attempt);
                self.keep(index, &closed.commit);
                self.iterations.set_change(index, closed.change.clone());
                self.iterations.settle(index, IterationResult::Closed);
            }
            Event::WorkSetAside { story, reference: Some(reference), .. }
            | Event::Returned { story, reference: Some(reference) } => {
                self.summary.metrics.rollbacks += 1;
                self.keep(self.iterations.latest_of(story), reference);
            }
            Event::AttemptKept { story, reference, .. } => {
                self.keep(self.iterations.latest_of(story), reference);
            }
            Event::QuestionRaised { question, .. } => {
                self.summary.metrics.ruts += u32::from(question.kind == EscalationKind::NoProgress);
            }
            Event::RunInterrupted { signal } => {
                let stop = StopRecord::new("signal", Some(signal.to_string()));
                self.leave(RunPhase::Terminated, stop, at);
            }
            Event::Nudged { story, by: NudgedBy::Driver, .. } => {
                self.iterations.set_health(story, Some(Health::Stuck));
            }
            Event::Stuck { story, step } => self.iterations.set_health(story, health(*step)),
            Event::RunEnded { reason } => self.end(StopRecord::of(reason), at),
            _ => {}
        }
        if recorded.event.is_notable() {
            self.summary.notices.push(NoticeRecord { at, event: recorded.event.clone() });
            let extra = self.summary.notices.len().saturating_sub(MOST_NOTICES);
            self.summary.notices.drain(..extra);
        }
        self.last_at = at;
    }

    /// ralph itself failed; the run stays open.
    pub fn fail(&mut self, error: &str, at: i64) {
        let stop = StopRecord::new("error", Some(error.to_owned()));
        self.leave(RunPhase::Failed, stop, ReportTime(at));
    }

    /// The backlog is not part of the events.
    pub fn set_stories(&mut self, total: usize) {
        self.summary.stories.total = total;
    }

    /// What the agent of an attempt does now. False if that changes nothing.
    pub fn doing(&mut self, attempt: &str, kind: StepKind, what: &str) -> bool {
        self.iterations.set_phase(attempt, None, |phase| phase.after(kind, what))
    }

    /// A gate runs for the attempt's claim.
    pub fn checking(&mut self, attempt: &str) -> bool {
        let claimed = Some(IterationResult::Claimed);
        self.iterations.set_phase(attempt, claimed, |_| IterationPhase::Testing)
    }

    /// `latest`: how many iterations, so that a status costs the same however long the run is.
    /// None: all.
    pub fn render(&mut self, now: i64, latest: Option<usize>) -> serde_json::Result<Vec<u8>> {
        self.refresh(ReportTime(now));
        let (iterations, iterations_left_out) = self.iterations.latest(latest);
        let page = ReportPage { summary: &self.summary, iterations_left_out, iterations };
        let mut text = serde_json::to_vec_pretty(&page)?;
        text.push(b'\n');
        Ok(text)
    }

    fn start(&mut self, start: &RunStarted, at: ReportTime) {
        let goal = |text: &str| shorten(text, LONGEST_GOAL);
        let summary = Summary {
            version: VERSION,
            run: start.run.clone(),
            backlog: start.backlog.clone(),
            goal: Goal { project: goal(&start.project), description: goal(&start.description) },
            started_at: at,
            settings: std::mem::take(&mut self.summary.settings),
            stories: self.summary.stories,
            ..Summary::default()
        };
        *self =
            Self { summary, state: std::mem::take(&mut self.state), since: at, ..Self::default() };
    }

    fn resume(&mut self, at: ReportTime) {
        self.summary.totals.without_cost += self.iterations.cut_off();
        self.worked_ms += self.last_at.ms_since(self.since);
        self.since = at;
        self.has_tried = false;
        self.left_in = None;
        self.summary.stop = None;
        self.summary.ended_at = None;
    }

    fn end_attempt(&mut self, end: &AttemptEnded, at: ReportTime) {
        self.usage.add(&end.usage);
        self.summary.totals.agent_ms += end.elapsed_ms;
        self.summary.totals.without_cost += u32::from(end.usage.cost_usd.is_none());
        let index = self.iterations.of_attempt(&end.attempt);
        self.iterations.end(index, end, at);
        if let Verdict::Failed { error, .. }
        | Verdict::NotTheStory { error, .. }
        | Verdict::PromptTooLong { error } = &end.verdict
        {
            self.iterations.note_error(index, error);
        }
    }

    fn reject(&mut self, story: &StoryId, error: Option<&str>) {
        let index = self.iterations.latest_of(story);
        if let Some(error) = error {
            self.iterations.note_error(index, error);
        }
        self.iterations.settle(index, IterationResult::Rejected);
    }

    /// An answer other than these rejects a claim that is in question.
    fn answer(&mut self, story: &StoryId, answer: &Answer) {
        let index = self.iterations.latest_of(story);
        if self.iterations.result(index) == Some(IterationResult::Claimed)
            && !matches!(answer, Answer::Accept | Answer::Restore | Answer::Abort)
        {
            self.reject(story, None);
        }
    }

    fn keep(&mut self, index: Option<usize>, name: &str) {
        self.summary.metrics.checkpoints += 1;
        self.iterations.keep(index, name);
    }

    fn leave(&mut self, phase: RunPhase, stop: StopRecord, at: ReportTime) {
        self.summary.totals.without_cost += self.iterations.cut_off();
        self.end(stop, at);
        self.left_in = Some(phase);
    }

    fn end(&mut self, stop: StopRecord, at: ReportTime) {
        self.summary.stop = Some(stop);
        self.summary.ended_at = Some(at);
    }

    /// Sets what follows from the rest, and what changes with time.
    fn refresh(&mut self, now: ReportTime) {
        let until = self.summary.ended_at.unwrap_or(now);
        self.iterations.refresh(until);
        let summary = &mut self.summary;
        let phase = || RunPhase::of(&self.state, self.has_tried, now.0);
        summary.state = self.left_in.unwrap_or_else(phase);
        summary.waits_until = self.state.wait(now.0).map(|wait| ReportTime(wait.until));
        summary.breaker = BreakerState::from(&self.state.breaker.phase);
        summary.updated_at = now;
        let stories = &mut summary.stories;
        stories.passing = self.state.marks.passing.len();
        stories.skipped = self.state.marks.skipped.len();
        let settled = stories.passing + stories.skipped;
        summary.totals.counted_usd = self.state.costs.spent;
        summary.totals.cost_usd = self.usage.cost_usd;
        summary.totals.tokens = self.usage.tokens();
        summary.totals.turns = self.usage.turns;
        summary.totals.tool_calls = self.usage.tool_calls;
        summary.forecast = forecast(&self.state, stories.total.saturating_sub(settled));
        summary.efficiency = Efficiency::of(&Figures {
            usage: self.usage.clone(),
            cost: self.state.costs.spent,
            failed: self.iterations.failed_cost,
            closed: self.iterations.successes,
        });
        let metrics = &mut summary.metrics;
        metrics.iterations = self.state.attempts.iterations;
        metrics.attempts = self.state.attempts.started;
        metrics.successes = self.iterations.successes;
        metrics.failures = self.iterations.failures;
        metrics.errors = self.iterations.errors;
        let judged = metrics.successes + metrics.failures;
        metrics.success_rate =
            (judged > 0).then(|| f64::from(metrics.successes) / f64::from(judged));
        metrics.errors_in_a_row = self.state.failures.errors(u32::MAX);
        metrics.worked_ms = self.state.work_time.ms();
        metrics.elapsed_ms = self.worked_ms + until.ms_since(self.since);
    }
}

fn health(step: StuckEvent) -> Option<Health> {
    match step {
        StuckEvent::Asked { .. } => Some(Health::Stuck),
        StuckEvent::MoreTime | StuckEvent::Recovered => None,
        StuckEvent::Ended { .. } => Some(Health::Terminated),
    }
}
