//! One night from its beginning to its end: decisions and events, as the engine makes them.

use std::collections::BTreeSet;

use ralph::core::decide::{Moment, Next, decide};
use ralph::core::event::{
    Answer, AttemptEnded, AttemptStarted, Base, Cause, Event, Recorded, Role, RunStarted,
    StoryClosed,
};
use ralph::core::evidence::{GateEnd, GateReport, Item};
use ralph::core::id::StoryId;
use ralph::core::likeness::most_alike;
use ralph::core::outcome::Outcome;
use ralph::core::policy::StopReason;
use ralph::core::rut::Traces;
use ralph::core::spending::{Bill, Known};
use ralph::core::state::RunState;
use ralph::core::verdict::{Evidence, Verdict, fingerprint, judge};

use super::check;
use super::dice::Dice;
use super::reply::Reply;
use super::scene::Scene;

/// No night needs more decisions.
const MOST_STEPS: u32 = 20_000;
const GATE_MS: u64 = 30_000;

pub struct Night {
    pub scene: Scene,
    pub state: RunState,
    pub dice: Dice,
    pub now: i64,
    events: Vec<Recorded>,
    reply: Option<Reply>,
    /// Attempts whose claim is true.
    pub proven: BTreeSet<String>,
    /// Stories that a human gave up.
    pub given_up: BTreeSet<StoryId>,
    pub spent: f64,
    pub attempts: u32,
}

/// What came of a night.
pub struct Played {
    pub attempts: u32,
    pub events: Vec<Recorded>,
    pub reason: StopReason,
}

pub fn play(seed: u64) -> Played {
    let mut dice = Dice::new(seed);
    let scene = Scene::draw(&mut dice);
    let mut night = Night {
        scene,
        dice,
        state: RunState::default(),
        now: 1_800_000_000_000,
        events: Vec::new(),
        reply: None,
        proven: BTreeSet::new(),
        given_up: BTreeSet::new(),
        spent: 0.0,
        attempts: 0,
    };
    night.begin();
    let Some(reason) = (0..MOST_STEPS).find_map(|_| night.step()) else {
        unreachable!("night {seed} does not end")
    };
    check::end(&night, &reason, seed);
    Played { attempts: night.attempts, events: night.events, reason }
}

impl Night {
    fn then(&mut self, event: Event) {
        let recorded = Recorded { at: self.now, event };
        self.state.apply(&recorded);
        self.events.push(recorded);
    }

    fn begin(&mut self) {
        let passing = self.scene.backlog.stories.iter().filter(|story| story.passes);
        let passing = passing.map(|story| story.id.clone()).collect();
        self.then(Event::RunStarted(RunStarted {
            run: "night".into(),
            backlog: "PRD.json".into(),
            project: "night".into(),
            description: String::new(),
            agent: "dice".into(),
            branch: None,
            allow_dirty: false,
            carried: vec![],
        }));
        self.then(Event::MarksSeen { passing, skipped: vec![] });
    }

    fn decide(&self, busy_ms: u64) -> Next {
        let moment = Moment { now: self.now, busy_ms, ..Moment::default() };
        decide(&self.state, &self.scene.backlog, &self.scene.policy, &moment)
    }

    /// One decision and what follows from it; the reason when it is to stop.
    fn step(&mut self) -> Option<StopReason> {
        match self.decide(0) {
            Next::Attempt { story } => self.start(&story),
            Next::Wait => self.go_on(),
            Next::EndAttempts => self.end_at_the_limit(),
            Next::Check { story, attempt } => self.check(story, attempt),
            Next::Close { story, attempt } => self.close(story, attempt),
            Next::Raise { story, question } => self.then(Event::QuestionRaised { story, question }),
            Next::Ask { story } => self.ask(story),
            Next::Answer { story, answer } => self.then(Event::QuestionAnswered { story, answer }),
            Next::Park { story } => self.then(Event::StoryParked { story }),
            Next::StartOver { story, to } => {
                self.then(Event::ReturnPlanned { story, to, why: Cause::FreshStart });
            }
            Next::Return { story } => self.then(Event::Returned { story, reference: None }),
            Next::SetAside { story } => {
                self.then(Event::WorkSetAside { story, reference: Some("refs/x".into()) });
            }
            Next::Climb(due) => unreachable!("nobody looks at {}", due.attempt),
            Next::LetGo { story } => unreachable!("nobody settled {story} by hand"),
            Next::Skip { story } => self.skip(story),
            Next::WaitUntil(wait) => {
                assert!(wait.until > self.now, "a wait that is over");
                if self.scene.policy.human_present && self.dice.percent(10) {
                    self.then(Event::WaitCutShort);
                } else {
                    self.now = wait.until;
                }
            }
            Next::Alert { level } => self.then(Event::BudgetNear { level }),
            Next::Throttle { level, until } => self.then(Event::Throttled { level, until }),
            Next::OpenBreaker { why, until } => self.then(Event::BreakerOpened { why, until }),
            Next::Stop(reason) => {
                self.then(Event::RunEnded { reason: reason.clone() });
                return Some(reason);
            }
        }
        None
    }

    fn start(&mut self, story: &StoryId) {
        check::start(self, story);
        self.attempts += 1;
        let base = Base { commit: None, tree: "t".into() };
        let started = AttemptStarted {
            attempt: format!("attempt {}", self.attempts),
            iteration: self.state.iterations + 1,
            role: Role::Implement,
            story: story.clone(),
            title: story.to_string(),
            agent: "dice".into(),
            base: base.clone(),
            criteria: None,
            before: Some(base),
            snapshot: None,
            guided: false,
            why: self.state.story(story).map(|known| known.why).unwrap_or_default(),
            stable: None,
        };
        self.then(Event::AttemptStarted(Box::new(started)));
        let (name, now) = (story.as_str(), self.now);
        self.reply = Some(Reply::draw(&self.scene, name, self.attempts, now, &mut self.dice));
    }

