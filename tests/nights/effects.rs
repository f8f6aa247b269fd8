//! The fake effects: each begins something in the queue, or is over at once.

use std::collections::BTreeMap;
use std::time::Duration;

use ralph::agent::{AgentIdentity, AgentReport};
use ralph::decide::budget::BudgetCheck;
use ralph::decide::situation::{FreeDisk, LaneJob, Observed, StuckDue, Tasks};
use ralph::decide::stuck::{StuckStep, StuckTracker};
use ralph::model::{
    Approval, AttemptStarted, Backlog, Base, CostCertainty, EndedBy, Escalation, Event,
    EvidenceItem, GateEnd, GateReport, LaneId, Request, Role, SpentToday, StoryId, Usd, millis,
};
use ralph::ports::Asked;
use ralph::process::Order;
use ralph::process::pump::SupervisedEnd;
use ralph::runner::RunnerError;
use ralph::runner::effects::{
    About, Effects, EndedAttempt, GatesFound, GatesOf, Happened, Inspection,
};
use ralph::runner::log::RunLog;
use ralph::state::{Stage, StoryState};
use ralph::workspace::Difference;

use super::attacks::Attacker;
use super::branch::{Checkout, Proof, changed_script};
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
    fn happen(&mut self, log: &mut RunLog, what: Planned) -> Result<Option<Happened>, RunnerError> {
        Ok(Some(match what {
            Planned::AttemptEnds(attempt) => {
                self.step()?;
                Happened::AttemptEnded(Box::new(self.ended(&attempt)))
            }
            Planned::GatesEnd(of) => {
                self.step()?;
                let place = self.gates.iter().position(|gates| gates.of == of).unwrap();
                let stopped = self.gates.remove(place).stopped;
                let items = self.scene.has_gates.then(|| self.gate(&of)).into_iter().collect();
                let changed = match &of {
                    GatesOf::Claim { story, .. } => self.changed.contains(story),
                    GatesOf::Baseline | GatesOf::FirstLook { .. } => true,
                };
                let found = GatesFound { changed, ..GatesFound::default() };
                Happened::GatesEnded { of, items: (!stopped).then_some(items), found }
            }
            Planned::JobEnds(lane) => self.end_job(log, lane)?,
            Planned::Answer(about, asked) => {
                self.questions.remove(&about);
                self.is_interrupted |= asked == Asked::Interrupted;
                self.note_answer(&about, &asked);
                Happened::Answered { about, asked }
            }
            Planned::Deed(deed) => self.act(deed),
            Planned::Attack(by, what) => {
                self.attack(&by, what);
                Happened::Tick
            }
            Planned::Crash => return Ok(None),
        }))
    }

    fn ended(&mut self, attempt: &str) -> EndedAttempt {
        let running = &self.running[attempt];
        if running.reply.changed() && running.reply.branch_loss.is_none() {
            let story = running.story.clone();
            self.change_work(&story);
            self.changed.insert(story);
        }
        let running = &self.running[attempt];
        let Reply { outcome, signals, footprint, usage, .. } = &running.reply;
        let branch_loss = running.reply.branch_loss;
        let (holds, gate) = (running.reply.holds, running.reply.gate.clone());
        self.claims.insert(attempt.to_owned(), (holds, gate));
        let path = if footprint.only_tests { "tests/a.rs" } else { "src/a.rs" };
        let paths = footprint.changed.unwrap_or(true).then(|| path.into()).into_iter().collect();
        let difference = Difference { committed: footprint.committed, paths };
        let inspection = Inspection {
            branch_loss,
            difference: footprint.changed.map(|_| difference),
            ..Inspection::default()
        };
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
            final_text: footprint.said.clone(),
        };
        EndedAttempt {
            attempt: attempt.to_owned(),
            report,
            ended_by: running.ended_by,
            processes: SupervisedEnd { survivors: Some(vec![]), ..SupervisedEnd::default() },
            elapsed: self.since(running.began),
            log_problem: None,
            inspection,
            at_start: running.at_start.clone(),
        }
    }

    fn gate(&mut self, of: &GatesOf) -> EvidenceItem {
        let (end, tail) = match of {
            GatesOf::Baseline | GatesOf::FirstLook { .. } => (GateEnd::Passed, String::new()),
            GatesOf::Claim { attempt, .. } => {
                let (holds, tail) = self.claims.get(attempt).cloned().unwrap_or_default();
                // What gates do to their own scripts only the next ones see.
                let work = self.before_gates.as_ref().map(|(_, work)| *work).unwrap_or_default();
                let passes = holds || work.is_weak;
                if passes {
                    let on = Checkout { tip: self.tip(), work };
                    let is_honest = holds && !work.is_weak;
                    self.proven.insert(attempt.clone(), Proof { on, is_honest });
                }
                (if passes { GateEnd::Passed } else { GateEnd::Failed { code: 1 } }, tail)
            }
        };
        let gate = "g".to_owned();
        EvidenceItem::Gate(GateReport { gate, guards: None, end, elapsed_ms: GATE_MS, tail })
    }
}

