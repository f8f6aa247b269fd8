//! Every setting, declared where it is read.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::agent::{AgentSettings, args_choose_mode};
use crate::decide::staging::Rules;
use crate::decide::stuck::StuckPolicy;
use crate::model::{
    Budgets, CompletionMarkers, Gate, Limits, MemoryLimits, OnEscalation, OnLimit, Recheck,
    StoryId, Timeouts,
};

use super::agent::{self, AgentChoice};
use super::file;
use super::kind::{
    COUNT, DOLLAR_LIMIT, ENTRY_LENGTH, FILE_COUNT, LIMIT, LOG_SIZE, MARKER, MEMORY_COUNT,
    ON_ESCALATION, ON_LIMIT, PATH, PATTERN, PROGRAM_NAME, PROMISE, RECHECK, SIZE_LIMIT, SWITCH,
    TEXT, TIME, TIME_LIMIT, TOTAL_LENGTH, UP_TO_TEN,
};
use super::reader::{FlagValues, Origin, Reader, SettingsError};
use super::setting::{Setting, SettingGroup as Group, setting};

type Read<T> = Result<T, SettingsError>;

/// What the command line says.
#[derive(Clone, Debug, Default)]
pub struct Flags {
    /// Of settings, by key.
    pub values: FlagValues,
    pub mock_script: Option<PathBuf>,
    pub once: bool,
    pub story: Option<StoryId>,
}

