//! The fake effects: each begins something in the queue, or is over at once.

use std::collections::BTreeMap;
use std::time::Duration;

use ralph::agent::{AgentIdentity, AgentReport};
use ralph::decide::budget::BudgetCheck;
use ralph::decide::select::is_ready;
use ralph::decide::situation::{FreeDisk, StuckDue};
use ralph::decide::stuck::{StuckStep, StuckTracker};
use ralph::model::{
    AttemptStarted, Backlog, Base, Cause, Concern, CostCertainty, EndedBy, Escalation, Event,
    EvidenceItem, Footprint, GateEnd, GateReport, LaneId, Request, Role, SpentToday, StoryId, Usd,
};
use ralph::ports::Asked;
use ralph::process::Order;
use ralph::process::pump::SupervisedEnd;
use ralph::runner::RunnerError;
use ralph::runner::effects::{
    About, Effects, EndedAttempt, GatesOf, Happened, Inspection, Integration, Sighting,
};
use ralph::runner::log::RunLog;
use ralph::state::{Acceptance, Marks, Stage, StoryState};
use ralph::text::similarity::most_alike;

use super::reply::Reply;
use super::scene::AGENT;
use super::world::{Planned, Running, RunningGates, SECOND, World, seen, set_marks};

/// No night needs more decisions.
const MOST_STEPS: u32 = 50_000;
const GATE_MS: u64 = 30_000;
const DAY: i64 = 24 * 60 * 60 * SECOND;

pub fn base() -> Base {
    Base { commit: None, tree: "t".into() }
}

impl World {
    fn happen(&mut self, what: Planned) -> Option<Happened> {
        Some(match what {
            Planned::AttemptEnds(attempt) => Happened::AttemptEnded(Box::new(self.ended(&attempt))),
            Planned::GatesEnd(of) => {
                let place = self.gates.iter().position(|gates| gates.of == of).unwrap();
                let stopped = self.gates.remove(place).stopped;
                let items = self.scene.has_gates.then(|| self.gate(&of)).into_iter().collect();
                Happened::GatesEnded { of, items: Ok((!stopped).then_some(items)) }
            }
            Planned::Answer(about, asked) => {
                self.questions.remove(&about);
                self.is_interrupted |= asked == Asked::Interrupted;
                self.note_answer(&about, &asked);
                Happened::Answered { about, asked }
            }
            Planned::Deed(deed) => self.act(deed),
            Planned::Crash => return None,
        })
    }

    fn ended(&mut self, attempt: &str) -> EndedAttempt {
        let running = &self.running[attempt];
        let Reply { outcome, signals, traces, usage, .. } = &running.reply;
        let mut usage = usage.clone();
        if self.scene.agent_keeps_allowance
            && let Some(most) = running.allowance
        {
            usage.cost_usd = usage.cost_usd.map(|cost| cost.min(most.as_f64()));
        }
        // An agent that is killed does not say what it cost.
        let certainty =
            if usage.cost_usd.is_some() { CostCertainty::Whole } else { CostCertainty::Part };
        let report = AgentReport {
            outcome: outcome.clone(),
            signals: signals.clone(),
            usage,
            models: vec![],
            certainty,
            subscription: None,
            identity: AgentIdentity::default(),
            context: None,
            denied: BTreeMap::new(),
            final_text: traces.said.clone(),
        };
        EndedAttempt {
            attempt: attempt.to_owned(),
            report,
            ended_by: running.ended_by,
            processes: SupervisedEnd { survivors: Some(vec![]), ..SupervisedEnd::default() },
            elapsed: self.since(running.began),
            log_problem: None,
        }
    }

    fn gate(&mut self, of: &GatesOf) -> EvidenceItem {
        let (end, tail) = match of {
            GatesOf::Baseline => (GateEnd::Passed, String::new()),
            GatesOf::Claim { attempt, .. } => {
                let (holds, tail) = self.claims.get(attempt).cloned().unwrap_or_default();
                if holds {
                    self.proven.insert(attempt.clone());
                }
                (if holds { GateEnd::Passed } else { GateEnd::Failed { code: 1 } }, tail)
            }
        };
        let gate = "g".to_owned();
        EvidenceItem::Gate(GateReport { gate, guards: None, end, elapsed_ms: GATE_MS, tail })
    }

