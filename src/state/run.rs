//! The fold of one backlog's events. Each projection folds by itself.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{
    Answer, AttemptEnded, AttemptReason, BacklogText, Base, Event, GatesStarted, LaneId, OnLimit,
    Recorded, RunStarted, SettingsText, StopReason, StoryId, Violation, Wait,
};
use crate::state::{
    Attempts, Breaker, BreakerPhase, FailureStreak, GateResults, Lanes, Marks, Memory, Question,
    RecentResults, RunCosts, Service, StoryState, WorkTime, stories,
};

/// The current run's figures, and what is known of each story.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunState {
    pub run: Option<RunStarted>,
    pub attempts: Attempts,
    pub lanes: Lanes,
    pub stories: BTreeMap<StoryId, StoryState>,
    /// Those of them that need something more: most of a long run's stories are settled.
    unfinished: BTreeSet<StoryId>,
    /// Which stories pass or are skipped, whatever the file says.
    pub marks: Marks,
    pub service: Service,
    pub failures: FailureStreak,
    pub breaker: Breaker,
    /// How recent iterations ended.
    pub recent: RecentResults,
    pub work_time: WorkTime,
    pub costs: RunCosts,
    /// Recent results, errors and successes.
    pub memory: Memory,
    /// As reported by the last agent.
    pub agent_version: Option<String>,
    pub model: Option<String>,
    /// Messages of the human's for the next attempt.
    pub messages: Vec<String>,
    /// The ralph.toml in force. None: an earlier version began the run.
    pub settings: Option<SettingsText>,
    /// The backlog as of the last look before anything untrusted ran. None: an earlier version began
    /// the run.
    pub backlog: Option<BacklogText>,
    /// What the human had approved. None: an earlier version began the run.
    pub approvals: Option<BTreeSet<String>>,
    /// The baseline of the gates was taken.
    pub has_baseline: bool,
    /// Stories whose first gates ran before their first attempt.
    pub looked_at: BTreeSet<StoryId>,
    pub gate_results: GateResults,
    /// Gates that run, or ran when their driver died.
    pub gates: Option<GatesStarted>,
    /// The hash of the list of files that are hidden from gates.
    pub hidden: Option<String>,
    /// Files that gates wrote and that were put back, as told, with the ref that has what they wrote.
    pub written: BTreeMap<String, String>,
    /// Stories that disappeared from the backlog during the run.
    pub gone: BTreeSet<StoryId>,
    pub aborted: bool,
    pub ended: Option<StopReason>,
    /// The previous process died without recording an end.
    pub cut_off: bool,
    /// A story that is being reverted, the commit, and the branch tip that it is made for.
    pub undo: Option<(StoryId, String, String)>,
    /// The branch tip and the work tree that it left, if it had an end and left unfinished work.
    pub left: Option<Base>,
}

