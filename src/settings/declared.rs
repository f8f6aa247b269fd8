//! Every setting, declared where it is read.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::agent::AgentSettings;
use crate::decide::staging::{Pattern, Rules};
use crate::decide::stuck::StuckPolicy;
use crate::model::{
    Budgets, CompletionMarkers, Gate, IgnoredLimits, Limits, MemoryLimits, OnEscalation, OnLimit,
    Policy, Recheck, StoryId, Timeouts,
};

use super::agent::{self, AgentChoice};
use super::file::read_file;
use super::kind::{
    COUNT, DOLLAR_LIMIT, ENTRY_LENGTH, FILE_COUNT, LIMIT, LOG_SIZE, MARKER, MEMORY_COUNT,
    ON_ESCALATION, ON_LIMIT, PATH, PATTERN, PROGRAM_NAME, PROMISE, RECHECK, SIZE_LIMIT, SWITCH,
    TEXT, TIME, TIME_LIMIT, TOTAL_LENGTH, UP_TO_TEN,
};
use super::{EnvVars, FlagValues, Origin, Read, Setting, SettingsReader, setting, settings};

/// The command line.
#[derive(Clone, Debug, Default)]
pub struct Flags {
    /// Of settings, by key.
    pub values: FlagValues,
    pub mock_script: Option<PathBuf>,
    pub once: bool,
    pub story: Option<StoryId>,
}

settings! {
    /// Everything that is set before a run begins. None disables a limit.
    struct RunSettings(from, flags) {
        "Run" {
            /// Instructions for every iteration
            prompt: Option<PathBuf> = from.optional(&PATH, setting("prompt").flag("prompt", "FILE")
                .by_default("PROMPT.md next to the PRD or at the root, else built in"))?;
            /// Work on this branch; create it from HEAD if it does not exist
            branch: Option<String> = from.optional(&TEXT,
                setting("branch").flag("branch", "NAME").by_default("the current one"))?;
            /// Run despite uncommitted edits; they stay in place and out of the commits
            allow_dirty: bool = from.value(&SWITCH,
                setting("allow_dirty").flag("allow-dirty", "").default("false"))?;
            // Not settings: only the command line has them.
            once: bool = flags.once;
            story: Option<StoryId> = flags.story.clone();
        }
        "Limits" {
            /// Stop after this many iterations
            max_iterations: Option<u32> = from.value(&LIMIT, setting("max_iterations")
                .flag("max-iterations", "N").env("MAX_ITERATIONS").default("50"))?;
            limits: Limits = limits(from)?;
        }
        "Budget" {
            budgets: Budgets = budgets(from)?;
        }
        "Questions and waits" {
            /// What to do when a story needs you: `ask` (`park` without a terminal), `park` the
            /// question for the next run, `skip` the story, or `abort` the run
            on_escalation: OnEscalation = from.value(&ON_ESCALATION,
                setting("on_escalation").flag("on-escalation", "WHAT").default("ask"))?;
            /// How long a question waits for a key before it is parked
            answer_timeout: Duration = from.value(&TIME, setting("answer_timeout")
                .flag("answer-timeout", "TIME").env("RALPH_ANSWER_TIMEOUT").default("10m"))?;
            /// When the account's usage limit is reached: `wait` until it resets (Enter retries
            /// now), or `stop`
            on_limit: OnLimit = from.value(&ON_LIMIT,
                setting("on_limit").flag("on-limit", "WHAT").default("wait"))?;
        }
        "Agent" {
            agent_settings: AgentSettings = agent::settings(from)?;
            agent: AgentChoice =
                agent::choice(from, &agent_settings, flags.mock_script.as_deref())?;
        }
        "Timeouts" {
            timeouts: Timeouts = timeouts(from)?;
            stuck: StuckPolicy = stuck(from)?;
        }
        "Stories without progress" {
            /// Ask about a story after the same error this many times
            stuck_threshold: NonZeroU32 = from.value(&COUNT,
                setting("stuck_threshold").env("STUCK_THRESHOLD").default("3"))?;
            /// Ask after this many attempts at one story; a story can have its own limit
            max_attempts: NonZeroU32 = from.value(&COUNT, setting("max_attempts").default("10"))?;
            /// Start a story over after this many failed attempts in a row; `none` disables it
            fresh_start_after: Option<u32> =
                from.value(&LIMIT, setting("fresh_start_after").default("3"))?;
        }
        "Gates and completion" {
            /// Gates: commands that must pass before a story is done
            verify: Vec<Gate> = from.gates(setting("verify").by_default("no gates"));
            /// Whether the gates of closed stories run again with each claim: `all` or `none`
            recheck: Recheck = from.value(&RECHECK, setting("recheck").default("all"))?;
            /// Patterns of files that gates may change: what they write there is the story's work
            keep: Vec<String> = from.list(&TEXT, setting("keep").by_default("nothing"));
            /// Patterns of files that an agent may change only with your approval
            protect: Vec<String> = from.list(&TEXT, setting("protect").by_default("nothing"));
            markers: CompletionMarkers = markers(from)?;
            /// Without gates, require a second attempt to confirm a claim
            require_two_claims: bool =
                from.value(&SWITCH, setting("require_two_claims").default("false"))?;
        }
        "Commits" {
            staging: Rules = staging(from)?;
        }
        "Memory" {
            memory: MemoryLimits = memory(from)?;
        }
        "Processes, logs and snapshots" {
            /// Programs to leave running when an agent's processes are ended
            keep_processes: Vec<String> =
                from.list(&PROGRAM_NAME, setting("keep_processes").by_default("none"));
            /// Largest log of an iteration, and of its gates; a longer one loses its middle
            log_limit: u64 = from.value(&LOG_SIZE, setting("log_limit").default("256MB"))?;
            /// Stop when less disk space than this is free; `none` disables it
            min_free_disk: Option<u64> =
                from.value(&SIZE_LIMIT, setting("min_free_disk").default("1GB"))?;
            ignored: IgnoredLimits = ignored(from)?;
            /// Keep this many snapshots, and up to 1,000 of the last two runs
            keep_snapshots: Option<u32> =
                from.value(&LIMIT, setting("keep_snapshots").default("500"))?;
            /// Keep snapshots for this many days
            keep_days: Option<u32> = from.value(&LIMIT, setting("keep_days").default("30"))?;
        }
    }
}

