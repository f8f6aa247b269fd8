//! The validated settings of one run.

use std::fmt;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::agent::{AgentKind, AgentSettings};
use super::budget::{self, BudgetFlags};
use super::completion;
use super::file::{Limit, SettingsFile};
use super::limits;
use super::memory;
use super::permissions::permission_mode;
use super::size;
use super::staging;
use crate::core::budget::Budgets;
use crate::core::gate::{Gate, Recheck};
use crate::core::health::Patience;
use crate::core::id::StoryId;
use crate::core::limits::Limits;
use crate::core::memory::Bounds;
use crate::core::permission::PermissionMode;
use crate::core::policy::{OnEscalation, OnLimit, Timeouts};
use crate::core::signal::Signs;
use crate::core::staging::Rules;
use crate::core::text::visible_line;
use crate::core::time::{A_TIME, duration};

const DEFAULT_MAX_ITERATIONS: u32 = 50;
const DEFAULT_STUCK_THRESHOLD: NonZeroU32 = NonZeroU32::new(3).unwrap();
const DEFAULT_MAX_ATTEMPTS: NonZeroU32 = NonZeroU32::new(10).unwrap();
const DEFAULT_FRESH_START_AFTER: u32 = 3;
const DEFAULT_KEEP_SNAPSHOTS: u32 = 500;
const DEFAULT_KEEP_DAYS: u32 = 30;
const DEFAULT_ANSWER_TIMEOUT: Duration = Duration::from_secs(600);
const DEFAULT_LOG_LIMIT: u64 = 256_000_000;
const SMALLEST_LOG_LIMIT: u64 = 1_000_000;
const DEFAULT_MIN_FREE_DISK: u64 = 1_000_000_000;

const A_COUNT: &str = "a number from 1 on";
const A_PROGRAM_NAME: &str = "the name of a program, without its folder";
pub(super) const A_LIMIT: &str = "a number from 1 on, or `none`";

/// What the command line said; None where it was silent.
#[derive(Clone, Debug, Default)]
pub struct Flags {
    pub max_iterations: Option<String>,
    pub max_consecutive_errors: Option<String>,
    pub max_failing: Option<String>,
    pub max_run_time: Option<String>,
    pub max_average_iteration: Option<String>,
    pub on_escalation: Option<OnEscalation>,
    pub on_limit: Option<OnLimit>,
    pub answer_timeout: Option<String>,
    pub prompt: Option<PathBuf>,
    pub branch: Option<String>,
    pub allow_dirty: bool,
    pub agent: Option<AgentKind>,
    pub agent_command: Option<String>,
    pub mock_script: Option<PathBuf>,
    pub permission_mode: Option<PermissionMode>,
    pub once: bool,
    pub story: Option<StoryId>,
    pub budget: BudgetFlags,
}

/// Everything that was decided before the run begins.
#[derive(Clone, Debug)]
pub struct Plan {
    /// None: no limit.
    pub max_iterations: Option<u32>,
    pub limits: Limits,
    pub stuck_threshold: NonZeroU32,
    pub max_attempts: NonZeroU32,
    /// None: never.
    pub fresh_start_after: Option<u32>,
    /// None: no limit.
    pub keep_snapshots: Option<u32>,
    /// None: no limit.
    pub keep_days: Option<u32>,
    pub on_escalation: OnEscalation,
    pub on_limit: OnLimit,
    pub answer_timeout: Duration,
    pub timeouts: Timeouts,
    pub patience: Patience,
    /// For every story.
    pub verify: Vec<Gate>,
    pub recheck: Recheck,
    /// What else says that a story is complete.
    pub signs: Signs,
    pub require_two_claims: bool,
    /// How much of what was learnt goes into a prompt.
    pub memory: Bounds,
    pub protect: Vec<String>,
    /// Bytes of one iteration's log.
    pub log_limit: u64,
    /// Bytes; None: nobody looks.
    pub min_free_disk: Option<u64>,
    /// Names of programs that are left alone when an agent's processes are ended.
    pub keep_processes: Vec<String>,
    pub allow_dirty: bool,
    /// What may become a part of a commit.
    pub staging: Rules,
    pub prompt: Option<PathBuf>,
    pub branch: Option<String>,
    pub agent: AgentChoice,
    pub agent_settings: AgentSettings,
    pub once: bool,
    pub story: Option<StoryId>,
    pub budgets: Budgets,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentChoice {
    Claude,
    Mock { script: Option<PathBuf> },
    Command { words: Vec<String> },
}

#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    #[error("{origin}: `{value}` is not {expected}")]
    Bad { origin: Origin, value: String, expected: &'static str },
    #[error("`--mock-script` goes with `--agent mock`")]
    ScriptWithoutMock,
    #[error("{origin}: `agent` and `command` name two agents; keep one of them")]
    TwoAgents { origin: Origin },
    #[error("`--permission-mode` goes with Claude Code")]
    ModeWithoutClaude,
    #[error("{origin}: `args` in ralph.toml choose a permission mode too; take it out there")]
    TwoModes { origin: Origin },
}

impl PlanError {
    /// The command line or the environment is wrong, not a file.
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Bad { origin, .. } | Self::TwoAgents { origin } | Self::TwoModes { origin } => {
                !matches!(origin, Origin::File(_))
            }
            Self::ScriptWithoutMock | Self::ModeWithoutClaude => true,
        }
    }
}

