//! Commands about a backlog and its run.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

use crate::model::StoryId;
use crate::ops;
use crate::ops::{CommandError, CostFormat, CostGrouping, CostQuery, PromptQuery, StoryMark};
use crate::ui::UiOptions;

#[derive(Debug, Args)]
#[command(
    about = "Validate a backlog without running it",
    long_about = "Validate a backlog without running it.\n\n\
        Reports every error and warning at once, with line and column. The exit code is 1 if there \
        are errors, or, with `--strict`, warnings.",
    after_help = "Examples:\n  ralph check\n  ralph check plans/auth.json --strict"
)]
pub struct CheckArgs {
    /// The backlog
    #[arg(value_name = "PRD", default_value = "PRD.json", value_hint = ValueHint::FilePath)]
    pub prd: PathBuf,
    /// Treat warnings as errors
    #[arg(long)]
    pub strict: bool,
}

impl CheckArgs {
    pub fn call(&self) -> Result<u8, CommandError> {
        ops::check(&self.prd, self.strict)
    }
}

#[derive(Debug, Args)]
#[command(
    about = "Create a sample PRD.json and PROMPT.md",
    long_about = "Create a sample PRD.json and PROMPT.md.\n\n\
        PRD.json is a backlog with a few stories; PROMPT.md has the instructions for every \
        iteration. Edit both, then try `ralph run --dry-run`.\n\n\
        In a terminal, ralph offers the project's test commands as gates: commands that must pass \
        before a story is done. Gates that you accept, or pass with --gate, are written to \
        ralph.toml and are trusted.",
    after_help = "Examples:\n  ralph init\n  ralph init plans/\n  \
        ralph init --gate 'cargo test' --gate 'cargo clippy -- -D warnings'"
)]
pub struct InitArgs {
    /// Where to create them; existing files are never overwritten
    #[arg(value_name = "FOLDER", default_value = ".", value_hint = ValueHint::DirPath)]
    pub folder: PathBuf,
    /// A command that must pass before a story is done; repeatable
    #[arg(long, value_name = "COMMAND")]
    pub gate: Vec<String>,
}

impl InitArgs {
    pub fn call(&self, look: &UiOptions) -> Result<u8, CommandError> {
        ops::init(&self.folder, &self.gate, look)
    }
}

#[derive(Debug, Args)]
#[command(
    about = "Show the state of the run",
    long_about = "Show the state of the run.\n\n\
        Lists the stories with their state (passes, skipped, running, asks, parked or open), open \
        questions, working time, consecutive errors and waits. Changes nothing; works during a \
        run.",
    after_help = "Examples:\n  ralph status\n  ralph status plans/auth.json --json"
)]
pub struct StatusArgs {
    /// The backlog
    #[arg(value_name = "PRD", default_value = "PRD.json", value_hint = ValueHint::FilePath)]
    pub prd: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

impl StatusArgs {
    pub fn call(&self) -> Result<u8, CommandError> {
        ops::status(&self.prd, self.json)
    }
}

#[derive(Debug, Args)]
#[command(
    about = "Show costs",
    long_about = "Show costs.\n\n\
        By default those of the backlog's latest run: cost, tokens, turns, tool calls, efficiency, \
        forecast and stories. `--by` covers all runs of this repository. Costs are reported by the \
        agents; for an agent that was killed first, ralph counts the larger of what it saw and the \
        run's median, and marks the row with `~`. Changes nothing; works during a run.",
    after_help = "Examples:\n  \
        ralph cost\n  \
        ralph cost plans/auth.json --json\n  \
        ralph cost --by day\n  \
        ralph cost --by story --csv > cost.csv"
)]
pub struct CostArgs {
    /// The backlog
    #[arg(value_name = "PRD", default_value = "PRD.json", value_hint = ValueHint::FilePath)]
    pub prd: PathBuf,
    /// Group all runs of the repository
    #[arg(long, value_name = "WHAT")]
    pub by: Option<CostByArg>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Print CSV with a header
    #[arg(long, conflicts_with = "json")]
    pub csv: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CostByArg {
    Story,
    /// In the local time zone
    Day,
    Model,
}

impl CostArgs {
    pub fn call(&self) -> Result<u8, CommandError> {
        let format = match (self.json, self.csv) {
            (true, _) => CostFormat::Json,
            (false, true) => CostFormat::Csv,
            (false, false) => CostFormat::Text,
        };
        let by = self.by.map(|by| match by {
            CostByArg::Story => CostGrouping::Story,
            CostByArg::Day => CostGrouping::Day,
            CostByArg::Model => CostGrouping::Model,
        });
        ops::cost(&CostQuery { prd: self.prd.clone(), by, format })
    }
}

#[derive(Debug, Args)]
#[command(
    about = "Print the next prompt for a story",
    long_about = "Print the next prompt for a story.\n\n\
        This is what the next attempt would get: instructions, story, the state of the run, what \
        earlier agents left, your guidance, and how to finish. The prompt goes to standard output, \
        the size of each section to standard error. Changes nothing; works without a run.",
    after_help = "Examples:\n  \
        ralph prompt US-003\n  \
        ralph prompt US-003 plans/auth.json > prompt.md\n  \
        ralph prompt US-003 --json | jq .layers"
)]
pub struct PromptArgs {
    /// The story
    #[arg(value_name = "STORY")]
    pub story: StoryId,
    /// The backlog
    #[arg(value_name = "PRD", default_value = "PRD.json", value_hint = ValueHint::FilePath)]
    pub prd: PathBuf,
    /// Use these instructions, as with `ralph run --prompt`
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub prompt: Option<PathBuf>,
    /// Print text and sizes as JSON
    #[arg(long)]
    pub json: bool,
}

