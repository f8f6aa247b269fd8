//! What the agent may do: as set, as chosen in this repository before, or as the human says now.

use std::sync::Arc;
use std::time::Duration;

use crate::agent::Backend;
use crate::model::{PermissionMode, PermissionModes};
use crate::ports::{ConfigNotice, Notice, Reporter};
use crate::runner::Ending;
use crate::settings::RunSettings;
use crate::store::{Answers, Store};
use crate::ui::TerminalHuman;
use crate::workspace::WorkTree;

use super::asking::{Answered, ask};
use super::error::CommandError;
use super::session::{backend, require_program};

/// Where the answer is remembered.
const KEY: &str = "permission_mode";

/// The plan says afterwards what the agent may do. Some: the human left instead of answering.
pub fn settle(
    plan: &mut RunSettings,
    (tree, store): (&WorkTree, &Store),
    human: &Arc<TerminalHuman>,
    reporter: &mut dyn Reporter,
) -> Result<Option<Ending>, CommandError> {
    let agent = backend(plan)?;
    let Some(modes) = agent.permission_modes() else { return Ok(None) };
    if plan.lacks_permissions() {
        // Nobody is asked for an agent that is not there.
        require_program(agent.as_ref(), tree.root())?;
        let answers = store.answers()?;
        let answer = match remembered(&answers, modes)? {
            Some(mode) => {
                let mode_name = mode.name.to_owned();
                let notice = ConfigNotice::PermissionsRemembered { mode: mode_name };
                reporter.on_notice(&Notice::Config(notice));
                Answered::Answer(mode)
            }
            None => ask_once(agent.as_ref(), modes, &answers, human, plan.answer_timeout)?,
        };
        plan.agent_settings.permission_mode = match answer {
            Answered::Answer(mode) => Some(mode),
            Answered::Nobody => {
                let usual = modes.modes.first().copied();
                if let Some(mode) = usual {
                    let (mode, meaning) = (mode.name.to_owned(), mode.meaning.to_owned());
                    let notice = ConfigNotice::PermissionsAssumed { mode, meaning };
                    reporter.on_notice(&Notice::Config(notice));
                }
                usual
            }
            Answered::Left(signal) => return Ok(Some(Ending::Interrupted { signal })),
        };
    }
    if let Some(mode) = plan.agent_settings.permission_mode
        && let Some(warning) = agent.check_permissions(mode)?
    {
        let notice = ConfigNotice::PermissionsDoubt { message: warning };
        reporter.on_notice(&Notice::Config(notice));
    }
    Ok(None)
}

/// A name that this agent does not know is asked for again.
fn remembered(
    answers: &Answers,
    modes: PermissionModes,
) -> Result<Option<PermissionMode>, CommandError> {
    let Some(name) = answers.recall(KEY)? else { return Ok(None) };
    Ok(modes.modes.iter().find(|mode| mode.name == name).copied())
}

fn ask_once(
    agent: &dyn Backend,
    modes: PermissionModes,
    answers: &Answers,
    human: &Arc<TerminalHuman>,
    patience: Duration,
) -> Result<Answered<PermissionMode>, CommandError> {
    let answer = ask(human, move |human| human.ask_permissions(modes, patience))?;
    if let Answered::Answer(mode) = answer {
        agent.check_permissions(mode)?;
        answers.remember(KEY, mode.name)?;
    }
    Ok(answer)
}