/// Where a value came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    Flag(&'static str),
    Environment(&'static str),
    File(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(name) => write!(f, "{name}"),
            Self::Environment(name) => write!(f, "{name} in the environment"),
            Self::File(name) => write!(f, "`{name}` in ralph.toml"),
        }
    }
}

/// A text with its origin, from the strongest layer that has one.
pub(super) struct Layered {
    text: Option<(Origin, String)>,
}

impl Layered {
    pub(super) fn of<const N: usize>(layers: [(Origin, Option<String>); N]) -> Self {
        let text = layers.into_iter().find_map(|(origin, text)| Some((origin, text?)));
        Self { text }
    }

    /// Some layer has it.
    pub(super) fn is_said(&self) -> bool {
        self.text.is_some()
    }

    pub(super) fn parse<T>(
        self,
        default: T,
        expected: &'static str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<T, PlanError> {
        let Some((origin, text)) = self.text else { return Ok(default) };
        let bad = || PlanError::Bad { origin, value: visible_line(&text), expected };
        parse(text.trim()).ok_or_else(bad)
    }
}

impl Plan {
    pub fn new(
        flags: Flags,
        env: &dyn Fn(&str) -> Option<String>,
        file: SettingsFile,
        root: &Path,
    ) -> Result<Self, PlanError> {
        let agent = agent(&flags, &file)?;
        let permission_mode = permission_mode(&flags, &file, &agent)?;
        budget::check_agents_own(&file)?;
        Ok(Self {
            budgets: budget::budgets(&flags, env, &file)?,
            max_iterations: max_iterations(&flags, env, &file)?,
            limits: limits::limits(&flags, env, &file)?,
            stuck_threshold: stuck_threshold(env, &file)?,
            max_attempts: max_attempts(&file)?,
            fresh_start_after: file_limit(
                "fresh_start_after",
                file.fresh_start_after.as_ref(),
                DEFAULT_FRESH_START_AFTER,
            )?,
            keep_snapshots: file_limit(
                "keep_snapshots",
                file.keep_snapshots.as_ref(),
                DEFAULT_KEEP_SNAPSHOTS,
            )?,
            keep_days: file_limit("keep_days", file.keep_days.as_ref(), DEFAULT_KEEP_DAYS)?,
            on_escalation: flags.on_escalation.or(file.on_escalation).unwrap_or(OnEscalation::Ask),
            on_limit: flags.on_limit.or(file.on_limit).unwrap_or(OnLimit::Wait),
            answer_timeout: answer_timeout(&flags, env, &file)?,
            timeouts: timeouts(&file)?,
            patience: patience(&file)?,
            log_limit: log_limit(&file)?,
            min_free_disk: min_free_disk(&file)?,
            keep_processes: keep_processes(&file)?,
            staging: staging::rules(&file)?,
            signs: completion::signs(&file)?,
            require_two_claims: file.require_two_claims,
            memory: memory::limits(&file.memory)?,
            allow_dirty: flags.allow_dirty || file.allow_dirty,
            verify: file.verify,
            recheck: file.recheck,
            protect: file.protect,
            prompt: flags.prompt.or_else(|| file.prompt.map(|path| root.join(path))),
            branch: flags.branch.or(file.branch),
            agent,
            agent_settings: AgentSettings { permission_mode, ..file.agent },
            once: flags.once,
            story: flags.story,
        })
    }
}