    fn settle_marks(&mut self, log: &mut RunLog) -> Result<(), RunnerError> {
        let busy = !log.state.attempts.is_idle() || log.state.is_rolling_back();
        if busy || self.problem.is_some() {
            return Ok(());
        }
        let suspect = std::mem::take(&mut self.marks_are_suspect);
        let marks = self.marks_in_file();
        if same(&marks, &log.state.marks, &self.file) {
            return Ok(());
        }
        if suspect {
            set_marks(&mut self.file, &log.state.marks);
            return Ok(());
        }
        self.show_marks(&marks);
        self.commits.retain(|story, _| marks.passing.contains(story));
        self.record(log, seen(&marks))
    }

    fn check_start(&self, log: &RunLog, story: &StoryId, lane: LaneId) {
        let other = self.trees.get(&lane).filter(|other| *other != story);
        assert_eq!(other, None, "{story} would start in another's wreckage");
        assert!(self.lane_of(story).is_none_or(|its| its == lane), "{story} is in another lane");
        assert!(!log.state.is_asking(story), "the question of {story} is open");
        let only = self.config.policy.only.as_ref();
        assert!(only.is_none_or(|only| only == story), "{story} is not wanted");
        let known = self.current.story(story).unwrap();
        assert!(is_ready(known, &self.current, &|_| false), "{story} cannot be started");
        let gates = self.gates.iter().filter_map(|gates| match &gates.of {
            GatesOf::Claim { story, .. } => self.lane_of(story),
            GatesOf::Baseline => unreachable!("the baseline is not there yet"),
        });
        assert!(gates.into_iter().all(|other| other != lane), "gates run in the lane of {story}");
    }

    /// Nothing is closed without evidence, or the human's word.
    fn check_close(&self, log: &RunLog, story: &StoryId) {
        let stage = &log.state.story(story).unwrap().stage;
        let Stage::Accepted { claim, by } = stage else { unreachable!("{story} is {stage:?}") };
        match by {
            Acceptance::Human { .. } => {
                assert!(self.accepted.contains(story), "nobody accepted {story}");
            }
            Acceptance::Evidence if self.scene.has_gates => {
                assert!(self.proven.contains(&claim.attempt), "{story} has no evidence");
            }
            Acceptance::Evidence => {}
        }
    }
}

/// As far as the backlog's stories go.
fn same(a: &Marks, b: &Marks, backlog: &Backlog) -> bool {
    backlog.stories.iter().map(|story| &story.id).all(|id| {
        a.passing.contains(id) == b.passing.contains(id)
            && a.skipped.contains(id) == b.skipped.contains(id)
    })
}

impl Effects for World {
    fn backlog(&self) -> &Backlog {
        &self.current
    }

    fn backlog_problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    fn refresh(&mut self, log: &mut RunLog) -> Result<(), RunnerError> {
        if !log.state.is_rolling_back() {
            self.problem = self.broken.then(|| "broken".to_owned());
            if !self.broken {
                self.current = self.file.clone();
                let marks = log.state.marks.clone();
                self.show_marks(&marks);
            }
        }
        self.settle_marks(log)
    }

    fn observe(&mut self, _log: &mut RunLog) -> Result<Sighting, RunnerError> {
        self.steps += 1;
        assert!(self.steps < MOST_STEPS, "the night does not end");
        let policy = &self.config.stuck;
        let stuck = self.running.iter().filter(|(_, running)| running.reply.is_stuck);
        let stuck = stuck.filter_map(|(attempt, running)| {
            let step = running.tracker.due(self.since(running.began), policy)?;
            Some(StuckDue { attempt: attempt.clone(), step })
        });
        let stuck = stuck.collect();
        let bytes = if self.disk_is_low { 0 } else { 1_000_000 };
        let began = self.now() - self.now() % DAY;
        let repository = match self.config.policy.budgets.per_day {
            Some(_) => self.spent_today(began),
            None => Usd::ZERO,
        };
        Ok(Sighting {
            busy: self.busy_all(),
            disk: Some(FreeDisk { bytes, place: "/".into() }),
            stuck,
            today: SpentToday { began, repository, user: Usd::ZERO },
            backlog_usable: self.problem.is_none(),
        })
    }

