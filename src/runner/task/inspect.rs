//! Inspects a lane after an attempt: repairs violations and finds out what changed.

use std::path::PathBuf;
use std::sync::Arc;

use crate::model::{
    AttemptNotice, AttemptStarted, Base, BranchLoss, CommitName, Concern, Event, HeldChange,
    HeldKind, Notice, Outcome, ServiceFault, StoryId, TreeNotice, Untrusted, Violation,
    visible_line,
};
use crate::runner::config::RunConfig;
use crate::runner::effects::{EndedAttempt, Inspection};
use crate::runner::error::Result;
use crate::runner::task::occupant::Occupant;
use crate::runner::task::{EventSink, held_files, tell_moved};
use crate::text::redact::SecretRules;
use crate::workspace::{
    CollectRequest, Difference, FileLocation, Guard, GuardPart, HumanCommits, Staging, WorkTree,
};

/// Of a commit's id, for people.
const SHORT: usize = 7;

/// What is compared with after an attempt.
pub struct Inspect {
    pub start: AttemptStarted,
    pub guard: Guard,
    /// No gate decides over its claim, so the commit itself finds out whether anything changed.
    pub is_plain: bool,
    /// The work tree that shelving returns to, if it is not the base's.
    pub rest: Option<String>,
    /// Changes of what it is measured by that the human accepted.
    pub wanted: Vec<HeldChange>,
    pub config: Arc<RunConfig>,
    pub secrets: Arc<SecretRules>,
    /// Commits without the attempt's mark that have what the human had not committed: for a claim,
    /// the human has to say whose they are.
    pub doubtful: Vec<Concern>,
}

impl Inspect {
    /// Repairs first. If that fails, the next process does it: in the journal the attempt is still
    /// in flight.
    pub fn run(
        mut self,
        tree: &WorkTree,
        ended: &EndedAttempt,
        log: &mut dyn EventSink,
    ) -> Result<Inspection> {
        let ran = Ran::attempt(&self.start);
        let parts = GuardPart::after_attempt();
        let Repaired { branch_loss, ticked } = repair(tree, &ran, &self.guard, parts, log)?;
        let was_lost = branch_loss.is_some();
        // Whose a commit is, its maker may have forged: what decides about the story is compared with
        // the time before it.
        let base = self.start.base.clone();
        let (branch_loss, roll_back) = self.follow_human(tree, branch_loss, log)?;
        if was_lost && branch_loss.is_none() {
            // It ended the first check.
            repair(tree, &ran, &self.guard, &[GuardPart::UserFiles], log)?;
        }
        let signals = &ended.report.signals;
        let claims = signals.claims_story || (ticked && !signals.stages_left);
        let mut found = Inspection { branch_loss, roll_back, ticked, ..Inspection::default() };
        found.doubtful = std::mem::take(&mut self.doubtful);
        match self.look(tree, ended, (claims, &base), log) {
            Ok(difference) => found.difference = difference,
            Err(error) => found.problem = Some(error),
        }
        found.head = tree.head_commit()?;
        tell_moved(tree, log);
        Ok(found)
    }

    /// Commits that the human made meanwhile are no part of the attempt, and stay on the branch. Returns
    /// how the branch was lost, and where it is rolled back to.
    fn follow_human(
        &mut self,
        tree: &WorkTree,
        loss: Option<BranchLoss>,
        log: &mut dyn EventSink,
    ) -> Result<(Option<BranchLoss>, Option<Base>)> {
        let before = self.start.before().clone();
        let found = tree.human_commits(before.commit.as_deref(), &self.start.attempt)?;
        let Some(found) = found.filter(|_| loss != Some(BranchLoss::Elsewhere)) else {
            return Ok((loss, None));
        };
        self.doubtful = self.doubt(tree, &found)?;
        let with_them = tree.with_commits(&before, &found.humans, &found.top)?;
        let began = before.commit;
        let (story, lane) = (self.start.story.clone(), self.start.lane);
        let (base, rest) = (self.start.base.clone(), self.rest.take());
        let occupant = Occupant { story, lane, base, rest, head: None };
        let (is_on_branch, agent_committed) = (found.is_on_branch, found.agent_committed);
        self.start.base = occupant.follow_human(tree, found, began.as_deref(), log)?.base;
        if !is_on_branch {
            return Ok((Some(BranchLoss::Rewritten), Some(with_them)));
        }
        let commit = if agent_committed { began } else { with_them.commit };
        self.start.before = Some(Base { commit, tree: with_them.tree });
        Ok((None, None))
    }

