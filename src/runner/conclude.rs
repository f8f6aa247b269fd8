//! Conclusions from ended attempts.

use crate::decide::budget::BudgetCheck;
use crate::decide::concerns;
use crate::decide::judge::{Evidence, HandoffFacts, judge, triggers};
use crate::decide::stagnation::FootprintFacts;
use crate::model::{
    AgentSignals, AttemptCost, AttemptEnded, AttemptNotice, AttemptStarted, BranchLoss, Concern,
    EndedBy, Event, Footprint, HandoffTrigger, LONGEST_KEPT, Notice, Outcome, Story, StoryId, Usd,
    Verdict, both_ends, millis,
};
use crate::runner::dispatcher::Dispatcher;
use crate::runner::effects::{About, Effects, EndedAttempt};
use crate::runner::error::{Result, RunnerError};
use crate::state::Stage;

/// The verdict on an attempt, with its signals and concerns.
struct Judged {
    signals: AgentSignals,
    verdict: Verdict,
    concerns: Vec<Concern>,
}

impl<E: Effects> Dispatcher<E> {
    pub(super) fn attempt_ended(&mut self, ended: EndedAttempt) -> Result<()> {
        let Some(flight) = self.log.state.attempts.get(&ended.attempt) else { return Ok(()) };
        let start = flight.start.clone();
        let (attempt, story) = (ended.attempt.clone(), start.story.clone());
        self.withdraw(&About::Attempt { attempt, story }, false);
        self.effects.attempt_is_over(&mut self.log, &ended)?;
        let mut signals = ended.report.signals.clone();
        signals.claims_story |= ended.inspection.ticked && !signals.stages_left;
        let verdict = self.judge(&ended, &signals);
        let concerns = match (&verdict, &ended.inspection.problem) {
            (Verdict::Done, None) => self.concerns(&ended),
            _ => Vec::new(),
        };
        self.tell(&start.story, &ended, &signals);
        let failed = matches!(verdict, Verdict::Failed { .. });
        let events = self.events_of_end(&start, &ended, Judged { signals, verdict, concerns });
        self.record(events)?;
        self.effects.forget_attempt(&mut self.log, &ended.attempt)?;
        self.end_is_over();
        self.warn_over_budget(&start.story, &ended);
        if let Some(error) = ended.inspection.problem {
            return Err(error);
        }
        match ended.processes.survivors {
            Some(names) if names.is_empty() => {}
            Some(names) => return Err(RunnerError::Survivors(names)),
            None => return Err(RunnerError::SupervisorLost),
        }
        if failed && ended.inspection.branch_loss.is_none() {
            self.keep(&start.story)?;
        }
        Ok(())
    }

    fn judge(&self, ended: &EndedAttempt, signals: &AgentSignals) -> Verdict {
        let found = &ended.inspection;
        let remaining = match found.problem {
            None if signals.promises_all => self.log.state.marks.remaining(self.backlog()),
            _ => usize::MAX,
        };
        let changed = found.difference.as_ref().is_none_or(|difference| !difference.is_empty());
        let evidence = Evidence { changed, remaining, branch_loss: found.branch_loss };
        judge(&ended.report.outcome, signals, evidence)
    }

    /// The stories that are left although it promised the whole backlog.
    fn false_promise(&self, signals: &AgentSignals) -> Option<usize> {
        // Counted only if it matters: there may be thousands.
        let left = || self.log.state.marks.remaining(self.backlog());
        signals.promises_all.then(left).filter(|left| *left > 1)
    }

    fn concerns(&self, ended: &EndedAttempt) -> Vec<Concern> {
        let own = self.concerns_of(&ended.at_start.id).into_iter();
        own.chain(ended.inspection.doubtful.iter().cloned().map(self.clean())).collect()
    }

    /// Changes of the story itself since the run's start.
    pub(super) fn concerns_of(&self, id: &StoryId) -> Vec<Concern> {
        let (gates, markers) = (&self.config.gates, &self.config.markers);
        let story = self.backlog().story(id);
        let own = story.map(|story| concerns::of_story(story, gates, markers));
        own.unwrap_or_default().into_iter().map(self.clean()).collect()
    }

