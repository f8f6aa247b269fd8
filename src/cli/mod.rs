//! One file per command: parse here, act elsewhere.

mod accounts;
mod applied;
mod args;
mod asking;
mod budget_args;
mod check;
mod cost;
mod damaged;
mod diff;
mod dry_run;
mod error;
mod gates;
mod init;
mod kept_args;
mod log;
mod mark;
mod nudge;
mod permissions;
mod preflight;
mod prompt;
mod prompt_args;
mod restore;
mod run;
mod session;
mod status;
mod trust;
mod undo;

use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};

use clap::{CommandFactory, Parser};

use crate::mock;
use crate::process::supervisor::{self, Task};
use crate::ui::{self, ColorChoice, Printer, UiOptions};

use args::{Cli, ColorArg, Command, CompletionsArgs, LookArgs, MockArgs, SuperviseArgs};
use error::CliError;

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
    let look = look(cli.look);
    match act(cli.command, &look) {
        Ok(code) => code,
        Err(CliError::Pipe) => 0,
        Err(error) => {
            let mut printer = Printer::stderr(look.color, look.terminal);
            ui::error(&mut printer, &error.to_string());
            error.exit_code()
        }
    }
}

fn act(command: Command, look: &UiOptions) -> Result<u8, CliError> {
    match command {
        Command::Run(args) if args.dry_run => dry_run::run(&args, look),
        Command::Run(args) => run::run(*args, look),
        Command::Check(args) => check::check(&args),
        Command::Init(args) => init::init(&args, look),
        Command::Status(args) => status::status(&args),
        Command::Cost(args) => cost::cost(&args),
        Command::Nudge(args) => nudge::nudge(&args),
        Command::Trust(args) => trust::trust(&args, look),
        Command::Prompt(args) => prompt::prompt(&args, look),
        Command::Mark(args) => mark::mark(&args),
        Command::Log(args) => log::log(&args),
        Command::Diff(args) => diff::diff(&args, look),
        Command::Restore(args) => restore::restore(&args),
        Command::Checkpoint(args) => restore::checkpoint(&args),
        Command::Undo(args) => undo::undo(&args),
        Command::Completions(args) => completions(&args),
        Command::Supervise(args) => supervise(args),
        Command::MockAgent(args) => {
            let MockArgs { script, takes_messages } = args;
            Ok(mock::play(&mock::Options { script, takes_messages }))
        }
    }
}

fn look(args: LookArgs) -> UiOptions {
    UiOptions {
        color: match args.color {
            ColorArg::Auto => ColorChoice::Auto,
            ColorArg::Always => ColorChoice::Always,
            ColorArg::Never => ColorChoice::Never,
        },
        quiet: args.quiet,
        verbose: args.verbose,
        terminal: io::stderr().is_terminal(),
    }
}

/// Data goes to standard output; a reader that has gone is no error.
fn print(text: &str) -> Result<(), CliError> {
    print_bytes(text.as_bytes())
}

fn print_bytes(bytes: &[u8]) -> Result<(), CliError> {
    let mut out = io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(CliError::Pipe),
        result => Ok(result?),
    }
}

fn completions(args: &CompletionsArgs) -> Result<u8, CliError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "ralph", &mut script);
    print(&String::from_utf8_lossy(&script))?;
    Ok(0)
}

fn supervise(args: SuperviseArgs) -> Result<u8, CliError> {
    let mut words = args.command.into_iter();
    let task = Task {
        program: words.next().unwrap_or_default(),
        args: words.collect(),
        input: args.input,
        keep: args.keep,
    };
    supervisor::supervise(&task)?;
    Ok(0)
}