    fn doubt(&self, tree: &WorkTree, found: &HumanCommits) -> Result<Vec<Concern>> {
        let (rules, secrets) = (&self.config.settings.staging, &self.secrets);
        let request = CollectRequest {
            base: &self.start.base,
            counted: None,
            checked: None,
            must_change: false,
            except: &self.config.human_files,
            refused: &[],
            staging: Some(Staging { rules, secrets }),
            as_it_is: false,
        };
        let concern = |(commit, path): (&CommitName, PathBuf)| {
            let (id, subject) = (commit.commit.get(..SHORT).unwrap_or_default(), &commit.subject);
            let path = visible_line(&path.to_string_lossy());
            let has = match path.as_str() {
                "" => "a secret in its message".to_owned(),
                path => format!("`{path}`, which you had not committed, or a secret in it"),
            };
            let what = format!("commit {id} ({subject}), made while it worked, has {has}");
            Concern { what, diff: String::new() }
        };
        let doubtful = tree.users_files_in(&found.humans, &request)?;
        Ok(doubtful.into_iter().map(concern).collect())
    }

    /// Looking at a large tree takes its time: not for what says nothing about the story, and not
    /// for a claim that is decided by its own commit.
    fn look(
        &self,
        tree: &WorkTree,
        ended: &EndedAttempt,
        (claims, base): (bool, &Base),
        log: &mut dyn EventSink,
    ) -> Result<Option<Difference>> {
        let (outcome, signals) = (&ended.report.outcome, &ended.report.signals);
        let says_nothing = matches!(outcome, Outcome::EndedByUs | Outcome::PromptTooLong { .. })
            || ServiceFault::of(outcome).is_some();
        if says_nothing || signals.escalation.is_some() {
            return Ok(None);
        }
        let may_be_done = *outcome == Outcome::Completed && (claims || signals.promises_all);
        if may_be_done {
            self.hold_changed(tree, base, log)?;
        }
        let is_plain = self.is_plain && *outcome == Outcome::Completed && claims;
        let before = self.start.before();
        (!is_plain).then(|| tree.difference_since(before)).transpose().map_err(Into::into)
    }

    /// What changed since the story's base of what the claim is measured by: the human decides about
    /// it before the gates run.
    fn hold_changed(&self, tree: &WorkTree, base: &Base, log: &mut dyn EventSink) -> Result<()> {
        let protect = &self.config.settings.protect;
        let changed = tree.changed_files(base, self.config.gates.every(), protect)?;
        let changed = held_files::not_wanted(changed, &self.wanted);
        if changed.is_empty() {
            return Ok(());
        }
        let folder = self.guard.folder(tree);
        held_files::record(tree, &self.start.story, &folder, &changed, log)?;
        changed.iter().try_for_each(|one| Ok(tree.take_out(base, &one.path, &folder)?))
    }
}

/// What ran between two looks, and for which story.
#[derive(Clone, Debug)]
pub struct Ran {
    pub what: Untrusted,
    pub story: Option<StoryId>,
}

impl Ran {
    pub fn attempt(start: &AttemptStarted) -> Self {
        Self { what: Untrusted::Attempt, story: Some(start.story.clone()) }
    }

    pub fn repaired(&self, violation: Violation) -> Event {
        Event::Repaired { after: self.what, story: self.story.clone(), violation }
    }
}

/// The guard's findings for the rest of the inspection.
#[derive(Default)]
pub struct Repaired {
    pub branch_loss: Option<BranchLoss>,
    /// The agent ticked the story off in the human's instructions.
    ticked: bool,
}

/// Checks and repairs the guarded parts in order. Stops at a lost branch: branch and tree must
/// be rolled back before the rest can be checked.
pub fn repair(
    tree: &WorkTree,
    ran: &Ran,
    guard: &Guard,
    parts: &[GuardPart],
    log: &mut dyn EventSink,
) -> Result<Repaired> {
    let repaired = repair_armed(tree, ran, guard, parts, log)?;
    disarm(tree, guard, log);
    Ok(repaired)
}

/// What was guarded against is over.
pub fn disarm(tree: &WorkTree, guard: &Guard, log: &mut dyn EventSink) {
    if let Err(error) = guard.disarm(tree) {
        clean_up_failed(log, &error);
    }
}

/// The same, but the guard stays armed: more of it follows.
pub fn repair_armed(
    tree: &WorkTree,
    ran: &Ran,
    guard: &Guard,
    parts: &[GuardPart],
    log: &mut dyn EventSink,
) -> Result<Repaired> {
    let mut repaired = Repaired::default();
    guard.return_objects(tree)?;
    for part in parts {
        let violation = match guard.check(tree, *part) {
            Err(error) if *part == GuardPart::Locks => {
                clean_up_failed(log, &error);
                None
            }
            checked => checked?,
        };
        let Some(violation) = violation else { continue };
        if let Violation::BranchLost { how } = violation {
            repaired.branch_loss = Some(how);
            break;
        }
        repaired.ticked |= matches!(violation, Violation::Held { claims: true, .. });
        if !hold_settings(tree, ran, guard, &violation, log)? {
            record(ran, &violation, log)?;
        }
        // A failed repair of these is reported; the work is safe.
        let is_minor = matches!(
            violation,
            Violation::Locks { .. } | Violation::Held { whose: HeldKind::Instructions, .. }
        );
        match guard.repair(tree, &violation) {
            Err(error) if is_minor => clean_up_failed(log, &error),
            done => done?,
        }
    }
    Ok(repaired)
}

