//! Notices: messages for people that are not events, as data. `ui` words them.

use std::path::PathBuf;
use std::time::Duration;

use super::id::StoryId;
use super::money::Usd;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The backlog file is invalid; the run uses its last valid version.
    BacklogBroken { problem: String },
    /// A claim cannot be closed before the backlog is valid, or that time is over.
    ClaimWaits { story: StoryId, problem: String, patience: Duration },
    /// The backlog file is valid again.
    BacklogUsableAgain,
    /// The PRD is outside the repository or ignored: written, not committed.
    BacklogNotCommitted { path: PathBuf, why: String },
    /// A warning of the backlog's validation.
    Doubt { message: String },
    /// The story was accepted, and removed from the backlog before it was closed.
    CompletedButGone { story: StoryId },
    /// Another story has the id now.
    Replaced { story: StoryId },
    /// The human marked it as passing: its uncommitted work is the human's.
    Disowned { story: StoryId },
    /// About an attempt at the story.
    Attempt(StoryId, AttemptNotice),
    /// About the agents and their processes.
    Agent(AgentNotice),
    /// About the work tree, its branch and its files.
    Tree(TreeNotice),
    /// About the repository, before the run begins.
    Setup(SetupNotice),
    /// About how the run is configured.
    Config(ConfigNotice),
    /// What an interrupted run left.
    Resumed(Resumed),
}

/// One attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttemptNotice {
    /// The agent claimed the whole backlog while stories are left.
    FalsePromise { remaining: usize },
    /// The agent claimed other stories too.
    OtherClaims { ids: Vec<String> },
    /// The agent was denied a tool; the rule would allow it.
    ToolDenied { rule: String, times: u32 },
    /// Part of the agent's output is not in its log.
    LogIncomplete { problem: String },
    /// Processes that the attempt left running were ended.
    LeftoversEnded { names: Vec<String> },
    /// `keep_processes` kept these running.
    ProcessesKept { names: Vec<String> },
    /// The iteration cost more than its budget.
    OverIterationBudget { cost: Usd, limit: Usd },
    /// The agent's git left the lock when the agent was ended.
    LockRemoved { path: PathBuf },
    /// The agent worked on another branch, and the run's branch has its commits now.
    CommitsTakenFrom { branch: String },
}

/// The agents and their processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentNotice {
    /// Processes that an earlier run left running were ended.
    EarlierRunEnded { names: Vec<String> },
    /// ralph ended it.
    Ended(EndCause),
    /// The scratchpad cannot be used.
    Scratchpad { problem: String },
    /// A newer ralph sent a request that this one does not know.
    UnknownRequest,
}

/// Why everything that runs is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndCause {
    RunTime,
    DiskLow,
    Aborted,
    /// Such as Ctrl-C.
    Interrupt,
}

/// The work tree, its branch and its files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TreeNotice {
    /// A killed process left the lock.
    LockRemoved { path: PathBuf },
    /// Temporary files or locks could not be removed.
    CleanUpFailed { problem: String },
    /// Earlier work is at a ref.
    WorkKept { story: StoryId, reference: String, comes_back: bool },
    /// They are in shelved work. The human may have made some of them.
    NewFilesShelved { story: StoryId, reference: String, paths: Vec<PathBuf> },
    /// Something was where git or ralph needs a file or a folder of another kind.
    MovedAway { path: PathBuf, kept: PathBuf },
    /// Old snapshots could not be removed.
    NotPruned { problem: String },
}

/// What a run finds in the repository before it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetupNotice {
    /// They are kept and never committed.
    Untracked { paths: Vec<PathBuf> },
    /// They are kept and never committed.
    UncommittedEdits { paths: Vec<PathBuf> },
    /// ralph's commits skip them.
    Hooks { paths: Vec<PathBuf>, pre_commit: Option<PathBuf> },
    /// ralph cannot apply these git attributes.
    Attributes { names: Vec<PathBuf> },
    /// Excluded files stay as committed.
    SparseCheckout,
    /// ralph commits which commit they are at.
    Submodules { paths: Vec<PathBuf> },
    /// git is configured to sign commits.
    CommitsSigned,
    /// `--branch` named a new branch.
    BranchCreated { branch: String },
    /// `--branch` named another branch.
    BranchSwitched { branch: String },
    /// `--branch` named the current branch.
    BranchCurrent { branch: String },
    /// `main` or `master`, without `--branch`.
    OnMainBranch { branch: String },
}

/// How the run is configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigNotice {
    /// The damaged file is kept, and the journal is rebuilt.
    JournalDamaged { kept: PathBuf },
    /// Only its snapshots are left.
    JournalMissing,
    /// A command of the human's was killed, and this run carried it out to its end.
    CommandFinished { command: String },
    /// ralph.toml changed while the run was interrupted: the run keeps its settings, and the
    /// changed version, if there is one, is at `kept`.
    SettingsRestored { kept: Option<PathBuf> },
    /// The human approved the changed ralph.toml.
    SettingsChanged,
    /// The command comes from the settings.
    AgentCommand { command: String },
    /// The human chose the mode before an earlier run.
    PermissionsRemembered { mode: String },
    /// The human could not be asked.
    PermissionsAssumed { mode: String, meaning: String },
    /// The permissions are probably not what was meant.
    PermissionsDoubt { message: String },
    /// A claim is checked by its diff only.
    NoGates,
    /// Gates are not run in a dry run.
    GatesNotRun,
    /// Costs over all repositories cannot be recorded.
    UserCostsNotKept { problem: String },
    /// This agent has no cost limit of its own.
    BudgetsBetweenIterations { agent: String },
}

/// What an interrupted run left, and what happens to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resumed {
    /// How the last process ended, with the number and story of its attempt.
    After { died: bool, attempt: Option<(u32, StoryId)> },
    /// It is accepted and maybe not committed.
    Accepted(StoryId),
    /// It is to be skipped.
    ToSkip(StoryId),
    /// Its question is open.
    Question(StoryId),
    /// Its claim is not checked.
    Claimed(StoryId),
    /// Its unfinished work is in the tree.
    InTree(StoryId),
    /// Its unfinished work is at a ref.
    Shelved { story: StoryId, reference: String },
    /// How many more there are.
    More { count: usize },
}
