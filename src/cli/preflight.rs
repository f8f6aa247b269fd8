//! Before the first agent: what the repository has, and what ralph does about it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::core::text::{some_of, visible_line};
use crate::engine::Ending;
use crate::engine::ports::{Notice, Reporter};
use crate::git::WorkTree;
use crate::settings::Plan;
use crate::ui::TerminalHuman;

use super::asking::{Answered, ask};
use super::error::CliError;
use super::session::{Place, fold, human_files};

/// So many paths are named; the rest is a number.
const NAMED: usize = 20;
const NAMED_IN_LINE: usize = 3;

pub struct Preflight<'a> {
    pub tree: &'a WorkTree,
    pub plan: &'a Plan,
    pub human: &'a Arc<TerminalHuman>,
}

/// What the run works beside.
pub enum Beside {
    Nothing,
    /// Uncommitted edits, and the human wants it so.
    Edits,
    /// The human left instead of answering.
    Left(Ending),
}

impl Preflight<'_> {
    /// Uncommitted edits are refused unless the human wants to work beside them.
    pub fn uncommitted(
        &self,
        place: &Place,
        reporter: &mut dyn Reporter,
    ) -> Result<Beside, CliError> {
        self.tree.require_unlocked()?;
        let state = fold(self.tree, place)?;
        // What is uncommitted then is the story's work, and its base knows the rest.
        if state.in_tree.is_some() {
            return Ok(Beside::Nothing);
        }
        let found = self.tree.uncommitted(&human_files(place))?;
        if let Some(names) = in_line(&found.untracked) {
            let text = format!("untracked: {names}; kept as they are and never committed");
            reporter.on_notice(&Notice::Info(text));
        }
        let Some(names) = in_line(&found.edited) else { return Ok(Beside::Nothing) };
        let continued = state.run.as_ref().filter(|_| state.is_open());
        let allowed = self.plan.allow_dirty || continued.is_some_and(|run| run.allow_dirty);
        if !allowed && let Some(left) = self.ask_about(&found.edited)? {
            return Ok(Beside::Left(left));
        }
        let text = format!("uncommitted edits: {names}; they stay in place and out of the commits");
        reporter.on_notice(&Notice::Info(text));
        Ok(Beside::Edits)
    }

    /// None: go on.
    fn ask_about(&self, edited: &[PathBuf]) -> Result<Option<Ending>, CliError> {
        let (files, patience) = (listed(edited), self.plan.answer_timeout);
        let asked = files.join("\n");
        match ask(self.human, move |human| human.ask_about_edits(&asked, patience))? {
            Answered::Answer(true) => Ok(None),
            Answered::Left(signal) => Ok(Some(Ending::Interrupted { signal })),
            Answered::Answer(false) | Answered::Nobody => {
                let indented = files.iter().map(|file| format!("  {file}")).collect();
                Err(CliError::Uncommitted(indented))
            }
        }
    }

    /// What differs from a commit by git: a line each.
    pub fn tell_surroundings(&self, reporter: &mut dyn Reporter) -> Result<(), CliError> {
        let found = self.tree.surroundings()?;
        let attributes: Vec<PathBuf> = found.attributes.iter().map(PathBuf::from).collect();
        let lines = [
            self.hooks(&found.hooks),
            in_line(&attributes).map(|names| {
                format!(
                    "attributes in use: {names}; ralph cannot apply them, so a story that changes \
                     such a file is not closed by itself"
                )
            }),
            found.is_sparse.then(|| {
                "a sparse checkout: what it leaves out stays as it is committed".to_owned()
            }),
            in_line(&found.submodules).map(|names| {
                format!(
                    "submodules: {names}; which commit each is at is committed with a story, work \
                     inside of them is not"
                )
            }),
            self.tree.try_signing()?.then(|| "commits are signed".to_owned()),
        ];
        for text in lines.into_iter().flatten() {
            reporter.on_notice(&Notice::Info(text));
        }
        Ok(())
    }

    /// A hook that is a gate already needs no word.
    fn hooks(&self, hooks: &[PathBuf]) -> Option<String> {
        let gates: Vec<String> = self.plan.verify.iter().map(ToString::to_string).collect();
        let is_gate = |hook: &PathBuf| gates.iter().any(|gate| gate.contains(&shown(hook)));
        let others: Vec<PathBuf> = hooks.iter().filter(|hook| !is_gate(hook)).cloned().collect();
        let names = in_line(&others)?;
        let pre_commit = others.iter().find(|hook| hook.ends_with("pre-commit"));
        let offer = pre_commit.map(|hook| {
            format!("; `verify = [\"{}\"]` in ralph.toml makes a gate of it", shown(hook))
        });
        Some(format!("hooks: {names}; ralph's commits run none{}", offer.unwrap_or_default()))
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

/// None: there are none.
fn in_line(paths: &[PathBuf]) -> Option<String> {
    (!paths.is_empty()).then(|| some_of(paths, NAMED_IN_LINE))
}