/// Held files that changed since the last look, while something that an agent or a gate left running
/// could change them. `folder`: for their versions.
pub fn repair_since(
    tree: &WorkTree,
    ran: &Ran,
    folder: &str,
    log: &mut dyn EventSink,
) -> Result<()> {
    let Some(guard) = Guard::of_last_look(tree, folder) else { return Ok(()) };
    repair_armed(tree, ran, &guard, GuardPart::held(), log).map(drop)
}

/// Agents' settings may be what an attempt's story is about: the human decides. False: something
/// else ran, or there is nothing that could be shown.
fn hold_settings(
    tree: &WorkTree,
    ran: &Ran,
    guard: &Guard,
    violation: &Violation,
    log: &mut dyn EventSink,
) -> Result<bool> {
    let whose = HeldKind::AgentSettings;
    let is_theirs = matches!(violation, Violation::Held { whose: found, .. } if *found == whose);
    let could_be_meant = is_theirs && ran.what == Untrusted::Attempt;
    let Some(story) = ran.story.as_ref().filter(|_| could_be_meant) else { return Ok(false) };
    let Some(changed) = guard.changed_texts(tree, whose)? else { return Ok(false) };
    held_files::record(tree, story, &guard.folder(tree), &changed, log)?;
    Ok(true)
}

/// Call before the repair: an interrupted repair is repeated.
fn record(ran: &Ran, violation: &Violation, log: &mut dyn EventSink) -> Result<()> {
    match (violation.clone(), &ran.story, ran.what) {
        (Violation::Locks { paths }, Some(story), _) => {
            let tell = |path: String| {
                let removed = AttemptNotice::LockRemoved { path: PathBuf::from(path) };
                log.notice(Notice::Attempt(story.clone(), removed));
            };
            paths.into_iter().for_each(tell);
        }
        (Violation::OtherBranch { on }, Some(story), Untrusted::Attempt) => {
            let taken = AttemptNotice::CommitsTakenFrom { branch: on };
            log.notice(Notice::Attempt(story.clone(), taken));
        }
        (violation, ..) => log.record(ran.repaired(violation))?,
    }
    Ok(())
}

fn clean_up_failed(log: &mut dyn EventSink, error: &dyn std::error::Error) {
    log.notice(Notice::Tree(TreeNotice::CleanUpFailed { problem: error.to_string() }));
}

