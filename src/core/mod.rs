//! Everything `ralph` decides, and nothing it does.
//!
//! Pure: no clock, file system, process, git, terminal or tokio in here. What
//! comes in is text and facts, what goes out is text and decisions, so every
//! rule can be tested as a table.

pub mod backlog;
pub mod breaker;
pub mod briefing;
pub mod budget;
pub mod decide;
pub mod efficiency;
pub mod event;
pub mod evidence;
pub mod findings;
pub mod forecast;
pub mod gate;
pub mod handoff;
pub mod health;
pub mod id;
pub mod likeness;
pub mod limits;
pub mod memory;
pub mod money;
pub mod outcome;
pub mod pause;
pub mod permission;
pub mod policy;
pub mod prompt;
pub mod rut;
pub mod secrets;
pub mod select;
pub mod signal;
pub mod slump;
pub mod spending;
pub mod staging;
pub mod state;
pub mod test_paths;
pub mod text;
pub mod time;
pub mod verdict;
pub mod weather;
pub mod why;
pub mod wish;

#[cfg(test)]
pub mod tests;
