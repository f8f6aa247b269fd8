//! Projections: each folds the events of the journal by itself.

#![cfg_attr(not(test), deny(clippy::disallowed_types))]

mod attempts;
mod breaker;
mod costs;
mod failures;
mod gate_results;
mod iterations;
mod memory;
mod run;
mod service;
mod stagnation;
mod stories;
mod story;
mod work;

pub use attempts::{Attempts, InFlight, Lanes};
pub use breaker::{BREAKDOWNS, Breaker, BreakerPhase};
pub use costs::{RunCosts, ThrottlePause};
pub use failures::{AT_ONCE, FailureStreak};
pub use gate_results::GateResults;
pub use iterations::{Health, RecentResults, WATCHED, WorkTime, health};
pub use memory::{Entry, Memory};
pub use run::RunState;
pub use service::{FaultStreak, Service};
pub use stagnation::{ALIKE_IN_A_ROW, ONLY_TESTS_WARNING, Stagnation, UNCHANGED};
pub use stories::Marks;
pub use story::{Acceptance, Claim, FailedAttempt, Question, Stage, StoryState, StoryTotals};
pub use work::{InLane, RollBack, Work};