settings! {
    fn limits(from) -> Limits {
        /// Stop after agents and gates have worked this long
        max_run_time = from.value(&TIME_LIMIT, setting("max_run_time")
            .flag("max-run-time", "TIME").env("RALPH_MAX_RUN_TIME").default("12h"))?;
        /// Stop after this many errors in a row
        max_consecutive_errors = from.value(&LIMIT, setting("max_consecutive_errors")
            .flag("max-consecutive-errors", "N").env("RALPH_MAX_CONSECUTIVE_ERRORS").default("5"))?;
        /// Stop when this many of the last ten iterations failed
        max_failing = from.value(&UP_TO_TEN, setting("max_failing")
            .flag("max-failing", "N").env("RALPH_MAX_FAILING").default("8"))?;
        /// Stop when iterations take longer than this on average
        max_average_iteration = from.value(&TIME_LIMIT, setting("max_average_iteration")
            .flag("max-average-iteration", "TIME").env("RALPH_MAX_AVERAGE_ITERATION")
            .default("none"))?;
        /// How long the circuit breaker pauses the run; `none` disables it
        cool_down = from.value(&TIME_LIMIT,
            setting("cool_down").env("RALPH_COOL_DOWN").default("30m"))?;
        /// Unit of the pause after a failure: 2, 4, 8 … 60 times this
        backoff = from.value(&TIME_LIMIT,
            setting("backoff").env("RALPH_BACKOFF").default("1s"))?;
    }
}

