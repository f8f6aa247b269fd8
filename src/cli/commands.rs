//! The arguments of all commands but `run`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use crate::model::StoryId;
use crate::ops::{CostFormat, CostGrouping, StoryMark};

use super::{Choice, one_of};

/// Validate a backlog without running it.
///
/// Reports every error and warning at once, with line and column. The exit code is 1 if there are
/// errors, or, with `--strict`, warnings.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  ralph check\n  ralph check plans/auth.json --strict")]
pub struct CheckArgs {
    /// The backlog
    #[arg(value_name = "PRD", default_value = "PRD.json", value_hint = ValueHint::FilePath)]
    pub prd: PathBuf,
    /// Treat warnings as errors
    #[arg(long)]
    pub strict: bool,
}

/// Create a sample PRD.json and PROMPT.md.
///
/// PRD.json is a backlog with a few stories; PROMPT.md has the instructions for every iteration.
/// Edit both, then try `ralph run --dry-run`.
///
/// In a terminal, ralph offers the project's test commands as gates: commands that must pass before
/// a story is done. Gates that you accept, or pass with --gate, are written to ralph.toml and are
/// trusted.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  ralph init\n  ralph init plans/\n  \
    ralph init --gate 'cargo test' --gate 'cargo clippy -- -D warnings'")]
pub struct InitArgs {
    /// Where to create them; existing files are never overwritten
    #[arg(value_name = "FOLDER", default_value = ".", value_hint = ValueHint::DirPath)]
    pub folder: PathBuf,
    /// A command that must pass before a story is done; repeatable
    #[arg(long, value_name = "COMMAND")]
    pub gate: Vec<String>,
}

/// Show the state of the run.
///
/// Lists the stories with their state (passes, skipped, running, asks, parked or open), open
/// questions, working time, consecutive errors and waits. Changes nothing; works during a run.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  ralph status\n  ralph status plans/auth.json --json")]
pub struct StatusArgs {
    /// The backlog
    #[arg(value_name = "PRD", default_value = "PRD.json", value_hint = ValueHint::FilePath)]
    pub prd: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Show costs.
///
/// Shows the backlog's latest run: cost, tokens, turns, tool calls, efficiency, forecast and
/// stories. With `--by`, shows all runs of this repository. Agents report their costs; if an agent
/// was killed before it did, ralph counts the larger of what it saw and the run's median, and marks
/// the row with `~`. Changes nothing; works during a run.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    ralph cost\n  \
    ralph cost plans/auth.json --json\n  \
    ralph cost --by day\n  \
    ralph cost --by story --csv > cost.csv")]
pub struct CostArgs {
    /// The backlog
    #[arg(value_name = "PRD", default_value = "PRD.json", value_hint = ValueHint::FilePath)]
    pub prd: PathBuf,
    /// Group the costs of all runs of this repository
    #[arg(long, value_name = "WHAT", value_parser = one_of(GROUPINGS))]
    pub by: Option<CostGrouping>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Print CSV with a header
    #[arg(long, conflicts_with = "json")]
    pub csv: bool,
}

const GROUPINGS: &[Choice<CostGrouping>] = &[
    ("story", "", CostGrouping::Story),
    ("day", "In the local time zone", CostGrouping::Day),
    ("model", "", CostGrouping::Model),
];

impl CostArgs {
    pub fn format(&self) -> CostFormat {
        match (self.json, self.csv) {
            (true, _) => CostFormat::Json,
            (false, true) => CostFormat::Csv,
            (false, false) => CostFormat::Text,
        }
    }
}

/// Print the next prompt for a story.
///
/// The prompt has your instructions, the story, the state of the run, what earlier agents left, your
/// guidance, and how to finish. It goes to standard output, the size of each layer to standard
/// error. Changes nothing; works without a run.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    ralph prompt US-003\n  \
    ralph prompt US-003 plans/auth.json > prompt.md\n  \
    ralph prompt US-003 --json | jq .layers")]
pub struct PromptArgs {
    /// The story
    pub story: StoryId,
    /// The backlog
    #[arg(value_name = "PRD", default_value = "PRD.json", value_hint = ValueHint::FilePath)]
    pub prd: PathBuf,
    /// Use these instructions, as with `ralph run --prompt`
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub prompt: Option<PathBuf>,
    /// Print the text and sizes of all layers as JSON
    #[arg(long)]
    pub json: bool,
}

/// Mark a story as passed, failed, skipped or open.
///
/// Sets `passes` and `skipped` in the backlog and changes nothing else in the file. Agents cannot
/// do this: ralph reverts their edits of these values. During a run, the mark takes effect at
/// once.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    ralph mark US-003 pass       it is done\n  \
    ralph mark US-003 fail       it is not done\n  \
    ralph mark US-003 skip       don't work on it\n  \
    ralph mark US-003 reopen     work on it again\n  \
    ralph mark US-003 pass plans/auth.json")]
pub struct MarkArgs {
    /// The story
    pub story: StoryId,
    /// The new state
    #[arg(value_name = "MARK", value_parser = one_of(MARKS))]
    pub mark: StoryMark,
    /// The backlog
    #[arg(value_name = "PRD", default_value = "PRD.json", value_hint = ValueHint::FilePath)]
    pub prd: PathBuf,
}

const MARKS: &[Choice<StoryMark>] = &[
    ("pass", "Done", StoryMark::Pass),
    ("fail", "Not done", StoryMark::Fail),
    ("skip", "Skipped", StoryMark::Skip),
    ("reopen", "Neither done nor skipped", StoryMark::Reopen),
];

/// Send a message to the running agent.
///
/// Claude Code reads it between two steps. If no agent is running, the next one gets it. If the
/// agent takes no messages, or has given its result, the story's next attempt gets it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    ralph nudge 'leave the CSS alone, fix the tests first'\n\n\
    Exit codes:\n  \
    0  sent\n  \
    1  no run is active in this work tree\n  \
    2  wrong usage")]
pub struct NudgeArgs {
    /// The message
    #[arg(value_name = "TEXT", required = true)]
    pub text: Vec<String>,
}

/// Approve the commands that this repository configures.
///
/// Gates, agent settings in ralph.toml, Claude Code's hooks and .mcp.json take effect only after
/// you have approved their exact text. Shows what is new and asks. Approvals are stored outside the
/// work tree.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  ralph trust\n  ralph trust plans/auth.json --yes")]
pub struct TrustArgs {
    /// The backlog
    #[arg(value_name = "PRD", default_value = "PRD.json", value_hint = ValueHint::FilePath)]
    pub prd: PathBuf,
    /// Approve without asking
    #[arg(long)]
    pub yes: bool,
}

/// List snapshots of the work tree, newest last.
///
/// ralph snapshots tracked and untracked files before each attempt, and keeps the work of failed
/// attempts and unfinished stories. Snapshots are refs below refs/ralph/, so `git gc` keeps them. A
/// new run deletes snapshots older than 30 days (`keep_days`) or beyond the newest 500
/// (`keep_snapshots`). The newest 1,000 of the last two runs always stay.
#[derive(Debug, Args)]
#[command(
    about = "List snapshots of the work tree",
    after_help = "Examples:\n  \
        ralph log\n  \
        ralph log --json\n  \
        ralph diff 17               show the changes in snapshot 17\n  \
        ralph restore 17 src/       restore its files"
)]
pub struct LogArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Show what a snapshot or a story changed, as a unified diff.
///
/// Compares attempts with their story's base, and snapshots and checkpoints with the commit they were
/// taken on. Shows an unfinished story up to the current work tree, and a closed one as committed.
/// If you redirect the output, it is a patch for `git apply`.
#[derive(Debug, Args)]
#[command(
    about = "Show what a snapshot or a story changed",
    after_help = "Examples:\n  ralph diff 17\n  ralph diff US-003\n  ralph diff 17 | git apply -R"
)]
pub struct DiffArgs {
    /// A number from `ralph log`, or a story
    #[arg(value_name = "N|STORY")]
    pub what: String,
    /// The backlog of the story
    #[arg(long, value_name = "FILE", default_value = "PRD.json", value_hint = ValueHint::FilePath)]
    pub prd: PathBuf,
}

