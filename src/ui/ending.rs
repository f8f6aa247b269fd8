//! The end of a run: the reason, the remedy, the progress, and a table of the stories.

use crate::decide::figures::forecast;
use crate::decide::limits::red_gates;
use crate::model::{Backlog, Because, Blocked, StopReason, Story, StoryId, visible_line};
use crate::ports::View;
use crate::state::{Stage, StoryState};

use super::figures::{cost, counted, duration, short_commit, size, stories, to_go};
use super::layout;
use super::look::{Line, TextLine, Tone};
use super::menu;

pub fn lines(at: i64, reason: &StopReason, view: View<'_>) -> Vec<Line> {
    let mut lines = vec![Line::Blank, Line::Rule(heading(reason, view.backlog))];
    lines.push(progress(at, "Final", view));
    lines.extend(explanation(reason, view));
    lines.extend(table(view));
    lines
}

/// `Final: 3/5 complete, 1 skipped (1 remaining)`.
pub fn progress(at: i64, label: &str, view: View<'_>) -> Line {
    let (all, done) = (view.backlog.stories.len(), view.backlog.done());
    let remaining = view.backlog.remaining();
    let skipped = match skipped(view.backlog) {
        0 => String::new(),
        count => format!(", {count} skipped"),
    };
    let counts = format!("{label}: {done}/{all} complete{skipped} ({remaining} remaining)");
    let outlook = forecast(view.state, remaining).as_ref().map(to_go);
    TextLine::at(at).plain(counts).figures(outlook).into()
}

fn skipped(backlog: &Backlog) -> usize {
    backlog.stories.len().saturating_sub(backlog.done() + backlog.remaining())
}

fn heading(reason: &StopReason, backlog: &Backlog) -> String {
    match (reason, skipped(backlog)) {
        (StopReason::AllDone, skipped @ 1..) => {
            format!("All stories settled · {} complete, {skipped} skipped", backlog.done())
        }
        (StopReason::StoryDone { story }, _) => {
            // By the backlog: it may have been skipped before this run.
            let found = backlog.story(story);
            let is_skipped = found.is_some_and(|story| story.skipped && !story.passes);
            format!("{story} {}", if is_skipped { "skipped" } else { "complete" })
        }
        _ => reason.stop().heading.to_owned(),
    }
}

fn explanation(reason: &StopReason, view: View<'_>) -> Vec<Line> {
    if let StopReason::NothingToSelect { blocked } = reason {
        return human_needed(blocked, view);
    }
    let stopped = figures(reason, view.backlog.remaining()).map(|figures| {
        TextLine::new().with(Tone::Warning, format!("Stopped: {}", visible_line(&figures)))
    });
    let remedy = Some(reason.stop().remedy).filter(|remedy| !remedy.is_empty());
    let remedy = remedy.map(|remedy| TextLine::new().with(Tone::Dim, remedy));
    let red = red_gates(view.state, view.backlog);
    let red = red.map(|red| TextLine::new().with(Tone::Warning, why(&red)));
    stopped.into_iter().chain(red).chain(remedy).map(Line::from).collect()
}

/// Why it stopped, with what was measured.
fn figures(reason: &StopReason, remaining: usize) -> Option<String> {
    let left = stories(remaining);
    let first = |error: &str| error.lines().next().unwrap_or_default().to_owned();
    Some(match reason {
        StopReason::AllDone
        | StopReason::StoryDone { .. }
        | StopReason::Once
        | StopReason::NothingToSelect { .. }
        | StopReason::Aborted => return None,
        StopReason::BudgetUsedUp { budget, spent, limit } => format!(
            "{spent} of {limit} spent {}, {left} left; raise the limit with {} USD (`{}` in \
             ralph.toml)",
            budget.place(),
            budget.flag(),
            budget.setting()
        ),
        StopReason::MaxIterations { limit } => {
            format!("{} used, {left} left", counted(*limit, "iteration"))
        }
        StopReason::BreakerOpen { why, error } => {
            format!("{why}, and after the pause: {}", first(error))
        }
        StopReason::FailsAtOnce { times, error } => {
            format!("{times} agents in a row failed within 10 seconds of their start: {error}")
        }
        StopReason::Failing { failed, error } => {
            format!("{failed} of the last 10 iterations failed, the last: {}", first(error))
        }
        StopReason::ConsecutiveErrors { limit, error } => {
            format!("{} in a row, the last: {}", counted(*limit, "error"), first(error))
        }
        StopReason::MaxRunTime { limit_ms, worked_ms } => {
            format!("{} of {} used, {left} left", duration(*worked_ms), duration(*limit_ms))
        }
        StopReason::SlowIterations { limit_ms, average_ms, iterations } => format!(
            "{iterations} iterations took {} on average (limit {})",
            duration(*average_ms),
            duration(*limit_ms)
        ),
        StopReason::UsageLimit { error, .. }
        | StopReason::ServiceDown { error }
        | StopReason::AccountTrouble { error }
        | StopReason::AgentUnusable { error } => error.clone(),
        StopReason::DiskLow { free, floor, place } => {
            format!("only {} free on {place} (minimum {})", size(*free), size(*floor))
        }
    })
}

