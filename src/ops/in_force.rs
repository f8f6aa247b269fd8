//! The settings in force: those of the run's start, for a continued run too.
//!
//! While no process of an open run looks, ralph.toml may change: by the human, or by an agent whose
//! driver was killed. Only the human can tell which; until then the journal's version counts. Flags
//! and environment are the human's and always count.

use std::fs::Metadata;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::agent::TrustClause;
use crate::files::{atomic, nofollow};
use crate::model::{SettingsText, visible};
use crate::settings::{self, FILE_NAME, Flags, RunSettings, SettingsError};
use crate::state::RunState;
use crate::store::ralph_dir::RalphDir;
use crate::text::redact::SecretRules;
use crate::ui;
use crate::workspace::{hash, text_diff};

use super::error::Result;

/// Lines of a difference that are shown; the file has the others.
const MOST_LINES: usize = 200;

/// Settings with the ralph.toml that they come from.
pub struct InForce {
    pub plan: RunSettings,
    pub text: SettingsText,
}

impl InForce {
    /// Those of an open run are in the journal.
    pub fn of(state: &RunState, root: &Path, flags: &Flags) -> Result<Self> {
        if let Some(text) = state.settings_in_force() {
            match Self::new(text.clone(), root, flags) {
                // Another version of ralph recorded them.
                Err(SettingsError::InvalidFile { .. }) => {}
                recorded => return Ok(recorded?),
            }
        }
        Ok(Self::new(text_in(root)?, root, flags)?)
    }

    pub fn new(text: SettingsText, root: &Path, flags: &Flags) -> Result<Self, SettingsError> {
        let toml = text.text.as_deref().unwrap_or_default();
        Ok(Self { plan: RunSettings::in_tree(toml, root, flags, &ui::env_var)?, text })
    }
}

/// What `ralph trust` asks about if ralph.toml is not that of the open run: the run accepts it.
pub fn change_clause(state: &RunState, root: &Path) -> Result<Option<TrustClause>> {
    let Some(recorded) = state.settings_in_force() else { return Ok(None) };
    let now = text_in(root)?;
    Ok((now != *recorded).then(|| clause(state, &now)))
}

/// For this run only: in a later one it may be an old version.
pub fn clause(state: &RunState, now: &SettingsText) -> TrustClause {
    let run = state.run.as_ref().map(|run| run.run.as_str()).unwrap_or_default();
    let text = now.text.as_deref().unwrap_or("(no such file)");
    TrustClause::new(format!("{FILE_NAME}, changed during run {run}"), text)
}

pub fn text_in(root: &Path) -> Result<SettingsText, SettingsError> {
    let text = settings::read_file(root)?;
    Ok(SettingsText { hash: text.as_ref().and_then(|text| hash(text.as_bytes())), text })
}

/// The old version of a changed ralph.toml goes back; returns where the changed one is.
pub fn restore(text: &SettingsText, root: &Path, at: i64) -> Result<Option<PathBuf>> {
    let path = root.join(FILE_NAME);
    let kept =
        RalphDir::open(root)?.keep(Path::new(FILE_NAME), &format!("changed-{at}-{FILE_NAME}"))?;
    let Some(text) = &text.text else { return Ok(kept) };
    atomic::replace_real(&path, text.as_bytes())?;
    let before = kept.as_ref().and_then(|kept| nofollow::look(&root.join(kept)).ok());
    if let Some(before) = before.filter(Metadata::is_file) {
        nofollow::set_mode(&path, before.permissions().mode() & 0o777)?;
    }
    Ok(kept)
}

/// For people, with control characters made visible.
pub fn difference(
    old: &SettingsText,
    new: &SettingsText,
    secrets: &Arc<SecretRules>,
) -> Result<String> {
    let bytes = |text: &SettingsText| text.text.clone().unwrap_or_default().into_bytes();
    let diff = text_diff(Path::new(FILE_NAME), &bytes(old), &bytes(new))?;
    let diff = secrets.redact(&diff);
    let lines: Vec<_> = diff.lines().map(visible).collect();
    let more = lines.len().checked_sub(MOST_LINES).filter(|more| *more > 0);
    let more = more.map(|more| format!("… and {more} more lines, in {FILE_NAME}").into());
    Ok(lines.into_iter().take(MOST_LINES).chain(more).collect::<Vec<_>>().join("\n"))
}
