//! The top level of the command line, and the hidden commands.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use super::commands::{
    CheckArgs, CheckpointArgs, CostArgs, DiffArgs, InitArgs, LogArgs, MarkArgs, NudgeArgs,
    PromptArgs, RestoreArgs, StatusArgs, TrustArgs, UndoArgs,
};
use super::run::RunArgs;

#[derive(Debug, Parser)]
#[command(
    name = "ralph",
    version,
    about = "Run coding agents through a backlog, unattended, until it is done",
    long_about = "Run coding agents through a backlog, unattended, until it is done.\n\n\
        One fresh agent process per iteration, one story at a time, one commit per finished story. \
        When an agent gets stuck, ralph asks you.",
    after_help = "Examples:\n  \
        ralph init                      create a sample PRD.json and PROMPT.md\n  \
        ralph check PRD.json            validate the backlog\n  \
        ralph run PRD.json --dry-run    try the whole loop with a mock agent\n  \
        ralph run PRD.json              work through it with Claude Code\n  \
        ralph cost                      show costs and a forecast\n  \
        ralph prompt US-003             print the next prompt for a story\n  \
        ralph log                       list snapshots of the work tree",
    arg_required_else_help = true
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
    #[command(flatten)]
    pub look: LookArgs,
}

/// How output looks.
#[derive(Clone, Copy, Debug, Args)]
pub struct LookArgs {
    /// When to use colors
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", display_order = 100)]
    pub color: ColorArg,
    // Accepted everywhere, so that `ralph -q run` works; shown only where they have an effect.
    #[arg(short, long, global = true, hide = true, conflicts_with = "verbose")]
    pub quiet: bool,
    #[arg(short, long, global = true, hide = true)]
    pub verbose: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ColorArg {
    /// In a terminal; respects NO_COLOR, CLICOLOR and CLICOLOR_FORCE
    Auto,
    Always,
    Never,
}

// The help of each command is at its arguments: a comment here would replace the long help.
#[derive(Debug, Subcommand)]
pub enum Command {
    Run(Box<RunArgs>),
    Check(CheckArgs),
    Init(InitArgs),
    Status(StatusArgs),
    Cost(CostArgs),
    Prompt(PromptArgs),
    Mark(MarkArgs),
    Nudge(NudgeArgs),
    Trust(TrustArgs),
    Log(LogArgs),
    Diff(DiffArgs),
    Restore(RestoreArgs),
    Checkpoint(CheckpointArgs),
    Undo(UndoArgs),
    Completions(CompletionsArgs),
    #[command(hide = true)]
    Supervise(SuperviseArgs),
    #[command(hide = true)]
    MockAgent(MockArgs),
}

#[derive(Debug, Args)]
#[command(
    about = "Print a shell completion script",
    long_about = "Print a shell completion script.\n\n\
        Save it where your shell looks for completion scripts, then start a new shell.",
    after_help = "Examples:\n  \
        ralph completions bash > ~/.local/share/bash-completion/completions/ralph\n  \
        ralph completions zsh > ~/.zfunc/_ralph"
)]
pub struct CompletionsArgs {
    /// The shell
    pub shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub struct SuperviseArgs {
    /// Becomes the program's standard input; without one it is what the driver says
    #[arg(long)]
    pub input: Option<PathBuf>,
    /// A program by this name is left alone when the others are ended
    #[arg(long)]
    pub keep: Vec<String>,
    /// Wait for the driver to say what to run
    #[arg(long)]
    pub standby: bool,
    #[arg(last = true, required_unless_present = "standby")]
    pub command: Vec<OsString>,
}

#[derive(Debug, Args)]
pub struct MockArgs {
    #[arg(long)]
    pub script: Option<PathBuf>,
    /// Standard input has a message per line, the prompt first
    #[arg(long)]
    pub takes_messages: bool,
}
