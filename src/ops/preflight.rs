//! Before the first agent: checks of the repository, questions to the human, the branch.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::agent::Backend;
use crate::files::atomic;
use crate::model::{
    Approval, Backlog, ConfigNotice, LaneId, Notice, PermissionMode, PermissionModes, SettingsText,
    SetupNotice, TreeNotice,
};
use crate::ports::{Clock, Reporter};
use crate::runner::log::JournalHistory;
use crate::runner::{
    BacklogFile, EditsBetweenRuns, RunnerError, edits_between_runs, end_earlier_runs,
};
use crate::settings::{AgentChoice, Flags};
use crate::state::RunState;
use crate::store::prd::PrdFile;
use crate::store::{Store, StoreCheck};
use crate::text::backlog::Severity;
use crate::text::redact::SecretRules;
use crate::ui::{self, TerminalHuman};
use crate::workspace::{FileLocation, Head, Switched, Uncommitted, WorkTree};

use super::approvals;
use super::error::{CommandError, Result};
use super::in_force::{self, InForce};
use super::place::{BacklogPlace, find_story, human_files, place_of};
use super::session::{backend, require_program};
use super::terminal::{ask, listed};
use super::trust;

/// A run before its first agent.
pub struct Preflight {
    pub tree: WorkTree,
    pub store: Store,
    pub in_force: InForce,
    pub reporter: Box<dyn Reporter>,
    pub human: Arc<TerminalHuman>,
    pub secrets: Arc<SecretRules>,
    pub clock: Clock,
}

impl Preflight {
    /// Ends processes of earlier runs and removes their locks. The journal is checked in the
    /// background.
    pub fn clean_up(&mut self) -> Result<StoreCheck> {
        let check = self.store.start_check()?;
        let runs = self.store.open_runs()?;
        end_earlier_runs(&runs, &self.in_force.plan.keep_processes, self.reporter.as_mut())?;
        for path in self.tree.remove_own_locks()? {
            self.reporter.on_notice(&Notice::Tree(TreeNotice::LockRemoved { path }));
        }
        Ok(check)
    }

    /// Takes a changed ralph.toml that the human approved before. It may say which processes stay.
    pub fn take_approved_settings(
        &mut self,
        history: &mut JournalHistory,
        flags: &Flags,
    ) -> Result<()> {
        self.restore_approvals(history)?;
        let state = &history.state;
        let Some(now) = self.changed_settings(state) else { return Ok(()) };
        if self.is_trusted(state, &now)? {
            self.in_force = InForce::new(now, self.tree.root(), flags)?;
            self.config_notice(ConfigNotice::SettingsChanged);
        }
        Ok(())
    }

    /// None: it is as it was in the open run, or cannot be read.
    fn changed_settings(&self, state: &RunState) -> Option<SettingsText> {
        state.settings_in_force()?;
        let now = in_force::text_in(self.tree.root()).ok()?;
        (now != self.in_force.text).then_some(now)
    }

    /// Compares ralph.toml with the settings of the open run. The human decides about a change;
    /// without an answer the file is restored.
    pub fn settle_settings(&mut self, history: &mut JournalHistory, flags: &Flags) -> Result<()> {
        // Earlier processes may have written until their end.
        self.restore_approvals(history)?;
        let state = &history.state;
        if state.settings_in_force().is_none() {
            return Ok(());
        }
        let root = self.tree.root();
        // What cannot be read is not what was recorded.
        let now = in_force::text_in(root).ok();
        if now.as_ref() == Some(&self.in_force.text) {
            return Ok(());
        }
        let notice = match now {
            Some(now) if self.is_approved(state, &now)? => {
                self.in_force = InForce::new(now, root, flags)?;
                ConfigNotice::SettingsChanged
            }
            _ => {
                let at = self.clock.now().wall;
                let kept = in_force::restore(&self.in_force.text, root, at)?;
                ConfigNotice::SettingsRestored { kept }
            }
        };
        self.config_notice(notice);
        Ok(())
    }

    /// After a crash.
    fn restore_approvals(&self, history: &mut JournalHistory) -> Result<()> {
        let repaired = approvals::restore(&self.store, &history.state, &self.clock)?;
        history.repaired.extend(repaired);
        Ok(())
    }

    fn is_trusted(&self, state: &RunState, now: &SettingsText) -> Result<bool> {
        let clause = in_force::clause(state, now);
        Ok(self.store.answers()?.all()?.is_trusted(&clause.what, &clause.text))
    }