    /// The attempt runs to its end, unless the time is over before, or ralph dies.
    fn go_on(&mut self) {
        if self.scene.crashes && self.dice.percent(3) {
            let lost = self.state.in_flight.values().map(|started| Event::AttemptLost {
                attempt: started.attempt.clone(),
                story: started.story.clone(),
                counted: self.state.spending.assumed(),
            });
            for event in lost.collect::<Vec<_>>() {
                self.then(event);
            }
            return self.then(Event::RunContinued);
        }
        let busy = self.reply.as_ref().map_or(0, |reply| reply.elapsed_ms);
        match self.decide(busy) {
            Next::EndAttempts => self.end_at_the_limit(),
            _ => self.end_attempt(),
        }
    }

    fn end_at_the_limit(&mut self) {
        let limit = self.scene.policy.limits.max_run_time.unwrap();
        let left = u64::try_from(limit.as_millis()).unwrap().saturating_sub(self.state.worked.ms());
        if let Some(reply) = &mut self.reply {
            reply.elapsed_ms = left;
            reply.outcome = Outcome::EndedByUs;
        }
        self.end_attempt();
    }

    fn end_attempt(&mut self) {
        let under_way = self.state.in_flight.values().next().cloned().unwrap();
        let reply = self.reply.as_ref().unwrap();
        let remaining = self.scene.backlog.remaining();
        let changed = reply.traces.changed != Some(false);
        let evidence = Evidence { changed, remaining, stray: None };
        let verdict = judge(&reply.outcome, &reply.signals, evidence);
        let known = self.state.story(&under_way.story);
        let said = known.map(|known| &known.signs.said).into_iter().flatten();
        let likeness = most_alike(&reply.traces.said, said);
        // An agent that is killed does not say what it cost.
        let known = if reply.usage.cost_usd.is_some() { Known::Whole } else { Known::Part };
        let counted = self.state.spending.count(&reply.usage, known);
        let ended = AttemptEnded {
            attempt: under_way.attempt.clone(),
            story: under_way.story,
            outcome: reply.outcome.clone(),
            signals: reply.signals.clone(),
            verdict: verdict.clone(),
            usage: reply.usage.clone(),
            elapsed_ms: reply.elapsed_ms,
            head: None,
            concerns: vec![],
            agent_version: None,
            model: None,
            said: None,
            context: None,
            triggers: vec![],
            traces: Traces { likeness, ..reply.traces.clone() },
            bill: Bill { counted: Some(counted), ..Bill::default() },
        };
        if verdict == Verdict::Done && reply.holds {
            self.proven.insert(under_way.attempt);
        }
        self.spent += reply.usage.cost_usd.unwrap_or_default();
        self.now += i64::try_from(reply.elapsed_ms).unwrap();
        self.then(Event::AttemptEnded(Box::new(ended)));
    }

    fn check(&mut self, story: StoryId, attempt: String) {
        let holds = self.proven.contains(&attempt);
        let end = if holds { GateEnd::Passed } else { GateEnd::Failed { code: 1 } };
        let gate = self.reply.as_ref().map(|reply| reply.gate.clone()).unwrap_or_default();
        let tail = gate.clone();
        let report = GateReport { gate: "g".into(), guards: None, end, elapsed_ms: GATE_MS, tail };
        let items = vec![Item::Gate(report)];
        self.now += i64::try_from(GATE_MS).unwrap();
        self.then(Event::ClaimChecked { attempt: attempt.clone(), story: story.clone(), items });
        self.then(if holds {
            Event::ClosePlanned { attempt, story }
        } else {
            let fingerprint = fingerprint("gate", &gate);
            Event::ClaimRejected { story, error: gate, fingerprint, unfounded: false }
        });
    }

    fn close(&mut self, story: StoryId, attempt: String) {
        assert!(self.proven.contains(&attempt), "{story} is closed without its evidence");
        let commit = "c".to_owned();
        self.then(Event::StoryClosed(StoryClosed { attempt, story: story.clone(), commit }));
        self.mark(&story, |known| known.passes = true);
    }

    fn skip(&mut self, story: StoryId) {
        assert!(self.given_up.contains(&story), "nobody wanted {story} skipped");
        self.then(Event::StorySkipped { story: story.clone(), commit: None });
        self.mark(&story, |known| known.skipped = true);
    }

    fn mark(&mut self, story: &StoryId, mark: fn(&mut ralph::core::backlog::Story)) {
        let stories = &mut self.scene.backlog.stories;
        let known = stories.iter_mut().find(|known| known.id == *story).unwrap();
        assert!(!known.is_settled(), "{story} is settled twice");
        mark(known);
    }

    fn ask(&mut self, story: StoryId) {
        assert!(self.scene.policy.human_present, "nobody can be asked");
        let Some(left) = self.scene.answers.checked_sub(1) else {
            return self.then(Event::StoryParked { story });
        };
        self.scene.answers = left;
        let answer = match self.dice.weighted(&[4, 4, 2]) {
            0 => Answer::Retry,
            1 => Answer::Guidance { text: "like this".into() },
            _ => {
                self.given_up.insert(story.clone());
                Answer::Skip
            }
        };
        self.then(Event::QuestionAnswered { story, answer });
    }
}
