//! The command line: clap types, and one call of `ops` for each command.

mod args;
mod commands;
mod run;

use std::ffi::OsString;
use std::io;
use std::io::IsTerminal;
use std::path::PathBuf;

use args::{Cli, ColorArg, Command, LookArgs, SuperviseArgs};
use clap::{CommandFactory, Parser};
use clap_complete::Shell;

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
    match dispatch(cli.command, &look) {
        Ok(code) => code,
        Err(error) => {
            if !error.is_silent() {
                let mut printer = Printer::stderr(look.color, look.terminal);
                printer.error(&error.to_string());
            }
            error.exit_code()
        }
    }
}

fn dispatch(command: Command, look: &UiOptions) -> Result<u8, CommandError> {
    match command {
        // These have exit codes of their own.
        Command::Run(args) => return args.call(look),
        Command::Check(args) => return ops::check(&args.prd, args.strict),
        Command::MockAgent(args) => {
            return Ok(mock::play(args.script.as_deref(), args.takes_messages));
        }
        Command::Init(args) => ops::init(&args.folder, &args.gate, look)?,
        Command::Status(args) => ops::status(&args.prd, args.json)?,
        Command::Cost(args) => ops::cost(&args.prd, args.by.map(Into::into), args.format())?,
        Command::Nudge(args) => ops::nudge(&args.text.join(" "))?,
        Command::Trust(args) => ops::trust(&args.prd, args.yes, look)?,
        Command::Prompt(args) => {
            ops::prompt(&args.story, &args.prd, args.prompt.as_deref(), args.json, look)?;
        }
        Command::Mark(args) => ops::mark(&args.story, args.mark.into(), &args.prd)?,
        Command::Log(args) => ops::log(args.json)?,
        Command::Diff(args) => ops::diff(&args.what, &args.prd, look)?,
        Command::Restore(args) => ops::restore(args.number, &args.paths)?,
        Command::Checkpoint(args) => ops::checkpoint(args.message.as_deref())?,
        Command::Undo(args) => ops::undo(&args.story, &args.prd)?,
        Command::Completions(args) => completions(args.shell)?,
        Command::Supervise(args) => supervise(args)?,
    }
    Ok(0)
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

fn completions(shell: Shell) -> Result<(), CommandError> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "ralph", &mut script);
    ops::print(&String::from_utf8_lossy(&script))
}

fn supervise(args: SuperviseArgs) -> Result<(), CommandError> {
    let mut words = args.command.into_iter();
    let spec = words.next().map(|program| Spec {
        program,
        args: words.collect(),
        dir: PathBuf::from("."),
        env: Vec::new(),
        input: args.input,
    });
    Ok(supervisor::supervise(spec, args.keep)?)
}