    async fn pending_signal(&mut self) -> Option<i32> {
        None
    }

    async fn next(&mut self, log: &mut RunLog, most: Option<Duration>) -> Happened {
        let now = self.now();
        let until = most.map(|most| {
            assert!(most > Duration::ZERO, "a wait that is over");
            now + i64::try_from(most.as_millis()).unwrap()
        });
        assert!(self.journal.is_synced(), "it waits before the journal is safe");
        let asks = self.questions.keys().any(|about| matches!(about, About::Story(_)));
        let runs = !self.running.is_empty() || !self.gates.is_empty();
        assert!(runs || asks || self.broken || until.is_some(), "waits for nothing");
        let accepted = |known: &StoryState| {
            known.base().is_some() && matches!(known.stage, Stage::Accepted { .. })
        };
        let mut stories = log.state.stories.iter().filter(|(_, known)| accepted(known));
        let waits = stories.next().filter(|_| !self.broken && !self.is_interrupted);
        assert_eq!(waits.map(|(id, _)| id), None, "it could be closed");
        if self.listens && self.scene.skips > 0 && self.dice.percent(20) {
            self.scene.skips -= 1;
            return Happened::WaitSkipped;
        }
        let look = self.next_look(log).into_iter().chain(until).min();
        let due = self.queue.first_key_value().map(|(slot, _)| slot.0);
        match (due, look) {
            (Some(due), look) if look.is_none_or(|look| due <= look) => self.pass_time(due),
            (_, Some(look)) => {
                self.pass_time(look);
                return Happened::Tick;
            }
            (None, None) | (Some(_), None) => unreachable!("nothing will ever happen"),
        }
        let (_, what) = self.queue.pop_first().unwrap();
        match self.happen(what) {
            Some(happened) => happened,
            // Whoever waits here is dropped.
            None => std::future::pending().await,
        }
    }

    fn start_attempt(
        &mut self,
        log: &mut RunLog,
        story: &StoryId,
        lane: LaneId,
    ) -> Result<(), RunnerError> {
        self.check_start(log, story, lane);
        self.step()?;
        self.unshelve(log, story, lane)?;
        let known = log.state.story(story);
        let (policy, attempts) = (&self.config.policy, &log.state.attempts);
        let in_flight = u32::try_from(attempts.count()).unwrap();
        let began = self.now() - self.now() % DAY;
        let repository = self.spent_today(began);
        let check = BudgetCheck {
            budgets: &policy.budgets,
            costs: &log.state.costs,
            today: SpentToday { began, repository, user: Usd::ZERO },
            reserved: attempts.reserved(),
        };
        let spent = known.map(|known| known.spent).unwrap_or_default();
        let allowance = check.allowance(story, spent, policy.lanes.get() - in_flight);
        self.attempts += 1;
        let attempt = format!("attempt {:06}", self.attempts);
        let base = known.and_then(|known| known.base().cloned()).unwrap_or_else(base);
        let started = AttemptStarted {
            attempt: attempt.clone(),
            iteration: attempts.next_iteration(),
            role: Role::Implement,
            story: story.clone(),
            title: self.current.story(story).unwrap().title.clone(),
            agent: AGENT.into(),
            lane,
            base: base.clone(),
            criteria: None,
            before: Some(base),
            snapshot: None,
            guided: known.is_some_and(|known| !known.guidance.is_empty()),
            why: known.map(|known| known.why).unwrap_or_default(),
            allowance,
            stable: None,
        };
        self.record(log, Event::AttemptStarted(Box::new(started)))?;
        log.sync()?;
        self.act_on_the_world()?;
        self.trees.insert(lane, story.clone());
        let now = self.now();
        let name = story.as_str();
        let reply = Reply::draw(&self.scene, name, self.attempts, now, &mut self.dice);
        let ends = now + i64::try_from(reply.elapsed_ms).unwrap();
        let slot = self.plan(ends, Planned::AttemptEnds(attempt.clone()));
        let mut running = Running {
            story: story.clone(),
            reply,
            began: now,
            slot,
            ended_by: None,
            allowance,
            tracker: StuckTracker::default(),
            look_at: None,
        };
        running.stuck_step(None, now, &self.config.stuck);
        self.running.insert(attempt, running);
        Ok(())
    }

