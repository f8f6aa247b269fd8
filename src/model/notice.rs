//! What people should know that is no fact of the run: as data, worded by the display.

use std::path::PathBuf;

use super::id::StoryId;
use super::money::Usd;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The backlog file cannot be used as it is now; the last good version serves.
    BacklogBroken {
        problem: String,
    },
    BacklogUsableAgain,
    /// The PRD is outside the repository or ignored: written, not committed.
    BacklogNotCommitted {
        path: PathBuf,
        why: String,
    },
    /// The agent promised the whole backlog while stories are left.
    FalsePromise {
        remaining: usize,
    },
    /// The agent spoke of other stories as complete.
    OtherClaims {
        ids: Vec<String>,
    },
    /// Marks in the backlog that changed during an attempt are as they were again.
    MarksPutBack {
        ids: Vec<StoryId>,
    },
    Backlog(BacklogNotice),
    Agent(AgentNotice),
    Tree(TreeNotice),
    Setup(SetupNotice),
    Config(ConfigNotice),
    /// What an interrupted run left behind.
    Resumed(Resumed),
}

/// Stories and their marks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BacklogNotice {
    /// Of the validation.
    Doubt {
        message: String,
    },
    Disappeared {
        ids: Vec<StoryId>,
    },
    /// Accepted, and out of the backlog before it was closed.
    CompletedButGone {
        story: StoryId,
    },
    /// Another story has the id now.
    Replaced {
        story: StoryId,
    },
    /// Marked as passing by hand: its uncommitted work is the human's.
    Disowned {
        story: StoryId,
    },
    /// After the journal was lost: no commit confirms the mark.
    MarkUnconfirmed {
        story: StoryId,
    },
}

/// The agent and its processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentNotice {
    ToolDenied {
        rule: String,
        times: u32,
    },
    LogIncomplete {
        problem: String,
    },
    /// Processes that the attempt left behind.
    LeftoversEnded {
        names: Vec<String>,
    },
    EarlierRunEnded {
        names: Vec<String>,
    },
    /// By `keep_processes`.
    ProcessesKept {
        names: Vec<String>,
    },
    EndedForRunTime,
    EndedForDisk,
    EndedForAbort,
    Scratchpad {
        problem: String,
    },
    /// A newer ralph asks for something that this one does not know.
    UnknownRequest,
    OverIterationBudget {
        cost: Usd,
        limit: Usd,
    },
}

/// The work tree, its branch and its files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TreeNotice {
    NotCommitted {
        path: PathBuf,
        why: NotCommitted,
    },
    /// That a killed process left behind.
    LockRemoved {
        path: PathBuf,
    },
    /// Of the agent's git, which was ended with it.
    AgentLockRemoved {
        path: PathBuf,
    },
    CleanUpFailed {
        problem: String,
    },
    /// The agent worked on another branch, and the run's branch has its commits now.
    CommitsTakenFrom {
        branch: String,
    },
    StashRestored {
        message: String,
    },
    /// Something else stands where lost files were.
    CannotRestore {
        paths: Vec<PathBuf>,
        kept: String,
    },
    InstructionsNotRestored {
        path: String,
        problem: String,
    },
    /// Since an attempt that was cut off.
    InstructionsDiffer {
        path: String,
    },
    WorkKept {
        story: StoryId,
        reference: String,
        comes_back: bool,
    },
    NotPruned {
        problem: String,
    },
}

/// Why a file stays out of the commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotCommitted {
    Repository,
    Name { files: usize },
    Users,
    Filter,
}

/// What a run finds in the repository before it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetupNotice {
    Untracked {
        paths: Vec<PathBuf>,
    },
    UncommittedEdits {
        paths: Vec<PathBuf>,
    },
    Hooks {
        paths: Vec<PathBuf>,
        pre_commit: Option<PathBuf>,
    },
    Attributes {
        names: Vec<PathBuf>,
    },
    SparseCheckout,
    Submodules {
        paths: Vec<PathBuf>,
    },
    CommitsSigned,
    BranchCreated {
        branch: String,
    },
    BranchSwitched {
        branch: String,
    },
    BranchCurrent {
        branch: String,
    },
    /// `main` or `master`, without `--branch`.
    OnMainBranch {
        branch: String,
    },
}

/// How the run is set up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigNotice {
    JournalDamaged {
        kept: PathBuf,
    },
    AgentCommand {
        command: String,
    },
    PermissionsRemembered {
        mode: String,
    },
    PermissionsAssumed {
        mode: String,
        meaning: String,
    },
    PermissionsDoubt {
        message: String,
    },
    NoGates,
    /// In a dry run.
    GatesNotRun,
    UserCostsNotKept {
        problem: String,
    },
    /// This agent cannot be told what it may cost.
    BudgetsBetweenIterations {
        agent: String,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resumed {
    /// How the last process ended, and its attempt.
    After {
        died: bool,
        attempt: Option<(u32, StoryId)>,
    },
    Accepted(StoryId),
    ToSkip(StoryId),
    Question(StoryId),
    Claimed(StoryId),
    InTree(StoryId),
    Shelved {
        story: StoryId,
        reference: String,
    },
    More {
        count: usize,
    },
}