/// Restore files from a snapshot.
///
/// Without paths, restores the whole work tree except the backlog; name the backlog to restore it
/// too. Index and branch stay as they are. ralph takes a checkpoint first and prints its number, so
/// that you can undo this. Fails while a run is active.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    ralph restore 17\n  \
    ralph restore 17 notes.txt src/\n\n\
    Exit codes:\n  \
    0  restored\n  \
    1  not possible, or a run is active; nothing was changed\n  \
    2  wrong usage, no such number or path")]
pub struct RestoreArgs {
    /// A number from `ralph log`
    #[arg(value_name = "N", value_parser = snapshot_number)]
    pub number: u64,
    /// Files or folders to restore [default: all]
    #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub paths: Vec<PathBuf>,
}

fn snapshot_number(text: &str) -> Result<u64, &'static str> {
    text.parse().map_err(|_| "expected a number from `ralph log`")
}

/// Take a snapshot of the work tree: tracked and untracked files, but not ignored ones.
///
/// Files, index and branch stay as they are. Works during a run.
#[derive(Debug, Args)]
#[command(
    about = "Take a snapshot of the work tree",
    after_help = "Examples:\n  ralph checkpoint\n  ralph checkpoint -m 'before the big merge'"
)]
pub struct CheckpointArgs {
    /// A description for `ralph log`
    #[arg(short, long, value_name = "TEXT")]
    pub message: Option<String>,
}

/// Revert a closed story and reopen it.
///
/// Reverts the story's commits in one new commit, which also sets `passes` to false. If later or
/// uncommitted work conflicts, changes nothing and fails. Fails while a run is active.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    ralph undo US-003\n  \
    ralph undo US-003 plans/auth.json\n\n\
    Exit codes:\n  \
    0  reverted\n  \
    1  not possible, or a run is active; nothing was changed\n  \
    2  wrong usage, no such story")]
pub struct UndoArgs {
    /// The story
    pub story: StoryId,
    /// The backlog
    #[arg(value_name = "PRD", default_value = "PRD.json", value_hint = ValueHint::FilePath)]
    pub prd: PathBuf,
}
