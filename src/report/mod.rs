//! What a run amounts to, for other programs: `.ralph/status.json` while it goes on and
//! `.ralph/report.json` when its process ends. Both are one document, described in docs/files.md.
//!
//! [`RunReport`] is a pure fold of the run's events. [`Publisher`] writes it from a thread of its own
//! and may neither fail nor slow a run: what cannot be written is left out.

mod document;
mod fold;
mod iterations;
mod phase;
mod publisher;
#[cfg(test)]
mod tests;

pub use document::{
    AppliedBudgets, AppliedGate, AppliedLimits, AppliedSettings, BreakerState, Outlook, Waits,
};
pub use fold::{Extent, RunReport};
pub use publisher::{Publisher, ReportTeller};
