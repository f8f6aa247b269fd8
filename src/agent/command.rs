//! How each agent is started.

use std::env;
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::claude;
use crate::core::gate::Gate;
use crate::core::money::Usd;
use crate::core::permission::PermissionMode;
use crate::core::text::visible;
use crate::settings::{AgentChoice, AgentSettings};

/// Marks of a surrounding session that would make the agent think it is nested in it.
const NESTING_MARKS: [&str; 2] = ["CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT"];

/// Variables that would lead git to another repository than the work tree.
pub const GIT_PLACES: [&str; 7] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
];

/// An agent that can be launched once per iteration.
#[derive(Clone, Debug)]
pub struct Agent {
    choice: AgentChoice,
    settings: AgentSettings,
    /// This program, for the mock.
    own_program: PathBuf,
}

/// A command line and what of the environment it changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    pub program: PathBuf,
    pub args: Vec<OsString>,
    pub env: Vec<(OsString, Option<OsString>)>,
    /// It takes messages while it works, one JSON object per line; else its prompt as it is.
    pub takes_messages: bool,
}

/// What an agent that takes messages gets as one.
pub fn message(text: &str) -> String {
    let message = json!({ "type": "user", "message": { "role": "user", "content": text } });
    format!("{message}\n")
}

#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    #[error(
        "`{name}` was not found{where_}. Install Claude Code (`npm install -g \
         @anthropic-ai/claude-code`), name another agent with `--agent-command`, or try the loop \
         with `--agent mock`"
    )]
    NoClaude { name: String, where_: String },
    #[error("the agent `{name}` was not found{where_}. `--agent-command` names it")]
    NoProgram { name: String, where_: String },
}

impl Agent {
    pub fn new(choice: AgentChoice, settings: AgentSettings, own_program: PathBuf) -> Self {
        Self { choice, settings, own_program }
    }

    /// What people call it.
    pub fn label(&self) -> String {
        match &self.choice {
            AgentChoice::Claude => "claude".to_owned(),
            AgentChoice::Mock { .. } => "mock".to_owned(),
            AgentChoice::Command { words } => {
                let program = words.first().map(Path::new).and_then(Path::file_name);
                program.unwrap_or_default().to_string_lossy().into_owned()
            }
        }
    }

    /// What Claude Code may do without being asked; other agents have no such thing.
    pub fn permission_mode(&self) -> Option<&'static str> {
        let mode = self.settings.permission_mode.filter(|_| self.choice == AgentChoice::Claude);
        mode.map(PermissionMode::name)
    }

    /// It ends by itself when it has cost what it may; others are only looked at afterwards.
    pub fn keeps_an_allowance(&self) -> bool {
        self.choice == AgentChoice::Claude
    }

    /// Its costs are made up.
    pub fn is_mock(&self) -> bool {
        matches!(self.choice, AgentChoice::Mock { .. })
    }

    /// Looked up anew for each spawn: an update may have moved it meanwhile. Never from inside
    /// the work tree, which the agent itself can write. What its work has to pass, it may run.
    /// `allowance`: what it may cost, where it can be told.
    pub fn launch(
        &self,
        work_tree: &Path,
        gates: &[&Gate],
        allowance: Option<Usd>,
    ) -> Result<Launch, AgentError> {
        let mut launch = match &self.choice {
            AgentChoice::Claude => self.claude(work_tree, gates, allowance),
            AgentChoice::Mock { script } => Ok(self.mock(script.as_deref())),
            AgentChoice::Command { words } => command(words),
        }?;
        launch.env.extend(GIT_PLACES.map(|name| (name.into(), None)));
        Ok(launch)
    }

    fn claude(
        &self,
        work_tree: &Path,
        gates: &[&Gate],
        allowance: Option<Usd>,
    ) -> Result<Launch, AgentError> {
        let name = self.settings.program.clone().unwrap_or_else(|| PathBuf::from("claude"));
        let program = find(&name, Some(work_tree))
            .ok_or_else(|| AgentError::NoClaude { name: shown(&name), where_: looked_in(&name) })?;
        let mut env: Vec<(OsString, Option<OsString>)> =
            NESTING_MARKS.iter().map(|mark| (OsString::from(mark), None)).collect();
        env.push(("DISABLE_AUTOUPDATER".into(), Some("1".into())));
        if !self.settings.background_tasks {
            env.push(("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS".into(), Some("1".into())));
        }
        let args = claude::args(&self.settings, gates, allowance);
        let args = args.into_iter().map(OsString::from).collect();
        Ok(Launch { program, args, env, takes_messages: true })
    }

    fn mock(&self, script: Option<&Path>) -> Launch {
        let mut args: Vec<OsString> = vec!["mock-agent".into(), "--takes-messages".into()];
        if let Some(script) = script {
            args.extend(["--script".into(), script.into()]);
        }
        let program = self.own_program.clone();
        Launch { program, args, env: Vec::new(), takes_messages: true }
    }
}

/// The human named it: it may be anywhere, relative to the folder ralph was started in.
fn command(words: &[String]) -> Result<Launch, AgentError> {
    let name = words.first().map(PathBuf::from).unwrap_or_default();
    let program = find(&name, None)
        .ok_or_else(|| AgentError::NoProgram { name: shown(&name), where_: looked_in(&name) })?;
    let args = words.iter().skip(1).map(OsString::from).collect();
    Ok(Launch { program, args, env: Vec::new(), takes_messages: false })
}

fn find(name: &Path, not_below: Option<&Path>) -> Option<PathBuf> {
    let candidates: Vec<PathBuf> = if name.components().count() > 1 {
        vec![std::path::absolute(name).ok()?]
    } else {
        let path = env::var_os("PATH").unwrap_or_default();
        let folders = env::split_paths(&path).filter(|folder| folder.is_absolute());
        folders.map(|folder| folder.join(name)).collect()
    };
    candidates.into_iter().find(|path| is_program(path) && !is_below(path, not_below))
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// By its own place: a link from elsewhere into the work tree counts as below it.
fn is_below(path: &Path, folder: Option<&Path>) -> bool {
    let Some(folder) = folder else { return false };
    path.starts_with(folder) || path.canonicalize().is_ok_and(|real| real.starts_with(folder))
}

fn shown(name: &Path) -> String {
    visible(&name.to_string_lossy()).into_owned()
}

fn looked_in(name: &Path) -> String {
    if name.components().count() > 1 { String::new() } else { " on the path".to_owned() }
}