impl PromptArgs {
    pub fn call(&self, look: &UiOptions) -> Result<u8, CommandError> {
        let query = PromptQuery {
            story: self.story.clone(),
            prd: self.prd.clone(),
            prompt: self.prompt.clone(),
            json: self.json,
        };
        ops::prompt(&query, look)
    }
}

#[derive(Debug, Args)]
#[command(
    about = "Mark a story as passed, failed, skipped or open",
    long_about = "Mark a story as passed, failed, skipped or open.\n\n\
        Sets `passes` and `skipped` in the backlog and changes nothing else in the file. Agents \
        cannot do this: ralph reverts their edits of these values. During a run, the mark is set as \
        soon as no agent is running.",
    after_help = "Examples:\n  \
        ralph mark US-003 pass       done\n  \
        ralph mark US-003 fail       not done after all\n  \
        ralph mark US-003 skip       do not work on it\n  \
        ralph mark US-003 reopen     work on it (again)\n  \
        ralph mark US-003 pass plans/auth.json"
)]
pub struct MarkArgs {
    /// The story
    #[arg(value_name = "STORY")]
    pub story: StoryId,
    /// The new state
    #[arg(value_name = "MARK")]
    pub mark: MarkArg,
    /// The backlog
    #[arg(value_name = "PRD", default_value = "PRD.json", value_hint = ValueHint::FilePath)]
    pub prd: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MarkArg {
    /// Done
    Pass,
    /// Not done
    Fail,
    /// Skipped
    Skip,
    /// Neither done nor skipped
    Reopen,
}

impl MarkArgs {
    pub fn call(&self) -> Result<u8, CommandError> {
        let mark = match self.mark {
            MarkArg::Pass => StoryMark::Pass,
            MarkArg::Fail => StoryMark::Fail,
            MarkArg::Skip => StoryMark::Skip,
            MarkArg::Reopen => StoryMark::Reopen,
        };
        ops::mark(&self.story, mark, &self.prd)
    }
}

#[derive(Debug, Args)]
#[command(
    about = "Send a message to the running agent",
    long_about = "Send a message to the running agent.\n\n\
        Claude Code reads it between two steps. For agents that take no messages, and while no \
        agent is running, it becomes part of the next prompt.",
    after_help = "Examples:\n  \
        ralph nudge 'leave the CSS alone, fix the tests first'\n\n\
        Exit codes:\n  \
        0  sent\n  \
        1  no run is active in this work tree\n  \
        2  wrong usage"
)]
pub struct NudgeArgs {
    /// The message
    #[arg(value_name = "TEXT", required = true)]
    pub text: Vec<String>,
}

impl NudgeArgs {
    pub fn call(&self) -> Result<u8, CommandError> {
        ops::nudge(&self.text.join(" "))
    }
}

#[derive(Debug, Args)]
#[command(
    about = "Approve the commands that this repository configures",
    long_about = "Approve the commands that this repository configures.\n\n\
        Gates, agent settings in ralph.toml, Claude Code's hooks and .mcp.json take effect only \
        after you have approved their exact text. Shows what is new and asks. Approvals are stored \
        outside the work tree.",
    after_help = "Examples:\n  ralph trust\n  ralph trust plans/auth.json --yes"
)]
pub struct TrustArgs {
    /// The backlog
    #[arg(value_name = "PRD", default_value = "PRD.json", value_hint = ValueHint::FilePath)]
    pub prd: PathBuf,
    /// Approve without asking
    #[arg(long)]
    pub yes: bool,
}

impl TrustArgs {
    pub fn call(&self, look: &UiOptions) -> Result<u8, CommandError> {
        ops::trust(&self.prd, self.yes, look)
    }
}
