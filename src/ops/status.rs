//! `ralph status`: the run's state and the backlog, as text or JSON.

use std::fmt::Write;
use std::path::Path;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::decide::figures::forecast;
use crate::model::{Backlog, Story, Usage, Usd, visible, visible_line};
use crate::ports::Clock;
use crate::report::BreakerState;
use crate::state::{BreakerPhase, RunState};
use crate::store::prd::PrdFile;
use crate::ui;

use super::error::Result;
use super::place::{open_tree, place_of, state_of, store_of};
use super::terminal::{print, print_json};

pub fn status(prd: &Path, json: bool, clock: &Clock) -> Result<()> {
    let loaded = PrdFile::new(prd).load()?;
    let tree = open_tree(prd)?;
    let store = store_of(&tree);
    let state = state_of(&store, &place_of(&tree, prd)?)?;
    let holder = store.lease_holder();
    if json {
        return print_json(&as_json(&loaded.backlog, &state, holder.is_some(), clock.now().wall));
    }
    print(&as_text(&loaded.backlog, &state, holder.as_deref(), clock))
}

/// The state of a story in one word. Without a run no story is running.
fn word(story: &Story, state: &RunState, is_running: bool) -> &'static str {
    let known = state.story(&story.id);
    let under_way = state.attempts.at(&story.id).is_some();
    match known.and_then(|known| known.question()) {
        _ if story.passes => "passes",
        _ if story.skipped => "skipped",
        Some(question) if question.parked => "parked",
        Some(_) => "asks",
        None if under_way && is_running => "running",
        None => "open",
    }
}

fn run_line(state: &RunState, holder: Option<&str>) -> String {
    let Some(run) = &state.run else { return "no run yet".to_owned() };
    let stands = match (&state.ended, holder) {
        (Some(_), _) => "ended".to_owned(),
        (None, Some(holder)) => format!("running ({})", visible_line(holder)),
        (None, None) => "interrupted; `ralph run` resumes it".to_owned(),
    };
    let iterations = ui::counted(state.attempts.iterations, "iteration");
    let worked = ui::duration(state.work_time.ms());
    format!("run {} · {iterations} · {stands} · work time {worked}", ui::short_run(&run.run))
}

/// What could stop an open run soon: a half-open breaker, or errors in a row.
fn errors_line(state: &RunState) -> Option<String> {
    if !state.is_open() {
        return None;
    }
    if let BreakerPhase::HalfOpen { why, .. } | BreakerPhase::Failed { why } = &state.breaker.phase
    {
        let why = visible_line(why);
        return Some(format!("circuit breaker half-open ({why}): one more failure stops the run"));
    }
    let count = state.failures.errors(u32::MAX);
    let error = visible_line(state.failures.last_error.lines().next().unwrap_or_default());
    (count > 1).then(|| format!("{count} errors in a row: {error}"))
}

/// The cost so far, and the forecast.
fn figures(backlog: &Backlog, state: &RunState) -> Option<String> {
    let spent = state.costs.spent;
    let spent = (spent > Usd::ZERO).then(|| format!("{spent} spent"));
    let outlook = forecast(state, backlog.remaining()).filter(|_| state.is_open());
    let parts: Vec<String> = spent.into_iter().chain(outlook.as_ref().map(ui::to_go)).collect();
    (!parts.is_empty()).then(|| parts.join(" · "))
}

/// Without the cost, which has a field of its own.
fn usage(usage: &Usage) -> Value {
    let mut usage = json!(usage);
    usage.as_object_mut().map(|fields| fields.remove("cost_usd"));
    usage
}

fn as_text(backlog: &Backlog, state: &RunState, holder: Option<&str>, clock: &Clock) -> String {
    let (done, total) = (backlog.done(), backlog.stories.len());
    let heading = format!("{} · {done}/{total} complete", visible_line(&backlog.project));
    let wait = state.wait(clock.now().wall).map(|wait| {
        let until = ui::day_and_time(wait.until, &clock.zone);
        format!("waiting until {until}: {}", visible_line(&wait.error))
    });
    let run = [Some(run_line(state, holder)), wait, errors_line(state), figures(backlog, state)];
    let mut text = String::new();
    for line in std::iter::once(heading).chain(run.into_iter().flatten()) {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{line}");
    }
    let widest = backlog.stories.iter().map(|story| story.id.as_str().len()).max().unwrap_or(0);
    for story in &backlog.stories {
        let word = word(story, state, holder.is_some());
        let (id, title) = (story.id.as_str(), visible_line(&story.title));
        let _ = writeln!(text, "  {id:widest$}  {word:<8} {title}");
    }
    for (id, question) in state.questions() {
        let asked = &question.escalation;
        let _ = writeln!(text, "\n{id} asks: {}", visible_line(&asked.summary));
        let _ = writeln!(text, "{}", visible(asked.question.trim()));
        let how = holder.map_or("with `ralph run` in a terminal", |_| "in the terminal of the run");
        let _ = writeln!(text, "Answer it {how}.");
    }
    text
}

