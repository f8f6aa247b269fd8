//! `ralph` runs coding agents through a backlog, unattended, until it is done.
//!
//! # One attempt
//!
//! ```text
//! PRD.json ─▶ select ─▶ prompt ─▶ agent process ─▶ scan ─▶ judge ─▶ check ─▶ close ─▶ next
//!             story     layers     events           signals  verdict  gates    code + PRD in one commit
//!                                                     │
//!                                                     └─▶ escalate ─▶ human ─▶ guidance
//! ```
//!
//! Every decision is an event in the journal before it is acted on. The display, `status` and
//! recovery after a crash are folds over the same events.
//!
//! # Rooms
//!
//! - [`model`]: values and events.
//! - [`text`]: parsers for untrusted text: PRD.json, agent signals, secrets.
//! - [`state`]: projections: what the events add up to.
//! - [`decide`]: what to do next, when to stop, what counts as evidence, prompts.
//! - [`ports`]: traits for the display and the human, and the clock.
//! - [`settings`]: ralph.toml, environment and flags.
//! - [`agent`]: backends: how agents are started, and how their output is decoded.
//! - [`mock`]: the built-in scripted agent.
//! - [`process`]: starts processes and ends whole process trees, with proof.
//! - [`files`]: opens, reads and replaces files where something untrusted may have been.
//! - [`workspace`]: git: snapshot, commit, shelve, restore, undo.
//! - [`store`]: the journal, PRD.json's exact-text editor, logs.
//! - [`ui`]: wording, menus, the terminal.
//! - [`runner`]: the loop.
//! - [`report`]: status.json and report.json.
//! - [`ops`]: what each command does; connects the rooms.
//! - [`cli`]: clap types, and one call into [`ops`] per command.
//!
//! `model`, `text`, `state` and `decide` are pure. `docs/architecture.md` has the reasons,
//! `docs/glossary.md` the terms, and a test checks which room uses which.

// Tables of tests may be longer.
#![cfg_attr(not(test), deny(clippy::too_many_lines))]
// A path may have been replaced since the last look: `files` owns what is at paths. Tests do as they like.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod agent;
pub mod cli;
pub mod decide;
pub mod files;
pub mod mock;
pub mod model;
pub mod ops;
pub mod ports;
pub mod process;
pub mod report;
pub mod runner;
pub mod settings;
pub mod state;
pub mod store;
pub mod text;
pub mod ui;
pub mod workspace;
