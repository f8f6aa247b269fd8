//! How a run ends, by why it ends.

use super::figures::{duration, size, stories, to_go};
use super::line::{Line, Text, Tone};
use super::money;
use super::progress::Counts;
use super::table;
use crate::core::forecast::forecast;
use crate::core::id::StoryId;
use crate::core::policy::StopReason;
use crate::core::select::{Because, Blocked};
use crate::core::text::visible_line;
use crate::engine::ports::View;

pub fn lines(at: i64, reason: &StopReason, view: View<'_>) -> Vec<Line> {
    let counts = Counts::of(view.backlog);
    let final_counts = Text::at(at).plain(format!("Final: {counts}"));
    let outlook = forecast(view.state, counts.remaining()).map(|forecast| to_go(&forecast));
    let final_counts = final_counts.figures(outlook);
    let mut lines =
        vec![Line::Blank, Line::Rule(heading(reason, &counts, view)), final_counts.into()];
    lines.extend(explanation(reason, &counts, view));
    lines.extend(table::lines(view));
    lines
}

fn heading(reason: &StopReason, counts: &Counts, view: View<'_>) -> String {
    match reason {
        StopReason::AllDone if counts.skipped > 0 => {
            format!("All tasks settled · {} complete, {} skipped", counts.complete, counts.skipped)
        }
        StopReason::AllDone => "All tasks complete".to_owned(),
        StopReason::StoryDone { story } => format!("{story} {}", result(story, view)),
        StopReason::Once => "One iteration done".to_owned(),
        StopReason::BudgetUsedUp { .. } => "The budget is used up".to_owned(),
        StopReason::MaxIterations { .. } => "Out of iterations".to_owned(),
        StopReason::BreakerOpen { .. } => "Nothing comes of it".to_owned(),
        StopReason::FailsAtOnce { .. } => "The agent fails at once".to_owned(),
        StopReason::Failing { .. } => "Nearly everything fails".to_owned(),
        StopReason::ConsecutiveErrors { .. } => "Too many errors in a row".to_owned(),
        StopReason::MaxRunTime { .. } => "Out of time".to_owned(),
        StopReason::SlowIterations { .. } => "Iterations take too long".to_owned(),
        StopReason::UsageLimit { .. } => "Usage limit".to_owned(),
        StopReason::ServiceDown { .. } => "The service did not come back".to_owned(),
        StopReason::AgentUnusable { .. } => "The agent cannot be used".to_owned(),
        StopReason::DiskLow { .. } => "The disk is nearly full".to_owned(),
        StopReason::NothingToSelect { .. } | StopReason::AccountTrouble { .. } => {
            "A human is needed".to_owned()
        }
        StopReason::Aborted => "Aborted".to_owned(),
    }
}

