//! What Claude Code may do: as set, as chosen in this repository before, or as the human says now.

use std::sync::Arc;
use std::time::Duration;

use rustix::process::getuid;

use crate::core::permission::PermissionMode;
use crate::engine::Ending;
use crate::engine::ports::{Notice, Reporter};
use crate::git::WorkTree;
use crate::settings::{AgentChoice, Plan};
use crate::store::memory::Memory;
use crate::ui::{TerminalHuman, env_var};

use super::asking::{Answered, ask};
use super::error::CliError;
use super::session::{agent, journal_path};

/// Where the answer is remembered.
const KEY: &str = "permission_mode";
/// Where nobody is there to choose.
const UNASKED: PermissionMode = PermissionMode::AcceptEdits;

/// The plan says afterwards what the agent may do. Some: the human left instead of answering.
pub fn settle(
    plan: &mut Plan,
    tree: &WorkTree,
    human: &Arc<TerminalHuman>,
    reporter: &mut dyn Reporter,
) -> Result<Option<Ending>, CliError> {
    if plan.agent != AgentChoice::Claude {
        return Ok(None);
    }
    if plan.lacks_permissions() {
        // Nobody is asked for an agent that is not there.
        agent(plan, tree.root())?;
        let memory = Memory::open(&journal_path(tree)?)?;
        let answer = match remembered(&memory)? {
            Some(mode) => {
                reporter.on_notice(&Notice::Info(as_before(mode)));
                Answered::Answer(mode)
            }
            None => ask_once(&memory, human, plan.answer_timeout)?,
        };
        match answer {
            Answered::Answer(mode) => plan.agent_settings.permission_mode = Some(mode),
            Answered::Nobody => {
                reporter.on_notice(&Notice::Info(unasked()));
                plan.agent_settings.permission_mode = Some(UNASKED);
            }
            Answered::Left(signal) => return Ok(Some(Ending::Interrupted { signal })),
        }
    }
    heed_the_sandbox(plan, reporter)?;
    Ok(None)
}

/// A name that this ralph does not know is asked for again.
fn remembered(memory: &Memory) -> Result<Option<PermissionMode>, CliError> {
    Ok(memory.recall(KEY)?.as_deref().and_then(PermissionMode::named))
}

fn ask_once(
    memory: &Memory,
    human: &Arc<TerminalHuman>,
    patience: Duration,
) -> Result<Answered<PermissionMode>, CliError> {
    let answer = ask(human, move |human| human.ask_permissions(patience))?;
    if let Answered::Answer(mode) = answer {
        refuse_what_claude_refuses(mode)?;
        memory.remember(KEY, mode.name())?;
    }
    Ok(answer)
}

fn as_before(mode: PermissionMode) -> String {
    format!(
        "the agent's permissions: {}, as chosen here before; `permission_mode` in ralph.toml \
         changes it",
        mode.name()
    )
}

fn unasked() -> String {
    format!(
        "the agent may edit files, run harmless commands and the gates ({}), as nobody was there \
         to be asked; `allowed_tools` and `permission_mode` in ralph.toml allow more",
        UNASKED.name()
    )
}

fn heed_the_sandbox(plan: &Plan, reporter: &mut dyn Reporter) -> Result<(), CliError> {
    let Some(mode) = plan.agent_settings.permission_mode else { return Ok(()) };
    refuse_what_claude_refuses(mode)?;
    if mode == PermissionMode::BypassPermissions && !is_sandbox() {
        let text = "the agent may do anything (bypassPermissions): that belongs into a sandbox, a \
            container or VM without your secrets";
        reporter.on_notice(&Notice::Warning(text.to_owned()));
    }
    Ok(())
}

/// Said at once: the agent itself would fail with each story anew.
fn refuse_what_claude_refuses(mode: PermissionMode) -> Result<(), CliError> {
    if mode == PermissionMode::BypassPermissions && getuid().is_root() && !is_sandbox() {
        return Err(CliError::RootWithoutSandbox);
    }
    Ok(())
}

/// By the marks that Claude Code goes by.
fn is_sandbox() -> bool {
    env_var("IS_SANDBOX").is_some_and(|value| value == "1")
        || env_var("CLAUDE_CODE_BUBBLEWRAP").is_some_and(|value| !value.is_empty())
}
