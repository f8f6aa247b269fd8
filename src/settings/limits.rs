//! What bounds a run, beside its iterations.

use std::time::Duration;

use super::file::{Limit, SettingsFile};
use super::plan::{A_LIMIT, Env, Flags, Layered, Origin, PlanError, limit};
use super::staging::or_none;
use crate::core::limits::Limits;
use crate::core::time::duration;

const A_TIME_LIMIT: &str = "a time such as `12h` or `90s`, at most 30 days, or `none`";

const UP_TO_TEN: &str = "a number from 1 to 10, or `none`";

pub fn limits(flags: &Flags, env: Env<'_>, file: &SettingsFile) -> Result<Limits, PlanError> {
    let default = Limits::default();
    let of_file = |value: &Option<Limit>| value.as_ref().map(ToString::to_string);
    let time = |layers: Layered, default: Option<Duration>| {
        layers.parse(default, A_TIME_LIMIT, or_none(duration))
    };
    Ok(Limits {
        max_consecutive_errors: Layered::of([
            (Origin::Flag("--max-consecutive-errors"), flags.max_consecutive_errors.clone()),
            from_env(env, "RALPH_MAX_CONSECUTIVE_ERRORS"),
            (Origin::File("max_consecutive_errors"), of_file(&file.max_consecutive_errors)),
        ])
        .parse(default.max_consecutive_errors, A_LIMIT, limit)?,
        max_failing: Layered::of([
            (Origin::Flag("--max-failing"), flags.max_failing.clone()),
            from_env(env, "RALPH_MAX_FAILING"),
            (Origin::File("max_failing"), of_file(&file.max_failing)),
        ])
        .parse(default.max_failing, UP_TO_TEN, |text| limit(text).filter(up_to_ten))?,
        max_run_time: time(
            Layered::of([
                (Origin::Flag("--max-run-time"), flags.max_run_time.clone()),
                from_env(env, "RALPH_MAX_RUN_TIME"),
                (Origin::File("max_run_time"), of_file(&file.max_run_time)),
            ]),
            default.max_run_time,
        )?,
        max_average_iteration: time(
            Layered::of([
                (Origin::Flag("--max-average-iteration"), flags.max_average_iteration.clone()),
                from_env(env, "RALPH_MAX_AVERAGE_ITERATION"),
                (Origin::File("max_average_iteration"), of_file(&file.max_average_iteration)),
            ]),
            default.max_average_iteration,
        )?,
        cool_down: time(
            Layered::of([
                from_env(env, "RALPH_COOL_DOWN"),
                (Origin::File("cool_down"), of_file(&file.cool_down)),
            ]),
            default.cool_down,
        )?,
        backoff: time(
            Layered::of([
                from_env(env, "RALPH_BACKOFF"),
                (Origin::File("backoff"), of_file(&file.backoff)),
            ]),
            default.backoff,
        )?,
    })
}

/// Ten are looked at.
fn up_to_ten(limit: &Option<u32>) -> bool {
    limit.is_none_or(|limit| limit <= 10)
}

fn from_env(env: Env<'_>, name: &'static str) -> (Origin, Option<String>) {
    (Origin::Environment(name), env(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(flags: Flags, env: &[(&str, &str)], file: &SettingsFile) -> Result<Limits, PlanError> {
        let lookup = |name: &str| {
            env.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        };
        limits(&flags, &lookup, file)
    }

    fn word(text: &str) -> Option<Limit> {
        Some(Limit::Word(text.to_owned()))
    }

    fn hours(count: u64) -> Option<Duration> {
        Some(Duration::from_hours(count))
    }

    #[test]
    fn flag_over_environment_over_file_over_default() {
        let flags = || Flags {
            max_consecutive_errors: Some("1".into()),
            max_run_time: Some("1h".into()),
            max_average_iteration: Some("1h".into()),
            ..Flags::default()
        };
        let env = [
            ("RALPH_MAX_CONSECUTIVE_ERRORS", "2"),
            ("RALPH_MAX_RUN_TIME", "2h"),
            ("RALPH_MAX_AVERAGE_ITERATION", "2h"),
            ("RALPH_COOL_DOWN", "2h"),
            ("RALPH_BACKOFF", "2h"),
        ];
        let file = SettingsFile {
            max_consecutive_errors: Some(Limit::Number(3)),
            max_run_time: word("3h"),
            max_average_iteration: word("3h"),
            cool_down: word("3h"),
            backoff: word("3h"),
            ..SettingsFile::default()
        };
        let all = |limits: Limits| {
            (
                (limits.max_consecutive_errors, limits.max_run_time),
                (limits.max_average_iteration, limits.cool_down, limits.backoff),
            )
        };
        let by_flag = with(flags(), &env, &file).unwrap();
        assert_eq!(all(by_flag), ((Some(1), hours(1)), (hours(1), hours(2), hours(2))));
        let by_env = with(Flags::default(), &env, &file).unwrap();
        assert_eq!(all(by_env), ((Some(2), hours(2)), (hours(2), hours(2), hours(2))));
        let by_file = with(Flags::default(), &[], &file).unwrap();
        assert_eq!(all(by_file), ((Some(3), hours(3)), (hours(3), hours(3), hours(3))));
        let none = with(Flags::default(), &[], &SettingsFile::default()).unwrap();
        assert_eq!(none, Limits::default());
    }

    #[test]
    fn none_switches_a_limit_off_and_nothing_at_all_is_an_error() {
        for name in [
            "RALPH_MAX_CONSECUTIVE_ERRORS",
            "RALPH_MAX_RUN_TIME",
            "RALPH_MAX_AVERAGE_ITERATION",
            "RALPH_COOL_DOWN",
            "RALPH_BACKOFF",
        ] {
            let set = |value| with(Flags::default(), &[(name, value)], &SettingsFile::default());
            let off = set("none").unwrap();
            let known = [
                off.max_consecutive_errors.map(u64::from),
                off.max_run_time.map(|time| time.as_secs()),
                off.max_average_iteration.map(|time| time.as_secs()),
                off.cool_down.map(|time| time.as_secs()),
                off.backoff.map(|time| time.as_secs()),
            ];
            let usual = Limits::default().max_average_iteration.is_none();
            let expected = if name == "RALPH_MAX_AVERAGE_ITERATION" && usual { 1 } else { 2 };
            assert_eq!(known.iter().filter(|one| one.is_none()).count(), expected, "{name}");
            for bad in ["0", "0s", "-1", "much", ""] {
                let error = set(bad).unwrap_err().to_string();
                assert!(error.starts_with(&format!("{name} in the environment: ")), "{error}");
                assert!(error.contains("`none`"), "{error}");
            }
        }
    }
}
