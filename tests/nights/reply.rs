//! What an agent does in one attempt.

use ralph::model::{
    AgentSignals, BranchLoss, Escalation, EscalationKind, Footprint, Outcome, Usage,
};
use ralph::text::similarity::normalized;

use super::dice::Dice;
use super::scene::{ALLOWANCE, Hopeless, Scene};
use super::world::BEGIN;

/// How many kinds of replies there are.
pub const KINDS: usize = 15;
pub const NO_LOGIN: usize = 14;

const MINUTE: u64 = 60_000;
const PERSISTENT: &str = "I read through all of it again and changed what seemed to be wrong, but the \
                          result is the same as it was before, and the reason is not clear to me.";

pub struct Reply {
    pub outcome: Outcome,
    pub signals: AgentSignals,
    pub footprint: Footprint,
    pub usage: Usage,
    pub elapsed_ms: u64,
    /// What it claims is true.
    pub holds: bool,
    /// How the gate fails that says otherwise.
    pub gate: String,
    pub branch_loss: Option<BranchLoss>,
    /// It changed what a human should look at.
    pub is_doubtful: bool,
    /// It is heard, and nothing comes of it for as long as it runs.
    pub is_stuck: bool,
}

impl Reply {
    /// `number`: of the attempt in the whole night.
    pub fn draw(scene: &Scene, story: &str, number: u32, now: i64, dice: &mut Dice) -> Self {
        let hopeless = scene.hopeless.as_ref().filter(|(id, _)| id.as_str() == story);
        let reply = match hopeless {
            Some((_, way)) => hopeless_reply(*way, number, dice),
            None if scene.others_are_easy => done(dice),
            None if is_outage(scene, now) => base(Outcome::Overloaded { detail: "529".into() }, 1),
            None => random_reply(&scene.rates, now, dice),
        };
        let cents = f64::from(dice.count(0, 200));
        let turns = dice.between(1, 40);
        // An agent that is killed does not say what it cost.
        let says = matches!(reply.outcome, Outcome::Completed | Outcome::AgentError { .. });
        let cost_usd = says.then_some(cents / 200.0 * ALLOWANCE);
        Self { usage: Usage { cost_usd, turns, ..Usage::default() }, ..reply }
    }

    pub fn changed(&self) -> bool {
        self.footprint.changed != Some(false)
    }
}

fn is_outage(scene: &Scene, now: i64) -> bool {
    let minute = u64::try_from(now - BEGIN).unwrap() / MINUTE;
    scene.outage.is_some_and(|(from, until)| (from..until).contains(&minute))
}

fn base(outcome: Outcome, minutes: u64) -> Reply {
    Reply {
        outcome,
        signals: AgentSignals::default(),
        footprint: Footprint { changed: Some(true), ..Footprint::default() },
        usage: Usage::default(),
        elapsed_ms: minutes * MINUTE,
        holds: false,
        gate: String::new(),
        branch_loss: None,
        is_doubtful: false,
        is_stuck: false,
    }
}

fn done(dice: &mut Dice) -> Reply {
    let signals = AgentSignals { claims_story: true, ..AgentSignals::default() };
    Reply { signals, holds: true, ..base(Outcome::Completed, dice.between(1, 20)) }
}

fn lies(gate: String, dice: &mut Dice) -> Reply {
    Reply { holds: false, gate, ..done(dice) }
}

fn says(text: &str, dice: &mut Dice) -> Reply {
    let reply = base(Outcome::Completed, dice.between(1, 40));
    Reply { footprint: Footprint { said: normalized(text), ..reply.footprint.clone() }, ..reply }
}

fn error(text: String, dice: &mut Dice) -> Reply {
    base(Outcome::AgentError { detail: text }, dice.between(0, 20))
}

fn asks(dice: &mut Dice) -> Reply {
    let escalation = Escalation {
        kind: EscalationKind::Deviation,
        summary: "two ways".into(),
        context: String::new(),
        options: vec!["left".into(), "right".into()],
        question: "Which?".into(),
        unread: None,
    };
    let signals = AgentSignals { escalation: Some(escalation), ..AgentSignals::default() };
    Reply { signals, ..base(Outcome::Completed, dice.between(1, 40)) }
}

fn loses_the_branch(dice: &mut Dice) -> Reply {
    let loss = if dice.percent(50) { BranchLoss::Elsewhere } else { BranchLoss::Rewritten };
    Reply { branch_loss: Some(loss), ..done(dice) }
}

/// Letters, because numbers do not tell errors apart.
fn word(number: u32) -> String {
    let letter = |place: u32| char::from_u32(u32::from(b'a') + number / 26_u32.pow(place) % 26);
    (0..3).filter_map(letter).collect()
}

fn hopeless_reply(way: Hopeless, number: u32, dice: &mut Dice) -> Reply {
    let nothing = Footprint { changed: Some(false), ..Footprint::default() };
    match way {
        Hopeless::SameError => error("no such file".into(), dice),
        Hopeless::OtherErrors => error(format!("no such {}", word(number)), dice),
        Hopeless::TwoErrors => error(format!("no such {}", word(number % 2)), dice),
        Hopeless::DoesNothing => {
            Reply { footprint: nothing, ..base(Outcome::Completed, dice.between(1, 5)) }
        }
        Hopeless::Lies => lies(format!("test {} failed", word(number)), dice),
        Hopeless::Hangs => base(Outcome::IdleTimeout, 15),
        Hopeless::OnlyTests => {
            let reply = base(Outcome::Completed, dice.between(1, 40));
            Reply { footprint: Footprint { only_tests: true, ..reply.footprint.clone() }, ..reply }
        }
        Hopeless::Repeats => says(PERSISTENT, dice),
        Hopeless::NeverReady => says(&format!("Part {} is done.", word(number)), dice),
    }
}

fn random_reply(rates: &[u32], now: i64, dice: &mut Dice) -> Reply {
    let flavor = dice.count(0, 3);
    match dice.weighted(rates) {
        0 | 1 => done(dice),
        2 => lies(format!("test {} failed", word(flavor)), dice),
        3 => says(&format!("Part {} of it is done now.", word(dice.count(0, 500))), dice),
        4 => base(Outcome::IdleTimeout, 15),
        5 => error(format!("no such {}", word(flavor)), dice),
        6 => {
            base(Outcome::NoResult { detail: format!("gone {}", word(flavor)) }, dice.between(0, 9))
        }
        7 => {
            let minutes = i64::try_from(dice.between(1, 400)).unwrap();
            let resets_at = Some(now / 1000 + minutes * 60);
            base(Outcome::UsageLimit { resets_at, detail: "limit".into() }, 1)
        }
        8 => base(Outcome::Overloaded { detail: "529".into() }, 1),
        9 => asks(dice),
        10 => loses_the_branch(dice),
        11 => Reply { is_doubtful: true, ..done(dice) },
        12 if flavor > 1 => Reply { is_stuck: true, ..base(Outcome::IterationTimeout, 90) },
        12 => {
            let elapsed_ms = dice.between(25, 60) * MINUTE;
            Reply { is_stuck: true, elapsed_ms, ..done(dice) }
        }
        13 if flavor > 0 => {
            let unchanged = Footprint { changed: Some(false), ..Footprint::default() };
            Reply { footprint: unchanged, ..done(dice) }
        }
        13 => base(Outcome::PromptTooLong { detail: "200001 tokens".into() }, 0),
        _ => base(Outcome::Login { detail: "logged out".into() }, 0),
    }
}