    fn inspect(
        &mut self,
        log: &mut RunLog,
        start: &AttemptStarted,
        ended: &EndedAttempt,
    ) -> Result<Inspection, RunnerError> {
        self.step()?;
        self.marks_are_suspect = true;
        let reply = &self.running[&ended.attempt].reply;
        let changed = reply.changed();
        if changed && reply.branch_loss.is_none() {
            self.changed.insert(start.story.clone());
        }
        let known = log.state.story(&start.story);
        let said = known.map(|known| &known.stagnation.said).into_iter().flatten();
        let likeness = most_alike(&reply.traces.said, said);
        let footprint = match reply.branch_loss {
            Some(_) => Footprint { changed: Some(false), ..Footprint::default() },
            None => Footprint { likeness, ..reply.traces.clone() },
        };
        self.claims.insert(ended.attempt.clone(), (reply.holds, reply.gate.clone()));
        let branch_loss = reply.branch_loss;
        Ok(Inspection { branch_loss, changed, footprint, ..Inspection::default() })
    }

    fn concerns(
        &mut self,
        _log: &mut RunLog,
        start: &AttemptStarted,
    ) -> Result<Vec<Concern>, RunnerError> {
        self.step()?;
        let is_doubtful = self.running[&start.attempt].reply.is_doubtful;
        let concern = Concern { what: "a test is gone".into(), diff: String::new() };
        Ok(is_doubtful.then_some(concern).into_iter().collect())
    }

    fn forget_attempt(&mut self, _log: &mut RunLog, attempt: &str) -> Result<(), RunnerError> {
        self.step()?;
        self.running.remove(attempt).unwrap();
        Ok(())
    }

    fn run_gates(&mut self, log: &mut RunLog, of: GatesOf) -> Result<(), RunnerError> {
        self.act_on_the_world()?;
        assert!(self.gates.iter().all(|gates| gates.of != of), "{of:?} run already");
        if of == GatesOf::Baseline {
            assert_eq!(log.state.attempts.started, 0, "the baseline comes first");
        }
        let began = self.now();
        let takes = if self.scene.has_gates { i64::try_from(GATE_MS).unwrap() } else { 0 };
        let slot = self.plan(began + takes, Planned::GatesEnd(of.clone()));
        self.gates.push(RunningGates { of, began, slot, stopped: false });
        Ok(())
    }

    fn changed_since_base(&mut self, _log: &RunLog, story: &StoryId) -> Result<bool, RunnerError> {
        self.step()?;
        Ok(self.changed.contains(story))
    }

    fn keep_failed(&mut self, log: &mut RunLog, story: &StoryId) -> Result<(), RunnerError> {
        self.step()?;
        if !self.changed.contains(story) {
            return Ok(());
        }
        let (reference, changes) = (format!("refs/kept/{story}"), "1 file".to_owned());
        self.record(log, Event::AttemptKept { story: story.clone(), reference, changes })
    }

