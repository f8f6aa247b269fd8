//! The fold of a run's events into the document.

use crate::decide::efficiency::{Efficiency, Figures};
use crate::decide::forecast::forecast;
use crate::model::{
    Answer, AttemptEnded, EscalationKind, Event, Health, NudgedBy, Recorded, RunStarted, StoryId,
    StuckEvent, Usage, Verdict, shorten,
};
use crate::state::RunState;

use super::document::{
    AppliedSettings, BreakerState, Goal, IterationResult, Outlook, ReportPage, ReportTime, Summary,
    VERSION,
};
use super::iterations::Iterations;
use super::phase::IterationPhase;
use super::phase::RunPhase;
use super::phase::StopRecord;

const LONGEST_GOAL: usize = 2000;

/// How many of the iterations a rendering has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    Whole,
    /// The latest, so that a status costs the same however long the run is.
    Latest(usize),
}

/// What is known of the latest run.
#[derive(Debug, Default)]
pub struct RunReport {
    summary: Summary,
    iterations: Iterations,
    state: RunState,
    /// This process started an attempt.
    has_tried: bool,
    /// What a process that could not end its run left it in.
    left_in: Option<RunPhase>,
    /// When the process that works on it took it up, and how long others did before.
    since: ReportTime,
    worked_ms: u64,
    last_at: ReportTime,
}

impl RunReport {
    pub fn new(settings: AppliedSettings) -> Self {
        Self { summary: Summary { settings, ..Summary::default() }, ..Self::default() }
    }

    /// A new run begins from nothing.
    pub fn apply(&mut self, recorded: &Recorded) {
        let at = ReportTime(recorded.at);
        self.state.apply(recorded);
        match &recorded.event {
            Event::RunStarted(start) => self.start(start, at),
            Event::RunContinued => self.go_on(at),
            Event::AttemptStarted(start) => {
                self.has_tried = true;
                self.iterations.start(start, at);
            }
            Event::AttemptEnded(end) => self.end_attempt(end, at),
            Event::ClaimRejected { story, error, .. }
            | Event::CloseRefused { story, error, .. } => {
                self.reject(story, Some(error));
            }
            Event::SecondLookWanted { story } => self.reject(story, None),
            Event::QuestionAnswered { story, answer } => self.answer(story, answer),
            Event::StoryClosed(closed) => {
                let index = self.iterations.of_attempt(&closed.attempt);
                self.keep(index, &closed.commit);
                if let Some(index) = index {
                    self.iterations.settle(
                        index,
                        IterationResult::Closed,
                        IterationPhase::Complete,
                    );
                }
            }
            Event::WorkSetAside { .. } | Event::Returned { .. } | Event::AttemptKept { .. } => {
                self.keep_work(&recorded.event);
            }
            Event::QuestionRaised { question, .. } => {
                self.summary.metrics.ruts += u32::from(question.kind == EscalationKind::NoProgress);
            }
            Event::RunInterrupted { signal } => {
                self.leave(RunPhase::Terminated, StopRecord::signal(*signal), at);
            }
            Event::Nudged { story, by: NudgedBy::Driver, .. } => {
                self.iterations.set_health(story, Some(Health::Stuck));
            }
            Event::Stuck { story, step } => self.iterations.set_health(story, health(*step)),
            Event::RunEnded { reason } => self.end(StopRecord::of(reason), at),
            _ => {}
        }
        self.last_at = at;
    }

    /// Whatever keeps an iteration's work goes to `keep`.
    fn keep_work(&mut self, event: &Event) {
        let (story, reference) = match event {
            Event::WorkSetAside { story, reference: Some(reference) }
            | Event::Returned { story, reference: Some(reference) } => {
                self.summary.metrics.rollbacks += 1;
                (story, reference)
            }
            Event::AttemptKept { story, reference, .. } => (story, reference),
            _ => return,
        };
        self.keep(self.iterations.latest_of(story), reference);
    }

    /// ralph itself could not go on; the run stays open.
    pub fn fail(&mut self, error: &str, at: i64) {
        self.leave(RunPhase::Failed, StopRecord::error(error), ReportTime(at));
    }

    /// The backlog is no event.
    pub fn set_stories(&mut self, total: usize) {
        self.summary.stories.total = total;
    }

    /// What the agent does now; false when that changes nothing in here.
    pub fn doing(&mut self, what: &str) -> bool {
        self.iterations.set_phase(None, |phase| phase.after(what))
    }

    /// A gate runs. It is the baseline's when there is no claim.
    pub fn checking(&mut self) -> bool {
        self.iterations.set_phase(Some(IterationResult::Claimed), |_| IterationPhase::Testing)
    }

    pub fn render(&mut self, now: i64, extent: Extent) -> serde_json::Result<Vec<u8>> {
        self.refresh(ReportTime(now));
        let iterations_left_out = match extent {
            Extent::Whole => 0,
            Extent::Latest(most) => self.iterations.len().saturating_sub(most),
        };
        let iterations = self.iterations.after(iterations_left_out);
        let page = ReportPage { summary: &self.summary, iterations_left_out, iterations };
        let mut text = serde_json::to_vec_pretty(&page)?;
        text.push(b'\n');
        Ok(text)
    }

