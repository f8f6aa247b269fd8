//! `[budget]`: what may be spent.

use serde::Deserialize;

use super::file::{Limit, SettingsFile};
use super::plan::{Flags, Layered, Origin, PlanError};
use crate::core::budget::Budgets;
use crate::core::money::Usd;

const DEFAULT_PER_RUN: Usd = Usd::dollars(25);
const AN_AMOUNT: &str = "an amount of dollars above 0 such as `25` or `0.50`, or `none`";

/// The `[budget]` table of ralph.toml.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BudgetSettings {
    pub per_iteration: Option<Limit>,
    pub per_story: Option<Limit>,
    pub per_run: Option<Limit>,
    pub per_day: Option<Limit>,
    pub per_user_day: Option<Limit>,
    pub throttle: bool,
}

/// What the command line said.
#[derive(Clone, Debug, Default)]
pub struct BudgetFlags {
    pub per_iteration: Option<String>,
    pub per_story: Option<String>,
    pub per_run: Option<String>,
    pub per_day: Option<String>,
    pub per_user_day: Option<String>,
}

/// One budget's names: flag, environment, file.
type Names = (&'static str, &'static str, &'static str);

const PER_ITERATION: Names =
    ("--budget-iteration", "RALPH_BUDGET_ITERATION", "budget.per_iteration");
const PER_STORY: Names = ("--budget-story", "RALPH_BUDGET_STORY", "budget.per_story");
const PER_RUN: Names = ("--budget", "RALPH_BUDGET", "budget.per_run");
const PER_DAY: Names = ("--budget-day", "RALPH_BUDGET_DAY", "budget.per_day");
const PER_USER_DAY: Names = ("--budget-user-day", "RALPH_BUDGET_USER_DAY", "budget.per_user_day");

pub(super) fn budgets(
    flags: &Flags,
    env: &dyn Fn(&str) -> Option<String>,
    file: &SettingsFile,
) -> Result<Budgets, PlanError> {
    let (flags, file) = (&flags.budget, &file.budget);
    let layers =
        |(flag, variable, setting): Names, said: &Option<String>, written: &Option<Limit>| {
            Layered::of([
                (Origin::Flag(flag), said.clone()),
                (Origin::Environment(variable), env(variable)),
                (Origin::File(setting), written.as_ref().map(ToString::to_string)),
            ])
        };
    let limit = |names, said, written| layers(names, said, written).parse(None, AN_AMOUNT, amount);
    let per_run = layers(PER_RUN, &flags.per_run, &file.per_run);
    let run_by_default = !per_run.is_said();
    Ok(Budgets {
        per_iteration: limit(PER_ITERATION, &flags.per_iteration, &file.per_iteration)?,
        per_story: limit(PER_STORY, &flags.per_story, &file.per_story)?,
        per_run: per_run.parse(Some(DEFAULT_PER_RUN), AN_AMOUNT, amount)?,
        run_by_default,
        per_day: limit(PER_DAY, &flags.per_day, &file.per_day)?,
        per_user_day: limit(PER_USER_DAY, &flags.per_user_day, &file.per_user_day)?,
        throttle: file.throttle,
    })
}

/// Claude Code's own limit for one iteration.
pub(super) fn check_agents_own(file: &SettingsFile) -> Result<(), PlanError> {
    let text = file.agent.max_budget_usd.map(|dollars| dollars.to_string());
    let layered = Layered::of([(Origin::File("agent.max_budget_usd"), text)]);
    layered.parse(None, AN_AMOUNT, amount).map(|_| ())
}

/// `none` switches a budget off; nothing at all would be a run that can do nothing.
#[expect(clippy::option_option, reason = "the outer one says whether the text is right")]
fn amount(text: &str) -> Option<Option<Usd>> {
    if text == "none" { Some(None) } else { Usd::parse(text).map(Some) }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::plan::Plan;
    use super::*;

    fn plan(flags: BudgetFlags, env: &[(&str, &str)], text: &str) -> Result<Budgets, PlanError> {
        let lookup = |name: &str| {
            env.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        };
        let file =
            SettingsFile { budget: toml::from_str(text).unwrap(), ..SettingsFile::default() };
        let flags = Flags { budget: flags, ..Flags::default() };
        Plan::new(flags, &lookup, file, Path::new("/")).map(|plan| plan.budgets)
    }

    fn per_run(dollars: &str) -> BudgetFlags {
        BudgetFlags { per_run: Some(dollars.to_owned()), ..BudgetFlags::default() }
    }

    #[test]
    fn without_a_word_only_the_run_is_limited_and_only_by_default() {
        let budgets = plan(BudgetFlags::default(), &[], "").unwrap();
        let expected =
            Budgets { per_run: Some(Usd::dollars(25)), run_by_default: true, ..Budgets::default() };
        assert_eq!(budgets, expected);
    }

    #[test]
    fn flag_over_environment_over_file() {
        let env = [("RALPH_BUDGET", "2")];
        let file = "per_run = 3.5";
        for (budgets, expected) in [
            (plan(per_run("1"), &env, file), Some(Usd::dollars(1))),
            (plan(per_run("none"), &env, file), None),
            (plan(BudgetFlags::default(), &env, file), Some(Usd::dollars(2))),
            (plan(BudgetFlags::default(), &[], file), Some(Usd::of(3.5))),
            (plan(BudgetFlags::default(), &[], "per_run = \"none\""), None),
            (plan(BudgetFlags::default(), &[], "per_run = 25"), Some(Usd::dollars(25))),
        ] {
            let budgets = budgets.unwrap();
            assert_eq!((budgets.per_run, budgets.run_by_default), (expected, false));
        }
    }

    #[test]
    fn every_budget_has_its_own_names() {
        let text =
            "per_iteration = 1\nper_story = 2\nper_day = 3\nper_user_day = 4\nthrottle = true";
        let budgets = plan(BudgetFlags::default(), &[], text).unwrap();
        let found =
            [budgets.per_iteration, budgets.per_story, budgets.per_day, budgets.per_user_day];
        assert_eq!(found, [1, 2, 3, 4].map(|dollars| Some(Usd::dollars(dollars))));
        assert!(budgets.throttle);
        let env = [
            ("RALPH_BUDGET_ITERATION", "5"),
            ("RALPH_BUDGET_STORY", "6"),
            ("RALPH_BUDGET_DAY", "7"),
            ("RALPH_BUDGET_USER_DAY", "8"),
        ];
        let budgets = plan(BudgetFlags::default(), &env, text).unwrap();
        let found =
            [budgets.per_iteration, budgets.per_story, budgets.per_day, budgets.per_user_day];
        assert_eq!(found, [5, 6, 7, 8].map(|dollars| Some(Usd::dollars(dollars))));
    }

    #[test]
    fn a_bad_amount_says_where_it_stands() {
        for bad in ["0", "-5", "nan", "inf", "1e9", "", "lots"] {
            let error = plan(per_run(bad), &[], "").unwrap_err();
            let text = error.to_string();
            assert!(text.starts_with(&format!("--budget: `{bad}` is not an amount")), "{text}");
            assert!(error.is_usage());
            let error = plan(BudgetFlags::default(), &[("RALPH_BUDGET_DAY", bad)], "").unwrap_err();
            assert!(error.to_string().starts_with("RALPH_BUDGET_DAY in the env"), "{error}");
        }
        for bad in ["0", "-1.5", "nan", "inf", "\"much\"", "0.0"] {
            let error = plan(BudgetFlags::default(), &[], &format!("per_story = {bad}"));
            let error = error.unwrap_err();
            assert!(!error.is_usage(), "{bad}");
            assert!(error.to_string().starts_with("`budget.per_story` in ralph.toml"), "{error}");
        }
    }

    #[test]
    fn claudes_own_limit_is_an_amount_too() {
        for (dollars, is_fine) in [(2.5, true), (0.0, false), (-1.0, false), (f64::NAN, false)] {
            let mut file = SettingsFile::default();
            file.agent.max_budget_usd = Some(dollars);
            let plan = Plan::new(Flags::default(), &|_| None, file, Path::new("/"));
            assert_eq!(plan.is_ok(), is_fine, "{dollars}");
        }
    }
}
