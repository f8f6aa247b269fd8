//! What can be typed. Nothing past this folder sees clap.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Arg, ArgAction, Args, Parser, Subcommand, ValueEnum, ValueHint};

use super::budget_args::{BudgetArgs, CostArgs};
use super::kept_args::{CheckpointArgs, DiffArgs, LogArgs, RestoreArgs, UndoArgs};
use super::prompt_args::PromptArgs;
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
        ralph run PRD.json              work it off with Claude Code\n  \
        ralph cost                      what it cost, and what is probably still to come\n  \
        ralph prompt US-003             what an agent would get to read now\n  \
        ralph log                       what was kept of the work tree on the way",
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
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", display_order = 100)]
    pub color: ColorArg,
    // Taken anywhere, so that `ralph -q run` works; shown where they do something.
    #[arg(short, long, global = true, hide = true, conflicts_with = "verbose")]
    pub quiet: bool,
    #[arg(short, long, global = true, hide = true)]
    pub verbose: bool,
}

/// The global `-q` and `-v` with their texts, for the help of `run`. The values are `LookArgs`'.
fn loudness() -> [Arg; 2] {
    let flag = |name: &'static str, short, help: &'static str| {
        Arg::new(name).short(short).long(name).action(ArgAction::SetTrue).help(help)
    };
    [
        flag("quiet", 'q', "Show only questions, warnings and the end").conflicts_with("verbose"),
        flag("verbose", 'v', "Show the agent's text as it comes"),
    ]
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ColorArg {
    /// In a terminal, or when CLICOLOR_FORCE is set, unless NO_COLOR or CLICOLOR=0 is
    Auto,
    Always,
    Never,
}

// Each command's text is at its arguments: one here would hide the long one there.
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

#[derive(Clone, Debug, Args)]
#[command(
    about = "Work off a backlog",
    long_about = "Work off a backlog.\n\n\
        Each iteration starts a fresh agent process in the work tree, for the next story whose \
        dependencies pass. A completed story becomes one commit. `ralph run` again goes on where \
        it stopped.",
    after_help = "`ralph run --help` has examples, the environment and the exit codes.",
    after_long_help = "Examples:\n  \
        ralph run                              PRD.json in this folder, with Claude Code\n  \
        ralph run plans/auth.json --branch auth\n  \
        ralph run --story US-003 --once        one iteration on one story\n  \
        ralph run --dry-run                    the whole loop with a mock agent; changes nothing\n  \
        ralph run --agent-command 'my-agent --print'\n  \
        ralph run --on-escalation park         ask nothing now, list the questions at the end\n  \
        ralph run --budget 10 --budget-story 2  at most ten dollars, and two for one story\n\n\
        Environment:\n  \
        MAX_ITERATIONS                as --max-iterations\n  \
        RALPH_MAX_RUN_TIME            as --max-run-time\n  \
        RALPH_MAX_CONSECUTIVE_ERRORS  as --max-consecutive-errors\n  \
        RALPH_MAX_FAILING             as --max-failing\n  \
        RALPH_MAX_AVERAGE_ITERATION   as --max-average-iteration\n  \
        RALPH_COOL_DOWN               the pause when it is not one story that fails [default: 30m]\n  \
        RALPH_BACKOFF                 the unit of the rest after a failure [default: 1s]\n  \
        RALPH_BUDGET                  as --budget; also …_ITERATION, …_STORY, …_DAY and …_USER_DAY\n  \
        RALPH_ANSWER_TIMEOUT          as --answer-timeout\n  \
        STUCK_THRESHOLD               a question after the same error this often [default: 3]\n  \
        VISUAL, EDITOR                where you write longer guidance [default: vi]\n\n\
        Exit codes:\n  \
        0              every story passes or was skipped (with --story: that one)\n  \
        1              ralph could not do its work\n  \
        2              wrong usage\n  \
        3              a limit was reached with work left\n  \
        4              a human is needed\n  \
        5              you aborted\n  \
        130, 143, 129  interrupted, terminated, hung up",
    args = loudness()
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
    /// Work beside uncommitted edits of tracked files: they stay in place and out of the commits
    #[arg(long)]
    pub allow_dirty: bool,
    /// Stop after this many iterations, `none` for no limit [env: MAX_ITERATIONS] [default: 50]
    #[arg(long, value_name = "N")]
    pub max_iterations: Option<String>,
    /// Stop after this much work of agents and gates, `none` for no limit; waits do not count
    /// [env: RALPH_MAX_RUN_TIME] [default: 12h]
    #[arg(long, value_name = "TIME")]
    pub max_run_time: Option<String>,
    /// Stop after this many errors in a row, over all stories, `none` for no limit
    /// [env: RALPH_MAX_CONSECUTIVE_ERRORS] [default: 5]
    #[arg(long, value_name = "N")]
    pub max_consecutive_errors: Option<String>,
    /// Stop when so many of the last ten iterations failed, `none` for no limit
    /// [env: RALPH_MAX_FAILING] [default: 8]
    #[arg(long, value_name = "N")]
    pub max_failing: Option<String>,
    /// Stop when an iteration takes longer than this on average
    /// [env: RALPH_MAX_AVERAGE_ITERATION] [default: none]
    #[arg(long, value_name = "TIME")]
    pub max_average_iteration: Option<String>,
    #[command(flatten)]
    pub budget: BudgetArgs,
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
    /// When the account's usage limit is reached: wait until it resets (Enter tries at once), or
    /// stop [default: wait]
    #[arg(long, value_name = "WHAT")]
    pub on_limit: Option<OnLimitArg>,
    /// How long a question waits for a key before the story is parked
    /// [env: RALPH_ANSWER_TIMEOUT] [default: 10m]
    #[arg(long, value_name = "TIME")]
    pub answer_timeout: Option<String>,
    /// Which agent [default: claude]
    #[arg(long, value_name = "NAME")]
    pub agent: Option<AgentArg>,
    /// Run any other program as the agent: it gets the prompt on standard input
    #[arg(long, value_name = "COMMAND", conflicts_with = "agent")]
    pub agent_command: Option<String>,
    /// What Claude Code may do in this run, over ralph.toml and over what was chosen before
    #[arg(long, value_name = "MODE")]
    pub permission_mode: Option<PermissionModeArg>,
    /// What the mock agent does, story by story (see examples/)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub mock_script: Option<PathBuf>,
    /// Accept the commands and agent settings of the repository's files without being asked
    #[arg(long)]
    pub trust: bool,
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
#[value(rename_all = "camelCase")]
pub enum PermissionModeArg {
    /// Edit, move and delete files, run harmless commands, the gates and `allowed_tools`
    AcceptEdits,
    /// Claude Code judges each step itself
    Auto,
    /// Edit files, run harmless commands, the gates and `allowed_tools`, nothing more
    DontAsk,
    /// Anything: only in a sandbox (container or VM)
    BypassPermissions,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AgentArg {
    /// Claude Code
    Claude,
    /// The built-in scripted agent
    Mock,
}

#[derive(Debug, Args)]
#[command(
    about = "Say all that is wrong or doubtful in a backlog, without running it",
    long_about = "Say all that is wrong or doubtful in a backlog, without running it.\n\n\
        Every problem is told at once, with its line. An error would keep `ralph run` from \
        starting: exit code 1. A doubt would not, unless `--strict` is given.",
    after_help = "Examples:\n  ralph check\n  ralph check plans/auth.json --strict"
)]
pub struct CheckArgs {
    /// The backlog
    #[arg(value_name = "PRD", default_value = "PRD.json", value_hint = ValueHint::FilePath)]
    pub prd: PathBuf,
    /// Doubts fail too
    #[arg(long)]
    pub strict: bool,
}