settings! {
    fn budgets(from) -> Budgets {
        /// Stop when the run has cost this much; with a subscription the default only warns
        per_run = from.value(&DOLLAR_LIMIT, setting("budget.per_run")
            .flag("budget", "USD").env("RALPH_BUDGET").default("25"))?;
        /// Most that one iteration may cost; Claude Code stops itself there
        per_iteration = from.value(&DOLLAR_LIMIT, setting("budget.per_iteration")
            .flag("budget-iteration", "USD").env("RALPH_BUDGET_ITERATION").default("none"))?;
        /// Most that one story may cost; then ralph asks you
        per_story = from.value(&DOLLAR_LIMIT, setting("budget.per_story")
            .flag("budget-story", "USD").env("RALPH_BUDGET_STORY").default("none"))?;
        /// Most that all runs of this repository may cost per day
        per_day = from.value(&DOLLAR_LIMIT, setting("budget.per_day")
            .flag("budget-day", "USD").env("RALPH_BUDGET_DAY").default("none"))?;
        /// Most that all your runs may cost per day, in any repository
        per_user_day = from.value(&DOLLAR_LIMIT, setting("budget.per_user_day")
            .flag("budget-user-day", "USD").env("RALPH_BUDGET_USER_DAY").default("none"))?;
        /// From 80% of a budget on, pause 1, 2, 4, 8 minutes between iterations
        throttle = from.value(&SWITCH, setting("budget.throttle").default("false"))?;
        run_by_default = !from.origins.contains_key("budget.per_run");
    }
}

settings! {
    fn timeouts(from) -> Timeouts {
        /// How long an agent may take until its first output
        first_event = from.value(&TIME, setting("first_event_timeout").default("3m"))?;
        /// How long an agent may print nothing
        idle = from.value(&TIME, setting("idle_timeout").default("15m"))?;
        /// How long one iteration may take
        iteration = from.value(&TIME, setting("iteration_timeout").default("90m"))?;
        /// How long an agent may take to exit after its result
        after_result = from.value(&TIME, setting("result_grace").default("10s"))?;
        /// How long it may take while its background tasks run
        background = from.value(&TIME, setting("background_grace").default("2m"))?;
    }
}

settings! {
    fn stuck(from) -> StuckPolicy {
        /// Send a reminder to an agent that changes nothing for this long
        stuck_after = from.value(&TIME_LIMIT, setting("stuck_after").default("30m"))?;
        /// Ask you this long after the reminder
        ask_after = from.value(&TIME, setting("stuck_question_after").default("10m"))?;
        /// End the agent this long after the question
        answer = from.value(&TIME, setting("stuck_answer_timeout").default("15m"))?;
    }
}

settings! {
    fn markers(from) -> CompletionMarkers {
        /// `<promise>WORD</promise>` with this word claims a story
        promise = from.optional(&PROMISE, setting("completion_promise").by_default("none"))?;
        /// Any of these lines claims a story
        signals = from.list(&MARKER, setting("signals").by_default("none"));
        /// These lines, in this order: only the last claims a story
        stages = from.list(&MARKER, setting("stages").by_default("none"));
    }
}

settings! {
    fn staging(from) -> Rules {
        /// Names of new files to leave out of commits, with `*`; `!` removes a name from the list
        never_commit = {
            let named = from.list(&PATTERN, setting("never_commit").by_default("a built-in list"));
            Pattern::built_in().chain(named).collect()
        };
        /// Largest file that a story may commit
        max_file_size = from.value(&SIZE_LIMIT, setting("max_file_size").default("10MB"))?;
        /// Most new files that a story may commit
        max_new_files = from.value(&FILE_COUNT, setting("max_new_files").default("2000"))?;
    }
}

