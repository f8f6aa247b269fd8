//! The command line: clap types, and one call of `ops` for each command.

mod commands;
mod run;

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, CommandFactory, Parser, Subcommand};
use clap_complete::Shell;

use crate::mock;
use crate::ops::{self, CommandError};
use crate::ports::Clock;
use crate::process::supervisor;
use crate::ui::{ColorChoice, Printer, UiOptions};

use commands::{
    CheckArgs, CheckpointArgs, CostArgs, DiffArgs, InitArgs, LogArgs, MarkArgs, NudgeArgs,
    PromptArgs, RestoreArgs, StatusArgs, TrustArgs, UndoArgs,
};
use run::RunArgs;

/// Runs one command line and returns its exit code.
pub fn main(words: impl IntoIterator<Item = OsString>) -> u8 {
    let cli = match Cli::try_parse_from(words) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version come this way too, with code 0.
            let _ = error.print();
            return u8::try_from(error.exit_code()).unwrap_or(2);
        }
    };
    let LookArgs { color, quiet, verbose } = cli.look;
    let (terminal, clock) = (io::stderr().is_terminal(), Clock::system());
    let look = UiOptions { color, quiet, verbose, terminal, clock };
    dispatch(cli.command, &look).unwrap_or_else(|error| {
        if !error.is_silent() {
            Printer::stderr(&look).error(&error.to_string());
        }
        error.exit_code()
    })
}

fn dispatch(command: Command, look: &UiOptions) -> Result<u8, CommandError> {
    if command.opens_files() {
        ops::require_descriptors()?;
    }
    let here = Path::new(".");
    match command {
        // These have exit codes of their own.
        Command::Run(args) => return args.call(look),
        Command::Check(args) => return ops::check(&args.prd, args.strict),
        Command::MockAgent(args) => {
            return Ok(mock::play(args.script.as_deref(), args.takes_messages));
        }
        Command::Init(args) => ops::init(&args.folder, &args.gate, look)?,
        Command::Status(args) => {
            ops::watched(&args.prd, look, || ops::status(&args.prd, args.json, &look.clock))?
        }
        Command::Cost(args) => ops::watched(&args.prd, look, || {
            ops::cost(&args.prd, args.by, args.format(), &look.clock)
        })?,
        Command::Nudge(args) => ops::nudge(&args.text.join(" "), &look.clock)?,
        Command::Trust(args) => ops::trust(&args.prd, args.yes, look)?,
        Command::Prompt(args) => ops::watched(&args.prd, look, || {
            ops::prompt(&args.story, &args.prd, args.prompt.as_deref(), args.json, look)
        })?,
        Command::Mark(args) => ops::watched(&args.prd, look, || {
            ops::mark(&args.story, args.mark, &args.prd, &look.clock)
        })?,
        Command::Log(args) => ops::watched(here, look, || ops::log(args.json, &look.clock))?,
        Command::Diff(args) => {
            ops::watched(&args.prd, look, || ops::diff(&args.what, &args.prd, look))?;
        }
        Command::Restore(args) => {
            ops::watched(here, look, || ops::restore(args.number, &args.paths, &look.clock))?
        }
        Command::Checkpoint(args) => {
            ops::watched(here, look, || ops::checkpoint(args.message.as_deref(), &look.clock))?;
        }
        Command::Undo(args) => {
            ops::watched(&args.prd, look, || ops::undo(&args.story, &args.prd, &look.clock))?;
        }
        Command::Completions(args) => completions(args.shell)?,
        Command::Supervise(args) => supervisor::supervise(args.keep)?,
    }
    Ok(0)
}

fn completions(shell: Shell) -> Result<(), CommandError> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "ralph", &mut script);
    ops::print(&String::from_utf8_lossy(&script))
}

/// Run coding agents through a backlog, unattended, until it is done.
///
/// One fresh agent process per iteration, one story at a time, one commit per finished story. When
/// an agent gets stuck, ralph asks you.
#[derive(Debug, Parser)]
#[command(
    name = "ralph",
    version,
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
struct Cli {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    look: LookArgs,
}

/// How output is shown.
#[derive(Clone, Copy, Debug, Args)]
struct LookArgs {
    /// When to use colors
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", display_order = 100)]
    #[arg(value_parser = one_of(COLORS))]
    color: ColorChoice,
    // Accepted everywhere, so that `ralph -q run` works; shown only where they have an effect.
    #[arg(short, long, global = true, hide = true, conflicts_with = "verbose")]
    quiet: bool,
    #[arg(short, long, global = true, hide = true)]
    verbose: bool,
}

const COLORS: &[Choice<ColorChoice>] = &[
    ("auto", "In a terminal; respects NO_COLOR, CLICOLOR and CLICOLOR_FORCE", ColorChoice::Auto),
    ("always", "", ColorChoice::Always),
    ("never", "", ColorChoice::Never),
];

// The help of each command is at its arguments: a comment here would replace the long help.
#[derive(Debug, Subcommand)]
enum Command {
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

impl Command {
    fn opens_files(&self) -> bool {
        !matches!(self, Self::Completions(_) | Self::Supervise(_) | Self::MockAgent(_))
    }
}

/// Print a shell completion script.
///
/// Save it where your shell looks for completion scripts, then start a new shell.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    ralph completions bash > ~/.local/share/bash-completion/completions/ralph\n  \
    ralph completions zsh > ~/.zfunc/_ralph")]
struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

#[derive(Debug, Args)]
struct SuperviseArgs {
    /// Name of a program to leave running; repeatable
    #[arg(long)]
    keep: Vec<String>,
    /// The repository that it works for; read by others, in the table of processes
    #[arg(long)]
    repository: String,
}

#[derive(Debug, Args)]
struct MockArgs {
    #[arg(long)]
    script: Option<PathBuf>,
    /// Read one message per line from standard input, the prompt first
    #[arg(long)]
    takes_messages: bool,
}

/// A value of an argument: its name, its help, and what it stands for.
type Choice<T> = (&'static str, &'static str, T);

fn one_of<T>(choices: &'static [Choice<T>]) -> impl TypedValueParser<Value = T>
where
    T: Copy + Send + Sync,
{
    let values = choices.iter().map(|(name, help, _)| possible_value(name, help));
    PossibleValuesParser::new(values).try_map(|given| {
        let chosen = choices.iter().find(|(name, ..)| *name == given);
        chosen.map(|(.., value)| *value).ok_or("it is none of the values")
    })
}

fn possible_value(name: &'static str, help: &'static str) -> PossibleValue {
    let value = PossibleValue::new(name);
    if help.is_empty() { value } else { value.help(help) }
}
