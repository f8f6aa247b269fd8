//! A run's status and result for other programs: `.ralph/status.json` while it runs and
//! `.ralph/report.json` when its process ends. Both have the format that docs/files.md describes.
//!
//! [`RunReport`] is a pure fold of the run's events. [`Publisher`] writes it from a thread, and neither
//! fails nor slows a run: what cannot be written is left out.

mod document;
mod fold;
mod iterations;
mod phase;
mod publisher;
#[cfg(test)]
mod tests;

pub use document::{AppliedGate, AppliedLimits, AppliedSettings, BreakerState, Waits};
pub use fold::RunReport;
pub use publisher::Publisher;
