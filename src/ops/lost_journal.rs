//! A backlog that was worked on, but has no journal: it was deleted or damaged, perhaps by an agent
//! that has also planted something. The newest snapshot has the human's files from before it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::decide::concerns::of_backlog;
use crate::model::{Base, Event, HeldKind, StoryId, Untrusted, Violation, visible_line};
use crate::runner::log::JournalHistory;
use crate::settings::{Flags, RunSettings};
use crate::state::RunState;
use crate::store::Store;
use crate::store::prd::{PrdFile, text_with_marks};
use crate::store::ralph_dir::RalphDir;
use crate::text::redact::SecretRules;
use crate::ui::{self, Confirmation, TerminalHuman};
use crate::workspace::{SnapshotRef, WorkTree};

use super::error::{CommandError, Result};
use super::in_force::InForce;
use super::place::{BacklogPlace, RunInstructions, human_files, place_of};
use super::session::gates;
use super::terminal::ask;

/// The folder for the other versions.
const FOLDER: &str = "unrecorded";

pub struct LostJournal<'a> {
    pub tree: &'a mut WorkTree,
    pub prd: &'a Path,
    pub flags: &'a Flags,
    pub human: &'a Arc<TerminalHuman>,
    pub secrets: &'a Arc<SecretRules>,
}

/// There is no journal of this backlog, but a run of it took a snapshot.
pub fn snapshot_without_journal(
    tree: &WorkTree,
    store: &Store,
    prd: &Path,
    history: Option<&JournalHistory>,
) -> Result<Option<SnapshotRef>> {
    let is_known = history.map_or(store.exists(), |history| !history.events.is_empty());
    let key = if is_known { return Ok(None) } else { place_of(tree, prd)?.key };
    Ok(tree.newest_snapshot(&visible_line(&key))?)
}