settings! {
    fn ignored(from) -> IgnoredLimits {
        /// Largest ignored file (such as `.env`) that is restored if it is deleted or emptied
        file = from.value(&SIZE_LIMIT, setting("max_ignored_file").default("1MB"))?;
        /// Most bytes of ignored files that are copied to restore them; small files first
        total = from.value(&SIZE_LIMIT, setting("max_ignored_total").default("50MB"))?;
    }
}

settings! {
    fn memory(from) -> MemoryLimits {
        /// Earlier results in a prompt
        outcomes = from.value(&MEMORY_COUNT, setting("memory.outcomes").default("5"))?;
        /// Earlier errors in a prompt
        errors = from.value(&MEMORY_COUNT, setting("memory.errors").default("5"))?;
        /// Earlier successes in a prompt
        worked = from.value(&MEMORY_COUNT, setting("memory.worked").default("3"))?;
        /// Most characters of one entry
        entry = from.value(&ENTRY_LENGTH, setting("memory.entry").default("500"))?;
        /// Most characters of all entries
        total = from.value(&TOTAL_LENGTH, setting("memory.total").default("5000"))?;
    }
}

impl RunSettings {
    /// The settings that decisions depend on, without facts of the run.
    pub fn policy(&self) -> Policy {
        Policy {
            max_iterations: self.max_iterations,
            once: self.once,
            attempts_before: 0,
            only: self.story.clone(),
            stuck_threshold: self.stuck_threshold,
            max_attempts: self.max_attempts,
            fresh_start_after: self.fresh_start_after,
            limits: self.limits,
            on_escalation: self.on_escalation,
            on_limit: self.on_limit,
            min_free_disk: self.min_free_disk,
            human_present: false,
            budgets: self.budgets.clone(),
            lanes: NonZeroU32::MIN,
            agent: String::new(),
            baseline: false,
            first_looks: Default::default(),
        }
    }

    /// With the ralph.toml of this work tree, if it has one.
    pub fn load(root: &Path, flags: &Flags, env: EnvVars<'_>) -> Read<Self> {
        Self::in_tree(&read_file(root)?.unwrap_or_default(), root, flags, env)
    }

    /// With this ralph.toml, as if it were in this work tree.
    pub fn in_tree(text: &str, root: &Path, flags: &Flags, env: EnvVars<'_>) -> Read<Self> {
        let mut settings = Self::new(text, flags, env)?;
        if settings.origin("prompt") == Some(Origin::File) {
            settings.prompt = settings.prompt.map(|path| root.join(path));
        }
        Ok(settings)
    }

    /// `text` is that of a ralph.toml.
    pub fn new(text: &str, flags: &Flags, env: EnvVars<'_>) -> Read<Self> {
        let mut reader = SettingsReader::new(&flags.values, env, text);
        let mut settings = Self::read(&mut reader, flags)?;
        // A path need not be text.
        if let Some(path) = flags.values.get("prompt") {
            settings.prompt = Some(PathBuf::from(path));
        }
        reader.finish().map(|()| settings)
    }

    /// Every setting, in the order of the documentation.
    pub fn declared() -> Vec<Setting> {
        let (flags, env) = (Flags::default(), |_: &str| None);
        let mut reader = SettingsReader::new(&flags.values, &env, "");
        // Without any input nothing can be wrong with it.
        let _ = Self::read(&mut reader, &flags);
        reader.declared
    }

    /// Where a value comes from. None: it is the default.
    pub fn origin(&self, key: &str) -> Option<Origin> {
        self.origins.get(key).copied()
    }

    /// The `[agent]` table as far as it comes from ralph.toml.
    pub fn agent_table(&self) -> AgentSettings {
        let mut table = self.agent_settings.clone();
        let is_of_file = |key| self.origin(key) == Some(Origin::File);
        table.command = table.command.filter(|_| is_of_file("agent.command"));
        table.permission_mode =
            table.permission_mode.filter(|_| is_of_file("agent.permission_mode"));
        table
    }
}
