//! Gathers evidence for a claim: commands that have to pass.
//!
//! Owns how a gate is run and how its end is told. What follows from it is
//! decided in `core::evidence`.

mod gate;
mod tail;

pub use gate::{Checked, EvidenceError, Runner};