    fn integrate(&mut self, log: &mut RunLog, story: &StoryId) -> Result<Integration, RunnerError> {
        self.check_close(log, story);
        assert!(!self.broken, "the mark of {story} cannot be written");
        self.step()?;
        if self.current.story(story).is_none() {
            return Ok(Integration::Gone);
        }
        if log.state.story(story).is_some_and(|known| known.base().is_none()) {
            let other = self.trees.get(&LaneId::HOME).filter(|other| *other != story);
            assert_eq!(other, None, "{story} would be closed with another's work");
            self.unshelve(log, story, LaneId::HOME)?;
            if log.state.story(story).is_some_and(|known| known.work.conflicting().is_some()) {
                return Ok(Integration::Conflicting);
            }
        }
        let commit = match self.commits.get(story) {
            // A process before this one died before it could confirm it.
            Some(commit) => commit.clone(),
            None => {
                let by_evidence = log.state.story(story).is_some_and(|known| {
                    matches!(known.stage, Stage::Accepted { by: Acceptance::Evidence, .. })
                });
                let must_change = by_evidence && !self.scene.has_gates;
                if must_change && !self.changed.contains(story) {
                    return Ok(Integration::NothingChanged);
                }
                if !self.scene.others_are_easy && by_evidence {
                    let error = "a key is in it".to_owned();
                    match self.dice.count(1, 40) {
                        1 => return Ok(Integration::Unfit { error, beyond_agent: false }),
                        2 => return Ok(Integration::Unfit { error, beyond_agent: true }),
                        3 => return Ok(Integration::Refused { error }),
                        4 if self.config.policy.lanes.get() > 1 => {
                            return Ok(Integration::Conflicting);
                        }
                        _ => {}
                    }
                }
                format!("commit of {story}")
            }
        };
        log.sync()?;
        self.act_on_the_world()?;
        self.commits.insert(story.clone(), commit.clone());
        self.changed.remove(story);
        self.step()?;
        for backlog in [&mut self.file, &mut self.current] {
            if let Some(known) = backlog.stories.iter_mut().find(|known| known.id == *story) {
                known.passes = true;
            }
        }
        self.step()?;
        self.trees.retain(|_, occupant| occupant != story);
        Ok(Integration::Done { commit })
    }

    fn skip(&mut self, _log: &mut RunLog, story: &StoryId) -> Result<Option<String>, RunnerError> {
        self.act_on_the_world()?;
        let is_decided = self.config.policy.on_escalation == ralph::model::OnEscalation::Skip
            || self.settled.contains(story);
        assert!(is_decided, "nobody wanted {story} skipped");
        assert_eq!(self.lane_of(story), None, "the work of {story} is in a lane");
        assert!(!self.broken, "the mark of {story} cannot be written");
        for backlog in [&mut self.file, &mut self.current] {
            let known = backlog.stories.iter_mut().find(|known| known.id == *story).unwrap();
            known.skipped = true;
        }
        self.shelved.remove(story);
        self.step()?;
        Ok(None)
    }

    fn shelve(&mut self, log: &mut RunLog, story: &StoryId) -> Result<Option<String>, RunnerError> {
        self.act_on_the_world()?;
        assert!(log.state.attempts.at(story).is_none(), "an agent works on {story}");
        let is_checked = self.gates.iter().any(
            |gates| matches!(&gates.of, GatesOf::Claim { story: checked, .. } if checked == story),
        );
        assert!(!is_checked, "the gates of {story} run");
        let stage = log.state.story(story).map(|known| &known.stage);
        let is_claimed = matches!(stage, Some(Stage::Claimed(_) | Stage::Accepted { .. }));
        let is_open = self.current.story(story).is_some_and(|known| !known.is_settled());
        assert!(!(is_claimed && is_open), "the claim of {story} is lost");
        let reference = self.take_out(story);
        self.step()?;
        Ok(reference)
    }

    fn roll_back(
        &mut self,
        log: &mut RunLog,
        story: &StoryId,
    ) -> Result<Option<String>, RunnerError> {
        self.act_on_the_world()?;
        let planned = log.state.story(story).and_then(|known| known.work.roll_back()).unwrap();
        assert!(log.state.attempts.at(story).is_none(), "an agent works on {story}");
        // Back to the story's base, or to where its last attempt began.
        if planned.why == Cause::FreshStart && self.changed.remove(story) {
            self.step()?;
            return Ok(Some(format!("refs/kept/{story}")));
        }
        Ok(None)
    }