fn as_json(backlog: &Backlog, state: &RunState, is_running: bool, now: i64) -> Value {
    let entry = |story: &Story| {
        let known = state.story(&story.id);
        let totals = known.map(|known| known.totals.clone()).unwrap_or_default();
        json!({
            "id": story.id,
            "title": story.title,
            "state": word(story, state, is_running),
            "attempts": totals.attempts,
            "elapsed_ms": totals.elapsed_ms,
            "cost_usd": totals.usage.cost_usd,
            "counted_usd": totals.cost,
            "usage": usage(&totals.usage),
            "question": known.and_then(|known| known.question()).map(|q| &q.escalation),
        })
    };
    let stories: Vec<Value> = backlog.stories.iter().map(entry).collect();
    let wait = state.wait(now).map(|wait| {
        let until = Timestamp::from_millisecond(wait.until).unwrap_or(Timestamp::MAX);
        json!({ "until": until.to_string(), "error": wait.error })
    });
    let mut all = Usage::default();
    state.stories.values().for_each(|story| all.add(&story.totals.usage));
    json!({
        "project": backlog.project,
        "complete": backlog.done(),
        "remaining": backlog.remaining(),
        "run": state.run.as_ref().map(|run| &run.run),
        "running": is_running,
        "iterations": state.attempts.iterations,
        "worked_ms": state.work_time.ms(),
        "errors_in_a_row": state.failures.errors(u32::MAX),
        "breaker": BreakerState::from(&state.breaker.phase),
        "wait": wait,
        "agent_version": state.agent_version,
        "model": state.model,
        "cost_usd": state.cost_usd(),
        "counted_usd": state.costs.spent,
        "usage": usage(&all),
        "forecast": forecast(state, backlog.remaining()),
        "stop": state.ended,
        "stories": stories,
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use jiff::tz::TimeZone;

    use super::*;
    use crate::decide::samples::{History, Told, backlog, failed, story};
    use crate::model::{Event, Verdict};
    use crate::ports::Moment;

    const EIGHT: i64 = 8 * 3_600_000;

    /// It is always ten o'clock, on a Thursday, two hours east of London.
    fn shown(history: &History, holder: Option<&str>) -> String {
        let moment = || Moment { wall: EIGHT, steady: Duration::ZERO };
        let clock = Clock::new(TimeZone::fixed(jiff::tz::offset(2)), moment);
        let stories = [story("US-001").passing(), story("US-002"), story("US-3").skipped()];
        as_text(&backlog(stories), &history.state, holder, &clock)
    }

    fn one_done() -> History {
        History::new().tried("US-001", Verdict::Done).planned("US-001").closed("US-001")
    }

    #[test]
    fn an_agent_runs() {
        let running = one_done().started("US-002");
        insta::assert_snapshot!(shown(&running, Some("pid 7, in /dev/pts/3")), @r"
        p · 1/3 complete
        run run 0 · 2 iterations · running (pid 7, in /dev/pts/3) · work time 0.1s
          US-001  passes   Title of US-001
          US-002  running  Title of US-002
          US-3    skipped  Title of US-3
        ");
    }

    /// The end of the wait is in the time zone of the clock.
    #[test]
    fn the_breaker_is_open_and_then_half_open() {
        let opened = |until| Event::BreakerOpened { why: "2 stories fail".to_owned(), until };
        insta::assert_snapshot!(shown(&one_done().then(opened(EIGHT + 754_000)), None), @r"
        p · 1/3 complete
        run run 0 · 1 iteration · interrupted; `ralph run` resumes it · work time 0.1s
        waiting until Thu 10:12:34: 2 stories fail
          US-001  passes   Title of US-001
          US-002  open     Title of US-002
          US-3    skipped  Title of US-3
        ");
        let probe = one_done().then(opened(EIGHT)).started("US-002");
        insta::assert_snapshot!(shown(&probe, Some("pid 7")), @r"
        p · 1/3 complete
        run run 0 · 2 iterations · running (pid 7) · work time 0.1s
        circuit breaker half-open (2 stories fail): one more failure stops the run
          US-001  passes   Title of US-001
          US-002  running  Title of US-002
          US-3    skipped  Title of US-3
        ");
    }

    #[test]
    fn errors_in_a_row() {
        let failing = one_done().tried_often("US-002", &failed("no\x1b[2J compiler\nmore"), 2);
        insta::assert_snapshot!(shown(&failing, None), @r"
        p · 1/3 complete
        run run 0 · 3 iterations · interrupted; `ralph run` resumes it · work time 0.3s
        2 errors in a row: no\x1b[2J compiler
          US-001  passes   Title of US-001
          US-002  open     Title of US-002
          US-3    skipped  Title of US-3
        ");
    }

    #[test]
    fn a_question_says_where_to_answer_it() {
        let asked = one_done().tried("US-002", failed("e")).raised("US-002");
        insta::assert_snapshot!(shown(&asked, Some("pid 7")), @r"
        p · 1/3 complete
        run run 0 · 2 iterations · running (pid 7) · work time 0.2s
          US-001  passes   Title of US-001
          US-002  asks     Title of US-002
          US-3    skipped  Title of US-3

        US-002 asks: stuck
        Which?
        Answer it in the terminal of the run.
        ");
        insta::assert_snapshot!(shown(&asked.parked("US-002"), None), @r"
        p · 1/3 complete
        run run 0 · 2 iterations · interrupted; `ralph run` resumes it · work time 0.2s
          US-001  passes   Title of US-001
          US-002  parked   Title of US-002
          US-3    skipped  Title of US-3

        US-002 asks: stuck
        Which?
        Answer it with `ralph run` in a terminal.
        ");
    }
}
