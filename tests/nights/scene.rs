//! What a night begins with.

use std::num::NonZeroU32;
use std::time::Duration;

use ralph::core::backlog::{Backlog, Story};
use ralph::core::budget::Budgets;
use ralph::core::id::StoryId;
use ralph::core::limits::Limits;
use ralph::core::money::Usd;
use ralph::core::policy::{OnEscalation, OnLimit, Policy};
use ralph::core::signal::Signs;

use super::dice::Dice;

/// The most that one iteration may cost.
pub const ALLOWANCE: f64 = 2.0;

pub struct Scene {
    pub backlog: Backlog,
    pub policy: Policy,
    /// How likely each kind of reply is; see `reply`.
    pub rates: Vec<u32>,
    /// A story that nothing will ever come of, and what its agents do instead.
    pub hopeless: Option<(StoryId, Hopeless)>,
    /// All others are done at the first try, and the service has no bad day.
    pub others_are_easy: bool,
    /// How often a human answers before nobody is there any more.
    pub answers: u32,
    pub crashes: bool,
}

#[derive(Clone, Copy, Debug)]
pub enum Hopeless {
    SameError,
    OtherErrors,
    TwoErrors,
    DoesNothing,
    Lies,
    Hangs,
    OnlyTests,
    Repeats,
    NeverReady,
}

const WAYS: [Hopeless; 9] = [
    Hopeless::SameError,
    Hopeless::OtherErrors,
    Hopeless::TwoErrors,
    Hopeless::DoesNothing,
    Hopeless::Lies,
    Hopeless::Hangs,
    Hopeless::OnlyTests,
    Hopeless::Repeats,
    Hopeless::NeverReady,
];

impl Scene {
    pub fn draw(dice: &mut Dice) -> Self {
        let others_are_easy = dice.percent(30);
        let count = dice.between(1, 12);
        let stories: Vec<Story> = (0..count).map(|number| story(number, dice)).collect();
        let hopeless = (others_are_easy || dice.percent(30)).then(|| {
            let one = &stories[usize::try_from(dice.between(0, count - 1)).unwrap()];
            (one.id.clone(), WAYS[usize::try_from(dice.between(0, 8)).unwrap()])
        });
        let mut policy = policy(dice);
        if others_are_easy {
            policy.max_iterations = Some(50);
            policy.limits = Limits { max_average_iteration: None, ..Limits::default() };
            policy.max_attempts = NonZeroU32::new(10).unwrap();
            policy.budgets = Budgets::default();
        }
        Self {
            backlog: Backlog { project: "night".into(), description: String::new(), stories },
            rates: (0..super::reply::KINDS).map(|_| dice.count(0, 10)).collect(),
            hopeless,
            others_are_easy,
            // Whoever wants it tried again and again lets it cost the others.
            answers: if policy.human_present && !others_are_easy { dice.count(0, 8) } else { 0 },
            crashes: !others_are_easy && dice.percent(30),
            policy,
        }
    }
}

fn id(number: u64) -> StoryId {
    StoryId::try_from(format!("S{number}").as_str()).unwrap()
}

fn story(number: u64, dice: &mut Dice) -> Story {
    let on = (number > 0 && dice.percent(25)).then(|| id(dice.between(0, number - 1)));
    Story {
        id: id(number),
        title: format!("Story {number}"),
        description: String::new(),
        criteria: vec![],
        passes: dice.percent(5),
        skipped: false,
        depends_on: on.into_iter().collect(),
        priority: dice.percent(20).then(|| f64::from(dice.count(0, 9))),
        verify: vec![],
        signs: Signs::default(),
        max_attempts: dice.percent(10).then(|| NonZeroU32::new(dice.count(1, 12)).unwrap()),
    }
}

fn budgets(dice: &mut Dice) -> Budgets {
    let mut dollars =
        |percent, most| dice.percent(percent).then(|| Usd::dollars(dice.between(1, most)));
    Budgets {
        per_run: dollars(60, 50),
        per_story: dollars(30, 10),
        throttle: dice.percent(30),
        ..Budgets::default()
    }
}

fn policy(dice: &mut Dice) -> Policy {
    let usual = Limits::default();
    let limits = Limits {
        max_consecutive_errors: dice.percent(80).then(|| dice.count(1, 8)),
        max_failing: dice.percent(80).then(|| dice.count(5, 10)),
        max_run_time: Some(Duration::from_mins(dice.between(20, 900))),
        max_average_iteration: dice.percent(20).then(|| Duration::from_mins(dice.between(5, 60))),
        cool_down: usual.cool_down.filter(|_| dice.percent(80)),
        backoff: usual.backoff.filter(|_| dice.percent(80)),
    };
    Policy {
        max_iterations: Some(dice.count(1, 60)),
        once: false,
        attempts_before: 0,
        only: None,
        stuck_threshold: NonZeroU32::new(dice.count(1, 4)).unwrap(),
        max_attempts: NonZeroU32::new(dice.count(1, 12)).unwrap(),
        fresh_start_after: dice.percent(70).then_some(3),
        limits,
        budgets: budgets(dice),
        on_escalation: if dice.percent(80) { OnEscalation::Ask } else { OnEscalation::Park },
        on_limit: if dice.percent(90) { OnLimit::Wait } else { OnLimit::Stop },
        min_free_disk: None,
        human_present: dice.percent(40),
    }
}
