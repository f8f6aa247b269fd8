use crate::decide::next::decide;
use crate::decide::samples::{History, attended, backlog, failed, id, policy, story};
use crate::decide::situation::{Action, Observed};
use crate::model::{
    Answer, AttemptCost, Budget, BudgetLevel, Budgets, Event, LaneId, MINUTE, Policy, SpentToday,
    StopReason, Usage, Verdict, WaitFor,
};

use super::*;

const HOUR: i64 = 60 * MINUTE;

fn usd(dollars: f64) -> Usd {
    Usd::of(dollars)
}

fn per_run(dollars: f64) -> Budgets {
    Budgets { per_run: Some(usd(dollars)), ..Budgets::default() }
}

fn by_default(dollars: f64) -> Budgets {
    Budgets { run_by_default: true, ..per_run(dollars) }
}

fn per_story(dollars: f64) -> Budgets {
    Budgets { per_story: Some(usd(dollars)), ..Budgets::default() }
}

fn per_day(dollars: f64) -> Budgets {
    Budgets { per_day: Some(usd(dollars)), ..Budgets::default() }
}

fn per_user_day(dollars: f64) -> Budgets {
    Budgets { per_user_day: Some(usd(dollars)), ..Budgets::default() }
}

fn with(budgets: &Budgets) -> Policy {
    Policy { budgets: budgets.clone(), ..policy() }
}

fn costing(dollars: f64) -> Usage {
    Usage { cost_usd: Some(dollars), ..Usage::default() }
}

/// One attempt at A that got on and cost so much.
fn spent(dollars: f64) -> History {
    History::new().started("A").ended(Verdict::Progress, costing(dollars))
}

fn today(repository: f64, user: f64) -> Observed {
    let today = SpentToday { began: 0, repository: usd(repository), user: usd(user) };
    Observed { now: 10, today, ..Observed::default() }
}

fn next_at(history: &History, budgets: &Budgets, moment: &Observed) -> Action {
    decide(&history.state, &backlog([story("A"), story("B")]), &with(budgets), moment)
}

fn next(history: &History, budgets: &Budgets) -> Action {
    next_at(history, budgets, &today(0.0, 0.0))
}

fn stop(budget: Budget, spent: f64, limit: f64) -> Action {
    Action::Stop(StopReason::BudgetUsedUp { budget, spent: usd(spent), limit: usd(limit) })
}

fn attempt(name: &str) -> Action {
    Action::Attempt { story: id(name), lane: LaneId::HOME }
}

fn level(budget: Budget, spent: f64, limit: f64) -> BudgetLevel {
    BudgetLevel { budget, spent: usd(spent), limit: usd(limit), binding: true }
}

fn alert(budget: Budget, spent: f64, limit: f64) -> Action {
    Action::Alert { level: level(budget, spent, limit) }
}

fn told(history: History, next: &Action) -> History {
    let Action::Alert { level } = next else { panic!("{next:?} tells nothing") };
    history.then(Event::BudgetNear { level: level.clone() })
}

#[test]
fn a_run_is_warned_at_80_percent_and_stopped_at_100() {
    for (dollars, expected) in [
        (7.99, attempt("A")),
        (8.0, alert(Budget::Run, 8.0, 10.0)),
        (9.999_999, alert(Budget::Run, 9.999_999, 10.0)),
        (10.0, stop(Budget::Run, 10.0, 10.0)),
        (12.0, stop(Budget::Run, 12.0, 10.0)),
    ] {
        assert_eq!(next(&spent(dollars), &per_run(10.0)), expected, "{dollars}");
    }
    assert_eq!(next(&spent(1e9), &Budgets::default()), attempt("A"), "no limit");
}

#[test]
fn days_count_what_other_runs_spent_too() {
    for (budgets, moment, expected) in [
        (per_day(10.0), today(7.9, 99.0), attempt("A")),
        (per_day(10.0), today(8.0, 99.0), alert(Budget::Day, 8.0, 10.0)),
        (per_day(10.0), today(10.0, 99.0), stop(Budget::Day, 10.0, 10.0)),
        (per_user_day(10.0), today(99.0, 7.9), attempt("A")),
        (per_user_day(10.0), today(99.0, 8.0), alert(Budget::UserDay, 8.0, 10.0)),
        (per_user_day(10.0), today(99.0, 10.5), stop(Budget::UserDay, 10.5, 10.0)),
    ] {
        assert_eq!(next_at(&spent(1.0), &budgets, &moment), expected, "{budgets:?}");
    }
}

