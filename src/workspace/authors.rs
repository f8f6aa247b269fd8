//! Whose a commit is that appeared while an agent or a gate worked.
//!
//! Git writes `GIT_REFLOG_ACTION` into the reflog, and the driver sets it for everything that it starts.
//! A commit without such an entry is the human's. So is one that another tool made, or one whose
//! entry is gone: in doubt nothing is taken off the human's branch.

use std::collections::HashSet;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use git2::Oid;

use crate::files::nofollow;
use crate::model::{Base, CommitName, visible_line};

use super::branch::{commit_id, tip};
use super::error::GitContext;
use super::{Result, WorkTree};

/// In the environment of agents and gates.
pub const REFLOG_ACTION: &str = "GIT_REFLOG_ACTION";
const BY_RALPH: &str = "ralph attempt";
/// Only the end of a long reflog is read.
const LONGEST_LOG: u64 = 1 << 20;

/// Commands that write the mark if it is set, by the beginning of what they write without it. Others,
/// as `git branch -f`, say the same whoever runs them.
const WITH_MARK: [&str; 10] = [
    "am",
    "checkout",
    "cherry-pick",
    "commit",
    "fetch",
    "merge",
    "pull",
    "rebase",
    "reset",
    "revert",
];

const READ_COMMIT: &str = "read the branch's commit";

/// In place of an attempt's id.
pub const GATES: &str = "gates";

/// What git writes into the reflog for an attempt or for gates.
pub fn reflog_action(attempt: &str) -> String {
    format!("{BY_RALPH} {attempt}")
}

/// The human's commits since an attempt, or its gates, began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HumanCommits {
    /// Oldest first.
    pub humans: Vec<CommitName>,
    /// The newest.
    pub top: String,
    /// The branch has it.
    pub is_on_branch: bool,
    /// The agent's commits that have the human's on top of them, so that they stay too.
    pub below: Vec<CommitName>,
    /// The agent made others, or those.
    pub agent_committed: bool,
}

/// An entry of HEAD's reflog.
struct Move {
    old: Oid,
    new: Oid,
    /// What moved it.
    action: String,
}

impl Move {
    fn parse(line: &str) -> Option<Self> {
        let (ids, action) = line.split_once('\t').unwrap_or((line, ""));
        let mut ids = ids.split(' ').map(Oid::from_str);
        let (old, new) = (ids.next()?.ok()?, ids.next()?.ok()?);
        Some(Self { old, new, action: action.to_owned() })
    }

    fn is_ralphs(&self) -> bool {
        self.action.starts_with(BY_RALPH)
    }

    fn is_surely_humans(&self) -> bool {
        let command = self.action.split([' ', ':']).next().unwrap_or_default();
        WITH_MARK.contains(&command)
    }
}

impl WorkTree {
    /// `from`: the branch tip when the attempt began. None: the human made none.
    pub fn human_commits(&self, from: Option<&str>, attempt: &str) -> Result<Option<HumanCommits>> {
        let from = from.map(Oid::from_str).transpose().doing(READ_COMMIT)?;
        let head = tip(&self.repo)?.commit;
        let moves = self.moves_since(from, &reflog_action(attempt));
        if head == from && moves.is_empty() {
            return Ok(None);
        }
        let mut agents = HashSet::new();
        for one in moves.iter().filter(|one| one.is_ralphs()) {
            // An agent's `git gc` may have deleted what it left behind.
            agents
                .extend(self.commits_between(one.new, &[Some(one.old), from]).unwrap_or_default());
        }
        let on_branch = match head {
            Some(head) => self.commits_between(head, &[from])?,
            None => Vec::new(),
        };
        let Some(top) = self.newest_of_human(&moves, &on_branch, from, &agents)? else {
            return Ok(None);
        };
        let up_to_top = self.commits_between(top, &[from])?;
        let (below, humans): (Vec<Oid>, Vec<Oid>) =
            up_to_top.into_iter().partition(|id| agents.contains(id));
        Ok(Some(HumanCommits {
            humans: self.names_of(&humans)?,
            top: top.to_string(),
            is_on_branch: self.contains(head, Some(top))?,
            below: self.names_of(&below)?,
            agent_committed: on_branch.iter().any(|id| agents.contains(id)),
        }))
    }

    /// Nobody has moved HEAD since an attempt, or gates, that began there. People's commands say what
    /// they do; only plumbing says nothing.
    pub fn head_is_as_left(&self, before: &Base, attempt: &str) -> Result<bool> {
        let from = before.commit.as_deref().map(Oid::from_str).transpose();
        let since = self.log_length_at_attempt().and_then(|length| self.end_of_log(length));
        let newest = match since {
            Some(text) => text.lines().rev().find_map(Move::parse),
            None => {
                let attempt = reflog_action(attempt);
                self.moves_since(from.doing(READ_COMMIT)?, &attempt).into_iter().next()
            }
        };
        Ok(newest.is_none_or(|newest| newest.is_ralphs() || newest.action.trim().is_empty()))
    }

