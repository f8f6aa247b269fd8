//! Any backlog, any agent and any human: decisions and events alone, without an engine.

use std::collections::BTreeSet;
use std::num::NonZeroU32;

use proptest::prelude::*;

use super::{History, Told, backlog, escalation, failed, guidance, id, story};
use crate::core::backlog::{Backlog, Story};
use crate::core::breaker::Phase;
use crate::core::budget::Budgets;
use crate::core::decide::{Moment, Next, decide};
use crate::core::event::{Answer, Cause, Event, Usage};
use crate::core::id::StoryId;
use crate::core::limits::Limits;
use crate::core::policy::{OnEscalation, OnLimit, Policy, StopReason};
use crate::core::select::is_ready;
use crate::core::signal::{Escalation, EscalationKind};
use crate::core::verdict::Verdict;
use crate::core::weather::Trouble;

#[derive(Clone, Debug)]
enum Reply {
    Ends(Verdict),
    /// The driver dies during the attempt and goes on.
    Crash,
}

#[derive(Clone, Debug)]
struct Scene {
    backlog: Backlog,
    policy: Policy,
    /// What the agent does in each attempt, over and over.
    replies: Vec<Reply>,
    /// What the human says, one after the other; then nobody is there.
    answers: Vec<Answer>,
}

struct World {
    backlog: Backlog,
    policy: Policy,
    history: History,
    replies: std::iter::Cycle<std::vec::IntoIter<Reply>>,
    answers: std::vec::IntoIter<Answer>,
    /// Attempts that ended with a claim that holds.
    done: BTreeSet<String>,
    /// Stories that somebody wanted skipped.
    given_up: BTreeSet<StoryId>,
    settled: BTreeSet<StoryId>,
    /// A human interrupts so often and then lets it run.
    interruptions: u32,
    /// And cuts a wait short so often.
    hurries: u32,
    /// Claims that were looked into.
    checks: u32,
}

impl World {
    fn new(scene: &Scene) -> Self {
        Self {
            backlog: scene.backlog.clone(),
            policy: scene.policy.clone(),
            history: History::new(),
            replies: scene.replies.clone().into_iter().cycle(),
            answers: scene.answers.clone().into_iter(),
            done: BTreeSet::new(),
            given_up: BTreeSet::new(),
            settled: BTreeSet::new(),
            interruptions: 3,
            hurries: 3,
            checks: 0,
        }
    }

    fn change(&mut self, change: impl FnOnce(History) -> History) {
        self.history = change(self.history.clone());
    }

    fn then(&mut self, event: Event) {
        self.change(|history| history.then(event));
    }

    /// One decision and what follows from it; the reason when it is to stop.
    fn step(&mut self) -> Option<StopReason> {
        let moment = Moment { now: self.history.at, ..Moment::default() };
        match decide(&self.history.state, &self.backlog, &self.policy, &moment) {
            Next::Attempt { story } => self.start(&story),
            Next::Wait => self.end_attempt(),
            Next::Climb(_) => unreachable!("nobody is stuck here"),
            Next::EndAttempts => panic!("nobody looks at the disk"),
            Next::Check { story, attempt } => self.check(&story, &attempt),
            Next::Close { story, attempt } => self.close(&story, &attempt),
            Next::Skip { story } => self.skip(&story),
            Next::SetAside { story } => {
                assert_eq!(self.history.state.in_tree, Some(story.clone()));
                self.change(|history| history.set_aside(story.as_str(), Some("refs/x")));
            }
            Next::StartOver { story, to } => {
                let row = self.history.of(story.as_str()).row.len();
                assert_eq!(u32::try_from(row).ok(), self.policy.fresh_start_after, "not its time");
                assert_eq!(self.history.state.in_tree, Some(story.clone()));
                self.then(Event::ReturnPlanned { story, to, why: Cause::FreshStart });
            }
            Next::Return { story } => {
                self.change(|history| history.returned(story.as_str(), Some("refs/x")));
            }
            Next::OpenBreaker { why, until } => self.then(Event::BreakerOpened { why, until }),
            Next::WaitUntil(wait) => {
                let at = wait.until;
                assert!(at > self.history.at, "a wait that is over");
                match self.hurries.checked_sub(1) {
                    Some(left) => {
                        self.hurries = left;
                        self.then(Event::WaitCutShort);
                    }
                    None => self.history.at = at,
                }
            }
            Next::Alert { level } => self.then(Event::BudgetNear { level }),
            Next::Throttle { level, until } => self.then(Event::Throttled { level, until }),
            Next::LetGo { story } => panic!("nobody settled {story} by hand"),
            Next::Raise { story, question } => self.then(Event::QuestionRaised { story, question }),
            Next::Ask { story } => self.ask(&story),
            Next::Answer { story, answer } => {
                let decided = self.policy.on_escalation;
                assert!(matches!(decided, OnEscalation::Skip | OnEscalation::Abort));
                self.answer(&story, answer);
            }
            Next::Park { story } => self.then(Event::StoryParked { story }),
            Next::Stop(reason) => return Some(reason),
        }
        None
    }

