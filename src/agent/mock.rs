//! The built-in scripted agent: this program itself, which speaks Claude Code's protocol.

use std::ffi::OsString;
use std::path::PathBuf;

use super::backend::{AgentError, Backend, Capabilities, Launch, LaunchRequest};
use super::claude::ClaudeDecoder;
use super::event::Decoder;

pub struct Mock {
    pub own_program: PathBuf,
    pub script: Option<PathBuf>,
}

impl Backend for Mock {
    fn label(&self) -> String {
        "mock".to_owned()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { messages: true, own_budget: false, invented_costs: true }
    }

    fn command(&self, _request: &LaunchRequest<'_>) -> Result<Launch, AgentError> {
        let mut args: Vec<OsString> = vec!["mock-agent".into(), "--takes-messages".into()];
        if let Some(script) = &self.script {
            args.extend(["--script".into(), script.into()]);
        }
        Ok(Launch::new(self.own_program.clone(), args))
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::<ClaudeDecoder>::default()
    }
}
