//! What can be typed. Nothing past this folder sees clap.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};

use crate::core::id::StoryId;

#[derive(Debug, Parser)]
#[command(
    name = "ralph",
    version,
    about = "Runs coding agents through a backlog, unattended, until it is truly done",
    long_about = "Runs coding agents through a backlog, unattended, until it is truly done.\n\n\
        One fresh agent process per iteration, one story at a time, one commit per finished story. \
        When an agent gets stuck, you are asked.",
    after_help = "Examples:\n  \
        ralph init                      write PRD.json and PROMPT.md to start from\n  \
        ralph check PRD.json            is the backlog right?\n  \
        ralph run PRD.json --dry-run    the whole loop with a mock agent; changes nothing\n  \
        ralph run PRD.json              work it off with Claude Code",
    arg_required_else_help = true
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
    #[command(flatten)]
    pub look: LookArgs,
}

/// How it is shown.
#[derive(Clone, Copy, Debug, Args)]
pub struct LookArgs {
    /// When to use colours
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub color: ColorArg,
    /// Show only questions, warnings and the end
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Show the agent's text as it comes
    #[arg(short, long, global = true)]
    pub verbose: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ColorArg {
    /// In a terminal, unless NO_COLOR or CLICOLOR=0 is set
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Work off a backlog
    Run(Box<RunArgs>),
    /// Say all that is wrong or doubtful in a backlog, without running it
    Check(CheckArgs),
    /// Write PRD.json and PROMPT.md to start from
    Init(InitArgs),
    /// Show how the run stands
    Status(StatusArgs),
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
    #[command(hide = true)]
    Supervise(SuperviseArgs),
    #[command(hide = true)]
    MockAgent(MockArgs),
}

#[derive(Clone, Debug, Args)]
#[command(
    long_about = "Work off a backlog.\n\n\
        Each iteration starts a fresh agent process in the work tree, for the next story whose \
        dependencies pass. A completed story becomes one commit. `ralph run` again goes on where \
        it stopped.",
    after_help = "Examples:\n  \
        ralph run                              PRD.json in this folder, with Claude Code\n  \
        ralph run plans/auth.json --branch auth\n  \
        ralph run --story US-003 --once        one iteration on one story\n  \
        ralph run --dry-run                    the whole loop with a mock agent; changes nothing\n  \
        ralph run --agent-command 'my-agent --print'\n  \
        ralph run --on-escalation park         ask nothing now, list the questions at the end\n\n\
        Exit codes: 0 every story passes · 1 ralph could not do its work · 2 wrong usage ·\n\
        3 a limit was reached with work left · 4 a human is needed · 5 you aborted ·\n\
        130, 143, 129 interrupted, terminated, hung up"
)]
pub struct RunArgs {
    /// The backlog
    #[arg(value_name = "PRD", default_value = "PRD.json", value_hint = ValueHint::FilePath)]
    pub prd: PathBuf,
    /// Instructions for every iteration [default: PROMPT.md beside the PRD or at the root, else
    /// built-in]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub prompt: Option<PathBuf>,
    /// Work on this branch, made from HEAD when it does not exist
    #[arg(long, value_name = "NAME")]
    pub branch: Option<String>,
    /// Stop after this many iterations, `none` for no limit [env: MAX_ITERATIONS] [default: 50]
    #[arg(long, value_name = "N")]
    pub max_iterations: Option<String>,
    /// Stop after one iteration
    #[arg(long)]
    pub once: bool,
    /// Work on this story only
    #[arg(long, value_name = "ID")]
    pub story: Option<StoryId>,
    /// What to do when the agent asks for a human: ask (park without a terminal), park, skip the
    /// story, or abort [default: ask]
    #[arg(long, value_name = "WHAT")]
    pub on_escalation: Option<OnEscalationArg>,
    /// When the account's usage limit is reached: wait until it resets, or stop [default: wait]
    #[arg(long, value_name = "WHAT")]
    pub on_limit: Option<OnLimitArg>,
    /// How long a question waits for a key before the story is parked [default: 10m]
    #[arg(long, value_name = "TIME")]
    pub answer_timeout: Option<String>,
    /// Which agent [default: claude]
    #[arg(long, value_name = "NAME")]
    pub agent: Option<AgentArg>,
    /// Run any other program as the agent: it gets the prompt on standard input
    #[arg(long, value_name = "COMMAND", conflicts_with = "agent")]
    pub agent_command: Option<String>,
    /// What the mock agent does, story by story (see examples/)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub mock_script: Option<PathBuf>,
    /// The whole loop with the mock agent in a scratch repository; changes nothing of yours
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OnEscalationArg {
    Ask,
    Park,
    Skip,
    Abort,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OnLimitArg {
    Wait,
    Stop,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AgentArg {
    /// Claude Code
    Claude,
    /// The built-in scripted agent
    Mock,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  ralph check\n  ralph check plans/auth.json --strict")]
pub struct CheckArgs {
    /// The backlog
    #[arg(value_name = "PRD", default_value = "PRD.json", value_hint = ValueHint::FilePath)]
    pub prd: PathBuf,
    /// Doubts fail too
    #[arg(long)]
    pub strict: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  ralph init\n  ralph init plans/")]
pub struct InitArgs {
    /// Where to write them; existing files are never overwritten
    #[arg(value_name = "FOLDER", default_value = ".", value_hint = ValueHint::DirPath)]
    pub folder: PathBuf,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  ralph status\n  ralph status plans/auth.json --json")]
pub struct StatusArgs {
    /// The backlog
    #[arg(value_name = "PRD", default_value = "PRD.json", value_hint = ValueHint::FilePath)]
    pub prd: PathBuf,
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
        ralph completions bash > ~/.local/share/bash-completion/completions/ralph\n  \
        ralph completions zsh > ~/.zfunc/_ralph")]
pub struct CompletionsArgs {
    pub shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub struct SuperviseArgs {
    /// Becomes the program's standard input
    #[arg(long)]
    pub input: PathBuf,
    #[arg(last = true, required = true)]
    pub command: Vec<OsString>,
}

#[derive(Debug, Args)]
pub struct MockArgs {
    #[arg(long)]
    pub script: Option<PathBuf>,
}