    fn start(&mut self, story: &StoryId) {
        let state = &self.history.state;
        assert!(state.in_flight.is_empty(), "two attempts at once");
        assert!(state.in_tree.as_ref().is_none_or(|other| other == story), "another's wreckage");
        assert!(self.policy.only.as_ref().is_none_or(|only| only == story), "not wanted");
        assert!(state.questions().all(|(asked, _)| asked != story), "its question is open");
        assert!(!self.given_up.contains(story), "a human skipped it");
        let known = self.backlog.story(story).unwrap();
        assert!(is_ready(known, &self.backlog, &state.parked()), "it cannot be started");
        let begins = story.clone();
        self.change(|history| history.started(begins.as_str()));
    }

    fn end_attempt(&mut self) {
        let under_way = self.history.state.in_flight.values().next().cloned().unwrap();
        let Some(Reply::Ends(verdict)) = self.replies.next() else {
            return self.then(Event::RunContinued);
        };
        let verdict = match self.interruptions.checked_sub(1) {
            Some(left) if verdict == Verdict::Interrupted => {
                self.interruptions = left;
                verdict
            }
            None if verdict == Verdict::Interrupted => Verdict::Progress,
            _ => verdict,
        };
        let name = under_way.story.as_str();
        self.change(|history| history.ended(verdict.clone(), Usage::default()));
        if matches!(verdict, Verdict::Escalated { .. }) {
            self.change(|history| history.raised(name));
        }
    }

    /// The evidence is now for the claim, now against it, now for the human to weigh.
    fn check(&mut self, story: &StoryId, attempt: &str) {
        assert!(self.history.state.questions().all(|(asked, _)| asked != story), "it is asked");
        self.checks += 1;
        let story = story.clone();
        match self.checks % 4 {
            0 => self.then(Event::ClaimRejected {
                story,
                error: "gate".into(),
                fingerprint: "gate".into(),
                unfounded: false,
            }),
            1 => {
                let question = Escalation { kind: EscalationKind::Claim, ..escalation("done?") };
                self.then(Event::QuestionRaised { story, question });
            }
            _ => {
                self.done.insert(attempt.to_owned());
                self.change(|history| history.planned(story.as_str()));
            }
        }
    }

    fn close(&mut self, story: &StoryId, attempt: &str) {
        assert!(self.done.contains(attempt), "closed without a claim that holds");
        self.change(|history| history.closed(story.as_str()));
        self.mark(story, Told::passing);
    }

    fn skip(&mut self, story: &StoryId) {
        assert!(self.given_up.contains(story), "nobody wanted it skipped");
        assert_ne!(self.history.state.in_tree.as_ref(), Some(story), "its work is in the tree");
        self.change(|history| history.skipped(story.as_str()));
        self.mark(story, Told::skipped);
    }

    fn mark(&mut self, story: &StoryId, mark: fn(Story) -> Story) {
        assert!(self.settled.insert(story.clone()), "settled twice");
        let known = self.backlog.stories.iter_mut().find(|known| known.id == *story).unwrap();
        assert!(!known.is_settled(), "settled before");
        *known = mark(known.clone());
    }

