//! What the events add up to.

mod marks;
mod story;

use std::collections::{BTreeMap, BTreeSet};

use super::breaker::{Breaker, Phase};
use super::event::{Answer, AttemptEnded, AttemptStarted, Event, Nudger, Recorded, RunStarted};
use super::health::Record;
use super::id::StoryId;
use super::limits::Worked;
use super::memory::Memory;
use super::money::Usd;
use super::pause::{Wait, WaitFor};
use super::policy::{OnLimit, StopReason};
use super::rut::Signs;
use super::signal::EscalationKind;
use super::slump::Slump;
use super::spending::{Pause, Spending};
use super::verdict::Verdict;
use super::weather::{Row, Trouble, Weather};
use super::why;

pub use marks::Marks;
pub use story::{Question, Return, StoryResult, StoryState, Tried};

/// The fold of one backlog's events: the current run's figures, and what is known of each story.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunState {
    pub run: Option<RunStarted>,
    pub iterations: u32,
    /// Agents that were started, whether they count as an iteration or not.
    pub attempts: u32,
    /// What the last agent said of itself.
    pub agent_version: Option<String>,
    pub model: Option<String>,
    /// The service's bad days in a row.
    pub trouble: Option<Row>,
    /// Iterations in a row that came to nothing.
    pub slump: Slump,
    pub breaker: Breaker,
    /// How long this run worked.
    pub worked: Worked,
    pub in_flight: BTreeMap<String, AttemptStarted>,
    /// The story whose unfinished work is in the tree.
    pub in_tree: Option<StoryId>,
    pub stories: BTreeMap<StoryId, StoryState>,
    pub aborted: bool,
    pub ended: Option<StopReason>,
    /// What passes and what is skipped, whatever the file says meanwhile.
    pub marks: Marks,
    /// The gates of every story were run before any work.
    pub has_baseline: bool,
    /// The process before this one died without a word.
    pub cut_off: bool,
    /// How the last iterations ended.
    pub record: Record,
    pub spending: Spending,
    /// What the last attempts taught.
    pub memory: Memory,
}

impl RunState {
    /// A run is open from its start to its end, whatever happened to its process.
    pub fn is_open(&self) -> bool {
        self.run.is_some() && self.ended.is_none()
    }

    pub fn story(&self, id: &StoryId) -> Option<&StoryState> {
        self.stories.get(id)
    }

    pub fn parked(&self) -> BTreeSet<StoryId> {
        self.questions().filter(|(_, q)| q.parked).map(|(id, _)| id.clone()).collect()
    }

    pub fn questions(&self) -> impl Iterator<Item = (&StoryId, &Question)> {
        self.stories.iter().filter_map(|(id, story)| Some((id, story.question.as_ref()?)))
    }

    /// What an open run waits for, and until when, where it waits at all. The short rest after a
    /// failure is not worth telling.
    pub fn wait(&self, now: i64) -> Option<Wait> {
        if !self.is_open() || !self.in_flight.is_empty() {
            return None;
        }
        self.wait_for_service(OnLimit::Wait, now)
            .or_else(|| self.cool_down(now))
            .or_else(|| self.throttled(now))
    }

    pub fn wait_for_service(&self, on_limit: OnLimit, now: i64) -> Option<Wait> {
        let row = self.trouble.as_ref()?;
        let what = match row.trouble {
            Trouble::Limit { .. } => WaitFor::Limit,
            _ => WaitFor::Service,
        };
        match row.weather(on_limit, now) {
            Weather::WaitUntil(until) => Some(Wait { what, error: row.error.clone(), until }),
            Weather::Fine | Weather::Stop(_) => None,
        }
    }

    /// The pause that makes a budget last longer.
    pub fn throttled(&self, now: i64) -> Option<Wait> {
        let pause = self.spending.pause.as_ref().filter(|pause| pause.is_on(now))?;
        Some(Wait { what: WaitFor::Budget, error: pause.describe(), until: pause.until })
    }

    /// The breaker's pause.
    pub fn cool_down(&self, now: i64) -> Option<Wait> {
        match &self.breaker.phase {
            Phase::Open { why, until } if now < *until => {
                Some(Wait { what: WaitFor::CoolDown, error: why.clone(), until: *until })
            }
            _ => None,
        }
    }

    /// Branch and tree are on their way back.
    pub fn is_returning(&self) -> bool {
        self.stories.values().any(|story| story.returning.is_some())
    }

    /// Refs of work that may still be wanted.
    pub fn kept_refs(&self) -> impl Iterator<Item = &String> {
        self.stories.values().flat_map(|story| {
            let tried = story.tried.iter().chain(&story.row).filter_map(|t| t.reference.as_ref());
            story.set_aside.iter().chain(&story.does_not_fit).chain(tried)
        })
    }