pub(super) type Env<'a> = &'a dyn Fn(&str) -> Option<String>;

fn max_iterations(
    flags: &Flags,
    env: Env<'_>,
    file: &SettingsFile,
) -> Result<Option<u32>, PlanError> {
    Layered::of([
        (Origin::Flag("--max-iterations"), flags.max_iterations.clone()),
        (Origin::Environment("MAX_ITERATIONS"), env("MAX_ITERATIONS")),
        (Origin::File("max_iterations"), file.max_iterations.as_ref().map(ToString::to_string)),
    ])
    .parse(Some(DEFAULT_MAX_ITERATIONS), A_LIMIT, limit)
}

fn stuck_threshold(env: Env<'_>, file: &SettingsFile) -> Result<NonZeroU32, PlanError> {
    Layered::of([
        (Origin::Environment("STUCK_THRESHOLD"), env("STUCK_THRESHOLD")),
        (Origin::File("stuck_threshold"), file.stuck_threshold.as_ref().map(ToString::to_string)),
    ])
    .parse(DEFAULT_STUCK_THRESHOLD, A_COUNT, |text| text.parse().ok())
}

fn max_attempts(file: &SettingsFile) -> Result<NonZeroU32, PlanError> {
    let text = file.max_attempts.as_ref().map(ToString::to_string);
    let parse = |text: &str| text.parse().ok();
    Layered::of([(Origin::File("max_attempts"), text)]).parse(DEFAULT_MAX_ATTEMPTS, A_COUNT, parse)
}

/// A limit that only ralph.toml knows.
fn file_limit(
    name: &'static str,
    text: Option<&Limit>,
    default: u32,
) -> Result<Option<u32>, PlanError> {
    Layered::of([(Origin::File(name), text.map(ToString::to_string))]).parse(
        Some(default),
        A_LIMIT,
        limit,
    )
}

fn answer_timeout(flags: &Flags, env: Env<'_>, file: &SettingsFile) -> Result<Duration, PlanError> {
    Layered::of([
        (Origin::Flag("--answer-timeout"), flags.answer_timeout.clone()),
        (Origin::Environment("RALPH_ANSWER_TIMEOUT"), env("RALPH_ANSWER_TIMEOUT")),
        (Origin::File("answer_timeout"), file.answer_timeout.clone()),
    ])
    .parse(DEFAULT_ANSWER_TIMEOUT, A_TIME, duration)
}

fn timeouts(file: &SettingsFile) -> Result<Timeouts, PlanError> {
    let default = Timeouts::default();
    let time = |name, text: &Option<String>, default| {
        Layered::of([(Origin::File(name), text.clone())]).parse(default, A_TIME, duration)
    };
    Ok(Timeouts {
        first_event: time("first_event_timeout", &file.first_event_timeout, default.first_event)?,
        idle: time("idle_timeout", &file.idle_timeout, default.idle)?,
        iteration: time("iteration_timeout", &file.iteration_timeout, default.iteration)?,
        after_result: time("result_grace", &file.result_grace, default.after_result)?,
        background: time("background_grace", &file.background_grace, default.background)?,
    })
}

fn patience(file: &SettingsFile) -> Result<Patience, PlanError> {
    let default = Patience::default();
    let time = |name, text: &Option<String>, default| {
        Layered::of([(Origin::File(name), text.clone())]).parse(default, A_TIME, duration)
    };
    let stuck_after = Layered::of([(Origin::File("stuck_after"), file.stuck_after.clone())])
        .parse(default.stuck_after, "a time such as `30m`, or `none`", |text| {
            if text == "none" { Some(None) } else { duration(text).map(Some) }
        })?;
    let (ask, answer) = (&file.stuck_question_after, &file.stuck_answer_timeout);
    Ok(Patience {
        stuck_after,
        ask_after: time("stuck_question_after", ask, default.ask_after)?,
        answer: time("stuck_answer_timeout", answer, default.answer)?,
    })
}