    /// Nothing but attempts and gates moved the branch from there to where it is, as git noted.
    pub fn was_moved_by_attempts(&self, from: &Base) -> Result<bool> {
        let from = commit_id(from)?;
        let moves = self.moves_since(from, BY_RALPH);
        let (newest, oldest) = (moves.first(), moves.last());
        let is_whole = newest.map(|newest| newest.new) == tip(&self.repo)?.commit
            && oldest.map(|oldest| oldest.old) == Some(from.unwrap_or(Oid::ZERO_SHA1));
        Ok(is_whole && moves.iter().all(Move::is_ralphs))
    }

    /// The state that gates saw, which began at this branch tip. If the human committed meanwhile, it
    /// is no longer the branch's: its commit is the one from before.
    pub fn checked(&self, began: Option<&str>) -> Result<Base> {
        let now = self.base()?;
        let found = self.human_commits(began, GATES)?;
        let is_outdated = found.is_some_and(|found| found.is_on_branch && !found.agent_committed);
        Ok(if is_outdated { Base { commit: began.map(str::to_owned), ..now } } else { now })
    }

    /// Newest first. The human may have gone back to where the attempt began; then what was before
    /// no longer counts.
    fn moves_since(&self, from: Option<Oid>, attempt: &str) -> Vec<Move> {
        let text = self.end_of_log(0).unwrap_or_default();
        let moves = text.lines().rev().map_while(Move::parse);
        let began = |one: &Move| Some(one.new) == from && !one.action.starts_with(attempt);
        moves.take_while(|one| !began(one)).collect()
    }

    /// Only the human's command can have moved the ref last.
    pub(super) fn was_moved_by_human(&self, name: &str) -> bool {
        let text = end_of(&self.common_dir.join("logs").join(name), 0).unwrap_or_default();
        let newest = text.lines().rev().find_map(Move::parse);
        newest.is_some_and(|newest| newest.is_surely_humans())
    }

    /// What was written since it was so long. None: it is shorter, or there is none.
    fn end_of_log(&self, length: u64) -> Option<String> {
        end_of(&self.head_log(), length)
    }

    /// Newest first.
    pub(super) fn commits_between(&self, new: Oid, hidden: &[Option<Oid>]) -> Result<Vec<Oid>> {
        let commits = || {
            let mut walk = self.repo.revwalk()?;
            walk.set_sorting(git2::Sort::TOPOLOGICAL)?;
            walk.push(new)?;
            for id in hidden.iter().flatten().filter(|id| !id.is_zero()) {
                walk.hide(*id)?;
            }
            walk.collect::<Result<Vec<Oid>, _>>()
        };
        commits().doing("walk the history")
    }

    /// Even if an agent took it off the branch again.
    fn newest_of_human(
        &self,
        moves: &[Move],
        on_branch: &[Oid],
        from: Option<Oid>,
        agents: &HashSet<Oid>,
    ) -> Result<Option<Oid>> {
        for one in moves.iter().filter(|one| !one.is_ralphs() && !one.new.is_zero()) {
            let is_there = self.repo.find_commit(one.new).is_ok();
            if is_there && !agents.contains(&one.new) && !self.contains(from, Some(one.new))? {
                return Ok(Some(one.new));
            }
        }
        Ok(on_branch.iter().find(|id| !agents.contains(*id)).copied())
    }

    /// Oldest first.
    fn names_of(&self, commits: &[Oid]) -> Result<Vec<CommitName>> {
        let name = |id: &Oid| {
            let commit = self.repo.find_commit(*id).doing("read a commit")?;
            let subject = commit.summary_bytes().unwrap_or_default();
            let subject = visible_line(&String::from_utf8_lossy(subject));
            Ok(CommitName { commit: id.to_string(), subject })
        };
        commits.iter().rev().map(name).collect()
    }

    /// The names of the commits of a history that another one lacks.
    pub fn commits_since(&self, new: Option<&str>, old: Option<&str>) -> Result<Vec<CommitName>> {
        let id = |text: Option<&str>| text.map(Oid::from_str).transpose().doing("read a commit");
        let Some(new) = id(new)? else { return Ok(Vec::new()) };
        self.names_of(&self.commits_between(new, &[id(old)?])?)
    }

    /// A base with the changes of these commits of the human's; its commit is `top`.
    pub fn with_commits(&self, base: &Base, humans: &[CommitName], top: &str) -> Result<Base> {
        let mut base = base.clone();
        for CommitName { commit, .. } in humans {
            let parent = self.commit_named(commit)?.parent_id(0).ok().map(|id| id.to_string());
            base = self.with_changes_between(&base, parent.as_deref(), Some(commit))?;
        }
        Ok(Base { commit: Some(top.to_owned()), ..base })
    }
}

fn end_of(log: &Path, length: u64) -> Option<String> {
    let mut file = nofollow::open(log).ok()?;
    let found = file.metadata().ok()?;
    found.len().checked_sub(length)?;
    let start = found.len().saturating_sub(LONGEST_LOG).max(length);
    file.seek(SeekFrom::Start(start)).ok()?;
    let mut end = Vec::new();
    file.take(LONGEST_LOG).read_to_end(&mut end).ok()?;
    Some(String::from_utf8_lossy(&end).into_owned())
}