    /// What every attempt of this run cost together, as far as it is known.
    pub fn cost_usd(&self) -> Option<f64> {
        self.stories.values().filter_map(|story| story.usage.cost_usd).reduce(|a, b| a + b)
    }

    pub fn apply(&mut self, recorded: &Recorded) {
        let at = recorded.at;
        // What a human does between runs says nothing about how the last process ended.
        if !matches!(recorded.event, Event::StoryReopened { .. }) {
            self.cut_off =
                !matches!(recorded.event, Event::RunEnded { .. } | Event::RunInterrupted { .. });
        }
        self.worked.note(&recorded.event);
        self.memory.note(&recorded.event, self.iterations);
        match &recorded.event {
            Event::RunStarted(start) => self.start(start),
            Event::RunContinued => self.ask_again(),
            Event::AttemptStarted(start) => self.start_attempt(start),
            Event::AttemptEnded(end) => self.end_attempt(end, at),
            Event::AttemptLost { story, counted, .. } => {
                self.spending.lose(*counted);
                self.entry(story).pay(*counted);
            }
            Event::BudgetNear { level } => {
                self.spending.alerted.insert(level.budget.clone(), (level.limit, at));
            }
            Event::Throttled { level, until } => {
                let pause = Pause { until: *until, level: level.clone(), cut_short: false };
                self.spending.pause = Some(pause);
            }
            Event::BaselineTaken { .. } => self.has_baseline = true,
            Event::ClaimChecked { story, items, .. } => {
                self.entry(story).evidence.clone_from(items);
            }
            Event::ClaimRejected { story, error, fingerprint, unfounded } => {
                let why = why::Why::after_rejection(&self.entry(story).evidence);
                self.refuse(story, error, fingerprint, why, at);
                let story = self.entry(story);
                story.unfounded += u32::from(*unfounded);
                if *unfounded {
                    story.signs.had_nothing_to_show();
                }
            }
            Event::ClosePlanned { attempt, story } => {
                let story = self.entry(story);
                story.claim = None;
                story.closing = Some(attempt.clone());
            }
            Event::MarksSeen { passing, skipped } => {
                self.marks.passing = passing.iter().cloned().collect();
                self.marks.skipped = skipped.iter().cloned().collect();
                self.human_acted();
            }
            Event::CloseRefused { story, error, unfit } => {
                self.refuse(story, error, error, why::Why::ClaimRejected, at);
                self.entry(story).unfit += u32::from(*unfit);
            }
            Event::WorkLetGo { story } => self.let_go(story),
            Event::StoryClosed(closed) => {
                self.marks.passing.insert(closed.story.clone());
                self.slump = Slump::default();
                self.breaker.succeed();
                self.breaker.ended_otherwise();
                self.settle(&closed.story, StoryResult::Closed { commit: closed.commit.clone() });
            }
            Event::StorySkipped { story, .. } => {
                self.marks.skipped.insert(story.clone());
                self.settle(story, StoryResult::Skipped);
            }
            Event::QuestionRaised { story, question } => {
                match question.kind {
                    EscalationKind::Rut => self.breaker.ended_in_a_rut(story),
                    _ => self.breaker.ended_otherwise(),
                }
                let story = self.entry(story);
                if question.kind.can_be_accepted() {
                    story.claim = story.closing.take().or(story.claim.take());
                }
                story.question = Some(Question { escalation: question.clone(), parked: false });
            }
            Event::QuestionAnswered { story, answer } => self.answer(story, answer),
            Event::StoryParked { story } => {
                if let Some(question) = &mut self.entry(story).question {
                    question.parked = true;
                }
            }
            Event::WorkSetAside { story, reference } => self.set_aside(story, reference.as_ref()),
            Event::AttemptKept { story, reference, changes } => {
                self.entry(story).keep(reference, Some(changes));
            }
            Event::ReturnPlanned { story, to, why } => {
                self.entry(story).returning = Some(Return { to: to.clone(), why: *why });
            }
            Event::Returned { story, reference } => {
                self.entry(story).finish_return(reference.as_ref());
            }
            Event::Nudged { story, text, by, delivered } => {
                self.nudge(story, text, *by, *delivered);
            }
            Event::Stuck { .. } => {}
            Event::StageReached { story, stage } => self.entry(story).stages.push(stage.clone()),
            Event::SecondLookWanted { story } => {
                let story = self.entry(story);
                story.looked_again = true;
                story.why = why::Why::SecondLook;
                story.claim = None;
                story.evidence.clear();
                // It may well be right: what failed before it is over.
                story.last_error = None;
                story.row.clear();
            }
            Event::InstructionsPutBack { story, kept, .. } => {
                self.entry(story).kept_count += u32::from(kept.is_some());
            }
            // The files speak for themselves.
            Event::FilesPutBack { .. } | Event::SetupPutBack { .. } => {}
            Event::StoryReopened { story, .. } => {
                self.marks.passing.remove(story);
                self.stories.remove(story);
            }
            Event::WorkBroughtBack { story, reference, conflicts } => {
                let story = self.entry(story);
                story.set_aside = None;
                story.does_not_fit = (!conflicts.is_empty()).then(|| reference.clone());
                if story.does_not_fit.is_some() {
                    story.why = story.why.without_its_work();
                }
            }
            Event::BaseSet { story, base } => {
                self.in_tree = Some(story.clone());
                let story = self.entry(story);
                story.head.clone_from(&base.commit);
                story.base = Some(base.clone());
            }
            Event::WaitCutShort => {
                if let Some(row) = &mut self.trouble {
                    row.cut_short = true;
                }
                self.slump.cut_short();
                if let Some(pause) = &mut self.spending.pause {
                    pause.cut_short = true;
                }
                if self.breaker.phase != Phase::Closed {
                    self.human_acted();
                }
            }
            Event::BreakerOpened { why, until } => {
                self.breaker.open(why, *until);
                self.slump.breakdowns = 0;
            }
            Event::RunInterrupted { .. } => {}
            Event::RunEnded { reason } => self.ended = Some(reason.clone()),
        }
    }

