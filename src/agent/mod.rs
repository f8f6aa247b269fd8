//! Agents: what a backend is, and the ones there are.
//!
//! A [`Backend`] says how its agent is started and gives a [`Decoder`] for its output. A
//! [`StreamReader`] puts the agent's bytes through it, line by line, and sums up what the
//! normalised [`AgentEvent`]s say: signals, usage, and how the attempt ended. No word of any
//! vendor is known outside the backends.

mod backend;
mod claude;
mod event;
mod lines;
mod mock;
mod plain;
mod reader;
mod usage;

pub use backend::{
    AgentError, AgentKind, AgentSettings, Backend, GIT_PLACES, Launch, LaunchRequest, TrustClause,
};
pub use claude::{Claude, args_choose_mode};
pub use event::{AgentEvent, Decoder};
pub use mock::Mock;
pub use plain::Plain;
pub use reader::{AgentReport, StreamReader};

use crate::model::PermissionMode;

/// For an agent that is not known: tells the known formats apart by their lines.
pub fn any_decoder() -> Box<dyn Decoder> {
    Box::<claude::ClaudeDecoder>::default()
}

/// Those of all agents.
pub fn all_permission_modes() -> impl Iterator<Item = PermissionMode> {
    claude::PERMISSION_MODES.modes.iter().copied()
}

pub fn permission_mode(name: &str) -> Option<PermissionMode> {
    all_permission_modes().find(|mode| mode.name == name)
}
