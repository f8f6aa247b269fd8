//! Agents: what a backend is, and all backends.
//!
//! A [`Backend`] starts its agent and has a [`Decoder`] for its protocol. A [`StreamReader`] passes
//! the agent's bytes through the decoder, line by line, and sums up the [`AgentEvent`]s: signals,
//! usage, and how the attempt ended. Only backends contain vendor-specific terms.

mod backend;
mod claude;
mod json;
mod named_commands;
mod plain;
mod reader;
mod settings_files;

use std::ffi::OsString;
use std::path::PathBuf;

use crate::model::PermissionMode;

use claude::ClaudeDecoder;

pub use backend::{
    AgentEnd, AgentError, AgentEvent, AgentIdentity, AgentKind, AgentSettings, Backend,
    Capabilities, Decoder, EventListener, GIT_PLACES, Launch, LaunchRequest, TrustClause,
};
pub use claude::{Claude, args_choose_mode};
pub use named_commands::{files_with_commands, named_commands};
pub use plain::Plain;
pub use reader::{AgentReport, StreamReader};
pub use settings_files::{SETTINGS_FILES, named_files};

const MOCK: &str = "mock";

/// The labels of all agents with `Capabilities::invented_costs`.
pub const WITH_INVENTED_COSTS: &[&str] = &[MOCK];

/// For an unknown agent: recognizes the known formats by their lines.
pub fn any_decoder() -> Box<dyn Decoder> {
    Box::<ClaudeDecoder>::default()
}

/// The permission modes of all agents.
pub fn all_permission_modes() -> impl Iterator<Item = PermissionMode> {
    claude::PERMISSION_MODES.modes.iter().copied()
}

pub fn permission_mode(name: &str) -> Option<PermissionMode> {
    all_permission_modes().find(|mode| mode.name == name)
}

/// The built-in scripted agent: this program itself, which speaks Claude Code's protocol.
pub struct Mock {
    pub own_program: PathBuf,
    pub script: Option<PathBuf>,
}

impl Backend for Mock {
    fn label(&self) -> String {
        MOCK.to_owned()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { own_budget: false, invented_costs: true, takes_messages: true }
    }

    fn command(&self, _request: &LaunchRequest<'_>) -> Result<Launch, AgentError> {
        let mut args: Vec<OsString> = vec!["mock-agent".into(), "--takes-messages".into()];
        if let Some(script) = &self.script {
            args.extend(["--script".into(), script.into()]);
        }
        Ok(Launch::new(self.own_program.clone(), args, None))
    }

    fn decoder(&self, _request: &LaunchRequest<'_>) -> Box<dyn Decoder> {
        Box::<ClaudeDecoder>::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_with_invented_costs_are_known_by_their_labels() {
        let agents: [Box<dyn Backend>; 3] = [
            Box::new(Mock { own_program: PathBuf::new(), script: None }),
            Box::new(Claude { settings: AgentSettings::default() }),
            Box::new(Plain { words: vec!["other".to_owned()] }),
        ];
        for agent in agents {
            let label = agent.label();
            let is_listed = WITH_INVENTED_COSTS.contains(&label.as_str());
            assert_eq!(is_listed, agent.capabilities().invented_costs, "{label}");
        }
    }
}
