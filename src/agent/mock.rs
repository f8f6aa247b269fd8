//! The built-in scripted agent: this very program, which speaks as Claude Code does.

use std::ffi::OsString;
use std::path::PathBuf;

use super::backend::{AgentError, Backend, Capabilities, Launch, LaunchRequest};
use super::claude::{self, ClaudeDecoder};
use super::event::Decoder;

pub struct Mock {
    own_program: PathBuf,
    script: Option<PathBuf>,
}

impl Mock {
    pub fn new(own_program: PathBuf, script: Option<PathBuf>) -> Self {
        Self { own_program, script }
    }
}

impl Backend for Mock {
    fn name(&self) -> String {
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

    fn message(&self, text: &str) -> String {
        claude::message(text)
    }
}
