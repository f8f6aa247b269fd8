//! Where a run's costs are written.

use crate::agent::Backend;
use crate::ports::{ConfigNotice, Notice, Reporter};
use crate::runner::{CostBooks, RunnerError};
use crate::settings::RunSettings;
use crate::store::{Store, UserCosts, state_folder};
use crate::ui;
use crate::workspace::WorkTree;

use super::error::CommandError;

/// A run does not need the user's file, unless a budget depends on it.
pub fn cost_books(
    plan: &RunSettings,
    store: &Store,
    tree: &WorkTree,
    agent: &dyn Backend,
    reporter: &mut dyn Reporter,
) -> Result<CostBooks, CommandError> {
    let repository = store.costs()?;
    let name = tree.common_dir().display().to_string();
    if agent.capabilities().invented_costs {
        return Ok(CostBooks { repository, user: None });
    }
    let folder = state_folder(&ui::env_var).ok_or_else(UserCosts::no_folder);
    let user = match folder.and_then(|folder| store.user_costs(&folder, name)) {
        Ok(user) => Some(user),
        Err(error) if plan.budgets.per_user_day.is_some() => {
            return Err(RunnerError::UserCosts(error).into());
        }
        Err(error) => {
            let notice = ConfigNotice::UserCostsNotKept { problem: error.to_string() };
            reporter.on_notice(&Notice::Config(notice));
            None
        }
    };
    Ok(CostBooks { repository, user })
}
