//! `ralph` runs coding agents through a backlog, unattended, until it is truly done.
//!
//! # The way of one attempt
//!
//! ```text
//! PRD.json ─▶ select ─▶ prompt ─▶ agent process ─▶ scan ─▶ judge ─▶ check ─▶ close ─▶ next
//!             story     layers     events           signals  verdict  gates    code + PRD in one commit
//!                                                     │
//!                                                     └─▶ escalate ─▶ human ─▶ guidance
//! ```
//!
//! Every arrow that decides something is an event in the journal before it is
//! acted on. The display, `status` and going on after a crash are folds over the
//! same events.
//!
//! # The rooms
//!
//! - [`core`]: everything that is decided; pure.
//! - [`settings`]: ralph.toml, environment and flags → one plan.
//! - [`agent`]: how agents are started, and what they say.
//! - [`mock`]: the built-in scripted agent.
//! - [`process`]: the only spawner; holds a whole process tree and proves it dead.
//! - [`evidence`]: runs the commands that a claim has to pass.
//! - [`git`]: synchronous git2 functions: snapshot, close, set aside, bring back, undo.
//! - [`store`]: the journal, PRD.json's exact-text editor, atomic files, locks.
//! - [`ui`]: reporters, menus, the one sanitising printer.
//! - [`engine`]: the loop itself.
//! - [`report`]: the run as a document for other programs.
//! - [`cli`]: clap types and one file per command; wires the rest.
//!
//! `core` depends on nothing here; the edges depend on `core`; `engine` ties the
//! edges together; `cli` is the only one that knows them all. A test keeps it so.

pub mod agent;
pub mod cli;
pub mod core;
pub mod engine;
pub mod evidence;
pub mod git;
pub mod mock;
pub mod process;
pub mod report;
pub mod settings;
pub mod store;
pub mod ui;
