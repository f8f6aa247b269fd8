//! What can be typed about the states of the work tree that are kept.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use crate::core::id::StoryId;

#[derive(Debug, Args)]
#[command(
    about = "List the states of the work tree that are kept",
    long_about = "List the states of the work tree that are kept, newest last.\n\n\
        Before each attempt the tracked and untracked files are kept as a snapshot; what a failed \
        attempt left, and the work of a story that was left unfinished, is kept too. They are refs \
        below refs/ralph/, so `git gc` keeps them. Old ones go at the start of a run: after 30 \
        days or when there are more than 500, but never those of the last two runs.",
    after_help = "Examples:\n  \
        ralph log\n  \
        ralph log --json\n  \
        ralph diff 17               what the attempt 17 changed\n  \
        ralph restore 17 src/       bring its files back"
)]
pub struct LogArgs {
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(
    about = "Show what a kept state or a story changed",
    long_about = "Show what a kept state or a story changed, as a unified diff.\n\n\
        A number is one of `ralph log`: an attempt is compared with where its story began, a \
        snapshot or checkpoint with the commit it stood on. A story in work is shown from where \
        it began to the work tree as it is now, a closed one as it was committed. Redirected, the \
        diff is as `git apply` takes it.",
    after_help = "Examples:\n  ralph diff 17\n  ralph diff US-003\n  ralph diff 17 | git apply -R"
)]
pub struct DiffArgs {
    /// A number of `ralph log`, or a story
    #[arg(value_name = "N|STORY")]
    pub what: String,
    /// The backlog that the story is in
    #[arg(long, value_name = "FILE", default_value = "PRD.json", value_hint = ValueHint::FilePath)]
    pub prd: PathBuf,
}

#[derive(Debug, Args)]
#[command(
    about = "Bring files of a kept state back into the work tree",
    long_about = "Bring files of a kept state back into the work tree.\n\n\
        Without paths the whole work tree becomes what it was, but for the backlog, whose marks \
        belong to the commits; name it to bring it back too. Index and branch stay as they are. \
        What there is now is kept first, so nothing is lost: the number to go back with is \
        printed. Refused while a run works here.",
    after_help = "Examples:\n  \
        ralph restore 17\n  \
        ralph restore 17 notes.txt src/\n\n\
        Exit codes:\n  \
        0  the files are as they were then\n  \
        1  something is in the way, or a run works here; nothing was changed\n  \
        2  wrong usage, no such number or path"
)]
pub struct RestoreArgs {
    /// A number of `ralph log`
    #[arg(value_name = "N")]
    pub number: u64,
    /// Files or folders [default: all]
    #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub paths: Vec<PathBuf>,
}

#[derive(Debug, Args)]
#[command(
    about = "Keep the work tree as it is now",
    long_about = "Keep the work tree as it is now: tracked and untracked files, but not ignored \
        ones.\n\n\
        Files, index and branch are not touched, and it works during a run too.",
    after_help = "Examples:\n  ralph checkpoint\n  ralph checkpoint -m 'before the big merge'"
)]
pub struct CheckpointArgs {
    /// What it is about
    #[arg(short, long, value_name = "TEXT")]
    pub message: Option<String>,
}

#[derive(Debug, Args)]
#[command(
    about = "Take a closed story back and reopen it",
    long_about = "Take a closed story back and reopen it.\n\n\
        Everything from where the story began to its closing commit is reverted as one new commit, \
        and `passes` becomes false in the same. Where later work builds on it, or uncommitted work \
        is in the way, nothing is changed. Refused while a run works here.",
    after_help = "Examples:\n  \
        ralph undo US-003\n  \
        ralph undo US-003 plans/auth.json\n\n\
        Exit codes:\n  \
        0  it is taken back\n  \
        1  it cannot be, nothing was changed\n  \
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