    fn start(&mut self, start: &RunStarted, at: ReportTime) {
        let settings = std::mem::take(&mut self.summary.settings);
        let stories = self.summary.stories;
        let state = std::mem::take(&mut self.state);
        *self = Self { state, since: at, ..Self::new(settings) };
        let goal = |text: &str| shorten(text, LONGEST_GOAL);
        self.summary.goal =
            Goal { project: goal(&start.project), description: goal(&start.description) };
        self.summary.version = VERSION;
        self.summary.run.clone_from(&start.run);
        self.summary.backlog.clone_from(&start.backlog);
        self.summary.stories = stories;
        self.summary.started_at = at;
    }

    fn go_on(&mut self, at: ReportTime) {
        self.cut_off();
        self.worked_ms += self.last_at.ms_since(self.since);
        self.since = at;
        self.has_tried = false;
        self.left_in = None;
        self.summary.stop = None;
        self.summary.ended_at = None;
    }

    fn end_attempt(&mut self, end: &AttemptEnded, at: ReportTime) {
        self.add(&end.usage, end.elapsed_ms);
        let Some(index) = self.iterations.of_attempt(&end.attempt) else { return };
        self.iterations.end(index, end, at);
        if let Verdict::Failed { error, .. }
        | Verdict::NotTheStory { error, .. }
        | Verdict::PromptTooLong { error } = &end.verdict
        {
            self.note_error(index, error);
        }
    }

    fn add(&mut self, usage: &Usage, elapsed_ms: u64) {
        let totals = &mut self.summary.totals;
        totals.agent_ms += elapsed_ms;
        totals.turns += usage.turns;
        totals.tool_calls += usage.tool_calls;
        totals.tokens.input += usage.input_tokens;
        totals.tokens.output += usage.output_tokens;
        totals.tokens.cache_read += usage.cache_read_tokens;
        totals.tokens.cache_write += usage.cache_write_tokens;
        match usage.cost_usd {
            Some(cost) => *totals.cost_usd.get_or_insert(0.0) += cost,
            None => totals.without_cost += 1,
        }
    }

    fn reject(&mut self, story: &StoryId, error: Option<&str>) {
        let Some(index) = self.iterations.latest_of(story) else { return };
        if let Some(error) = error {
            self.note_error(index, error);
        }
        self.iterations.settle(index, IterationResult::Rejected, IterationPhase::Handoff);
    }

    /// Whoever says how to go on with a claimed story does not accept the claim.
    fn answer(&mut self, story: &StoryId, answer: &Answer) {
        let index = self.iterations.latest_of(story);
        let came = index.and_then(|index| self.iterations.outcome(index));
        if came == Some(IterationResult::Claimed)
            && !matches!(answer, Answer::Accept | Answer::Abort)
        {
            self.reject(story, None);
        }
    }

    fn note_error(&mut self, index: usize, error: &str) {
        self.summary.metrics.errors += 1;
        self.iterations.note_error(index, error);
    }

    fn keep(&mut self, index: Option<usize>, name: &str) {
        self.summary.metrics.checkpoints += 1;
        if let Some(index) = index {
            self.iterations.keep(index, name);
        }
    }

    fn cut_off(&mut self) {
        self.summary.totals.without_cost += self.iterations.cut_off();
    }

    fn leave(&mut self, stage: RunPhase, stop: StopRecord, at: ReportTime) {
        self.cut_off();
        self.end(stop, at);
        self.left_in = Some(stage);
    }

    fn end(&mut self, stop: StopRecord, at: ReportTime) {
        self.summary.stop = Some(stop);
        self.summary.ended_at = Some(at);
    }

    /// What follows from the rest, and what changes while nothing happens.
    fn refresh(&mut self, now: ReportTime) {
        let until = self.summary.ended_at.unwrap_or(now);
        self.iterations.refresh(until);
        let summary = &mut self.summary;
        let stage = || RunPhase::of(&self.state, self.has_tried, now.0);
        summary.state = self.left_in.unwrap_or_else(stage);
        summary.waits_until = self.state.wait(now.0).map(|wait| ReportTime(wait.until));
        summary.breaker = BreakerState::from(&self.state.breaker.phase);
        summary.updated_at = now;
        summary.stories.passing = self.state.marks.passing.len();
        summary.stories.skipped = self.state.marks.skipped.len();
        summary.totals.counted_usd = self.state.costs.spent;
        summary.forecast = forecast(&self.state, summary.stories.left()).map(Outlook::from);
        summary.efficiency = Efficiency::of(&Figures {
            usage: summary.totals.usage(),
            cost: summary.totals.counted_usd,
            failed: self.iterations.failed_cost,
            closed: self.iterations.successes,
        });
        let metrics = &mut summary.metrics;
        metrics.iterations = self.state.attempts.iterations;
        metrics.attempts = self.state.attempts.started;
        metrics.successes = self.iterations.successes;
        metrics.failures = self.iterations.failures;
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
