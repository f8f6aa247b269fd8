//! `ralph run`.

use std::fmt::Write;
use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, ValueParser};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, ValueHint};

use crate::model::StoryId;
use crate::ops::{self, CommandError};
use crate::settings::{FlagValues, Flags, RunSettings, Setting};
use crate::ui::UiOptions;

use super::possible_value;

/// Work through a backlog.
///
/// Each iteration starts a fresh agent process in the work tree, for the next story whose
/// dependencies pass. A finished story becomes one commit. If the last run was interrupted,
/// `ralph run` continues it.
#[derive(Clone, Debug, Args)]
#[command(
    after_help = "`ralph run --help` shows examples, the environment and the exit codes.",
    after_long_help = after_long_help(),
    args = verbosity()
)]
pub struct RunArgs {
    /// The backlog
    #[arg(value_name = "PRD", default_value = "PRD.json", value_hint = ValueHint::FilePath)]
    pub prd: PathBuf,
    /// Stop after one iteration
    #[arg(long)]
    pub once: bool,
    /// Work on this story only
    #[arg(long, value_name = "ID")]
    pub story: Option<StoryId>,
    /// Try the whole loop with a mock agent in a scratch repository
    #[arg(long)]
    pub dry_run: bool,
    /// Approve the commands and agent settings of the repository without asking
    #[arg(long)]
    pub trust: bool,
    /// Script for the mock agent (see examples/)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub mock_script: Option<PathBuf>,
    #[command(flatten)]
    pub settings: SettingArgs,
}

impl RunArgs {
    pub fn call(self, look: &UiOptions) -> Result<u8, CommandError> {
        let script = self.mock_script.map(|path| std::path::absolute(&path).unwrap_or(path));
        let flags = Flags {
            values: self.settings.0,
            mock_script: script,
            once: self.once,
            story: self.story,
        };
        if self.dry_run {
            return ops::dry_run(&self.prd, &flags, look);
        }
        ops::run(&self.prd, &flags, self.trust, look)
    }
}

/// The global `-q` and `-v` with their texts, for the help of `run`. The values are `LookArgs`'.
fn verbosity() -> [Arg; 2] {
    let flag = |name: &'static str, short, help: &'static str| {
        Arg::new(name).short(short).long(name).action(ArgAction::SetTrue).help(help)
    };
    [
        flag("quiet", 'q', "Show only questions, warnings and the result")
            .conflicts_with("verbose"),
        flag("verbose", 'v', "Show the agent's text while it runs"),
    ]
}

/// The flags of all declared settings.
#[derive(Clone, Debug)]
pub struct SettingArgs(FlagValues);

impl Args for SettingArgs {
    fn augment_args(command: Command) -> Command {
        command.args(RunSettings::declared().iter().filter_map(arg))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for SettingArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let declared = RunSettings::declared().into_iter().filter(|setting| setting.flag.is_some());
        let value = |setting: Setting| {
            if setting.takes.is_empty() {
                return matches.get_flag(setting.key).then(|| (setting.key, "true".into()));
            }
            let value = matches.get_raw(setting.key)?.next_back()?;
            Some((setting.key, value.to_owned()))
        };
        Ok(Self(declared.filter_map(value).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// None if the setting has no flag.
fn arg(setting: &Setting) -> Option<Arg> {
    let can_be_none = setting.takes_none() && setting.default != "none";
    let none = if can_be_none { " (or `none`)" } else { "" };
    let help = format!("{}{none}", setting.help);
    let env = setting.env.map(|name| format!("[env: {name}]"));
    let default = Some(setting.shown_default()).filter(|text| !matches!(*text, "" | "false"));
    let default = default.map(|text| format!("[default: {text}]"));
    let notes = env.into_iter().chain(default).collect::<Vec<_>>().join(" ");
    let arg = Arg::new(setting.key).long(setting.flag?).help_heading(setting.group);
    let arg = arg.help(format!("{help} {notes}").trim_end().to_owned());
    let arg = arg.long_help(format!("{help}\n\n{notes}").trim_end().to_owned());
    if setting.takes.is_empty() {
        return Some(arg.action(ArgAction::SetTrue));
    }
    let parser = match setting.choices.as_slice() {
        [] => ValueParser::os_string(),
        choices => {
            let values = choices.iter().map(|(name, help)| possible_value(name, help));
            PossibleValuesParser::new(values).into()
        }
    };
    let hint = if setting.takes == "FILE" { ValueHint::FilePath } else { ValueHint::Unknown };
    let arg = arg.value_name(setting.takes).value_parser(parser).value_hint(hint);
    // They are refused with the setting's own words.
    Some(arg.allow_negative_numbers(true))
}

const EXAMPLES: &str = "Examples:\n  \
    ralph run                               PRD.json, with Claude Code\n  \
    ralph run plans/auth.json --branch auth\n  \
    ralph run --story US-003 --once         one iteration on one story\n  \
    ralph run --dry-run                     the whole loop with a mock agent\n  \
    ralph run --agent-command 'my-agent --print'\n  \
    ralph run --on-escalation park          collect questions instead of asking\n  \
    ralph run --budget 10 --budget-story 2  spend at most $10, and $2 on one story\n\n\
    Environment:\n";

const EXIT_CODES: &str = "\n\
    Exit codes:\n  \
    0              every story passes or was skipped (with --story: that one)\n  \
    1              ralph could not run\n  \
    2              wrong usage\n  \
    3              a limit was reached with work left\n  \
    4              you are needed\n  \
    5              you aborted\n  \
    130, 143, 129  interrupted, terminated, hung up";

fn after_long_help() -> String {
    let declared = RunSettings::declared();
    let named = declared.iter().filter_map(|setting| Some((setting.env?, setting)));
    let mut text = EXAMPLES.to_owned();
    for (name, setting) in named {
        let about = match setting.flag {
            Some(flag) => format!("same as --{flag}"),
            None => format!("same as `{}` in ralph.toml", setting.key),
        };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "  {name:<29} {about}");
    }
    text.push_str("  VISUAL, EDITOR                editor for longer guidance [default: vi]\n");
    text + EXIT_CODES
}