    fn entry(&mut self, story: &StoryId) -> &mut StoryState {
        self.stories.entry(story.clone()).or_default()
    }

    /// A new run starts from zero, but for what the human and the tree still hold.
    fn start(&mut self, start: &RunStarted) {
        self.cut_attempts_off();
        let mut before = std::mem::take(self);
        for id in &start.carried {
            if let Some(story) = before.stories.remove(id) {
                self.stories.insert(id.clone(), story.carried_over());
            }
        }
        self.in_tree = before.in_tree.filter(|id| start.carried.contains(id));
        let is_same =
            |run: &RunStarted| run.project == start.project && run.description == start.description;
        if before.run.as_ref().is_some_and(is_same) {
            self.memory = before.memory;
        }
        self.run = Some(start.clone());
        self.spending.subscription = before.spending.subscription;
        self.ask_again();
    }

    /// Whatever was wrong with the run may be mended.
    fn human_acted(&mut self) {
        self.breaker = Breaker::default();
        self.slump = Slump::default();
        self.record = Record::default();
    }

    fn cut_attempts_off(&mut self) {
        for attempt in std::mem::take(&mut self.in_flight).into_values() {
            self.entry(&attempt.story).why = why::Why::Recovery;
        }
    }

    fn ask_again(&mut self) {
        self.cut_attempts_off();
        self.aborted = false;
        for question in self.stories.values_mut().filter_map(|story| story.question.as_mut()) {
            question.parked = false;
        }
    }

    fn start_attempt(&mut self, start: &AttemptStarted) {
        self.iterations = start.iteration;
        self.attempts += 1;
        self.breaker.let_through();
        self.spending.pause = None;
        self.in_tree = Some(start.story.clone());
        self.in_flight.insert(start.attempt.clone(), start.clone());
        let story = self.entry(&start.story);
        story.title.clone_from(&start.title);
        story.result = StoryResult::Open;
        if story.base.is_none() {
            story.head.clone_from(&start.base.commit);
            story.base = Some(start.base.clone());
        }
        story.attempts += 1;
        story.tries += 1;
        story.criteria = story.criteria.take().or_else(|| start.criteria.clone());
        story.claim = None;
        story.reminder = None;
        story.accepted = false;
        story.as_it_is = false;
        story.evidence.clear();
        story.concerns.clear();
    }

    fn end_attempt(&mut self, end: &AttemptEnded, at: i64) {
        self.in_flight.remove(&end.attempt);
        self.agent_version = end.agent_version.clone().or(self.agent_version.take());
        self.model = end.model.clone().or(self.model.take());
        let iteration = self.iterations;
        self.note_weather(&end.verdict, at);
        self.slump.ended(end, at);
        match &end.verdict {
            Verdict::Progress | Verdict::Escalated { .. } => {
                self.breaker.succeed();
                self.record.note(&end.story, false);
            }
            Verdict::Failed { .. } => {
                self.breaker.fail();
                self.record.note(&end.story, true);
            }
            Verdict::Done => self.record.note(&end.story, false),
            _ => {}
        }
        self.spending.add(&end.usage, &end.bill);
        let story = self.entry(&end.story);
        story.pay(end.bill.counted(&end.usage));
        story.signs.ended(end);
        if let Some(handoff) = &end.signals.handoff {
            story.handoff = Some((iteration, handoff.clone()));
        }
        story.triggers.clone_from(&end.triggers);
        story.context = end.context;
        story.head.clone_from(&end.head);
        story.elapsed_ms += end.elapsed_ms;
        story.usage.add(&end.usage);
        story.concerns.clone_from(&end.concerns);
        story.why = story.why.after(&end.verdict);
        match &end.verdict {
            Verdict::Interrupted | Verdict::NotTheStory { .. } => {
                story.tries = story.tries.saturating_sub(1);
            }
            Verdict::PromptTooLong { error } => {
                story.tries = story.tries.saturating_sub(1);
                story.too_long += 1;
                story.last_error = Some(error.clone());
            }
            Verdict::Failed { error, .. } if end.did_nothing() => story.fail(error),
            Verdict::Failed { error, fingerprint } => {
                story.fail(error);
                story.signs.failed(fingerprint);
            }
            // Whether it went well is not known yet.
            Verdict::Done => {
                story.claim = Some(end.attempt.clone());
                story.too_long = 0;
            }
            Verdict::Progress | Verdict::Escalated { .. } => {
                story.last_error = None;
                story.too_long = 0;
                story.row.clear();
            }
        }
    }