fn log_limit(file: &SettingsFile) -> Result<u64, PlanError> {
    let text = file.log_limit.as_ref().map(ToString::to_string);
    let large_enough = |bytes: &u64| *bytes >= SMALLEST_LOG_LIMIT;
    Layered::of([(Origin::File("log_limit"), text)]).parse(
        DEFAULT_LOG_LIMIT,
        "a size such as `256MB`, from `1MB` on",
        |text| size::parse(text).filter(large_enough),
    )
}

fn min_free_disk(file: &SettingsFile) -> Result<Option<u64>, PlanError> {
    let text = file.min_free_disk.as_ref().map(ToString::to_string);
    Layered::of([(Origin::File("min_free_disk"), text)]).parse(
        Some(DEFAULT_MIN_FREE_DISK),
        "a size such as `1GB`, or `none`",
        |text| if text == "none" { Some(None) } else { size::parse(text).map(Some) },
    )
}

fn keep_processes(file: &SettingsFile) -> Result<Vec<String>, PlanError> {
    let is_name =
        |name: &str| (!name.is_empty() && !name.contains(['/', '\0'])).then(|| name.to_owned());
    let one = |name: &String| {
        let origin = Origin::File("keep_processes");
        let bad = || PlanError::Bad { origin, value: visible_line(name), expected: A_PROGRAM_NAME };
        is_name(name.trim()).ok_or_else(bad)
    };
    file.keep_processes.iter().map(one).collect()
}

/// `none` switches a limit off; `0` would be a run that can do nothing.
#[expect(clippy::option_option, reason = "the outer one says whether the text is right")]
pub(super) fn limit(text: &str) -> Option<Option<u32>> {
    if text == "none" {
        return Some(None);
    }
    text.parse::<NonZeroU32>().ok().map(|number| Some(number.get()))
}

