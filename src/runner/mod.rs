//! The loop.
//!
//! `dispatcher` decides, starts, waits and concludes; `world` has the real effects; `task` has
//! what takes time. Decisions depend on the fold of the journal's events and on the backlog on
//! disk; every fact is in the journal before it is acted on.

mod claims;
mod conclude;
mod config;
pub mod dispatcher;
pub mod effects;
mod error;
mod human;
mod interrupts;
mod lane;
pub mod log;
mod recover;
pub mod task;
mod world;

pub use config::RunConfig;
pub use dispatcher::{Dispatcher, Ending};
pub use error::RunnerError;
pub use interrupts::{Interrupts, SIGINT};
pub use lane::Lane;
pub use recover::{begin, end_earlier_runs};
pub use task::transcript;
pub use world::backlog::BacklogFile;
pub use world::observe::{CostBooks, start_of_day};
pub use world::prompt::notes_for;
pub use world::recovery::{as_next_process, base_on_branch};
pub use world::{Env, World};

#[cfg(test)]
mod tests;