    fn note_weather(&mut self, verdict: &Verdict, at: i64) {
        let before = self.trouble.take();
        match verdict {
            Verdict::NotTheStory { trouble, error } => {
                let row = Row::after(before, trouble, error, at);
                if !row.counts() {
                    self.iterations = self.iterations.saturating_sub(1);
                }
                self.trouble = Some(row);
            }
            Verdict::PromptTooLong { .. } => self.iterations = self.iterations.saturating_sub(1),
            Verdict::Interrupted => self.trouble = before,
            _ => {}
        }
    }

    /// The next attempt is told why.
    fn refuse(&mut self, id: &StoryId, error: &str, fingerprint: &str, why: why::Why, at: i64) {
        self.slump.fail(id, error, at);
        self.record.correct(id);
        self.breaker.fail();
        let story = self.entry(id);
        story.why = why;
        story.claim = None;
        story.closing = None;
        story.evidence.clear();
        story.fail(error);
        story.signs.failed(fingerprint);
    }

    fn let_go(&mut self, id: &StoryId) {
        self.in_tree = None;
        let story = self.entry(id);
        story.base = None;
        story.claim = None;
        story.closing = None;
    }

    fn settle(&mut self, id: &StoryId, result: StoryResult) {
        if self.in_tree.as_ref() == Some(id) {
            self.in_tree = None;
        }
        let story = self.entry(id);
        *story = StoryState {
            result,
            title: std::mem::take(&mut story.title),
            attempts: story.attempts,
            elapsed_ms: story.elapsed_ms,
            usage: std::mem::take(&mut story.usage),
            cost: story.cost,
            ..StoryState::default()
        };
    }

    fn answer(&mut self, id: &StoryId, answer: &Answer) {
        self.aborted |= *answer == Answer::Abort;
        // To skip it, or to stop, mends nothing; and may have been decided before the run.
        if !matches!(answer, Answer::Skip | Answer::Abort) {
            self.human_acted();
        }
        let story = self.entry(id);
        story.why = story.why.after_answer(answer);
        let kind = story.question.as_ref().map(|question| question.escalation.kind);
        match answer {
            // The question stays: whoever runs it again is asked again.
            Answer::Abort => return,
            Answer::Accept => {
                story.closing = story.claim.clone();
                story.accepted = story.closing.is_some();
                story.as_it_is = story.accepted && kind == Some(EscalationKind::Commit);
            }
            Answer::Skip => story.skip_wanted = true,
            Answer::Retry => {}
            Answer::Option { number, text } => {
                story.guidance.push(format!("Proceed with option {number}: {text}"));
            }
            Answer::Guidance { text } => story.guidance.push(text.clone()),
        }
        story.question = None;
        story.criteria = None;
        story.claim = None;
        story.unfounded = 0;
        story.unfit = 0;
        story.signs = Signs::default();
        story.row.clear();
        story.tries = 0;
        story.too_long = 0;
        story.spent = Usd::ZERO;
    }

    fn nudge(&mut self, id: &StoryId, text: &str, by: Nudger, delivered: bool) {
        if by == Nudger::Human {
            self.human_acted();
        }
        let story = self.entry(id);
        match by {
            _ if delivered => {}
            Nudger::Human => story.guidance.push(text.to_owned()),
            Nudger::Driver => story.reminder = Some(text.to_owned()),
        }
    }

    fn set_aside(&mut self, id: &StoryId, reference: Option<&String>) {
        if self.in_tree.as_ref() == Some(id) {
            self.in_tree = None;
        }
        let story = self.entry(id);
        story.base = None;
        story.closing = None;
        story.claim = story.claim.take().filter(|_| story.question.is_some());
        if reference.is_some() {
            story.set_aside = reference.cloned();
            story.kept_count += 1;
        }
    }
}

#[cfg(test)]
mod tests;
