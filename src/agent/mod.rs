//! Agents: what a backend is, and all backends.
//!
//! A [`Backend`] says how its agent is started and has a [`Decoder`] for its protocol. A
//! [`StreamReader`] passes the agent's bytes through the decoder, line by line, and sums up the
//! [`AgentEvent`]s: signals, usage, and how the attempt ended. Only backends know a vendor's words.

mod backend;
mod claude;
mod event;
mod json;
mod lines;
mod mock;
mod plain;
mod reader;

pub use backend::{
    AgentError, AgentKind, AgentSettings, Backend, GIT_PLACES, Launch, LaunchRequest, TrustClause,
};
pub use claude::{Claude, args_choose_mode};
pub use event::{AgentEvent, AgentIdentity, Decoder};
pub use mock::Mock;
pub use plain::Plain;
pub use reader::{AgentReport, StreamReader};

use crate::model::PermissionMode;

/// For an unknown agent: recognises the known formats by their lines.
pub fn any_decoder() -> Box<dyn Decoder> {
    Box::<claude::ClaudeDecoder>::default()
}

/// The permission modes of all agents.
pub fn all_permission_modes() -> impl Iterator<Item = PermissionMode> {
    claude::PERMISSION_MODES.modes.iter().copied()
}

pub fn permission_mode(name: &str) -> Option<PermissionMode> {
    all_permission_modes().find(|mode| mode.name == name)
}
