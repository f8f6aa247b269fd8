//! Errors of the repository, with remedies.

use std::collections::HashMap;
use std::io;
use std::mem::discriminant;
use std::path::{Path, PathBuf};

use crate::decide::staging::Objection;
use crate::files::ReadError;

use super::Result;

/// The most objections of one kind in a message.
const MOST_OF_A_KIND: usize = 5;

#[derive(Debug, thiserror::Error)]
pub enum GitError {
    #[error("{} is not in a git repository: run `git init`, or change to a repository", .0.display())]
    NotARepository(PathBuf),
    #[error("{} is a bare repository: use a clone or a `git worktree` of it", .0.display())]
    Bare(PathBuf),
    #[error("{} belongs to another user: run `git config --global --add safe.directory {}` if you trust it", .0.display(), .0.display())]
    NotOwned(PathBuf),
    #[error(
        "ralph does not support the format of the repository at {} ({reason}): it needs SHA-1 \
         objects, loose or packed refs and a full index (`git sparse-checkout reapply --no-sparse-index`, \
         `git update-index --no-split-index`)", .path.display()
    )]
    Format { path: PathBuf, reason: String },
    #[error(
        "a {what} is in progress: finish it or abort it with `git {what} --abort`, then run again"
    )]
    InProgress { what: &'static str },
    #[error("nothing changed since the story began")]
    NothingChanged,
    #[error("unmerged files ({}): resolve and `git add` them, then run again", .0.join(", "))]
    Unmerged(Vec<String>),
    #[error(
        "no git identity is configured: run `git config user.name \"Your Name\"` and \
         `git config user.email you@example.com`"
    )]
    NoIdentity,
    #[error(
        "`{0}` is not a valid branch name: use letters, digits, `-` and `/` (see `git help check-ref-format`)"
    )]
    BadBranchName(String),
    #[error("the branch's name is not UTF-8: rename it with `git branch -m NAME`")]
    BranchNotUtf8,
    #[error("switching to `{branch}` would overwrite changes in {}: commit or stash them first", .paths.join(", "))]
    WouldOverwrite { branch: String, paths: Vec<String> },
    #[error(
        "`{branch}` is checked out in another work tree: run ralph there, or use another branch"
    )]
    CheckedOutElsewhere { branch: String },
    #[error("another git process holds {}: wait for it, or delete the file if none is running", .0.display())]
    Locked(PathBuf),
    #[error(
        "`{0}` moved during the commit, so nothing was committed: run again to build on the new commits"
    )]
    HeadMoved(String),
    #[error(
        "HEAD is on `{found}`, but the run works on `{expected}`: merge it or run `git switch {expected}`, then run again"
    )]
    BranchChanged { expected: String, found: String },
    #[error(
        "{path} needs the external filter `{filter}`, which ralph cannot apply: commit it yourself \
         with git, or remove the attribute in .gitattributes"
    )]
    ForeignFilter { path: String, filter: String },
    #[error("{}", joined(.0))]
    Unfit(Vec<Objection>),
    #[error(
        "`{program}` could not sign a commit (commit.gpgsign is set): {problem}; {remedy}, or \
         disable signing with `git config commit.gpgsign false`"
    )]
    CannotSign { program: String, problem: String, remedy: &'static str },
    #[error(
        "`{0}` already has other work: delete it with `git update-ref -d {0}` if you don't need it"
    )]
    RefTaken(String),
    #[error("`{0}` is not shelved work: `git for-each-ref refs/ralph/attempts` lists it")]
    NotShelved(String),
    #[error("no snapshot {number}{}", did_you_mean(.nearest.map(|n| n.to_string()).as_ref()))]
    NoSuchNumber { number: u64, nearest: Option<u64> },
    #[error(
        "`{path}` is neither in snapshot {number} nor in the work tree{}", did_you_mean(.nearest.as_ref())
    )]
    NotInSnapshot { number: u64, path: String, nearest: Option<String> },
    #[error(
        "this would overwrite ignored files ({}): move them away, then try again",
        .0.join(", ")
    )]
    IgnoredInTheWay(Vec<String>),
    #[error(
        "later commits conflict ({}), so nothing was undone: undo those first, or revert with git",
        .0.join(", ")
    )]
    UndoConflicts(Vec<String>),
    #[error("the branch changed in the same places ({})", .0.join(", "))]
    Conflicts(Vec<String>),
    #[error("this would overwrite uncommitted changes ({}): commit or stash them, then try again", .0.join(", "))]
    UncommittedInTheWay(Vec<String>),
    #[error("the branch has no commits, so there is nothing to undo")]
    NothingToUndo,
    #[error("`{}` cannot be used: {problem}; move it away, then run again", .path.display())]
    OddFile { path: PathBuf, problem: ReadError },
    #[error(
        "the git object {} is damaged or gone: `git fsck` lists all that are; restore them from a \
         clone or a backup, then run again", .path.display()
    )]
    DamagedObject { path: PathBuf },
    #[error(
        "{} has more than {most} files or cannot be read, so ralph cannot guard what is in it: move out what is \
         no setting and no hook, then run again", .path.display()
    )]
    TooManyHeld { path: PathBuf, most: usize },
    #[error("cannot {doing} {}: {source}; check its permissions and the free disk space, then run again", .path.display())]
    File { doing: &'static str, path: PathBuf, source: io::Error },
    #[error("git cannot {doing}: {}; check with `git status` and `git fsck`, then run again", .source.message())]
    Git { doing: &'static str, source: git2::Error },
}

impl GitError {
    /// An agent caused this state of the work tree and can fix it.
    pub fn is_the_agents_doing(&self) -> bool {
        matches!(self, Self::InProgress { .. } | Self::Unmerged(_) | Self::BranchChanged { .. })
    }

    /// It involves the user's uncommitted edits.
    pub fn is_beyond_the_agent(&self) -> bool {
        let is_over = |one: &Objection| matches!(one, Objection::OverAnEdit { .. });
        matches!(self, Self::Unfit(objections) if objections.iter().any(is_over))
    }

    /// It is about the content of the commit: an agent can fix it, or the human can accept it.
    pub fn is_about_content(&self) -> bool {
        matches!(self, Self::Unfit(_) | Self::ForeignFilter { .. })
    }
}

fn joined(objections: &[Objection]) -> String {
    let mut kinds = HashMap::new();
    let is_said = |one: &&Objection| {
        let count: &mut usize = kinds.entry(discriminant(*one)).or_default();
        *count += 1;
        *count <= MOST_OF_A_KIND
    };
    let said: Vec<String> = objections.iter().filter(is_said).map(ToString::to_string).collect();
    let more = objections.len().saturating_sub(said.len());
    let more = if more > 0 { format!("; and {more} more like these") } else { String::new() };
    said.join("; ") + &more
}

fn did_you_mean(nearest: Option<&String>) -> String {
    let hint = nearest.map(|name| format!(" (did you mean `{name}`?)")).unwrap_or_default();
    format!("{hint}; `ralph log` lists the snapshots")
}

/// Without what ralph was doing.
pub(super) type LibResult<T> = Result<T, git2::Error>;

/// Adds what ralph was doing to an error of libgit2.
pub(super) trait GitContext<T> {
    fn doing(self, doing: &'static str) -> Result<T>;
}

impl<T> GitContext<T> for LibResult<T> {
    fn doing(self, doing: &'static str) -> Result<T> {
        self.map_err(|source| GitError::Git { doing, source })
    }
}

/// Turns "not found" into None.
pub(super) fn if_found<T>(result: LibResult<T>) -> LibResult<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.code() == git2::ErrorCode::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

pub(super) fn file_error(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> GitError {
    move |source| GitError::File { doing, path: path.to_owned(), source }
}