    fn ask(&mut self, story: &StoryId) {
        assert!(self.policy.human_present, "nobody can be asked");
        match self.answers.next() {
            Some(answer) => self.answer(story, answer),
            None => self.then(Event::StoryParked { story: story.clone() }),
        }
    }

    fn answer(&mut self, story: &StoryId, answer: Answer) {
        if answer == Answer::Skip {
            self.given_up.insert(story.clone());
        }
        if answer == Answer::Accept {
            self.done.extend(self.history.of(story.as_str()).claim);
        }
        self.then(Event::QuestionAnswered { story: story.clone(), answer });
    }

    fn check_end(&self, reason: &StopReason, before: &Backlog) {
        let everything = self.backlog.remaining() == 0;
        assert_eq!(*reason == StopReason::AllDone, everything, "{reason:?}");
        for (now, then) in self.backlog.stories.iter().zip(&before.stories) {
            assert_eq!(now.is_settled() && !then.is_settled(), self.settled.contains(&now.id));
        }
        let ready = |story: &&Story| {
            let wanted = self.policy.only.as_ref().is_none_or(|only| *only == story.id);
            wanted && is_ready(story, &self.backlog, &self.history.state.parked())
        };
        match reason {
            StopReason::NothingToSelect { blocked } => {
                assert_eq!(self.backlog.stories.iter().find(ready), None);
                assert!(!blocked.is_empty());
            }
            StopReason::MaxIterations { limit } => {
                assert_eq!(self.history.state.iterations, *limit)
            }
            StopReason::Once => assert!(self.policy.once),
            StopReason::StoryDone { story } => {
                assert!(self.backlog.story(story).unwrap().is_settled());
            }
            StopReason::Aborted => assert!(self.history.state.aborted),
            StopReason::ServiceDown { .. } => {
                let row = self.history.state.trouble.as_ref().unwrap();
                assert!(row.last_at - row.first_at > 2 * 60 * 60 * 1000);
            }
            StopReason::BreakerOpen { .. } => {
                let phase = &self.history.state.breaker.phase;
                assert!(matches!(phase, Phase::Failed { .. }), "{phase:?}");
            }
            StopReason::ConsecutiveErrors { limit, .. } => {
                assert!(self.history.state.slump.errors(u32::MAX) >= *limit);
            }
            StopReason::Failing { failed, .. } => {
                assert!(self.history.state.record.failures(u32::MAX) >= Some(*failed));
            }
            StopReason::FailsAtOnce { .. }
            | StopReason::MaxRunTime { .. }
            | StopReason::SlowIterations { .. }
            | StopReason::UsageLimit { .. }
            | StopReason::AccountTrouble { .. }
            | StopReason::AgentUnusable { .. }
            | StopReason::BudgetUsedUp { .. }
            | StopReason::DiskLow { .. } => panic!("{reason:?} was not in the scene"),
            StopReason::AllDone => {}
        }
    }
}

/// Every attempt but those after a word of the human's counts towards the most a story may have.
fn most_steps(scene: &Scene) -> usize {
    let stories = scene.backlog.stories.len();
    let rounds = stories + scene.answers.len();
    let attempts = rounds * usize::try_from(scene.policy.max_attempts.get()).unwrap();
    // Each attempt may be put off by an outage, and an outage lasts for so many tries at most.
    (attempts + 1) * (2 * stories + 12) * scene.replies.len() + 200
}

fn any_story(number: usize) -> impl Strategy<Value = Story> {
    let mark = prop_oneof![6 => Just(0), 1 => Just(1), 1 => Just(2)];
    let earlier = prop::collection::vec(any::<prop::sample::Index>(), 0..=number.min(2));
    (mark, earlier, prop::option::of(-2..3_i32)).prop_map(move |(mark, earlier, priority)| {
        let on: BTreeSet<usize> = earlier.iter().map(|index| index.index(number)).collect();
        let on: Vec<String> = on.iter().map(|number| format!("S{number}")).collect();
        let on: Vec<&str> = on.iter().map(String::as_str).collect();
        let story = Story { priority: priority.map(f64::from), ..story(&format!("S{number}")) };
        match mark {
            1 => story.passing(),
            2 => story.skipped(),
            _ => story,
        }
        .after(&on)
    })
}