impl RunState {
    pub fn of<'e>(events: impl IntoIterator<Item = &'e Recorded>) -> Self {
        let mut state = Self::default();
        events.into_iter().for_each(|recorded| state.apply(recorded));
        state
    }

    pub fn apply(&mut self, recorded: &Recorded) {
        let event = &recorded.event;
        self.apply_to_run(event);
        let iteration = event.story().map_or(0, |story| self.iteration_of(story));
        if let Event::AttemptEnded(end) = event {
            self.end_attempt(end, recorded.at);
        }
        self.attempts.apply(event);
        self.lanes.apply(event);
        self.marks.apply(event);
        self.work_time.apply(event);
        self.memory.apply(event, iteration);
        self.costs.apply(recorded);
        self.failures.apply(recorded);
        self.breaker.apply(event);
        self.recent.apply(event);
        self.service.apply(event);
        self.gate_results.apply(event);
        if let Event::StoryClosed(closed) = event {
            let claim = self.stories.get(&closed.story).and_then(|known| known.stage.claim());
            let evidence = claim.map_or(&[][..], |claim| &claim.evidence);
            let at = claim.and_then(|claim| claim.checked.as_ref());
            self.gate_results.closed(&closed.story, evidence, at);
        }
        stories::apply(&mut self.stories, event, iteration);
        if let Some(id) = event.story() {
            match self.stories.get(id).is_some_and(StoryState::is_unfinished) {
                true => self.unfinished.insert(id.clone()),
                false => self.unfinished.remove(id),
            };
        }
        if let Event::AttemptStarted(start) = event
            && let Some(story) = self.stories.get_mut(&start.story)
        {
            story.guidance.append(&mut self.messages);
        }
    }

    fn apply_to_run(&mut self, event: &Event) {
        // Commands between runs do not change how the last process ended.
        let is_between = matches!(
            event,
            Event::StoryReopened { .. }
                | Event::UndoPlanned { .. }
                | Event::MarksSeen { .. }
                | Event::ApprovalsSeen { .. }
        );
        if !is_between {
            self.cut_off = match event {
                Event::RunEnded { .. } => false,
                // A third Ctrl-C ends the driver before its attempts and gates are inspected.
                Event::RunInterrupted { .. } => !self.attempts.is_idle() || self.gates.is_some(),
                _ => true,
            };
        }
        let skips_breaker =
            *event == Event::WaitCutShort && self.breaker.phase != BreakerPhase::Closed;
        if event.is_human_action() || skips_breaker {
            self.forgive();
        }
        match event {
            Event::RunStarted(start) => self.start(start),
            Event::RunContinued => {
                self.ask_again();
                self.left = None;
                self.gates = None;
                self.undo = None;
            }
            Event::UndoPlanned { story, commit, from } => {
                self.undo = Some((story.clone(), commit.clone(), from.clone()));
            }
            Event::StoryReopened { .. } => self.undo = None,
            Event::AttemptStarted(_) => self.left = None,
            Event::GatesStarted(start) => {
                self.gates = Some(*start.clone());
                self.left = None;
            }
            Event::GatesOver => self.gates = None,
            Event::FilesHidden { list } => self.hidden.clone_from(list),
            Event::Repaired { violation: Violation::Written { paths, kept, .. }, .. } => {
                let kept = kept.clone().unwrap_or_default();
                self.written.extend(paths.iter().map(|path| (path.clone(), kept.clone())));
            }
            Event::TreeLeft { left, .. } => self.left = Some(left.clone()),
            Event::UserEditsFound { .. } | Event::TreeTaken { .. } => self.left = None,
            Event::SettingsTaken(settings) => self.settings = Some(settings.clone()),
            Event::BacklogTaken(text) => self.backlog = Some(text.clone()),
            Event::ApprovalsSeen { sums } => self.approvals = Some(sums.iter().cloned().collect()),
            Event::BaselineTaken { story: Some(story), .. } => {
                self.looked_at.insert(story.clone());
            }
            Event::BaselineTaken { .. } => self.has_baseline = true,
            Event::StoriesRemoved { removed, .. } => self.gone.extend(removed.iter().cloned()),
            Event::MessageKept { text } => self.messages.push(text.clone()),
            Event::QuestionAnswered { answer: Answer::Abort, .. } => self.aborted = true,
            Event::RunEnded { reason } => self.ended = Some(reason.clone()),
            _ => {}
        }
    }

    /// A new run starts from zero, except for carried stories.
    fn start(&mut self, start: &RunStarted) {
        self.ask_again();
        let mut before = std::mem::take(self);
        for id in &start.carried {
            if let Some(story) = before.stories.remove(id) {
                self.stories.insert(id.clone(), story.carried_over());
                self.unfinished.insert(id.clone());
            }
        }
        self.messages = before.messages;
        self.lanes = before.lanes;
        self.lanes.retain(|story| start.carried.contains(story));
        let is_same =
            |run: &RunStarted| run.project == start.project && run.description == start.description;
        if before.run.as_ref().is_some_and(is_same) {
            self.memory = before.memory;
        }
        self.run = Some(start.clone());
        self.costs.subscription = before.costs.subscription;
        self.cut_off = true;
    }

    /// Attempts of the previous process are over, and its questions are asked again.
    fn ask_again(&mut self) {
        self.aborted = false;
        for flight in self.attempts.iter() {
            let story = self.stories.entry(flight.start.story.clone()).or_default();
            story.why = AttemptReason::Recovery;
        }
        self.stories.values_mut().for_each(|story| story.set_parked(false));
    }

    /// Forgets failures: the problem may be fixed.
    fn forgive(&mut self) {
        self.breaker = Breaker::default();
        self.failures = FailureStreak::default();
        self.recent = RecentResults::default();
    }

    fn end_attempt(&mut self, end: &AttemptEnded, at: i64) {
        self.agent_version = end.agent_version.clone().or(self.agent_version.take());
        self.model = end.model.clone().or(self.model.take());
        let started = self.attempts.started;
        let flight = self.attempts.get(&end.attempt).cloned();
        let number = flight.as_ref().map_or(u32::MAX, |flight| flight.number);
        self.failures.ended(end, number, started, at);
        let Some(flight) = flight else { return };
        if !self.service.ended(&flight, started, &end.verdict, at) {
            self.attempts.refund(&flight.start);
        }
    }

    /// Of its attempt in flight, else of its last one.
    fn iteration_of(&self, story: &StoryId) -> u32 {
        let known = self.stories.get(story).map_or(0, |known| known.iteration);
        self.attempts.at(story).map_or(known, |flight| flight.start.iteration)
    }

    /// A run is open from its start to its recorded end.
    pub fn is_open(&self) -> bool {
        self.run.is_some() && self.ended.is_none()
    }

    /// What an interrupted run continues with.
    pub fn settings_in_force(&self) -> Option<&SettingsText> {
        self.settings.as_ref().filter(|_| self.is_open())
    }

    /// The last process died while something untrusted may have written: only these count.
    pub fn approvals_to_keep(&self) -> Option<&BTreeSet<String>> {
        self.approvals.as_ref().filter(|_| self.is_open() && self.cut_off)
    }

    pub fn story(&self, id: &StoryId) -> Option<&StoryState> {
        self.stories.get(id)
    }

    pub fn is_parked(&self, id: &StoryId) -> bool {
        self.story(id).and_then(StoryState::question).is_some_and(|question| question.parked)
    }

    /// It has an open question, parked or not.
    pub fn is_asking(&self, id: &StoryId) -> bool {
        self.story(id).and_then(StoryState::question).is_some()
    }

    pub fn questions(&self) -> impl Iterator<Item = (&StoryId, &Question)> {
        self.stories.iter().filter_map(|(id, story)| Some((id, story.question()?)))
    }

    /// What an open run waits for, without the short wait after a failure.
    pub fn wait(&self, now: i64) -> Option<Wait> {
        if !self.is_open() || !self.attempts.is_idle() {
            return None;
        }
        let service = self.service.longest_wait(OnLimit::Wait, now);
        service.or_else(|| self.breaker.wait(now)).or_else(|| self.costs.wait(now))
    }

    /// The human's branch and tree are about to be rolled back.
    pub fn is_rolling_back(&self) -> bool {
        self.unfinished().any(|(id, story)| {
            story.work.roll_back().is_some()
                && self.lanes.of(id).is_none_or(|lane| lane == LaneId::HOME)
        })
    }

    /// Stories that were begun and need something more.
    pub fn unfinished(&self) -> impl Iterator<Item = (&StoryId, &StoryState)> {
        self.unfinished.iter().filter_map(|id| self.stories.get_key_value(id))
    }

    /// Refs of work that may still be needed.
    pub fn kept_refs(&self) -> impl Iterator<Item = &String> {
        self.stories.values().flat_map(StoryState::refs)
    }

    /// The reported cost of all attempts of this run.
    pub fn cost_usd(&self) -> Option<f64> {
        let costs = self.stories.values().filter_map(|story| story.totals.usage.cost_usd);
        costs.reduce(|a, b| a + b)
    }
}

#[cfg(test)]
mod tests;