    /// Redacted: the agent wrote what they show.
    fn clean(&self) -> impl Fn(Concern) -> Concern {
        let clean = |text: &str| self.effects.redact(text);
        move |one| Concern { what: clean(&one.what), diff: clean(&one.diff) }
    }

    fn footprint(&self, ended: &EndedAttempt) -> Footprint {
        if ended.inspection.branch_loss.is_some() {
            // Branch and tree are rolled back.
            return Footprint { changed: Some(false), ..Footprint::default() };
        }
        let before = &ended.at_start;
        let now = self.backlog().story(&before.id);
        let is_same = |now: &Story| {
            (&now.title, &now.description, &now.criteria)
                == (&before.title, &before.description, &before.criteria)
        };
        let known = self.log.state.story(&before.id);
        let difference = ended.inspection.difference.as_ref();
        let said = match ended.report.outcome {
            Outcome::Completed => ended.report.final_text.as_str(),
            _ => "",
        };
        let facts = FootprintFacts {
            paths: difference.map(|found| found.paths.as_slice()),
            committed: difference.is_some_and(|found| found.committed),
            backlog: self.config.backlog_in_tree.as_deref(),
            story_changed: !now.is_some_and(is_same),
            said,
            before: known.map(|known| &known.stagnation.said),
        };
        facts.footprint()
    }

    fn events_of_end(
        &self,
        start: &AttemptStarted,
        ended: &EndedAttempt,
        judged: Judged,
    ) -> Vec<Event> {
        let Judged { signals, verdict, concerns } = judged;
        let found = &ended.inspection;
        let stages = self.stages(&start.story, &ended.report.outcome, &signals, found.branch_loss);
        let triggers = self.triggers(&start.story, ended, &verdict, &stages);
        // Nothing to check: no gate applies, and there are no concerns.
        let held = self.log.state.story(&start.story).map(|known| known.held.is_empty());
        let plain = concerns.is_empty()
            && held.unwrap_or(true)
            && self.config.is_plain_claim(&start.story, self.backlog(), &self.log.state);
        let mut events = vec![Event::AttemptEnded(Box::new(AttemptEnded {
            attempt: ended.attempt.clone(),
            story: start.story.clone(),
            outcome: ended.report.outcome.clone(),
            signals,
            verdict: verdict.clone(),
            usage: ended.report.usage.clone(),
            elapsed_ms: millis(ended.elapsed),
            head: found.head.clone(),
            concerns,
            agent_version: ended.report.identity.version.clone(),
            model: ended.report.identity.model.clone(),
            footprint: self.footprint(ended),
            cost: self.attempt_cost(ended),
            said: last_words(&ended.report.final_text),
            context: ended.report.context,
            triggers,
            denied: ended.report.denied.clone(),
        }))];
        events.extend(stages);
        // What the human decided while it ran counts.
        let stage = self.log.state.story(&start.story).map(|known| &known.stage);
        if !matches!(stage, Some(Stage::Skipping | Stage::Asking { .. })) {
            events.extend(follow_up(start, verdict, plain));
        }
        // After a lost branch the tree is rolled back; the work is kept.
        let to = found.roll_back.as_ref().unwrap_or(start.before()).clone();
        let story = start.story.clone();
        let roll_back = |loss: BranchLoss| Event::ReturnPlanned { story, to, why: loss.into() };
        events.extend(found.branch_loss.map(roll_back));
        events
    }

    fn attempt_cost(&self, ended: &EndedAttempt) -> AttemptCost {
        AttemptCost {
            counted: Some(self.log.state.costs.count(&ended.report.usage, ended.report.certainty)),
            subscription: ended.report.subscription,
            models: ended.report.models.clone(),
        }
    }

    /// The stages that an attempt reached, without the last one, which is a claim.
    fn stages(
        &self,
        id: &StoryId,
        outcome: &Outcome,
        signals: &AgentSignals,
        loss: Option<BranchLoss>,
    ) -> Vec<Event> {
        if *outcome != Outcome::Completed || loss.is_some() {
            return Vec::new();
        }
        let all = self.config.markers_of(id, self.backlog()).stages;
        let reached = signals.stages.iter().filter(|stage| Some(*stage) != all.last());
        let event =
            |stage: &String| Event::StageReached { story: id.clone(), stage: stage.clone() };
        reached.map(event).collect()
    }

