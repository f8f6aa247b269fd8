//! Before the first agent: what the repository has, and what ralph does about it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::model::{LaneId, visible_line};
use crate::ports::{ConfigNotice, Notice, Reporter, SetupNotice};
use crate::runner::Ending;
use crate::settings::{AgentChoice, RunSettings};
use crate::state::RunState;
use crate::text::redact::Rules;
use crate::ui::{EDITS, TerminalHuman};
use crate::workspace::WorkTree;

use super::asking::{Answered, ask};
use super::error::CommandError;
use super::place::{BacklogPlace, human_files};

/// So many paths are named; the rest is a number.
const NAMED: usize = 20;

pub struct Preflight<'a> {
    pub tree: &'a WorkTree,
    pub plan: &'a RunSettings,
    pub human: &'a Arc<TerminalHuman>,
}

/// What the run works beside.
pub enum UserEdits {
    Nothing,
    /// Uncommitted edits, and the human wants it so.
    Edits,
    /// The human left instead of answering.
    Left(Ending),
}

impl Preflight<'_> {
    pub fn check(
        &self,
        place: &BacklogPlace,
        state: &RunState,
        secrets: &Arc<Rules>,
        reporter: &mut dyn Reporter,
    ) -> Result<UserEdits, CommandError> {
        let edits = self.uncommitted(place, state, reporter)?;
        if !matches!(edits, UserEdits::Left(_)) {
            self.tell_surroundings(reporter)?;
            self.name_the_command(secrets, reporter);
        }
        Ok(edits)
    }

    /// It may come from a file that somebody else wrote.
    fn name_the_command(&self, secrets: &Arc<Rules>, reporter: &mut dyn Reporter) {
        if let AgentChoice::Command { words } = &self.plan.agent {
            let command = secrets.redact(&words.join(" ")).into_owned();
            reporter.on_notice(&Notice::Config(ConfigNotice::AgentCommand { command }));
        }
    }

    /// Uncommitted edits are refused unless the human wants to work beside them.
    fn uncommitted(
        &self,
        place: &BacklogPlace,
        state: &RunState,
        reporter: &mut dyn Reporter,
    ) -> Result<UserEdits, CommandError> {
        self.tree.require_unlocked()?;
        // What is uncommitted then is the story's work, and its base knows the rest.
        if state.lanes.occupant(LaneId::HOME).is_some() {
            return Ok(UserEdits::Nothing);
        }
        let found = self.tree.uncommitted(&human_files(place))?;
        if !found.untracked.is_empty() {
            let paths = found.untracked;
            reporter.on_notice(&Notice::Setup(SetupNotice::Untracked { paths }));
        }
        if found.edited.is_empty() {
            return Ok(UserEdits::Nothing);
        }
        let continued = state.run.as_ref().filter(|_| state.is_open());
        let allowed = self.plan.allow_dirty || continued.is_some_and(|run| run.allow_dirty);
        if !allowed && let Some(left) = self.ask_about(&found.edited)? {
            return Ok(UserEdits::Left(left));
        }
        let paths = found.edited;
        reporter.on_notice(&Notice::Setup(SetupNotice::UncommittedEdits { paths }));
        Ok(UserEdits::Edits)
    }

    /// None: go on.
    fn ask_about(&self, edited: &[PathBuf]) -> Result<Option<Ending>, CommandError> {
        let (files, patience) = (listed(edited), self.plan.answer_timeout);
        let asked = files.join("\n");
        match ask(self.human, move |human| human.confirm(&EDITS, &asked, patience))? {
            Answered::Answer(true) => Ok(None),
            Answered::Left(signal) => Ok(Some(Ending::Interrupted { signal })),
            Answered::Answer(false) | Answered::Nobody => {
                let indented = files.iter().map(|file| format!("  {file}")).collect();
                Err(CommandError::Uncommitted(indented))
            }
        }
    }

    /// What differs from a commit by git: a line each.
    fn tell_surroundings(&self, reporter: &mut dyn Reporter) -> Result<(), CommandError> {
        let found = self.tree.surroundings()?;
        let names: Vec<PathBuf> = found.attributes.iter().map(PathBuf::from).collect();
        let paths = found.submodules;
        let notices = [
            self.hooks(&found.hooks),
            (!names.is_empty()).then_some(SetupNotice::Attributes { names }),
            found.is_sparse.then_some(SetupNotice::SparseCheckout),
            (!paths.is_empty()).then_some(SetupNotice::Submodules { paths }),
            self.tree.try_signing()?.then_some(SetupNotice::CommitsSigned),
        ];
        for notice in notices.into_iter().flatten() {
            reporter.on_notice(&Notice::Setup(notice));
        }
        Ok(())
    }

    /// Those that no gate runs.
    fn hooks(&self, hooks: &[PathBuf]) -> Option<SetupNotice> {
        let gates: Vec<String> = self.plan.verify.iter().map(ToString::to_string).collect();
        let is_gate = |hook: &PathBuf| gates.iter().any(|gate| gate.contains(&shown(hook)));
        let paths: Vec<PathBuf> = hooks.iter().filter(|hook| !is_gate(hook)).cloned().collect();
        let pre_commit = paths.iter().find(|hook| hook.ends_with("pre-commit")).cloned();
        (!paths.is_empty()).then_some(SetupNotice::Hooks { paths, pre_commit })
    }
}

fn shown(path: &Path) -> String {
    visible_line(&path.to_string_lossy())
}

fn listed(paths: &[PathBuf]) -> Vec<String> {
    let mut lines: Vec<String> = paths.iter().take(NAMED).map(|path| shown(path)).collect();
    let more = paths.len().saturating_sub(NAMED);
    if more > 0 {
        lines.push(format!("and {more} more"));
    }
    lines
}