    fn is_approved(&self, state: &RunState, now: &SettingsText) -> Result<bool> {
        if self.is_trusted(state, now)? {
            return Ok(true);
        }
        let shown = in_force::difference(&self.in_force.text, now, &self.secrets)?;
        let patience = self.in_force.plan.answer_timeout;
        let asked = ask(&self.human, move |human| human.confirm(&ui::SETTINGS, &shown, patience))?;
        Ok(asked == Some(true))
    }

    /// Refuses uncommitted edits unless the human allows them. Returns whether they are allowed.
    pub fn check_edits(&mut self, place: &BacklogPlace, state: &RunState) -> Result<bool> {
        self.tree.require_unlocked()?;
        let Some(found) = self.uncommitted(place, state)? else {
            return Ok(self.in_force.plan.allow_dirty);
        };
        if !found.untracked.is_empty() {
            self.setup_notice(SetupNotice::Untracked { paths: found.untracked });
        }
        if found.edited.is_empty() {
            return Ok(self.in_force.plan.allow_dirty);
        }
        let continued = state.run.as_ref().filter(|_| state.is_open());
        if !self.in_force.plan.allow_dirty && !continued.is_some_and(|run| run.allow_dirty) {
            self.ask_about(&found.edited)?;
        }
        self.setup_notice(SetupNotice::UncommittedEdits { paths: found.edited });
        Ok(true)
    }

    /// None: after a crash the user's edits cannot be told from the unfinished work in the tree.
    fn uncommitted(&self, place: &BacklogPlace, state: &RunState) -> Result<Option<Uncommitted>> {
        let own = human_files(place);
        if state.lanes.occupant(LaneId::HOME).is_none() {
            return Ok(Some(self.tree.uncommitted(&own)?));
        }
        let found = edits_between_runs(state, &self.tree, &own)?;
        let Some(EditsBetweenRuns { story, found, .. }) = found else { return Ok(None) };
        if !found.mixed.is_empty() {
            return Err(RunnerError::MixedEdits { story, paths: found.mixed }.into());
        }
        Ok(Some(Uncommitted { edited: found.edited, untracked: found.untracked }))
    }

    fn ask_about(&self, edited: &[PathBuf]) -> Result<()> {
        let (files, patience) = (listed(edited), self.in_force.plan.answer_timeout);
        let asked = files.join("\n");
        match ask(&self.human, move |human| human.confirm(&ui::EDITS, &asked, patience))? {
            Some(true) => Ok(()),
            Some(false) | None => Err(CommandError::Uncommitted(files)),
        }
    }

    /// Reports how ralph's commits differ from git's, and the agent's command, which may come from
    /// the repository.
    pub fn report_setup(&mut self) -> Result<()> {
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
        notices.into_iter().flatten().for_each(|notice| self.setup_notice(notice));
        if let AgentChoice::Command { words } = &self.in_force.plan.agent {
            let command = self.secrets.redact(&words.join(" ")).into_owned();
            self.config_notice(ConfigNotice::AgentCommand { command });
        }
        Ok(())
    }

    /// Hooks that no gate runs.
    fn hooks(&self, hooks: &[PathBuf]) -> Option<SetupNotice> {
        let gates: Vec<String> =
            self.in_force.plan.verify.iter().map(ToString::to_string).collect();
        let is_gate = |hook: &PathBuf| gates.iter().any(|gate| gate.contains(&ui::shown(hook)));
        let paths: Vec<PathBuf> = hooks.iter().filter(|hook| !is_gate(hook)).cloned().collect();
        let pre_commit = paths.iter().find(|hook| hook.ends_with("pre-commit")).cloned();
        (!paths.is_empty()).then_some(SetupNotice::Hooks { paths, pre_commit })
    }

    /// Sets what the agent may do, if the settings do not.
    pub fn settle_permissions(&mut self) -> Result<()> {
        let agent = backend(&self.in_force.plan)?;
        let Some(modes) = agent.permission_modes() else { return Ok(()) };
        if self.in_force.plan.agent_settings.permission_mode.is_none() {
            // A missing agent is reported before the question.
            require_program(agent.as_ref(), self.tree.root())?;
            self.in_force.plan.agent_settings.permission_mode =
                self.permission_mode(&*agent, modes)?;
        }
        if let Some(mode) = self.in_force.plan.agent_settings.permission_mode
            && let Some(message) = agent.check_permissions(mode)?
        {
            self.config_notice(ConfigNotice::PermissionsDoubt { message });
        }
        Ok(())
    }

