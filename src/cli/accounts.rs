//! Where a run's costs are written down.

use crate::agent::Agent;
use crate::engine::ports::{Notice, Reporter};
use crate::engine::{Accounts, EngineError};
use crate::git::WorkTree;
use crate::settings::Plan;
use crate::store::books::{Books, UserBooks, UserBooksError, state_folder};
use crate::ui;

use super::error::CliError;
use super::session::journal_path;

/// Without the user's books a run is a run all the same, unless a budget depends on them.
pub fn accounts(
    plan: &Plan,
    tree: &WorkTree,
    agent: &Agent,
    dry: bool,
    reporter: &mut dyn Reporter,
) -> Result<Accounts, CliError> {
    let books = Books::open(&journal_path(tree)?)?;
    let repository = tree.common_dir().display().to_string();
    // What the mock says that it costs nobody pays.
    if dry || agent.is_mock() {
        return Ok(Accounts { books, user: None, repository });
    }
    let user = match user_books() {
        Ok(user) => Some(user),
        Err(error) if plan.budgets.per_user_day.is_some() => {
            return Err(EngineError::UserBooks(error).into());
        }
        Err(error) => {
            let text = format!("what you spend over all repositories is not kept: {error}");
            reporter.on_notice(&Notice::Warning(text));
            None
        }
    };
    Ok(Accounts { books, user, repository })
}

fn user_books() -> Result<UserBooks, UserBooksError> {
    let folder = state_folder(&ui::env_var).ok_or_else(|| UserBooksError {
        path: "XDG_STATE_HOME".to_owned(),
        problem: "neither it nor HOME names a folder".to_owned(),
    })?;
    UserBooks::open(&folder)
}
