//! The command line: clap types, and one call of `ops` for each command.

mod args;
mod backlog;
mod history;
mod run;

use std::ffi::OsString;
use std::io;
use std::io::IsTerminal;
use std::path::PathBuf;

use args::{Cli, ColorArg, Command, CompletionsArgs, LookArgs, SuperviseArgs};
use clap::{CommandFactory, Parser};

use crate::mock;
use crate::ops;
use crate::ops::CommandError;
use crate::process::Spec;
use crate::process::supervisor;
use crate::ui::{ColorChoice, Printer, UiOptions};

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
        Err(CommandError::Pipe) => 0,
        Err(error) => {
            let mut printer = Printer::stderr(look.color, look.terminal);
            printer.error(&error.to_string());
            error.exit_code()
        }
    }
}

fn act(command: Command, look: &UiOptions) -> Result<u8, CommandError> {
    match command {
        Command::Run(args) => args.call(look),
        Command::Check(args) => args.call(),
        Command::Init(args) => args.call(look),
        Command::Status(args) => args.call(),
        Command::Cost(args) => args.call(),
        Command::Nudge(args) => args.call(),
        Command::Trust(args) => args.call(look),
        Command::Prompt(args) => args.call(look),
        Command::Mark(args) => args.call(),
        Command::Log(args) => args.call(),
        Command::Diff(args) => args.call(look),
        Command::Restore(args) => args.call(),
        Command::Checkpoint(args) => args.call(),
        Command::Undo(args) => args.call(),
        Command::Completions(args) => completions(&args),
        Command::Supervise(args) => supervise(args),
        Command::MockAgent(args) => Ok(mock::play(args.script.as_deref(), args.takes_messages)),
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
        clock: ops::system_clock(),
    }
}

fn completions(args: &CompletionsArgs) -> Result<u8, CommandError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "ralph", &mut script);
    ops::print(&String::from_utf8_lossy(&script))?;
    Ok(0)
}

fn supervise(args: SuperviseArgs) -> Result<u8, CommandError> {
    let mut words = args.command.into_iter();
    let spec = words.next().map(|program| Spec {
        program,
        args: words.collect(),
        dir: PathBuf::from("."),
        env: Vec::new(),
        input: args.input,
    });
    supervisor::supervise(spec, &args.keep)?;
    Ok(0)
}