#[derive(Debug, Args)]
#[command(
    about = "Write PRD.json and PROMPT.md to start from",
    long_about = "Write PRD.json and PROMPT.md to start from.\n\n\
        PRD.json is a backlog with a few stories, PROMPT.md the instructions that every \
        iteration begins with. Make them yours, then `ralph run --dry-run`.\n\n\
        In a terminal, the tests that the project seems to have are offered as gates: commands that \
        have to pass before a story is done. What you accept, or name with --gate, is written to \
        ralph.toml and needs no `ralph trust`.",
    after_help = "Examples:\n  ralph init\n  ralph init plans/\n  \
        ralph init --gate 'cargo test' --gate 'cargo clippy -- -D warnings'"
)]
pub struct InitArgs {
    /// Where to write them; existing files are never overwritten
    #[arg(value_name = "FOLDER", default_value = ".", value_hint = ValueHint::DirPath)]
    pub folder: PathBuf,
    /// A command that has to pass before a story is done; more than one, in their order
    #[arg(long, value_name = "COMMAND")]
    pub gate: Vec<String>,
}

#[derive(Debug, Args)]
#[command(
    about = "Show how the run stands",
    long_about = "Show how the run stands.\n\n\
        Each story with what it is now: passes, skipped, running, asks, parked or open; the \
        questions that wait for you; how long was worked; errors in a row; and until when the run \
        waits, for the service or because its breaker is open. Changes nothing, and works while a \
        run goes on.",
    after_help = "Examples:\n  ralph status\n  ralph status plans/auth.json --json"
)]
pub struct StatusArgs {
    /// The backlog
    #[arg(value_name = "PRD", default_value = "PRD.json", value_hint = ValueHint::FilePath)]
    pub prd: PathBuf,
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(
    about = "Set a story's mark yourself",
    long_about = "Set a story's mark yourself.\n\n\
        An agent's edits of `passes` and `skipped` do not count; this is your way to set them. \
        Only the bytes of those values change in the file. While a run works on the backlog, it \
        sets the mark as soon as no agent works.",
    after_help = "Examples:\n  \
        ralph mark US-003 pass       it is done\n  \
        ralph mark US-003 fail       it is not done after all\n  \
        ralph mark US-003 skip       leave it out\n  \
        ralph mark US-003 reopen     neither passed nor skipped: to be worked on\n  \
        ralph mark US-003 pass plans/auth.json"
)]
pub struct MarkArgs {
    /// The story
    #[arg(value_name = "STORY")]
    pub story: StoryId,
    /// What it is
    #[arg(value_name = "MARK")]
    pub mark: MarkArg,
    /// The backlog
    #[arg(value_name = "PRD", default_value = "PRD.json", value_hint = ValueHint::FilePath)]
    pub prd: PathBuf,
}