/// A struct whose fields stand beside the declarations that they are read by.
macro_rules! settings {
    ($(#[$about:meta])* $name:ident ($from:ident, $flags:ident) {
        $( $(#[$doc:meta])* $field:ident: $type:ty = $read:expr; )*
    }) => {
        $(#[$about])*
        #[derive(Clone, Debug)]
        pub struct $name {
            $( $(#[$doc])* pub $field: $type, )*
            origins: BTreeMap<&'static str, Origin>,
        }

        impl $name {
            fn read($from: &mut Reader<'_>, $flags: &Flags) -> Read<Self> {
                $( let $field: $type = $read; )*
                Ok(Self { $( $field, )* origins: $from.origins.clone() })
            }
        }
    };
}

settings! {
    /// Everything that is decided before a run begins. Where a limit is None, there is none.
    RunSettings(from, flags) {
        prompt: Option<PathBuf> = from.optional(&PATH, setting(Group::Run, "prompt",
            "Instructions for every iteration")
            .flag("prompt", "FILE")
            .by_default("PROMPT.md next to the PRD or at the root, else built in"))?;
        branch: Option<String> = from.optional(&TEXT, setting(Group::Run, "branch",
            "Work on this branch; create it from HEAD if it does not exist")
            .flag("branch", "NAME").by_default("the current one"))?;
        allow_dirty: bool = from.value(&SWITCH, setting(Group::Run, "allow_dirty",
            "Run despite uncommitted edits; they stay in place and out of the commits")
            .flag("allow-dirty", "").default("false"))?;
        max_iterations: Option<u32> = from.value(&LIMIT, setting(Group::Limits, "max_iterations",
            "Stop after this many iterations")
            .flag("max-iterations", "N").env("MAX_ITERATIONS").default("50"))?;
        limits: Limits = limits(from)?;
        budgets: Budgets = budgets(from)?;
        on_escalation: OnEscalation = from.value(&ON_ESCALATION, setting(Group::Questions,
            "on_escalation",
            "What to do when an agent asks for a human: `ask` (`park` without a terminal), `park` \
             the question until the end, `skip` the story, or `abort` the run")
            .flag("on-escalation", "WHAT").default("ask"))?;
        answer_timeout: Duration = from.value(&TIME, setting(Group::Questions, "answer_timeout",
            "How long a question waits for a key before the story is parked")
            .flag("answer-timeout", "TIME").env("RALPH_ANSWER_TIMEOUT").default("10m"))?;
        on_limit: OnLimit = from.value(&ON_LIMIT, setting(Group::Questions, "on_limit",
            "When the account's usage limit is reached: `wait` until it resets (Enter retries \
             now), or `stop`")
            .flag("on-limit", "WHAT").default("wait"))?;
        agent_settings: AgentSettings = agent::settings(from)?;
        agent: AgentChoice = agent::choice(from, &agent_settings, flags.mock_script.as_deref())?;
        timeouts: Timeouts = timeouts(from)?;
        stuck: StuckPolicy = stuck(from)?;
        stuck_threshold: NonZeroU32 = from.value(&COUNT, setting(Group::Stories,
            "stuck_threshold", "Ask after the same error this many times")
            .env("STUCK_THRESHOLD").default("3"))?;
        max_attempts: NonZeroU32 = from.value(&COUNT, setting(Group::Stories, "max_attempts",
            "Ask after this many attempts at one story; a story in PRD.json can have its own")
            .default("10"))?;
        fresh_start_after: Option<u32> = from.value(&LIMIT, setting(Group::Stories,
            "fresh_start_after",
            "Start a story over after this many failed attempts in a row; `none` disables it")
            .default("3"))?;
        /// For every story.
        verify: Vec<Gate> = from.gates(setting(Group::Completion, "verify",
            "Commands that must pass before a story is done (gates)").by_default("no gates"));
        recheck: Recheck = from.value(&RECHECK, setting(Group::Completion, "recheck",
            "Whether the gates of closed stories run again with each claim: `all` or `none`")
            .default("all"))?;
        protect: Vec<String> = from.list(&TEXT, setting(Group::Completion, "protect",
            "Patterns of files whose changes need your approval").by_default("nothing"));
        markers: CompletionMarkers = markers(from)?;
        require_two_claims: bool = from.value(&SWITCH, setting(Group::Completion,
            "require_two_claims",
            "Without a gate, send the first claim back for a second look").default("false"))?;
        staging: Rules = staging(from)?;
        memory: MemoryLimits = memory(from)?;
        /// Programs that are left alone when an agent's processes are ended.
        keep_processes: Vec<String> = from.list(&PROGRAM_NAME, setting(Group::Storage,
            "keep_processes", "Programs to leave running when an agent's processes are ended")
            .by_default("none"));
        /// Bytes of one iteration's log.
        log_limit: u64 = from.value(&LOG_SIZE, setting(Group::Storage, "log_limit",
            "Most that is logged of one iteration; the middle of more is left out")
            .default("256MB"))?;
        /// Bytes; None: the disk is not checked.
        min_free_disk: Option<u64> = from.value(&SIZE_LIMIT, setting(Group::Storage,
            "min_free_disk", "Stop when less disk space than this is free; `none` disables it")
            .default("1GB"))?;
        keep_snapshots: Option<u32> = from.value(&LIMIT, setting(Group::Storage,
            "keep_snapshots", "Keep this many snapshots, and those of the last two runs")
            .default("500"))?;
        keep_days: Option<u32> = from.value(&LIMIT, setting(Group::Storage, "keep_days",
            "Keep snapshots for this many days").default("30"))?;
        /// Not settings, but of this command line alone.
        once: bool = flags.once;
        story: Option<StoryId> = flags.story.clone();
    }
}

impl RunSettings {
    /// With the ralph.toml of this work tree, if it has one.
    pub fn load(
        root: &Path,
        flags: &Flags,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, SettingsError> {
        let text = file::read(root).map_err(SettingsError::Unreadable)?.unwrap_or_default();
        let mut settings = Self::new(&text, flags, env)?;
        if settings.origin("prompt") == Some(Origin::File) {
            settings.prompt = settings.prompt.map(|path| root.join(path));
        }
        Ok(settings)
    }

    /// `text` is that of a ralph.toml.
    pub fn new(
        text: &str,
        flags: &Flags,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, SettingsError> {
        let mut reader = Reader::new(&flags.values, env, text);
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
        let mut reader = Reader::new(&flags.values, &env, "");
        // Without any input nothing can be wrong with it.
        let _ = Self::read(&mut reader, &flags);
        let mut declared = reader.declared;
        declared.sort_by_key(|setting| setting.group);
        declared
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

    /// Claude Code runs, and no setting says what it may do.
    pub fn lacks_permissions(&self) -> bool {
        let settings = &self.agent_settings;
        self.agent == AgentChoice::Claude
            && settings.permission_mode.is_none()
            && !args_choose_mode(&settings.args)
    }
}

fn limits(from: &mut Reader<'_>) -> Read<Limits> {
    let limit = |key, help| setting(Group::Limits, key, help);
    Ok(Limits {
        max_run_time: from.value(
            &TIME_LIMIT,
            limit("max_run_time", "Stop after agents and gates have worked this long")
                .flag("max-run-time", "TIME")
                .env("RALPH_MAX_RUN_TIME")
                .default("12h"),
        )?,
        max_consecutive_errors: from.value(
            &LIMIT,
            limit("max_consecutive_errors", "Stop after this many errors in a row")
                .flag("max-consecutive-errors", "N")
                .env("RALPH_MAX_CONSECUTIVE_ERRORS")
                .default("5"),
        )?,
        max_failing: from.value(
            &UP_TO_TEN,
            limit("max_failing", "Stop when this many of the last ten iterations failed")
                .flag("max-failing", "N")
                .env("RALPH_MAX_FAILING")
                .default("8"),
        )?,
        max_average_iteration: from.value(
            &TIME_LIMIT,
            limit("max_average_iteration", "Stop when iterations take longer than this on average")
                .flag("max-average-iteration", "TIME")
                .env("RALPH_MAX_AVERAGE_ITERATION")
                .default("none"),
        )?,
        cool_down: from.value(
            &TIME_LIMIT,
            limit("cool_down", "How long the circuit breaker pauses the run; `none` disables it")
                .env("RALPH_COOL_DOWN")
                .default("30m"),
        )?,
        backoff: from.value(
            &TIME_LIMIT,
            limit("backoff", "Unit of the pause after a failure: 2, 4, 8 … 60 times this")
                .env("RALPH_BACKOFF")
                .default("1s"),
        )?,
    })
}

fn budgets(from: &mut Reader<'_>) -> Read<Budgets> {
    let mut limit = |key, help, flag, env, default| {
        let budget = setting(Group::Budget, key, help).flag(flag, "USD").env(env).default(default);
        from.value(&DOLLAR_LIMIT, budget)
    };
    Ok(Budgets {
        per_run: limit(
            "budget.per_run",
            "Stop when the run has cost this much; with a subscription the default only warns",
            "budget",
            "RALPH_BUDGET",
            "25",
        )?,
        per_iteration: limit(
            "budget.per_iteration",
            "Most that one iteration may cost; Claude Code stops itself there",
            "budget-iteration",
            "RALPH_BUDGET_ITERATION",
            "none",
        )?,
        per_story: limit(
            "budget.per_story",
            "Most that one story may cost; then it is parked with a question",
            "budget-story",
            "RALPH_BUDGET_STORY",
            "none",
        )?,
        per_day: limit(
            "budget.per_day",
            "Most that all runs of this repository may cost per day",
            "budget-day",
            "RALPH_BUDGET_DAY",
            "none",
        )?,
        per_user_day: limit(
            "budget.per_user_day",
            "Most that all your runs may cost per day, in any repository",
            "budget-user-day",
            "RALPH_BUDGET_USER_DAY",
            "none",
        )?,
        throttle: from.value(
            &SWITCH,
            setting(
                Group::Budget,
                "budget.throttle",
                "From 80 % of a budget on, pause 1, 2, 4, 8 minutes between iterations",
            )
            .default("false"),
        )?,
        run_by_default: !from.origins.contains_key("budget.per_run"),
    })
}

fn timeouts(from: &mut Reader<'_>) -> Read<Timeouts> {
    let mut time = |key, help, default| {
        from.value(&TIME, setting(Group::Timeouts, key, help).default(default))
    };
    Ok(Timeouts {
        first_event: time("first_event_timeout", "How long an agent may take to start", "3m")?,
        idle: time("idle_timeout", "How long an agent may be silent", "15m")?,
        iteration: time("iteration_timeout", "How long one iteration may take", "90m")?,
        after_result: time(
            "result_grace",
            "How long an agent may take to exit after its result",
            "10s",
        )?,
        background: time(
            "background_grace",
            "The same while its background tasks still run",
            "2m",
        )?,
    })
}

fn stuck(from: &mut Reader<'_>) -> Read<StuckPolicy> {
    let time = |key, help, default| setting(Group::Timeouts, key, help).default(default);
    Ok(StuckPolicy {
        stuck_after: from.value(
            &TIME_LIMIT,
            time("stuck_after", "Remind an agent that changes nothing for this long", "30m"),
        )?,
        ask_after: from.value(
            &TIME,
            time("stuck_question_after", "How long after the reminder you are asked", "10m"),
        )?,
        answer: from.value(
            &TIME,
            time("stuck_answer_timeout", "How long after the question the agent is ended", "15m"),
        )?,
    })
}

fn markers(from: &mut Reader<'_>) -> Read<CompletionMarkers> {
    let marker = |key, help| setting(Group::Completion, key, help).by_default("none");
    Ok(CompletionMarkers {
        promise: from.optional(
            &PROMISE,
            marker("completion_promise", "`<promise>WORD</promise>` with this word claims a story"),
        )?,
        signals: from.list(&MARKER, marker("signals", "Any of these lines claims a story")),
        stages: from.list(
            &MARKER,
            marker("stages", "These lines, in this order: only the last claims a story"),
        ),
    })
}

fn staging(from: &mut Reader<'_>) -> Read<Rules> {
    let rule = |key, help, default| setting(Group::Commits, key, help).default(default);
    let mut rules = Rules::default();
    let own = setting(
        Group::Commits,
        "never_commit",
        "New files to leave out of commits, by name with `*`; `!` takes a name off the list",
    );
    rules.never_commit.extend(from.list(&PATTERN, own.by_default("a built-in list")));
    rules.max_file_size = from.value(
        &SIZE_LIMIT,
        rule("max_file_size", "Largest file that a story may commit", "10MB"),
    )?;
    rules.max_new_files = from.value(
        &FILE_COUNT,
        rule("max_new_files", "Most new files that a story may commit", "2000"),
    )?;
    Ok(rules)
}

fn memory(from: &mut Reader<'_>) -> Read<MemoryLimits> {
    let mut limit = |kind, key, help, default| {
        from.value(kind, setting(Group::Memory, key, help).default(default))
    };
    Ok(MemoryLimits {
        outcomes: limit(&MEMORY_COUNT, "memory.outcomes", "Earlier outcomes in a prompt", "5")?,
        errors: limit(&MEMORY_COUNT, "memory.errors", "Earlier errors in a prompt", "5")?,
        worked: limit(&MEMORY_COUNT, "memory.worked", "Things that worked in a prompt", "3")?,
        entry: limit(&ENTRY_LENGTH, "memory.entry", "Characters of each", "500")?,
        total: limit(&TOTAL_LENGTH, "memory.total", "Characters of all of them", "5000")?,
    })
}
