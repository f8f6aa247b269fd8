//! Commands about snapshots of the work tree.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use crate::model::StoryId;
use crate::ops;
use crate::ops::CommandError;
use crate::ui::UiOptions;

#[derive(Debug, Args)]
#[command(
    about = "List snapshots of the work tree",
    long_about = "List snapshots of the work tree, newest last.\n\n\
        ralph snapshots tracked and untracked files before each attempt, and keeps the work of \
        failed attempts and unfinished stories. Snapshots are refs below refs/ralph/, so `git gc` \
        keeps them. A new run deletes those older than 30 days (`keep_days`) or beyond the newest \
        500 (`keep_snapshots`). The newest 1,000 of the last two runs always stay.",
    after_help = "Examples:\n  \
        ralph log\n  \
        ralph log --json\n  \
        ralph diff 17               show what attempt 17 changed\n  \
        ralph restore 17 src/       restore its files"
)]
pub struct LogArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(
    about = "Show what a snapshot or a story changed",
    long_about = "Show what a snapshot or a story changed, as a unified diff.\n\n\
        Attempts are compared with the start of their story, snapshots and checkpoints with the \
        commit they were taken on. An unfinished story is shown up to the current work tree, a \
        closed one as committed. Redirected, the output is a patch for `git apply`.",
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

#[derive(Debug, Args)]
#[command(
    about = "Restore files from a snapshot",
    long_about = "Restore files from a snapshot.\n\n\
        Without paths, restores the whole work tree except the backlog; name the backlog to \
        restore it too. Index and branch stay as they are. ralph takes a checkpoint first and \
        prints its number, so that you can go back. Fails while a run is active.",
    after_help = "Examples:\n  \
        ralph restore 17\n  \
        ralph restore 17 notes.txt src/\n\n\
        Exit codes:\n  \
        0  restored\n  \
        1  not possible, or a run is active; nothing was changed\n  \
        2  wrong usage, no such number or path"
)]
pub struct RestoreArgs {
    /// A number from `ralph log`
    #[arg(value_name = "N")]
    pub number: u64,
    /// Files or folders to restore [default: all]
    #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub paths: Vec<PathBuf>,
}

#[derive(Debug, Args)]
#[command(
    about = "Take a snapshot of the work tree",
    long_about = "Take a snapshot of the work tree: tracked and untracked files, but not \
        ignored ones.\n\n\
        Files, index and branch stay as they are. Works during a run.",
    after_help = "Examples:\n  ralph checkpoint\n  ralph checkpoint -m 'before the big merge'"
)]
pub struct CheckpointArgs {
    /// A description for `ralph log`
    #[arg(short, long, value_name = "TEXT")]
    pub message: Option<String>,
}

#[derive(Debug, Args)]
#[command(
    about = "Revert a closed story and reopen it",
    long_about = "Revert a closed story and reopen it.\n\n\
        Reverts the story's commits in one new commit, which also sets `passes` to false. Changes \
        nothing if later or uncommitted work conflicts. Fails while a run is active.",
    after_help = "Examples:\n  \
        ralph undo US-003\n  \
        ralph undo US-003 plans/auth.json\n\n\
        Exit codes:\n  \
        0  reverted\n  \
        1  not possible; nothing was changed\n  \
        2  wrong usage, no such story"
)]
pub struct UndoArgs {
    /// The story
    #[arg(value_name = "STORY")]
    pub story: StoryId,
    /// The backlog
    #[arg(value_name = "PRD", default_value = "PRD.json", value_hint = ValueHint::FilePath)]
    pub prd: PathBuf,
}

impl LogArgs {
    pub fn call(&self) -> Result<u8, CommandError> {
        ops::log(self.json)
    }
}

impl DiffArgs {
    pub fn call(&self, look: &UiOptions) -> Result<u8, CommandError> {
        ops::diff(&self.what, &self.prd, look)
    }
}

impl RestoreArgs {
    pub fn call(&self) -> Result<u8, CommandError> {
        ops::restore(self.number, &self.paths)
    }
}

impl CheckpointArgs {
    pub fn call(&self) -> Result<u8, CommandError> {
        ops::checkpoint(self.message.as_deref())
    }
}

impl UndoArgs {
    pub fn call(&self) -> Result<u8, CommandError> {
        ops::undo(&self.story, &self.prd)
    }
}