fn any_backlog() -> impl Strategy<Value = Backlog> {
    let stories = (1..7_usize).prop_flat_map(|count| (0..count).map(any_story).collect::<Vec<_>>());
    // The file's order is not the order of the dependencies.
    stories.prop_shuffle().prop_map(backlog)
}

fn any_reply() -> impl Strategy<Value = Reply> {
    let escalated = Verdict::Escalated { escalation: escalation("stuck") };
    prop_oneof![
        1 => Just(Reply::Ends(Verdict::NotTheStory { trouble: Trouble::Outage, error: "o".into() })),
        4 => Just(Reply::Ends(Verdict::Done)),
        2 => Just(Reply::Ends(Verdict::Progress)),
        2 => "[xy]".prop_map(|error| Reply::Ends(failed(&error))),
        1 => Just(Reply::Ends(escalated)),
        1 => Just(Reply::Ends(Verdict::Interrupted)),
        1 => Just(Reply::Crash),
    ]
}

fn any_answer() -> impl Strategy<Value = Answer> {
    prop_oneof![
        3 => Just(Answer::Retry),
        2 => Just(Answer::Accept),
        2 => Just(guidance("use v2")),
        2 => Just(Answer::Option { number: 1, text: "left".into() }),
        2 => Just(Answer::Skip),
        1 => Just(Answer::Abort),
    ]
}

fn any_limits() -> impl Strategy<Value = Limits> {
    let (errors, usual) = (prop::option::of(1..7_u32), Limits::default());
    (errors, any::<bool>(), any::<bool>()).prop_map(move |(errors, breaker, rest)| Limits {
        max_consecutive_errors: errors,
        max_failing: usual.max_failing.filter(|_| rest),
        cool_down: usual.cool_down.filter(|_| breaker),
        backoff: usual.backoff.filter(|_| rest),
        ..Limits::NONE
    })
}

fn any_policy() -> impl Strategy<Value = Policy> {
    let on_escalation = prop_oneof![
        3 => Just(OnEscalation::Ask),
        1 => Just(OnEscalation::Park),
        1 => Just(OnEscalation::Skip),
        1 => Just(OnEscalation::Abort),
    ];
    let count = || (1..4_u32).prop_map(|count| NonZeroU32::new(count).unwrap());
    let only = prop_oneof![4 => Just(None), 1 => Just(Some(id("S0")))];
    let max_iterations = prop_oneof![2 => Just(None), 1 => (0..12_u32).prop_map(Some)];
    let once = prop_oneof![9 => Just(false), 1 => Just(true)];
    let fresh = prop::option::of(1..4_u32);
    let bounds = (max_iterations, any_limits());
    (on_escalation, any::<bool>(), count(), count(), only, bounds, once, fresh).prop_map(
        |(on_escalation, human_present, stuck, attempts, only, bounds, once, fresh)| {
            let (max_iterations, limits) = bounds;
            Policy {
                fresh_start_after: fresh,
                limits,
                on_limit: OnLimit::Wait,
                max_iterations,
                once,
                attempts_before: 0,
                only,
                stuck_threshold: stuck,
                max_attempts: attempts,
                on_escalation,
                min_free_disk: None,
                human_present,
                budgets: Budgets::default(),
            }
        },
    )
}

fn any_scene() -> impl Strategy<Value = Scene> {
    let replies = prop::collection::vec(any_reply(), 1..12);
    let answers = prop::collection::vec(any_answer(), 0..8);
    (any_backlog(), any_policy(), replies, answers)
        .prop_map(|(backlog, policy, replies, answers)| Scene { backlog, policy, replies, answers })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn every_run_ends_and_says_rightly_why(scene in any_scene()) {
        let mut world = World::new(&scene);
        let end = (0..most_steps(&scene)).find_map(|_| world.step());
        world.check_end(&end.expect("an end within the bound"), &scene.backlog);
    }
}