    /// The remembered mode, else the human's answer, else the default.
    fn permission_mode(
        &mut self,
        agent: &dyn Backend,
        modes: PermissionModes,
    ) -> Result<Option<PermissionMode>> {
        let (answers, key) = (self.store.answers()?, agent.permission_key());
        let remembered = answers.recall(&key)?;
        // If this agent does not have the remembered mode, ask again.
        let known = modes.modes.iter().find(|mode| remembered.as_deref() == Some(mode.name));
        if let Some(mode) = known {
            let name = mode.name.to_owned();
            self.config_notice(ConfigNotice::PermissionsRemembered { mode: name });
            return Ok(Some(*mode));
        }
        let patience = self.in_force.plan.answer_timeout;
        if let Some(mode) = ask(&self.human, move |human| human.ask_mode(modes, patience))? {
            agent.check_permissions(mode)?;
            answers.remember(&key, mode.name)?;
            let chosen = Approval::Answer { key, value: mode.name.to_owned() };
            approvals::tell_runs(&self.store, false, vec![chosen], &self.clock)?;
            return Ok(Some(mode));
        }
        let usual = modes.modes.first().copied();
        if let Some(mode) = usual {
            let (mode, meaning) = (mode.name.to_owned(), mode.meaning.to_owned());
            self.config_notice(ConfigNotice::PermissionsAssumed { mode, meaning });
        }
        Ok(usual)
    }

    /// `yes`: approve without asking.
    pub fn require_trust(&self, backlog: &Backlog, yes: bool) -> Result<()> {
        let clauses = trust::clauses(&self.in_force.plan, backlog, self.tree.root())?;
        let patience = (!yes).then_some(self.in_force.plan.answer_timeout);
        let new = trust::require(&self.store, clauses, &self.human, patience, &self.clock)?;
        approvals::tell_runs(&self.store, false, trust::approvals(new), &self.clock)
    }

    /// Returns the branch that the run works on.
    pub fn take_branch(&mut self) -> Result<String> {
        let wanted = self.in_force.plan.branch.clone();
        // An agent took HEAD away, and the loop brings it back.
        if let Some(left) =
            self.tree.left_branch()?.filter(|left| wanted.as_ref().is_none_or(|w| w == left))
        {
            return Ok(left);
        }
        let is_chosen = wanted.is_some();
        if let Some(branch) = wanted {
            let switched = self.tree.switch_to(&branch)?;
            self.setup_notice(match switched {
                Switched::Created => SetupNotice::BranchCreated { branch },
                Switched::Existing => SetupNotice::BranchSwitched { branch },
                Switched::AlreadyThere => SetupNotice::BranchCurrent { branch },
            });
        }
        let Head::Branch { name, .. } = self.tree.branch()? else {
            return Err(CommandError::Detached);
        };
        if !is_chosen && matches!(name.as_str(), "main" | "master") {
            self.setup_notice(SetupNotice::OnMainBranch { branch: name.clone() });
        }
        Ok(name)
    }

    pub fn open_backlog(&mut self, prd: &Path) -> Result<BacklogFile> {
        atomic::remove_leftovers(prd)?;
        let backlog = BacklogFile::open(PrdFile::new(prd))?;
        if let Some(story) = &self.in_force.plan.story {
            find_story(backlog.current(), story)?;
        }
        report_warnings(&backlog, self.reporter.as_mut());
        Ok(backlog)
    }

    /// Reports a backlog that is not committed with the work.
    pub fn place_of(&mut self, prd: &Path) -> Result<BacklogPlace> {
        let place = place_of(&self.tree, prd)?;
        if place.in_tree.is_none() {
            let inside = self.tree.locate(prd)? != FileLocation::Outside;
            let why = if inside { "ignored by git" } else { "outside the repository" };
            let (path, why) = (PathBuf::from(&place.name), why.to_owned());
            self.reporter.on_notice(&Notice::BacklogNotCommitted { path, why });
        }
        Ok(place)
    }

    fn setup_notice(&mut self, notice: SetupNotice) {
        self.reporter.on_notice(&Notice::Setup(notice));
    }

    fn config_notice(&mut self, notice: ConfigNotice) {
        self.reporter.on_notice(&Notice::Config(notice));
    }
}

pub fn report_warnings(backlog: &BacklogFile, reporter: &mut dyn Reporter) {
    for warning in backlog.warnings().iter().filter(|one| one.severity == Severity::Warning) {
        let message = warning.message.clone();
        reporter.on_notice(&Notice::Doubt { message });
    }
}