fn human_needed(blocked: &[Blocked], view: View<'_>) -> Vec<Line> {
    let questions = view.state.questions().map(|(id, question)| {
        let title = view.backlog.story(id).map(|story| visible_line(&story.title));
        let heading = format!("{id} {}", title.unwrap_or_default());
        Line::Boxed { heading, sections: menu::sections(&question.escalation) }
    });
    let questions: Vec<Line> = questions.collect();
    let is_open = |blocked: &Blocked| matches!(blocked.because, Because::WaitsForOpen { .. });
    let is_gone = |blocked: &Blocked| blocked.because == Because::Gone;
    let is_red = |blocked: &Blocked| matches!(blocked.because, Because::Red { .. });
    let next = if blocked.iter().any(is_red) {
        "Fix what the gate needs, or have the story done again with `ralph mark ID reopen`."
    } else if blocked.iter().any(is_gone) {
        "Put the story back into the backlog, or run `ralph run` again to go on without it."
    } else if blocked.iter().any(is_open) {
        "Run `ralph run` without `--story` to do that story first."
    } else if questions.is_empty() {
        "No story can start until you change the backlog: undo a skip, or remove a dependency."
    } else {
        "Run `ralph run` in a terminal to answer."
    };
    let reasons = blocked.iter().map(|blocked| TextLine::new().plain(why(blocked)).into());
    let next = TextLine::new().with(Tone::Strong, next).into();
    reasons.chain(questions).chain([next]).collect()
}

fn why(blocked: &Blocked) -> String {
    let story = &blocked.story;
    match &blocked.because {
        Because::Parked => format!("{story} is parked with an open question"),
        Because::WaitsForSkipped { on } => format!("{story} waits for {on}, which is skipped"),
        Because::WaitsForParked { on } => format!("{story} waits for {on}, which is parked"),
        Because::WaitsForOpen { on } => format!("{story} waits for {on}, which is not done yet"),
        Because::WaitsFor { on } => format!("{story} waits for {on}, which is waiting too"),
        Because::Gone => format!("{story} was removed from the backlog during the run"),
        Because::Red { gate } => {
            let gate = visible_line(gate);
            format!("{story} is closed, but `{gate}` fails, and did before later stories")
        }
    }
}

type TableRow = [String; 6];

const HEADING: [&str; 6] = ["Story", "Result", "Iterations", "Time", "Cost", "Commit"];
const FIGURES: [bool; 6] = [false, false, true, true, true, false];

fn table(view: View<'_>) -> Vec<Line> {
    let stories = touched(view);
    if stories.is_empty() {
        return vec![];
    }
    let mut rows = vec![HEADING.map(str::to_owned)];
    rows.extend(stories.iter().map(|(id, story)| row(id, story, view.backlog.story(id))));
    if stories.len() > 1 {
        rows.push(total(view.state.cost_usd(), &stories));
    }
    let text = |(number, row): (usize, String)| {
        let is_story = (1..=stories.len()).contains(&number);
        let tone = if is_story { Tone::Normal } else { Tone::Dim };
        TextLine::new().with(tone, format!("  {row}")).into()
    };
    let rows = layout::table(&rows, FIGURES).into_iter().enumerate();
    std::iter::once(Line::Blank).chain(rows.map(text)).collect()
}

/// In the backlog's order; stories that were removed from it come last.
fn touched(view: View<'_>) -> Vec<(&StoryId, &StoryState)> {
    let is_touched = |(_, story): &(&StoryId, &StoryState)| {
        story.totals.attempts > 0 || story.stage.is_settled() || story.question().is_some()
    };
    let mut stories: Vec<_> = view.state.stories.iter().filter(is_touched).collect();
    stories.sort_by_key(|(id, _)| view.backlog.place(id).unwrap_or(usize::MAX));
    stories
}

fn row(id: &StoryId, story: &StoryState, marked: Option<&Story>) -> TableRow {
    let (result, commit) = match &story.stage {
        Stage::Closed { commit } => ("✓ complete", short_commit(commit)),
        Stage::Skipped => ("→ skipped", String::new()),
        // The human settled it.
        _ if marked.is_some_and(|story| story.passes) => ("✓ marked as passing", String::new()),
        _ if marked.is_some_and(|story| story.skipped) => ("→ marked as skipped", String::new()),
        Stage::Asking { .. } => ("? open question", String::new()),
        _ => ("… open", String::new()),
    };
    let totals = &story.totals;
    let time = time(totals.elapsed_ms);
    let cost = cost(totals.usage.cost_usd).unwrap_or_default();
    [id.to_string(), result.to_owned(), totals.attempts.to_string(), time, cost, commit]
}

fn total(cost_usd: Option<f64>, stories: &[(&StoryId, &StoryState)]) -> TableRow {
    let attempts: u32 = stories.iter().map(|(_, story)| story.totals.attempts).sum();
    let time = time(stories.iter().map(|(_, story)| story.totals.elapsed_ms).sum());
    let cost = cost(cost_usd).unwrap_or_default();
    let total = "Total".to_owned();
    [total, String::new(), attempts.to_string(), time, cost, String::new()]
}

/// Nothing for no attempt.
fn time(elapsed_ms: u64) -> String {
    if elapsed_ms == 0 { String::new() } else { duration(elapsed_ms) }
}