    fn triggers(
        &self,
        id: &StoryId,
        ended: &EndedAttempt,
        verdict: &Verdict,
        stages: &[Event],
    ) -> Vec<HandoffTrigger> {
        let cost = self.attempt_cost(ended).counted(&ended.report.usage);
        let known = self.log.state.story(id);
        let failed = matches!(verdict, Verdict::Failed { .. });
        let errors = known.map_or(0, |known| known.failures()).saturating_add(1);
        let spent = known.map(|known| known.spent).unwrap_or_default();
        let budget = BudgetCheck {
            budgets: &self.config.policy.budgets,
            costs: &self.log.state.costs,
            today: self.today,
            reserved: Usd::ZERO,
        };
        triggers(&HandoffFacts {
            context: ended.report.context,
            errors: if failed { errors } else { 0 },
            spent: budget.share(id, spent, cost),
            stage_reached: !stages.is_empty(),
            asked: ended.report.signals.handoff.is_some() || ended.ended_by == Some(EndedBy::Stuck),
            elapsed: ended.elapsed,
            time: Some(self.config.settings.timeouts.iteration),
        })
    }

    fn tell(&mut self, story: &StoryId, ended: &EndedAttempt, signals: &AgentSignals) {
        let remaining = self.false_promise(signals);
        let mut tell = |notice| self.log.notice(Notice::Attempt(story.clone(), notice));
        if let Some(remaining) = remaining {
            tell(AttemptNotice::FalsePromise { remaining });
        }
        if !signals.claims_others.is_empty() {
            tell(AttemptNotice::OtherClaims { ids: signals.claims_others.clone() });
        }
        for (rule, times) in &ended.report.denied {
            let (rule, times) = (rule.clone(), *times);
            tell(AttemptNotice::ToolDenied { rule, times });
        }
        if let Some(problem) = &ended.log_problem {
            tell(AttemptNotice::LogIncomplete { problem: problem.clone() });
        }
        if !ended.processes.leftovers.is_empty() && ended.ended_by.is_none() {
            let names = ended.processes.leftovers.clone();
            tell(AttemptNotice::LeftoversEnded { names });
        }
        if !ended.processes.kept.is_empty() {
            let names = ended.processes.kept.clone();
            tell(AttemptNotice::ProcessesKept { names });
        }
    }

    /// Only for agents that do not enforce their allowance themselves.
    fn warn_over_budget(&mut self, story: &StoryId, ended: &EndedAttempt) {
        let counted = self.attempt_cost(ended).counted(&ended.report.usage);
        let limit = self.config.policy.budgets.per_iteration;
        let limit = limit.filter(|limit| counted > *limit && !self.config.agent_keeps_allowance);
        if let Some(limit) = limit {
            let notice = AttemptNotice::OverIterationBudget { cost: counted, limit };
            self.log.notice(Notice::Attempt(story.clone(), notice));
        }
    }
}

/// As much as a prompt can contain.
fn last_words(text: &str) -> Option<String> {
    let text = text.trim();
    (!text.is_empty()).then(|| both_ends(text, LONGEST_KEPT))
}

/// The commit decides a plain claim: it fails if nothing changed.
fn follow_up(start: &AttemptStarted, verdict: Verdict, plain: bool) -> Option<Event> {
    let story = start.story.clone();
    match verdict {
        Verdict::Done if !plain => None,
        Verdict::Done => Some(Event::ClosePlanned { attempt: start.attempt.clone(), story }),
        Verdict::Escalated { escalation } => {
            Some(Event::QuestionRaised { story, question: escalation })
        }
        Verdict::Progress
        | Verdict::Failed { .. }
        | Verdict::NotTheStory { .. }
        | Verdict::PromptTooLong { .. }
        | Verdict::Interrupted => None,
    }
}