#[test]
fn of_two_spent_budgets_the_narrower_one_is_reported() {
    let both = Budgets { per_day: Some(usd(10.0)), ..per_run(10.0) };
    assert_eq!(next_at(&spent(10.0), &both, &today(10.0, 0.0)), stop(Budget::Run, 10.0, 10.0));
    let day_only = next_at(&spent(9.0), &both, &today(10.0, 0.0));
    assert_eq!(day_only, stop(Budget::Day, 10.0, 10.0), "a stop comes before an alert");
}

#[test]
fn an_alert_comes_once_for_each_limit_and_each_day() {
    let history = spent(8.5);
    let near = next(&history, &per_run(10.0));
    let after = told(history, &near);
    assert_eq!(next(&after, &per_run(10.0)), attempt("A"));
    assert_eq!(next(&after, &per_run(10.5)), alert(Budget::Run, 8.5, 10.5), "another limit");
    let continued = after.then(Event::RunContinued);
    assert_eq!(next(&continued, &per_run(10.0)), attempt("A"), "also after a restart");

    let day = |began, now| Observed { now, ..today(8.5, 0.0) }.on(began);
    let near = next_at(&spent(1.0), &per_day(10.0), &day(0, 10));
    let after = told(spent(1.0), &near);
    assert_eq!(next_at(&after, &per_day(10.0), &day(0, 10)), attempt("A"));
    let tomorrow = day(24 * HOUR, 24 * HOUR);
    assert_eq!(next_at(&after, &per_day(10.0), &tomorrow), near, "the next day again");
}

trait On {
    fn on(self, began: i64) -> Self;
}

impl On for Observed {
    fn on(mut self, began: i64) -> Self {
        self.today.began = began;
        self
    }
}

#[test]
fn with_a_subscription_the_default_only_alerts_and_what_was_asked_for_counts() {
    let pays = |subscription| {
        let cost = AttemptCost { subscription, ..AttemptCost::default() };
        History::new().started("A").costing(Verdict::Progress, costing(12.0), cost)
    };
    let stopped = stop(Budget::Run, 12.0, 10.0);
    for (subscription, budgets, expected) in [
        (Some(false), by_default(10.0), &stopped),
        (None, by_default(10.0), &stopped),
        (Some(true), per_run(10.0), &stopped),
    ] {
        assert_eq!(next(&pays(subscription), &budgets), *expected, "{subscription:?}");
    }
    let history = pays(Some(true));
    let near = next(&history, &by_default(10.0));
    let Action::Alert { level } = &near else { panic!("{near:?}") };
    assert_eq!((level.binding, level.spent), (false, usd(12.0)));
    assert_eq!(next(&told(history, &near), &by_default(10.0)), attempt("A"));
    let later = pays(Some(true)).run(&[]).started("A").ended(Verdict::Progress, costing(50.0));
    assert_ne!(next(&later, &by_default(10.0)), stop(Budget::Run, 50.0, 10.0), "it is remembered");
}

#[test]
fn completion_is_reported_before_budgets_and_budgets_before_iterations() {
    let done = backlog([story("A")]);
    let passing = {
        let mut backlog = done.clone();
        backlog.stories.iter_mut().for_each(|story| story.passes = true);
        backlog
    };
    let history =
        History::new().started("A").ended(Verdict::Done, costing(10.0)).planned("A").closed("A");
    let decided = decide(&history.state, &passing, &with(&per_run(10.0)), &today(0.0, 0.0));
    assert_eq!(decided, Action::Stop(StopReason::AllDone));
    let both = Policy { max_iterations: Some(1), ..with(&per_run(10.0)) };
    let decided = decide(&spent(10.0).state, &done, &both, &today(0.0, 0.0));
    assert_eq!(decided, stop(Budget::Run, 10.0, 10.0));
}

#[test]
fn a_story_over_its_budget_becomes_a_question_and_the_others_continue() {
    let summary = |next: &Action| match next {
        Action::Raise { story, question } => Some((story.clone(), question.summary.clone())),
        _ => None,
    };
    let near = next(&spent(4.0), &per_story(5.0));
    assert_eq!(near, alert(Budget::Story(id("A")), 4.0, 5.0));
    assert_eq!(next(&told(spent(4.0), &near), &per_story(5.0)), attempt("A"));
    let asked = next(&spent(5.0), &per_story(5.0));
    let (who, what) = summary(&asked).expect("a question");
    assert_eq!(who, id("A"));
    assert!(what.contains("A has cost $5.00"), "{what}");
    let Action::Raise { question, .. } = asked else { panic!("a question") };
    let raised = spent(5.0).then(Event::QuestionRaised { story: id("A"), question });
    assert_eq!(next(&raised, &per_story(5.0)), Action::Park { story: id("A") });
    let parked = raised.clone().parked("A");
    assert_eq!(next(&parked, &per_story(5.0)), Action::Shelve { story: id("A") });
    assert_eq!(next(&parked.shelved("A", None), &per_story(5.0)), attempt("B"));

    let again = raised.answered("A", Answer::Retry);
    assert_eq!(next(&again, &per_story(5.0)), attempt("A"), "it may cost as much again");
    let both = again.started("A").ended(Verdict::Progress, costing(5.0));
    assert!(summary(&next(&both, &per_story(5.0))).is_some());
}