#[derive(Debug, Args)]
#[command(
    about = "Accept the commands that this repository's files name",
    long_about = "Accept the commands that this repository's files name.\n\n\
        Gates, agent settings in ralph.toml, Claude Code's hooks and .mcp.json of the repository \
        count only after you saw and accepted that exact text. Here you see what is new and are \
        asked; what was accepted is kept outside the work tree.",
    after_help = "Examples:\n  ralph trust\n  ralph trust plans/auth.json --yes"
)]
pub struct TrustArgs {
    /// The backlog
    #[arg(value_name = "PRD", default_value = "PRD.json", value_hint = ValueHint::FilePath)]
    pub prd: PathBuf,
    /// Accept without being asked
    #[arg(long)]
    pub yes: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MarkArg {
    /// Done
    Pass,
    /// Not done
    Fail,
    /// Left out
    Skip,
    /// Neither done nor left out
    Reopen,
}

#[derive(Debug, Args)]
#[command(
    about = "Say something to the agent that works right now",
    long_about = "Say something to the agent that works right now.\n\n\
        Claude Code takes it up between two steps of its work. An agent that takes no messages goes \
        on as it is, and the next one for the story gets it with its prompt. When a run works here \
        and no agent does, the next agent gets it.",
    after_help = "Examples:\n  \
        ralph nudge 'leave the CSS alone, the tests come first'\n\n\
        Exit codes:\n  \
        0  the run has it\n  \
        1  no run works in this work tree\n  \
        2  wrong usage"
)]
pub struct NudgeArgs {
    /// What to say
    #[arg(value_name = "TEXT", required = true)]
    pub text: Vec<String>,
}

#[derive(Debug, Args)]
#[command(
    about = "Print a completion script for a shell",
    long_about = "Print a completion script for a shell.\n\n\
        It goes where the shell looks for such scripts; a new shell then knows the commands and \
        their options.",
    after_help = "Examples:\n  \
        ralph completions bash > ~/.local/share/bash-completion/completions/ralph\n  \
        ralph completions zsh > ~/.zfunc/_ralph"
)]
pub struct CompletionsArgs {
    /// Which shell
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
    #[arg(last = true, required = true)]
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