    fn disown(&mut self, _log: &mut RunLog, story: &StoryId) {
        assert!(
            self.settled.contains(story) || self.commits.contains_key(story),
            "{story} was not settled by hand"
        );
        self.trees.retain(|_, occupant| occupant != story);
        self.changed.remove(story);
    }

    fn mark(
        &mut self,
        log: &mut RunLog,
        story: &StoryId,
        passes: bool,
        skipped: bool,
    ) -> Result<(), RunnerError> {
        self.step()?;
        if self.current.story(story).is_none() {
            return Ok(());
        }
        self.settled.insert(story.clone());
        let mut wanted = log.state.marks.clone();
        for (set, wanted) in [(passes, &mut wanted.passing), (skipped, &mut wanted.skipped)] {
            if set {
                wanted.insert(story.clone())
            } else {
                wanted.remove(story)
            };
        }
        self.show_marks(&wanted);
        self.record(log, seen(&wanted))?;
        log.sync()?;
        self.act_on_the_world()?;
        if self.problem.is_none() {
            set_marks(&mut self.file, &wanted);
        }
        self.commits.retain(|story, _| wanted.passing.contains(story));
        Ok(())
    }

    fn ask(&mut self, about: About, _story: &StoryId, question: Escalation, patience: Duration) {
        assert!(self.config.policy.human_present || matches!(about, About::Attempt { .. }));
        assert!(!self.questions.contains_key(&about), "{about:?} is asked already");
        let patience = i64::try_from(patience.as_millis()).unwrap();
        self.plan_answer(&about, &question, patience);
    }

    fn withdraw(&mut self, about: &About) {
        self.take_back(about);
    }

    fn takes_messages(&self, attempt: &str) -> bool {
        self.running[attempt].story.as_str().ends_with('1')
    }

    fn say(&mut self, attempt: &str, _text: &str) {
        assert!(self.running.contains_key(attempt));
    }

    fn end_attempt(&mut self, attempt: &str, why: EndedBy) {
        let at = self.now() + 2 * SECOND;
        let running = self.running.get_mut(attempt).unwrap();
        running.end(why);
        let slot = running.slot;
        let slot = self.hasten(slot, at);
        self.running.get_mut(attempt).unwrap().slot = slot;
    }

    fn stuck_step(&mut self, attempt: &str, step: Option<StuckStep>) {
        let (now, policy) = (self.now(), self.config.stuck);
        self.running.get_mut(attempt).unwrap().stuck_step(step, now, &policy);
    }

    fn busy(&self, attempt: &str) -> Duration {
        self.since(self.running[attempt].began)
    }

    fn order(&mut self, order: Order) {
        let rest = if order == Order::Kill { 0 } else { 5 * SECOND };
        let at = self.now() + rest;
        let attempts: Vec<String> = self.running.keys().cloned().collect();
        for attempt in attempts {
            let running = self.running.get_mut(&attempt).unwrap();
            let slot = running.slot;
            // One that is about to end does so.
            if slot.0 > at {
                running.end(EndedBy::Human);
            }
            let slot = self.hasten(slot, at);
            self.running.get_mut(&attempt).unwrap().slot = slot;
        }
        for place in 0..self.gates.len() {
            let slot = self.gates[place].slot;
            self.gates[place].stopped |= slot.0 > at;
            self.gates[place].slot = self.hasten(slot, at);
        }
    }

    fn listen_for_skip(&mut self, on: bool) {
        self.listens = on;
    }

    fn requests(&mut self) -> Result<Vec<(i64, Option<Request>)>, RunnerError> {
        Ok(self.requests.iter().map(|(number, one)| (*number, Some(one.clone()))).collect())
    }

    fn settle_request(&mut self, number: i64) -> Result<(), RunnerError> {
        self.step()?;
        self.requests.retain(|(other, _)| *other != number);
        Ok(())
    }
}