#[test]
fn a_storys_budget_spans_runs_and_a_runs_does_not() {
    let next_run = spent(4.5).run(&["A"]);
    assert_eq!(next_run.state.costs.spent, Usd::ZERO);
    let story_near = next(&next_run, &per_story(5.0));
    assert_eq!(story_near, alert(Budget::Story(id("A")), 4.5, 5.0));
}

#[test]
fn what_a_dead_drivers_attempt_may_have_cost_counts() {
    let lost = spent(3.0).started("B");
    let counted = lost.state.costs.assumed();
    assert_eq!(counted, usd(3.0), "the run's median");
    let lost =
        lost.then(Event::AttemptLost { attempt: "attempt 2".into(), story: id("B"), counted });
    assert_eq!((lost.state.costs.spent, lost.of("B").spent), (usd(6.0), usd(3.0)));
    let continued = lost.then(Event::RunContinued);
    assert_eq!(next(&continued, &per_run(6.0)), stop(Budget::Run, 6.0, 6.0));
    assert!(matches!(next(&continued, &per_run(100.0)), Action::Attempt { .. }));
}

#[test]
fn the_allowance_is_the_smallest_rest_and_never_nothing() {
    let all = Budgets {
        per_iteration: Some(usd(4.0)),
        per_story: Some(usd(5.0)),
        per_run: Some(usd(20.0)),
        per_day: Some(usd(30.0)),
        per_user_day: Some(usd(40.0)),
        ..Budgets::default()
    };
    let allowed = |budgets: &Budgets, run: f64, on_story: f64, day: f64, user: f64| {
        let mut spending = RunCosts::default();
        spending.spent = usd(run);
        let today = SpentToday { began: 0, repository: usd(day), user: usd(user) };
        BudgetCheck { budgets, costs: &spending, reserved: Usd::ZERO, today }.allowance(
            &id("A"),
            usd(on_story),
            1,
        )
    };
    for (run, on_story, day, user, expected) in [
        (0.0, 0.0, 0.0, 0.0, 4.0),
        (17.0, 0.0, 0.0, 0.0, 3.0),
        (0.0, 4.5, 0.0, 0.0, 0.5),
        (0.0, 0.0, 29.0, 0.0, 1.0),
        (0.0, 0.0, 0.0, 39.75, 0.25),
        (19.999_999, 0.0, 0.0, 0.0, 0.000_001),
        (20.0, 0.0, 0.0, 0.0, 0.01),
        (25.0, 9.0, 99.0, 99.0, 0.01),
    ] {
        let found = allowed(&all, run, on_story, day, user);
        assert_eq!(found, Some(usd(expected)), "{run} {on_story} {day} {user}");
    }
    assert_eq!(allowed(&Budgets::default(), 99.0, 99.0, 99.0, 99.0), None);
}

#[test]
fn money_that_runs_is_not_given_out_twice() {
    let policy =
        |lanes| Policy { lanes: std::num::NonZeroU32::new(lanes).unwrap(), ..with(&per_run(10.0)) };
    let next = |history: &History, lanes| {
        let stories = backlog([story("A"), story("B")]);
        decide(&history.state, &stories, &policy(lanes), &today(0.0, 0.0))
    };
    let started = |allowance: f64| {
        let mut start = History::new().started_in("A", LaneId(1)).events.pop().unwrap();
        let Event::AttemptStarted(start) = &mut start.event else { panic!("no start") };
        start.allowance = Some(usd(allowance));
        History::new().then(Event::AttemptStarted(start.clone()))
    };
    assert_eq!(next(&started(10.0), 2), Action::Wait(None));
    let second = Action::Attempt { story: id("B"), lane: LaneId(2) };
    assert_eq!(next(&started(5.0), 2), second);
}

#[test]
fn a_default_that_only_alerts_allows_anything() {
    let mut spending = RunCosts::default();
    spending.spent = usd(9.0);
    spending.subscription = Some(true);
    let allowed = |budgets: &Budgets| {
        let purse = BudgetCheck {
            budgets,
            costs: &spending,
            reserved: Usd::ZERO,
            today: SpentToday::default(),
        };
        purse.allowance(&id("A"), Usd::ZERO, 1)
    };
    assert_eq!(allowed(&by_default(10.0)), None);
    assert_eq!(allowed(&per_run(10.0)), Some(usd(1.0)));
}

