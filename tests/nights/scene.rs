//! What a night begins with.

use std::num::NonZeroU32;
use std::time::Duration;

use ralph::decide::staging;
use ralph::decide::weigh::Gates;
use ralph::model::{
    Backlog, Budgets, CompletionMarkers, Gate, Limits, OnEscalation, OnLimit, Policy, RunMarkers,
    SettingsText, Story, StoryId, Usd,
};
use ralph::runner::RunConfig;
use ralph::settings::{Flags, RunSettings};

use super::dice::Dice;

/// The most that one iteration may cost.
pub const ALLOWANCE: f64 = 2.0;
pub const AGENT: &str = "dice";

pub struct Scene {
    pub backlog: Backlog,
    pub policy: Policy,
    pub has_gates: bool,
    pub require_two_claims: bool,
    /// Agents stop at what they may cost.
    pub agent_keeps_allowance: bool,
    /// How likely each kind of reply is; see `reply`.
    pub rates: Vec<u32>,
    /// A story that nothing will ever come of, and what its agents do instead.
    pub hopeless: Option<(StoryId, Hopeless)>,
    /// All others are done at the first try, and neither service nor human interfere.
    pub others_are_easy: bool,
    /// How often a human answers before nobody is there any more.
    pub answers: u32,
    /// How often the human cuts a wait short.
    pub skips: u32,
    /// How often ralph dies.
    pub crashes: u32,
    /// How often a human edits, marks, nudges or interrupts.
    pub interferences: u32,
    /// From and until when the service fails for everybody, in minutes of the night.
    pub outage: Option<(u64, u64)>,
    /// Each process may have another number of lanes.
    pub lanes_vary: bool,
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
    pub fn draw(lanes: NonZeroU32, dice: &mut Dice) -> Self {
        let others_are_easy = dice.percent(30);
        let count = dice.between(1, 12);
        let mut stories: Vec<Story> = (0..count).map(|number| story(number, dice)).collect();
        let hopeless = (others_are_easy || dice.percent(30)).then(|| {
            let one = &stories[usize::try_from(dice.between(0, count - 1)).unwrap()];
            (one.id.clone(), WAYS[usize::try_from(dice.between(0, 8)).unwrap()])
        });
        // The file's order is not the order of the dependencies.
        if dice.percent(50) {
            stories.reverse();
        }
        let mut policy = Policy { lanes, ..policy(dice) };
        if others_are_easy {
            policy.max_iterations = Some(50);
            policy.limits = Limits { max_average_iteration: None, ..usual().limits };
            policy.max_attempts = NonZeroU32::new(10).unwrap();
            policy.budgets = Budgets::default();
            policy.min_free_disk = None;
            (policy.once, policy.only) = (false, None);
            policy.on_escalation = OnEscalation::Ask;
        }
        let has_gates = others_are_easy || dice.percent(75);
        policy.baseline = has_gates && dice.percent(30);
        let is_attended = policy.human_present && !others_are_easy;
        let mut often = |percent, most| {
            let happens = !others_are_easy && dice.percent(percent);
            if happens { dice.count(1, most) } else { 0 }
        };
        let (crashes, interferences) = (often(30, 5), often(40, 12));
        Self {
            backlog: Backlog::new("night".into(), String::new(), stories),
            rates: (0..super::reply::KINDS).map(|kind| rate(kind, dice)).collect(),
            hopeless,
            others_are_easy,
            has_gates,
            require_two_claims: !has_gates && dice.percent(30),
            agent_keeps_allowance: dice.percent(60),
            // Whoever wants it tried again and again lets it cost the others.
            answers: if is_attended { dice.count(0, 20) } else { 0 },
            skips: if is_attended { dice.count(0, 4) } else { 0 },
            crashes,
            interferences,
            outage: (!others_are_easy && dice.percent(20)).then(|| {
                let from = dice.between(0, 200);
                (from, from + dice.between(1, 300))
            }),
            lanes_vary: dice.percent(20),
            policy,
        }
    }