impl LostJournal<'_> {
    /// Call before any program that git's setup names could run, and before ralph.toml is read.
    pub fn restore(
        &mut self,
        store: &Store,
        place: &BacklogPlace,
        history: &JournalHistory,
    ) -> Result<Vec<Event>> {
        let found = snapshot_without_journal(self.tree, store, self.prd, Some(history))?;
        let Some(snapshot) = &found else {
            return self.require_no_traces(store).map(|()| Vec::new());
        };
        if !self.tree.setup_is_plain()? {
            let text = self.secrets.redact(&self.tree.setup_text()?).into_owned();
            if !self.confirm(&ui::UNKNOWN_SETUP, &text)? {
                return Err(CommandError::UnknownSetup(text));
            }
        }
        let settings = self.restore_files(snapshot, HeldKind::Settings, None)?;
        // They say where the instructions are.
        let in_force = InForce::of(&RunState::default(), self.tree.root(), self.flags)?;
        let prompt = in_force.plan.prompt.as_deref();
        let instructions = self.restore_files(snapshot, HeldKind::Instructions, prompt)?;
        let agents = self.restore_files(snapshot, HeldKind::AgentSettings, None)?;
        let backlog = self.restore_backlog(snapshot, place)?;
        self.tree.serve(snapshot.run.as_deref().unwrap_or_default(), &place.key);
        let before = self.tree.before_attempts(snapshot)?;
        if let Some(story) = &snapshot.story
            && self.tree.was_moved_by_attempts(&before)?
        {
            self.tree.shelve_unrecorded(story, &before, &human_files(place))?;
        }
        self.require_same_gates(&before)?;
        Ok([settings, instructions, agents, backlog].into_iter().flatten().collect())
    }

    fn restore_files(
        &self,
        snapshot: &SnapshotRef,
        whose: HeldKind,
        prompt: Option<&Path>,
    ) -> Result<Option<Event>> {
        let root = self.tree.root();
        let places = RunInstructions::unread(prompt, self.prd, root).held(root);
        let places: Vec<_> = places.into_iter().filter(|place| place.kind == whose).collect();
        let paths = self.tree.differing(snapshot, &places)?;
        let names: Vec<String> =
            paths.iter().map(|path| path.to_string_lossy().into_owned()).collect();
        if names.is_empty() || self.confirm(&ui::CHANGED_MEANWHILE, &names.join("\n"))? {
            return Ok(None);
        }
        let folder = self.tree.changed_by(FOLDER);
        self.tree.return_files(snapshot, &paths, &folder)?;
        let kept = self.shown(&folder);
        let violation = Violation::Held { whose, paths: names, kept, claims: false };
        Ok(Some(Event::Repaired { after: Untrusted::Attempt, story: None, violation }))
    }

    /// Marks are compared with the commits.
    fn restore_backlog(
        &self,
        snapshot: &SnapshotRef,
        place: &BacklogPlace,
    ) -> Result<Option<Event>> {
        let Some(path) = &place.in_tree else { return Ok(None) };
        let file = PrdFile::new(self.prd);
        let before = self.tree.text_in(snapshot, path)?.and_then(|text| file.parse(text).ok());
        let Some(before) = before else { return Ok(None) };
        let now = file.load();
        let problem = match &now {
            Ok(now) => {
                let found = of_backlog(&before.backlog, &now.backlog, None);
                let whats: Vec<String> = found.into_iter().map(|one| one.what).collect();
                whats.join("; ")
            }
            Err(error) => error.to_string(),
        };
        if problem.is_empty() || self.confirm(&ui::CHANGED_MEANWHILE, &problem)? {
            return Ok(None);
        }
        let folder = self.tree.make_changed_by(FOLDER)?;
        let name = Path::new(self.prd.file_name().unwrap_or_default());
        let kept = match now {
            Ok(now) => {
                let kept = self.tree.keep_version(&folder, name, now.text.as_bytes())?;
                let wanted = |id: &StoryId| {
                    let story = now.backlog.story(id).or_else(|| before.backlog.story(id));
                    story.map_or((false, false), |story| (story.passes, story.skipped))
                };
                file.write(&text_with_marks(&before.text, &before.backlog.stories, wanted)?)?;
                Some(kept)
            }
            Err(_) => {
                let kept = file.put_back(None, &before.text, &folder.join(name))?;
                kept.map(|kept| self.shown(&kept))
            }
        };
        Ok(Some(Event::BacklogPutBack { problem, kept }))
    }

    /// Only the human can know whether a change of what decides what gates run was theirs.
    fn require_same_gates(&self, before: &Base) -> Result<()> {
        let plan = InForce::of(&RunState::default(), self.tree.root(), self.flags)?.plan;
        let gates = gates(&plan, &PrdFile::new(self.prd).load()?.backlog, false);
        let changed = self.tree.changed_files(before, gates.every(), &plan.protect)?;
        let diffs: Vec<&str> = changed.iter().map(|one| one.diff.as_str()).collect();
        let diffs = self.secrets.redact(&diffs.join("\n")).into_owned();
        if changed.is_empty() || self.confirm(&ui::GATES_MEANWHILE, &diffs)? {
            return Ok(());
        }
        Err(CommandError::UnknownGates(diffs))
    }

    /// An agent that deletes the journal can delete the snapshots too.
    fn require_no_traces(&self, store: &Store) -> Result<()> {
        let is_new = store.exists() || !RalphDir::has_runs(self.tree.root());
        if is_new || self.confirm(&ui::RUNS_MEANWHILE, "")? {
            return Ok(());
        }
        Err(CommandError::UnknownRuns)
    }

    fn shown(&self, path: &Path) -> String {
        let below = path.strip_prefix(self.tree.root()).map(PathBuf::from);
        below.unwrap_or_else(|_| path.to_owned()).to_string_lossy().into_owned()
    }

    fn confirm(&self, what: &'static Confirmation, facts: &str) -> Result<bool> {
        // Not what ralph.toml says: it may be the agent's.
        let patience = RunSettings::new("", self.flags, &ui::env_var)?.answer_timeout;
        let facts = facts.to_owned();
        Ok(ask(self.human, move |human| human.confirm(what, &facts, patience))? == Some(true))
    }
}