/// By the backlog: it may have been skipped before this run.
fn result(story: &StoryId, view: View<'_>) -> &'static str {
    match view.backlog.story(story) {
        Some(story) if story.skipped && !story.passes => "skipped",
        _ => "complete",
    }
}

fn explanation(reason: &StopReason, counts: &Counts, view: View<'_>) -> Vec<Line> {
    match reason {
        StopReason::AllDone | StopReason::StoryDone { .. } => vec![],
        StopReason::Once => vec![hint("`ralph run` goes on.")],
        StopReason::BudgetUsedUp { budget, spent, limit } => {
            money::used_up(budget, *spent, *limit, counts)
        }
        StopReason::MaxIterations { limit } => vec![out_of_iterations(*limit, counts)],
        StopReason::BreakerOpen { why, error } => {
            let first = error.lines().next().unwrap_or_default();
            trouble(&format!("{why}, and after the pause: {first}"), BREAKER)
        }
        StopReason::FailsAtOnce { times, error } => {
            let error = format!("{times} agents in a row ended alike within 10 seconds: {error}");
            trouble(&error, AT_ONCE)
        }
        StopReason::Failing { failed, error } => {
            let first = error.lines().next().unwrap_or_default();
            let error = format!("{failed} of the last 10 iterations failed, the last: {first}");
            trouble(&error, FAILING)
        }
        StopReason::ConsecutiveErrors { limit, error } => {
            let first = error.lines().next().unwrap_or_default();
            let error = format!("{} in a row, the last: {first}", errors(*limit));
            trouble(&error, ERRORS)
        }
        StopReason::MaxRunTime { limit_ms, worked_ms } => {
            let (limit, worked) = (duration(*limit_ms), duration(*worked_ms));
            let left = stories(counts.remaining());
            trouble(&format!("{worked} of {limit} used, {left} left"), RUN_TIME)
        }
        StopReason::SlowIterations { limit_ms, average_ms, iterations } => {
            let (limit, average) = (duration(*limit_ms), duration(*average_ms));
            let error = format!(
                "an iteration took {average} on average ({iterations} of them), and {limit} is the most"
            );
            trouble(&error, AVERAGE)
        }
        StopReason::UsageLimit { error, .. } => trouble(error, LIMIT),
        StopReason::ServiceDown { error } => trouble(error, OUTAGE),
        StopReason::AccountTrouble { error } => trouble(error, ACCOUNT),
        StopReason::AgentUnusable { error } => trouble(error, SETUP),
        StopReason::DiskLow { free, floor, place } => {
            let (free, floor) = (size(*free), size(*floor));
            let error = format!("{free} free at {place}, and {floor} is the least");
            trouble(&error, DISK)
        }
        StopReason::NothingToSelect { blocked } => human_needed(blocked, view),
        StopReason::Aborted => vec![hint("`ralph run` starts again where this run stopped.")],
    }
}

const LIMIT: &str = "`ralph run` goes on; with `--on-limit wait` it waits for the reset by itself.";
const OUTAGE: &str = "Look at the connection and the service's status page; `ralph run` goes on.";
const ACCOUNT: &str =
    "Run `claude` and `/login`, or mend the API key or the billing; `ralph run` goes on.";
const BREAKER: &str = "Look at the errors in `ralph log` and `.ralph/runs/`; `ralph run` starts afresh. `cool_down` in \
     ralph.toml (RALPH_COOL_DOWN) sets the pause, `none` goes without.";
const AT_ONCE: &str = "Start the agent by hand and see what it says; `ralph run` goes on.";
const FAILING: &str = "--max-failing N allows more; `ralph run` goes on.";
const ERRORS: &str = "--max-consecutive-errors N allows more; `ralph run` goes on.";
const RUN_TIME: &str = "--max-run-time TIME allows more; `ralph run` goes on.";
const AVERAGE: &str = "--max-average-iteration TIME allows more; `ralph run` goes on.";
const DISK: &str = "Make room there, or lower `min_free_disk` in ralph.toml; `ralph run` goes on.";
const SETUP: &str = "Mend `[agent]` in ralph.toml (`model`, `program`); `ralph run` goes on.";

fn trouble(error: &str, remedy: &str) -> Vec<Line> {
    let stopped = Text::new().with(Tone::Warning, format!("Stopped: {}", visible_line(error)));
    vec![stopped.into(), hint(remedy)]
}

fn errors(count: u32) -> String {
    if count == 1 { "1 error".to_owned() } else { format!("{count} errors") }
}

fn out_of_iterations(limit: u32, counts: &Counts) -> Line {
    let left = stories(counts.remaining());
    let used = if limit == 1 { "1 iteration".to_owned() } else { format!("{limit} iterations") };
    Text::new()
        .with(Tone::Warning, format!("Stopped: {used} used, {left} left."))
        .plain(" --max-iterations N allows more.")
        .into()
}

fn human_needed(blocked: &[Blocked], view: View<'_>) -> Vec<Line> {
    let reasons = blocked.iter().map(|blocked| Text::new().plain(why(blocked)).into());
    let mut lines: Vec<Line> = reasons.collect();
    let questions: Vec<Line> = open_questions(view).collect();
    let is_open = |blocked: &Blocked| matches!(blocked.because, Because::WaitsForOpen { .. });
    let next = if blocked.iter().any(is_open) {
        "Without `--story`, `ralph run` does that one first."
    } else if questions.is_empty() {
        "Nothing can be started until the backlog is changed: take a skip back, or a dependency out."
    } else {
        "Run `ralph run` in a terminal to answer."
    };
    lines.extend(questions);
    lines.push(Text::new().with(Tone::Strong, next).into());
    lines
}

fn why(blocked: &Blocked) -> String {
    let story = &blocked.story;
    match &blocked.because {
        Because::Parked => format!("{story} is parked: its question waits"),
        Because::WaitsForSkipped { on } => format!("{story} waits for {on}, which is skipped"),
        Because::WaitsForParked { on } => format!("{story} waits for {on}, which is parked"),
        Because::WaitsForOpen { on } => format!("{story} waits for {on}, which is not done yet"),
        Because::WaitsFor { on } => format!("{story} waits for {on}, which waits itself"),
    }
}

fn open_questions(view: View<'_>) -> impl Iterator<Item = Line> {
    view.state.questions().map(move |(id, question)| Line::Question {
        heading: titled(id, view),
        escalation: question.escalation.clone(),
    })
}

fn titled(id: &StoryId, view: View<'_>) -> String {
    let title = view.backlog.story(id).map(|story| visible_line(&story.title));
    format!("{id} {}", title.unwrap_or_default())
}

fn hint(text: &str) -> Line {
    Text::new().with(Tone::Dim, text).into()
}