    pub fn config(&self, lanes: NonZeroU32, attempts_before: u32) -> RunConfig {
        let all = if self.has_gates { vec![Gate::shell("g")] } else { vec![] };
        let mut settings = usual();
        settings.require_two_claims = self.require_two_claims;
        settings.staging =
            staging::Rules { never_commit: vec![], max_file_size: None, max_new_files: None };
        settings.answer_timeout = Duration::from_mins(15);
        RunConfig {
            settings,
            settings_text: SettingsText::default(),
            policy: Policy { lanes, attempts_before, ..self.policy.clone() },
            instructions: String::new(),
            instructions_file: None,
            markers: RunMarkers::default(),
            gates: Gates { all, ..Gates::default() },
            allow_dirty: false,
            held: Vec::new(),
            human_files: vec![],
            verbose: false,
            backlog_name: "PRD.json".into(),
            backlog_in_tree: None,
            backlog_key: "PRD.json".into(),
            branch: None,
            journal_was_damaged: false,
            agent_keeps_allowance: self.agent_keeps_allowance,
        }
    }
}

/// What a human gets who sets nothing.
fn usual() -> RunSettings {
    RunSettings::new("", &Flags::default(), &|_| None).unwrap()
}

/// What stops a run at once is rare.
fn rate(kind: usize, dice: &mut Dice) -> u32 {
    match kind {
        super::reply::NO_LOGIN => u32::from(dice.percent(5)),
        _ => dice.count(0, 10),
    }
}

pub fn id(number: u64) -> StoryId {
    StoryId::try_from(format!("S{number}").as_str()).unwrap()
}

pub fn story(number: u64, dice: &mut Dice) -> Story {
    let on = (number > 0 && dice.percent(25)).then(|| id(dice.between(0, number - 1)));
    Story {
        id: id(number),
        title: format!("Story {number}"),
        description: String::new(),
        criteria: vec![],
        passes: dice.percent(5),
        skipped: dice.percent(2),
        depends_on: on.into_iter().collect(),
        priority: dice.percent(20).then(|| f64::from(dice.count(0, 9))),
        verify: vec![],
        markers: CompletionMarkers::default(),
        max_attempts: dice.percent(10).then(|| NonZeroU32::new(dice.count(1, 12)).unwrap()),
    }
}

fn budgets(dice: &mut Dice) -> Budgets {
    let mut dollars =
        |percent, most| dice.percent(percent).then(|| Usd::from_cents(100 * dice.between(1, most)));
    Budgets {
        per_run: dollars(60, 50),
        per_story: dollars(30, 10),
        per_day: dollars(20, 50),
        per_iteration: dollars(20, 2),
        throttle: dice.percent(30),
        ..Budgets::default()
    }
}

fn policy(dice: &mut Dice) -> Policy {
    let usual = usual().limits;
    let limits = Limits {
        max_consecutive_errors: dice.percent(80).then(|| dice.count(1, 8)),
        max_failing: dice.percent(80).then(|| dice.count(5, 10)),
        max_run_time: Some(Duration::from_mins(dice.between(20, 900))),
        max_average_iteration: dice.percent(20).then(|| Duration::from_mins(dice.between(5, 60))),
        cool_down: usual.cool_down.filter(|_| dice.percent(80)),
        backoff: usual.backoff.filter(|_| dice.percent(80)),
    };
    let on_escalation = match dice.weighted(&[16, 4, 1, 1]) {
        0 => OnEscalation::Ask,
        1 => OnEscalation::Park,
        2 => OnEscalation::Skip,
        _ => OnEscalation::Abort,
    };
    Policy {
        max_iterations: Some(dice.count(1, 60)),
        once: dice.percent(3),
        attempts_before: 0,
        only: dice.percent(5).then(|| id(0)),
        stuck_threshold: NonZeroU32::new(dice.count(1, 4)).unwrap(),
        max_attempts: NonZeroU32::new(dice.count(1, 12)).unwrap(),
        fresh_start_after: dice.percent(70).then(|| dice.count(1, 4)),
        limits,
        budgets: budgets(dice),
        on_escalation,
        on_limit: if dice.percent(90) { OnLimit::Wait } else { OnLimit::Stop },
        min_free_disk: dice.percent(50).then_some(1000),
        human_present: dice.percent(60),
        lanes: NonZeroU32::MIN,
        agent: AGENT.into(),
        baseline: false,
        first_looks: Default::default(),
    }
}
