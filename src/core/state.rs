//! What the events add up to.

use std::collections::{BTreeMap, BTreeSet};

use super::backlog::{Backlog, Story};
use super::breaker::{Breaker, Phase};
use super::event::{
    Answer, AttemptEnded, AttemptStarted, Base, Cause, Event, Nudger, Recorded, RunStarted, Usage,
};
use super::evidence::{Concern, Item};
use super::handoff::{Context, Trigger};
use super::health::Record;
use super::id::StoryId;
use super::limits::Worked;
use super::memory::Memory;
use super::money::Usd;
use super::pause::{Wait, WaitFor};
use super::policy::{OnLimit, StopReason};
use super::rut::Signs;
use super::signal::{Escalation, EscalationKind, Handoff};
use super::slump::Slump;
use super::spending::{Pause, Spending};
use super::verdict::Verdict;
use super::weather::{Row, Trouble, Weather};
use super::why;

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

/// The marks of a backlog, as far as they are set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    pub passing: BTreeSet<StoryId>,
    pub skipped: BTreeSet<StoryId>,
}

impl Marks {
    pub fn of(backlog: &Backlog) -> Self {
        let ids = |which: fn(&&Story) -> bool| {
            backlog.stories.iter().filter(which).map(|story| story.id.clone()).collect()
        };
        Self { passing: ids(|story| story.passes), skipped: ids(|story| story.skipped) }
    }

    /// Stories of the backlog that are settled by neither.
    pub fn remaining(&self, backlog: &Backlog) -> usize {
        let is_open =
            |story: &&Story| !self.passing.contains(&story.id) && !self.skipped.contains(&story.id);
        backlog.stories.iter().filter(is_open).count()
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct StoryState {
    /// Its title at the last attempt: another title is another story.
    pub title: String,
    pub base: Option<Base>,
    /// The branch tip as its last attempt left it.
    pub head: Option<String>,
    pub question: Option<Question>,
    /// What the human said about it so far, oldest first.
    pub guidance: Vec<String>,
    /// What speaks for a rut.
    pub signs: Signs,
    /// Attempts since the human last had a say in it.
    pub tries: u32,
    /// How often in a row the prompt was too long for the agent.
    pub too_long: u32,
    /// What went wrong in the last attempt, for the next one.
    pub last_error: Option<String>,
    /// What its last agent could not be told while it worked.
    pub reminder: Option<String>,
    /// Why the next attempt is made; of one in flight, why it was.
    pub why: why::Why,
    /// What the last agent that said so left for the next, and its iteration.
    pub handoff: Option<(u32, Handoff)>,
    /// Why the last agent should have handed over.
    pub triggers: Vec<Trigger>,
    /// How full the last agent's context was.
    pub context: Option<Context>,
    /// Stages that were reached.
    pub stages: Vec<String>,
    /// It was claimed once, and sent back for a second look.
    pub looked_again: bool,
    /// Where its set-aside work is kept.
    pub set_aside: Option<String>,
    /// Where work is kept that could not be brought back.
    pub does_not_fit: Option<String>,
    /// The attempt whose claim is not decided yet.
    pub claim: Option<String>,
    /// What was found out about it.
    pub evidence: Vec<Item>,
    /// What its last attempt changed that a human should see before a claim counts.
    pub concerns: Vec<Concern>,
    /// How often it was claimed with nothing to show for it.
    pub unfounded: u32,
    /// How often its work could not be committed for what is in it.
    pub unfit: u32,
    /// The human said that the claim is true.
    pub accepted: bool,
    /// The human wants it committed, whatever speaks against it.
    pub as_it_is: bool,
    /// Its criteria when its work began, as the human had them.
    pub criteria: Option<Vec<String>>,
    /// How many refs there are of its work.
    pub kept_count: u32,
    /// Failed attempts in a row, since anything else came of one or the human had a say.
    pub row: Vec<Tried>,
    /// The rows before, after each of which it started over.
    pub tried: Vec<Tried>,
    /// Where branch and tree are going back to.
    pub returning: Option<Return>,
    /// An accepted claim whose commit is not confirmed yet.
    pub closing: Option<String>,
    pub skip_wanted: bool,
    pub result: StoryResult,
    /// What its attempts count as, since the human last had a say in it.
    pub spent: Usd,
    /// This run's figures.
    pub attempts: u32,
    pub elapsed_ms: u64,
    pub usage: Usage,
    pub cost: Usd,
}

/// A failed attempt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tried {
    pub error: String,
    /// Where its work is kept, if there was any.
    pub reference: Option<String>,
    /// How much that is.
    pub changes: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Return {
    pub to: Base,
    pub why: Cause,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    pub escalation: Escalation,
    /// Nobody answered in this run.
    pub parked: bool,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub enum StoryResult {
    #[default]
    Open,
    Closed {
        commit: String,
    },
    Skipped,
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
            Event::Nudged { story, text, by, delivered: false } => {
                let story = self.entry(story);
                match by {
                    Nudger::Human => story.guidance.push(text.clone()),
                    Nudger::Driver => story.reminder = Some(text.clone()),
                }
            }
            Event::Nudged { .. } | Event::Stuck { .. } => {}
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

impl StoryState {
    /// Its mark is decided, and the commit that says so is not confirmed yet.
    pub fn is_being_settled(&self) -> bool {
        self.closing.is_some() || self.skip_wanted
    }

    /// Something about it must not be forgotten when a run ends.
    pub fn is_worth_carrying(&self) -> bool {
        self.result == StoryResult::Open
            && (self.question.is_some()
                || self.skip_wanted
                || self.base.is_some()
                || self.set_aside.is_some()
                || !self.guidance.is_empty())
    }

    fn pay(&mut self, counted: Usd) {
        self.spent += counted;
        self.cost += counted;
    }

    fn fail(&mut self, error: &str) {
        self.last_error = Some(error.to_owned());
        self.row.push(Tried { error: error.to_owned(), ..Tried::default() });
    }

    fn keep(&mut self, reference: &str, changes: Option<&String>) {
        self.kept_count += 1;
        if let Some(last) = self.row.last_mut() {
            last.reference = Some(reference.to_owned());
            last.changes = changes.cloned();
        }
    }

    fn finish_return(&mut self, reference: Option<&String>) {
        let Some(done) = self.returning.take() else { return };
        // What it speaks of is not in the tree any more.
        self.handoff = None;
        if done.why == Cause::FreshStart {
            self.kept_count += u32::from(reference.is_some());
            self.tried.append(&mut self.row);
            self.stages.clear();
            self.looked_again = false;
            self.why = self.why.without_its_work();
        } else if let Some(reference) = reference {
            self.keep(reference, None);
        }
        self.head = done.to.commit;
    }

    fn carried_over(self) -> Self {
        Self {
            attempts: 0,
            tries: 0,
            too_long: 0,
            elapsed_ms: 0,
            usage: Usage::default(),
            signs: Signs::default(),
            cost: Usd::ZERO,
            row: Vec::new(),
            ..self
        }
    }
}

#[cfg(test)]
mod tests;