/// The path of the instructions in the work tree, if they are there.
pub fn instructions_in(tree: &WorkTree, config: &RunConfig) -> Option<PathBuf> {
    match tree.locate(config.instructions_file.as_deref()?) {
        Ok(FileLocation::Inside(path)) => Some(path),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::decide::samples::{id, policy};
    use crate::model::{AgentSignals, EndedBy, Gate, LaneId, Role};
    use crate::runner::effects::Happened;
    use crate::runner::tests::fake::{self, Heard};
    use crate::workspace::{Guarded, HeldPlace};

    /// A repository with two commits and an untracked file of the user's.
    fn repository(folder: &Path) -> git2::Repository {
        let repo = git2::Repository::init(folder).unwrap();
        let mut config = repo.config().unwrap();
        config.set_str("user.name", "T").unwrap();
        config.set_str("user.email", "t@example.org").unwrap();
        let who = git2::Signature::now("T", "t@example.org").unwrap();
        let mut parent = None;
        for text in ["first", "second"] {
            fs::write(folder.join("a"), text).unwrap();
            let mut index = repo.index().unwrap();
            index.add_path(Path::new("a")).unwrap();
            index.write().unwrap();
            let tree = repo.find_tree(index.write_tree().unwrap()).unwrap();
            let parents: Vec<_> = parent.iter().collect();
            let id = repo.commit(Some("HEAD"), &who, &who, text, &tree, &parents).unwrap();
            drop(parents);
            parent = Some(repo.find_commit(id).unwrap());
            drop(tree);
        }
        drop(parent);
        fs::write(folder.join("mine"), "untracked").unwrap();
        repo
    }

    /// An attempt that has just begun.
    fn begun(tree: &WorkTree, instructions: Option<&Path>) -> Inspect {
        let base = tree.base().unwrap();
        let ran = "A1".to_owned();
        let guarded = Guarded { ran, base: base.clone(), before: base.clone(), snapshot: None };
        let start = AttemptStarted {
            attempt: "A1".into(),
            iteration: 1,
            role: Role::Implement,
            story: id("A"),
            title: String::new(),
            agent: "mock".into(),
            lane: LaneId::HOME,
            base: base.clone(),
            criteria: None,
            before: Some(base),
            snapshot: None,
            guided: false,
            why: Default::default(),
            allowance: None,
            stable: None,
            held: None,
        };
        let place = |path: &Path| HeldPlace { kind: HeldKind::Instructions, path: path.to_owned() };
        let places: Vec<HeldPlace> = instructions.map(place).into_iter().collect();
        let guard = Guard::arm(tree, guarded, &places).unwrap();
        let config = Arc::new(fake::config(policy()));
        Inspect {
            start,
            guard,
            is_plain: false,
            rest: None,
            wanted: Vec::new(),
            config,
            secrets: Arc::new(SecretRules::new([])),
            doubtful: Vec::new(),
        }
    }

    fn ended(ended_by: Option<EndedBy>) -> EndedAttempt {
        let end = fake::ended("A1", Outcome::EndedByUs, AgentSignals::default());
        let Happened::AttemptEnded(end) = end else { unreachable!() };
        EndedAttempt { ended_by, ..*end }
    }

    #[test]
    fn a_lost_branch_ends_the_check() {
        let folder = tempfile::tempdir().unwrap();
        let repo = repository(folder.path());
        let tree = WorkTree::open(folder.path()).unwrap();
        let inspect = begun(&tree, None);
        let first = repo.head().unwrap().peel_to_commit().unwrap().parent(0).unwrap();
        repo.reset(first.as_object(), git2::ResetType::Hard, None).unwrap();
        fs::remove_file(folder.path().join("mine")).unwrap();
        let mut heard = Heard::default();
        let found = inspect.run(&tree, &ended(None), &mut heard).unwrap();
        assert_eq!(found.branch_loss, Some(BranchLoss::Rewritten));
        assert_eq!(heard.events, [], "the roll-back restores the files of its branch");
    }

    #[test]
    fn whatever_claims_the_story_the_files_that_decide_about_it_are_compared() {
        let claims = AgentSignals { claims_story: true, ..AgentSignals::default() };
        let promises = AgentSignals { promises_all: true, ..AgentSignals::default() };
        for (signals, ticks, is_compared) in [
            (AgentSignals::default(), false, false),
            (AgentSignals::default(), true, true),
            (claims, false, true),
            (promises, false, true),
        ] {
            let folder = tempfile::tempdir().unwrap();
            repository(folder.path());
            let prompt = folder.path().join("PROMPT.md");
            fs::write(&prompt, "- [ ] TASK_COMPLETE\n").unwrap();
            let tree = WorkTree::open(folder.path()).unwrap();
            let mut config = fake::config(policy());
            config.gates.all = vec![Gate::shell("sh a")];
            let inspect = Inspect { config: Arc::new(config), ..begun(&tree, Some(&prompt)) };
            fs::write(folder.path().join("a"), "changed").unwrap();
            if ticks {
                fs::write(&prompt, "- [x] TASK_COMPLETE\n").unwrap();
            }
            let mut end = ended(None);
            (end.report.outcome, end.report.signals) = (Outcome::Completed, signals.clone());
            let mut heard = Heard::default();
            inspect.run(&tree, &end, &mut heard).unwrap();
            let is_held = |event: &Event| matches!(event, Event::ChangesHeld { .. });
            assert_eq!(heard.events.iter().any(is_held), is_compared, "{signals:?} {ticks}");
            let now = fs::read_to_string(folder.path().join("a")).unwrap();
            assert_eq!(now, if is_compared { "second" } else { "changed" });
        }
    }

    #[test]
    fn a_lock_is_the_agents_only_during_an_attempt() {
        for ended_by in [None, Some(EndedBy::IdleTimeout)] {
            let folder = tempfile::tempdir().unwrap();
            repository(folder.path());
            let tree = WorkTree::open(folder.path()).unwrap();
            let inspect = begun(&tree, None);
            let lock = tree.root().join(".git/index.lock");
            fs::write(&lock, "").unwrap();
            inspect.run(&tree, &ended(ended_by), &mut Heard::default()).unwrap();
            assert!(!lock.exists(), "{ended_by:?}");
            // The next one is of another process.
            fs::write(&lock, "").unwrap();
            assert_eq!(tree.remove_own_locks().unwrap(), [""; 0].map(PathBuf::from));
        }
    }
}
