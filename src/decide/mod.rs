//! Pure functions from the state to the next action.

#![cfg_attr(not(test), deny(clippy::disallowed_types))]

pub mod budget;
pub mod concerns;
pub mod definitions;
pub mod figures;
pub mod findings;
pub mod first_looks;
pub mod gate_files;
pub mod judge;
pub mod limits;
pub mod lock_files;
pub mod next;
pub mod prompt;
pub mod recheck;
mod recipes;
#[cfg(test)]
pub mod samples;
pub mod scripts;
pub mod select;
mod shell;
pub mod situation;
pub mod staging;
pub mod stagnation;
pub mod stuck;
pub mod weigh;