impl Effects for World {
    fn backlog(&self) -> &Backlog {
        &self.current
    }

    fn restore_backlog(&mut self, _log: &mut RunLog) -> Result<(), RunnerError> {
        (self.broken, self.problem) = (false, None);
        self.is_restored = true;
        Ok(())
    }

    fn backlog_problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    fn refresh(&mut self, log: &mut RunLog) -> Result<(), RunnerError> {
        if !log.state.is_rolling_back() && !self.is_writing_marks() {
            self.problem = self.broken.then(|| "broken".to_owned());
            if !self.broken {
                self.current = self.file.clone();
                let marks = log.state.marks.clone();
                self.show_marks(&marks);
            }
        }
        self.settle_marks(log)?;
        self.apply_removals(log)
    }

    fn observe(&mut self, log: &mut RunLog) -> Result<Observed, RunnerError> {
        self.steps += 1;
        assert!(self.steps < MOST_STEPS, "the night does not end");
        let policy = &self.config.settings.stuck;
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
        Ok(Observed {
            now: log.now(),
            busy_ms: millis(self.busy_all()),
            disk: Some(FreeDisk { bytes, place: "/".into() }),
            stuck,
            today: SpentToday { began, repository, user: Usd::ZERO },
            backlog_usable: self.problem.is_none(),
            tasks: Tasks::default(),
        })
    }

    async fn pending_interrupt(&mut self) -> Option<i32> {
        None
    }

    async fn next(
        &mut self,
        log: &mut RunLog,
        most: Option<Duration>,
    ) -> Result<Happened, RunnerError> {
        if std::mem::take(&mut self.is_restored) {
            return Ok(Happened::Tick);
        }
        let now = self.now();
        let until = most.map(|most| {
            assert!(most > Duration::ZERO, "a wait that is over");
            now + i64::try_from(most.as_millis()).unwrap()
        });
        let asks = !self.questions.is_empty();
        let runs = !self.running.is_empty() || !self.gates.is_empty() || !self.jobs.is_empty();
        assert!(runs || asks || self.broken || until.is_some(), "waits for nothing");
        let accepted = |known: &StoryState| {
            let lane = known.work.in_lane().map(|work| work.lane);
            lane == Some(LaneId::HOME) && matches!(known.stage, Stage::Accepted { .. })
        };
        let mut stories = log.state.stories.iter().filter(|(_, known)| accepted(known));
        let is_free = !self.jobs.contains_key(&LaneId::HOME)
            && log.state.attempts.is_free(LaneId::HOME)
            && !self.gates_run_in(LaneId::HOME);
        let is_dead = self.journal.life.is_over();
        let can_be = is_free && !self.broken && !self.is_interrupted && !is_dead;
        let waits = stories.next().filter(|_| can_be);
        assert_eq!(waits.map(|(id, _)| id), None, "it could be closed");
        if self.listens && self.scene.skips > 0 && self.dice.percent(20) {
            self.scene.skips -= 1;
            return Ok(Happened::WaitSkipped);
        }
        let look = self.next_look(log).into_iter().chain(until).min();
        let due = self.queue.first_key_value().map(|(slot, _)| slot.0);
        match (due, look) {
            (Some(due), look) if look.is_none_or(|look| due <= look) => self.pass_time(due),
            (_, Some(look)) => {
                self.pass_time(look);
                return Ok(Happened::Tick);
            }
            (None, None) | (Some(_), None) => unreachable!("nothing will ever happen"),
        }
        let (_, what) = self.queue.pop_first().unwrap();
        match self.happen(log, what)? {
            Some(happened) => Ok(happened),
            // Whoever waits here is dropped.
            None => std::future::pending().await,
        }
    }