fn agent(flags: &Flags, file: &SettingsFile) -> Result<AgentChoice, PlanError> {
    if flags.agent.is_some() && flags.agent_command.is_some() {
        return Err(PlanError::TwoAgents { origin: Origin::Flag("--agent") });
    }
    let command = |origin, text: &str| {
        let bad = || PlanError::Bad {
            origin,
            value: visible_line(text),
            expected: "a program with its arguments",
        };
        let words = shlex::split(text).filter(|words| !words.is_empty()).ok_or_else(bad)?;
        Ok(AgentChoice::Command { words })
    };
    let kind = |kind| match kind {
        AgentKind::Claude => AgentChoice::Claude,
        AgentKind::Mock => AgentChoice::Mock { script: flags.mock_script.clone() },
    };
    let choice = match (flags.agent, &flags.agent_command, file.agent.name, &file.agent.command) {
        (Some(flag), ..) => kind(flag),
        (None, Some(text), ..) => command(Origin::Flag("--agent-command"), text)?,
        (None, None, Some(_), Some(_)) => {
            return Err(PlanError::TwoAgents { origin: Origin::File("[agent]") });
        }
        (None, None, Some(name), None) => kind(name),
        (None, None, None, Some(text)) => command(Origin::File("agent.command"), text)?,
        (None, None, None, None) if flags.mock_script.is_some() => kind(AgentKind::Mock),
        (None, None, None, None) => AgentChoice::Claude,
    };
    let is_mock = matches!(choice, AgentChoice::Mock { .. });
    if flags.mock_script.is_some() && !is_mock {
        return Err(PlanError::ScriptWithoutMock);
    }
    Ok(choice)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(flags: Flags, env: &[(&str, &str)], file: SettingsFile) -> Result<Plan, PlanError> {
        let lookup = |name: &str| {
            env.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        };
        Plan::new(flags, &lookup, file, Path::new("/"))
    }

    #[test]
    fn flag_over_environment_over_file_over_default() {
        let flag = || Flags { max_iterations: Some("1".into()), ..Flags::default() };
        let env = [("MAX_ITERATIONS", "2")];
        let file =
            || SettingsFile { max_iterations: Some(Limit::Number(3)), ..SettingsFile::default() };
        let most = |plan: Result<Plan, PlanError>| plan.unwrap().max_iterations;
        assert_eq!(most(plan(flag(), &env, file())), Some(1));
        assert_eq!(most(plan(Flags::default(), &env, file())), Some(2));
        assert_eq!(most(plan(Flags::default(), &[], file())), Some(3));
        assert_eq!(most(plan(Flags::default(), &[], SettingsFile::default())), Some(50));
    }

    #[test]
    fn a_bad_value_says_where_it_stands() {
        for bad in ["0", "-1", "many", ""] {
            let error = plan(Flags::default(), &[("MAX_ITERATIONS", bad)], SettingsFile::default());
            let text = error.unwrap_err().to_string();
            assert_eq!(
                text,
                format!(
                    "MAX_ITERATIONS in the environment: `{bad}` is not a number from 1 on, or `none`"
                )
            );
        }
        let none = Flags { max_iterations: Some("none".into()), ..Flags::default() };
        assert_eq!(plan(none, &[], SettingsFile::default()).unwrap().max_iterations, None);
    }

    #[test]
    fn sizes_have_defaults_and_bounds() {
        let with = |log: Option<&str>, disk: Option<&str>| {
            let word = |text: &str| Limit::Word(text.to_owned());
            let (log_limit, min_free_disk) = (log.map(word), disk.map(word));
            let file = SettingsFile { log_limit, min_free_disk, ..SettingsFile::default() };
            plan(Flags::default(), &[], file).map(|plan| (plan.log_limit, plan.min_free_disk))
        };
        assert_eq!(with(None, None).unwrap(), (256_000_000, Some(1_000_000_000)));
        assert_eq!(with(Some("2MB"), Some("none")).unwrap(), (2_000_000, None));
        for (log, disk) in [(Some("999kB"), None), (Some("none"), None), (None, Some("little"))] {
            let error = with(log, disk).unwrap_err();
            assert!(!error.is_usage() && error.to_string().contains("ralph.toml"), "{error}");
        }
    }

    #[test]
    fn what_is_kept_is_named_by_its_program_alone() {
        let keep = |name: &str| SettingsFile {
            keep_processes: vec!["sccache".into(), name.into()],
            ..SettingsFile::default()
        };
        let kept = plan(Flags::default(), &[], keep(" watchman ")).unwrap().keep_processes;
        assert_eq!(kept, ["sccache", "watchman"]);
        for bad in ["", " ", "/usr/bin/sccache", "a\0b"] {
            let error = plan(Flags::default(), &[], keep(bad)).unwrap_err().to_string();
            assert!(error.starts_with("`keep_processes` in ralph.toml: "), "{error}");
        }
    }

    #[test]
    fn a_script_alone_means_the_mock_and_never_claude() {
        let script = Some(PathBuf::from("s.toml"));
        let flags = Flags { mock_script: script.clone(), ..Flags::default() };
        let chosen = plan(flags, &[], SettingsFile::default()).unwrap().agent;
        assert_eq!(chosen, AgentChoice::Mock { script: script.clone() });
        let claude =
            Flags { mock_script: script, agent: Some(AgentKind::Claude), ..Flags::default() };
        assert!(plan(claude, &[], SettingsFile::default()).is_err());
    }

    #[test]
    fn a_command_is_split_like_a_shell_would() {
        let flags =
            Flags { agent_command: Some("my-agent --say 'a b'".into()), ..Flags::default() };
        let chosen = plan(flags, &[], SettingsFile::default()).unwrap().agent;
        assert_eq!(
            chosen,
            AgentChoice::Command {
                words: ["my-agent", "--say", "a b"].map(str::to_owned).to_vec()
            }
        );
        let open = Flags { agent_command: Some("agent 'open".into()), ..Flags::default() };
        assert!(plan(open, &[], SettingsFile::default()).is_err());
    }
}