#[test]
fn pauses_grow_from_the_alert_on() {
    let throttled = |dollars: f64, throttle: bool| {
        let budgets = Budgets { throttle, ..per_run(100.0) };
        let history = spent(dollars);
        let history = match next(&history, &budgets) {
            near @ Action::Alert { .. } => told(history, &near),
            _ => history,
        };
        match next(&history, &budgets) {
            Action::Throttle { until, .. } => Some((until - 10) / MINUTE),
            _ => None,
        }
    };
    for (dollars, minutes) in [
        (79.9, None),
        (80.0, Some(1)),
        (84.9, Some(1)),
        (85.0, Some(2)),
        (90.0, Some(4)),
        (95.0, Some(8)),
        (99.9, Some(8)),
        (100.0, None),
    ] {
        assert_eq!(throttled(dollars, true), minutes, "{dollars}");
        assert_eq!(throttled(dollars, false), None, "{dollars}");
    }
}

#[test]
fn a_pause_is_waited_for_once_and_can_be_cut_short() {
    let budgets = Budgets { throttle: true, ..per_run(10.0) };
    let history = told(spent(8.0), &next(&spent(8.0), &budgets));
    let Action::Throttle { level, until } = next(&history, &budgets) else { panic!("no pause") };
    let paused = history.then(Event::Throttled { level, until });
    let wait = paused.state.wait(10).unwrap();
    assert_eq!((wait.what, wait.until), (WaitFor::Budget, until));
    assert_eq!(next(&paused, &budgets), Action::Wait(Some(wait.clone())));
    let over = Observed { now: until, ..today(0.0, 0.0) };
    assert_eq!(next_at(&paused, &budgets, &over), attempt("A"));
    assert_eq!(paused.state.wait(until), None);
    let restarted = paused.clone().then(Event::RunContinued);
    assert_eq!(next(&restarted, &budgets), Action::Wait(Some(wait)));
    let hurried = paused.then(Event::WaitCutShort);
    assert_eq!(next(&hurried, &budgets), attempt("A"));
    let started = hurried.started("A");
    assert_eq!(next(&started, &budgets), Action::Wait(None), "not before the attempt that runs");
    let again = started.ended(failed("x"), costing(0.0));
    assert!(matches!(next(&again, &budgets), Action::Throttle { .. }), "before each attempt");
}

#[test]
fn a_human_who_is_there_is_asked_about_a_storys_money() {
    let policy = Policy { budgets: per_story(5.0), ..attended() };
    let raised = decide(&spent(5.0).state, &backlog([story("A")]), &policy, &today(0.0, 0.0));
    assert!(matches!(raised, Action::Raise { .. }), "{raised:?}");
}

#[test]
fn the_tightest_budget_tells_how_much_is_spent() {
    let of = |budgets: &Budgets| {
        let spent = spent(4.0);
        let purse = BudgetCheck {
            budgets,
            costs: &spent.state.costs,
            reserved: Usd::ZERO,
            today: SpentToday::default(),
        };
        purse.share(&id("A"), Usd::from_cents(200), Usd::from_cents(100))
    };
    for (budgets, share) in [
        (Budgets::default(), None),
        (per_run(10.0), Some(0.5)),
        (per_story(4.0), Some(0.75)),
        (Budgets { per_story: Some(Usd::from_cents(400)), ..per_run(10.0) }, Some(0.75)),
        (Budgets { per_iteration: Some(Usd::from_cents(100)), ..per_run(10.0) }, Some(1.0)),
    ] {
        assert_eq!(of(&budgets), share, "{budgets:?}");
    }
}

/// What attempts in flight may cost is spoken for: nobody else starts on it.
#[test]
fn money_is_given_out_once() {
    let mut spending = RunCosts::default();
    spending.spent = usd(4.0);
    let check = |budgets: &Budgets, reserved: f64| {
        let (reserved, today) = (usd(reserved), SpentToday::default());
        let check = BudgetCheck { budgets, costs: &spending, reserved, today };
        (check.is_reserved(), check.allowance(&id("A"), Usd::ZERO, 2))
    };
    for (budgets, reserved, expected) in [
        (per_run(10.0), 0.0, (false, Some(usd(3.0)))),
        (per_run(10.0), 2.0, (false, Some(usd(2.0)))),
        (per_run(10.0), 5.9, (false, Some(usd(0.05)))),
        (per_run(10.0), 6.0, (true, Some(usd(0.01)))),
        (per_run(10.0), 9.0, (true, Some(usd(0.01)))),
        // It is used up, but not by what is in flight.
        (per_run(4.0), 0.0, (false, Some(usd(0.01)))),
        (Budgets::default(), 9.0, (false, None)),
    ] {
        assert_eq!(check(&budgets, reserved), expected, "{budgets:?} {reserved}");
    }
}