    fn start_job(
        &mut self,
        log: &mut RunLog,
        job: LaneJob,
        story: &StoryId,
        lane: LaneId,
    ) -> Result<(), RunnerError> {
        self.begin_job(log, job, story, lane)
    }

    fn start_attempt(
        &mut self,
        log: &mut RunLog,
        story: &StoryId,
        lane: LaneId,
    ) -> Result<(), RunnerError> {
        self.check_start(log, story, lane);
        self.step()?;
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
            held: None,
        };
        self.record(log, Event::AttemptStarted(Box::new(started)))?;
        self.step()?;
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
            at_start: self.current.story(story).unwrap().clone(),
            tracker: StuckTracker::default(),
            look_at: None,
        };
        running.stuck_step(None, now, &self.config.settings.stuck);
        self.running.insert(attempt.clone(), running);
        self.plan_attack(Attacker::Attempt(attempt), ends);
        Ok(())
    }

    fn gates_are_over(&mut self, log: &mut RunLog) -> Result<(), RunnerError> {
        let story = self.undo_gates();
        self.release_backlog(log, story.as_ref())
    }

    fn attempt_is_over(
        &mut self,
        log: &mut RunLog,
        ended: &EndedAttempt,
    ) -> Result<(), RunnerError> {
        let running = &self.running[&ended.attempt];
        let (story, is_doubtful) = (running.story.clone(), running.reply.is_doubtful);
        self.release_backlog(log, Some(&story))?;
        self.inspect(log, &story, is_doubtful)
    }

    fn redact(&self, text: &str) -> String {
        text.to_owned()
    }

    fn forget_attempt(&mut self, _log: &mut RunLog, attempt: &str) -> Result<(), RunnerError> {
        self.step()?;
        self.running.remove(attempt).unwrap();
        Ok(())
    }

    fn run_gates(&mut self, log: &mut RunLog, of: GatesOf) -> Result<(), RunnerError> {
        self.step()?;
        assert!(self.gates.iter().all(|gates| gates.of != of), "{of:?} run already");
        if of == GatesOf::Baseline {
            assert_eq!(log.state.attempts.started, 0, "the baseline comes first");
        }
        if let GatesOf::Claim { story, .. } = &of {
            assert_eq!(self.lane_of(story), Some(LaneId::HOME), "checked where it lands");
            if log.state.story(story).is_some_and(|known| !known.accepted_files().is_empty()) {
                let (applied, refused) = (vec![changed_script().path], vec![]);
                self.record(log, Event::ChangesApplied { story: story.clone(), applied, refused })?;
            }
            self.before_gates = Some((story.clone(), self.checkout(story).work));
        }
        let began = self.now();
        let takes = if self.scene.has_gates { i64::try_from(GATE_MS).unwrap() } else { 0 };
        let slot = self.plan(began + takes, Planned::GatesEnd(of.clone()));
        self.gates.push(RunningGates { of: of.clone(), began, slot, stopped: false });
        self.plan_attack(Attacker::Gates(of), began + takes);
        Ok(())
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
    ) -> Result<bool, RunnerError> {
        self.step()?;
        if self.is_writing_marks() {
            return Ok(false);
        }
        if self.current.story(story).is_none() {
            return Ok(true);
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
        self.step()?;
        if self.problem.is_none() {
            set_marks(&mut self.file, &wanted);
        }
        self.commits.retain(|story, _| wanted.passing.contains(story));
        Ok(true)
    }

    fn ask(&mut self, about: About, _story: &StoryId, question: Escalation, patience: Duration) {
        assert!(self.config.policy.human_present || matches!(about, About::Attempt { .. }));
        assert!(!self.questions.contains_key(&about), "{about:?} is asked already");
        let patience = i64::try_from(patience.as_millis()).unwrap();
        self.plan_answer(&about, &question, patience);
    }

    fn withdraw(&mut self, about: &About, _at_once: bool) {
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
        let (now, policy) = (self.now(), self.config.settings.stuck);
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

    fn requests(&mut self, _log: &mut RunLog) -> Result<Vec<(i64, Option<Request>)>, RunnerError> {
        Ok(self.requests.iter().map(|(number, one)| (*number, Some(one.clone()))).collect())
    }

    fn approved(&mut self, _log: &mut RunLog, _all: Vec<Approval>) -> Result<(), RunnerError> {
        Ok(())
    }

    fn settle_request(&mut self, number: i64) -> Result<(), RunnerError> {
        self.step()?;
        self.requests.retain(|(other, _)| *other != number);
        Ok(())
    }
}
