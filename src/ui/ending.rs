//! How a run ends: why, what to do about it, how far the backlog is, and what each story took.

use std::fmt;

use crate::decide::forecast::forecast;
use crate::model::{
    Backlog, Because, Blocked, Budget, BudgetLevel, StopReason, StoryId, visible_line,
};
use crate::ports::View;
use crate::state::{RunState, Stage, StoryState};

use super::figures::{cost, duration, short_commit, size, stories, to_go};
use super::layout::width;
use super::look::{Line, TextLine, Tone};
use super::menu;

pub fn lines(at: i64, reason: &StopReason, view: View<'_>) -> Vec<Line> {
    let counts = StoryCounts::of(view.backlog);
    let final_counts = TextLine::at(at).plain(format!("Final: {counts}"));
    let outlook = forecast(view.state, counts.remaining()).map(|forecast| to_go(&forecast));
    let final_counts = final_counts.figures(outlook);
    let mut lines =
        vec![Line::Blank, Line::Rule(heading(reason, &counts, view)), final_counts.into()];
    lines.extend(explanation(reason, &counts, view));
    lines.extend(table(view));
    lines
}

/// By the backlog: it may have been skipped before this run.
fn result(story: &StoryId, view: View<'_>) -> &'static str {
    match view.backlog.story(story) {
        Some(story) if story.skipped && !story.passes => "skipped",
        _ => "complete",
    }
}

/// The one table of what a stop is called and what to do about it.
fn heading_and_remedy(reason: &StopReason) -> (&'static str, &'static str) {
    match reason {
        StopReason::AllDone => ("All tasks complete", ""),
        StopReason::StoryDone { .. } => ("", ""),
        StopReason::Once => ("One iteration done", "Run `ralph run` to continue."),
        StopReason::BudgetUsedUp { budget, .. } => match budget {
            Budget::Run | Budget::Story(_) => {
                ("Budget used up", "`ralph run` starts a new run with a new budget.")
            }
            Budget::Day | Budget::UserDay => ("Budget used up", "Run `ralph run` again tomorrow."),
        },
        StopReason::MaxIterations { .. } => {
            ("Out of iterations", "Raise the limit with --max-iterations N.")
        }
        StopReason::BreakerOpen { .. } => (
            "Circuit breaker tripped",
            "See the errors in `ralph log` and `.ralph/runs/`; `ralph run` starts afresh. Set the \
             pause with `cool_down` in ralph.toml (RALPH_COOL_DOWN, `none` to disable).",
        ),
        StopReason::FailsAtOnce { .. } => {
            ("The agent fails immediately", "Start the agent by hand to see what it reports.")
        }
        StopReason::Failing { .. } => {
            ("Most iterations fail", "Raise the limit with --max-failing N.")
        }
        StopReason::ConsecutiveErrors { .. } => {
            ("Too many errors in a row", "Raise the limit with --max-consecutive-errors N.")
        }
        StopReason::MaxRunTime { .. } => {
            ("Out of time", "Raise the limit with --max-run-time TIME.")
        }
        StopReason::SlowIterations { .. } => {
            ("Iterations take too long", "Raise the limit with --max-average-iteration TIME.")
        }
        StopReason::UsageLimit { .. } => {
            ("Usage limit", "Use `--on-limit wait` to wait for the reset automatically.")
        }
        StopReason::ServiceDown { .. } => {
            ("Service unavailable", "Check your connection and the service's status page.")
        }
        StopReason::AccountTrouble { .. } => (
            "Login or billing problem",
            "Log in to the agent again, or fix its API key or billing.",
        ),
        StopReason::AgentUnusable { .. } => {
            ("The agent cannot be used", "Fix `[agent]` in ralph.toml (`model`, `program`).")
        }
        StopReason::DiskLow { .. } => {
            ("Disk nearly full", "Free some space, or lower `min_free_disk` in ralph.toml.")
        }
        StopReason::NothingToSelect { .. } => ("A human is needed", ""),
        StopReason::Aborted => ("Aborted", "Run `ralph run` to continue where this run stopped."),
    }
}

/// What only this end knows: who is settled, and how many.
fn heading(reason: &StopReason, counts: &StoryCounts, view: View<'_>) -> String {
    match reason {
        StopReason::AllDone if counts.skipped > 0 => {
            format!("All tasks settled · {} complete, {} skipped", counts.complete, counts.skipped)
        }
        StopReason::StoryDone { story } => format!("{story} {}", result(story, view)),
        reason => heading_and_remedy(reason).0.to_owned(),
    }
}

fn explanation(reason: &StopReason, counts: &StoryCounts, view: View<'_>) -> Vec<Line> {
    if let StopReason::NothingToSelect { blocked } = reason {
        return human_needed(blocked, view);
    }
    let stopped = figures(reason, counts).map(|figures| {
        TextLine::new().with(Tone::Warning, format!("Stopped: {}", visible_line(&figures))).into()
    });
    let remedy = Some(heading_and_remedy(reason).1).filter(|remedy| !remedy.is_empty());
    let remedy = remedy.map(|remedy| TextLine::new().with(Tone::Dim, remedy).into());
    stopped.into_iter().chain(remedy).collect()
}

/// Why it stopped, with what was measured.
fn figures(reason: &StopReason, counts: &StoryCounts) -> Option<String> {
    let left = stories(counts.remaining());
    let first = |error: &str| error.lines().next().unwrap_or_default().to_owned();
    Some(match reason {
        StopReason::AllDone
        | StopReason::StoryDone { .. }
        | StopReason::Once
        | StopReason::NothingToSelect { .. }
        | StopReason::Aborted => return None,
        StopReason::BudgetUsedUp { budget, spent, limit } => format!(
            "{spent} of {limit} spent {}, {left} left; raise it with {} USD (`{}` in ralph.toml)",
            budget.place(),
            budget.flag(),
            budget.setting()
        ),
        StopReason::MaxIterations { limit } => {
            format!("{} used, {left} left", many(*limit, "iteration"))
        }
        StopReason::BreakerOpen { why, error } => {
            format!("{why}, and after the pause: {}", first(error))
        }
        StopReason::FailsAtOnce { times, error } => {
            format!("{times} agents in a row failed the same way within 10 seconds: {error}")
        }
        StopReason::Failing { failed, error } => {
            format!("{failed} of the last 10 iterations failed, the last: {}", first(error))
        }
        StopReason::ConsecutiveErrors { limit, error } => {
            format!("{} in a row, the last: {}", many(*limit, "error"), first(error))
        }
        StopReason::MaxRunTime { limit_ms, worked_ms } => {
            format!("{} of {} used, {left} left", duration(*worked_ms), duration(*limit_ms))
        }
        StopReason::SlowIterations { limit_ms, average_ms, iterations } => format!(
            "iterations took {} on average over {iterations} (limit {})",
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

fn many(count: u32, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

fn human_needed(blocked: &[Blocked], view: View<'_>) -> Vec<Line> {
    let reasons = blocked.iter().map(|blocked| TextLine::new().plain(why(blocked)).into());
    let mut lines: Vec<Line> = reasons.collect();
    let questions: Vec<Line> = open_questions(view).collect();
    let is_open = |blocked: &Blocked| matches!(blocked.because, Because::WaitsForOpen { .. });
    let next = if blocked.iter().any(is_open) {
        "Without `--story`, `ralph run` starts with that one."
    } else if questions.is_empty() {
        "No story can start until you change the backlog: undo a skip, or remove a dependency."
    } else {
        "Run `ralph run` in a terminal to answer."
    };
    lines.extend(questions);
    lines.push(TextLine::new().with(Tone::Strong, next).into());
    lines
}

fn why(blocked: &Blocked) -> String {
    let story = &blocked.story;
    match &blocked.because {
        Because::Parked => format!("{story} is parked with an open question"),
        Because::WaitsForSkipped { on } => format!("{story} waits for {on}, which is skipped"),
        Because::WaitsForParked { on } => format!("{story} waits for {on}, which is parked"),
        Because::WaitsForOpen { on } => format!("{story} waits for {on}, which is not done yet"),
        Because::WaitsFor { on } => format!("{story} waits for {on}, which is waiting too"),
    }
}

fn open_questions(view: View<'_>) -> impl Iterator<Item = Line> {
    view.state.questions().map(move |(id, question)| Line::Boxed {
        heading: titled(id, view),
        sections: menu::sections(&question.escalation),
    })
}

fn titled(id: &StoryId, view: View<'_>) -> String {
    let title = view.backlog.story(id).map(|story| visible_line(&story.title));
    format!("{id} {}", title.unwrap_or_default())
}

/// Told once, before it is used up.
pub fn budget_near(at: i64, level: &BudgetLevel) -> Line {
    let BudgetLevel { budget, limit, .. } = level;
    let then = match budget {
        _ if !level.binding => format!("a subscription pays, so the run does not stop at {limit}"),
        Budget::Story(_) => format!("you are asked at {limit}"),
        _ => format!("the run stops at {limit}"),
    };
    TextLine::at(at)
        .with(Tone::Warning, level.to_string())
        .plain(format!("; {then} (change it with {})", budget.flag()))
        .into()
}

/// How far the backlog is: `3/5 complete, 1 skipped (1 remaining)`.
pub struct StoryCounts {
    pub all: usize,
    pub complete: usize,
    pub skipped: usize,
}

impl StoryCounts {
    pub fn of(backlog: &Backlog) -> Self {
        let stories = &backlog.stories;
        let complete = backlog.done();
        let skipped = stories.iter().filter(|story| story.skipped && !story.passes).count();
        Self { all: stories.len(), complete, skipped }
    }

    pub fn remaining(&self) -> usize {
        self.all.saturating_sub(self.complete + self.skipped)
    }
}

impl fmt::Display for StoryCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{} complete", self.complete, self.all)?;
        if self.skipped > 0 {
            write!(f, ", {} skipped", self.skipped)?;
        }
        write!(f, " ({} remaining)", self.remaining())
    }
}

const COLUMNS: usize = 6;
type TableRow = [String; COLUMNS];

/// Figures stand right, words left.
const RIGHT: [bool; COLUMNS] = [false, false, true, true, true, false];

fn table(view: View<'_>) -> Vec<Line> {
    let stories = touched(view);
    if stories.is_empty() {
        return vec![];
    }
    let mut rows =
        vec![["Story", "Result", "Iterations", "Time", "Cost", "Commit"].map(str::to_owned)];
    rows.extend(stories.iter().map(|(id, story)| row(id, story)));
    if stories.len() > 1 {
        rows.push(total(view.state, &stories));
    }
    let last = rows.len() - 1;
    let is_frame = |number| number == 0 || (number == last && stories.len() > 1);
    let widths = widths(&rows);
    let tone = |number| {
        if is_frame(number) { Tone::Dim } else { Tone::Normal }
    };
    let text = |(number, row)| TextLine::new().with(tone(number), aligned(row, &widths)).into();
    std::iter::once(Line::Blank).chain(rows.iter().enumerate().map(text)).collect()
}

/// In the backlog's order; what was taken out of it comes last.
fn touched(view: View<'_>) -> Vec<(&StoryId, &StoryState)> {
    let mut stories: Vec<_> = view.state.stories.iter().filter(|(_, s)| is_touched(s)).collect();
    stories.sort_by_key(|(id, _)| view.backlog.place(id).unwrap_or(usize::MAX));
    stories
}

fn is_touched(story: &StoryState) -> bool {
    story.totals.attempts > 0 || story.stage.is_settled() || story.question().is_some()
}

fn row(id: &StoryId, story: &StoryState) -> TableRow {
    let (result, commit) = match &story.stage {
        Stage::Closed { commit } => ("✓ complete", short_commit(commit)),
        Stage::Skipped => ("→ skipped", String::new()),
        Stage::Asking { .. } => ("? open question", String::new()),
        _ => ("… open", String::new()),
    };
    let time = if story.totals.elapsed_ms == 0 {
        String::new()
    } else {
        duration(story.totals.elapsed_ms)
    };
    let cost = cost(story.totals.usage.cost_usd).unwrap_or_default();
    [id.to_string(), result.to_owned(), story.totals.attempts.to_string(), time, cost, commit]
}

fn total(state: &RunState, stories: &[(&StoryId, &StoryState)]) -> TableRow {
    let attempts: u32 = stories.iter().map(|(_, story)| story.totals.attempts).sum();
    let elapsed = stories.iter().map(|(_, story)| story.totals.elapsed_ms).sum();
    let cost = cost(state.cost_usd()).unwrap_or_default();
    let total = "Total".to_owned();
    [total, String::new(), attempts.to_string(), duration(elapsed), cost, String::new()]
}

fn widths(rows: &[TableRow]) -> [usize; COLUMNS] {
    let mut widths = [0; COLUMNS];
    for row in rows {
        for (widest, cell) in widths.iter_mut().zip(row) {
            *widest = width(cell).max(*widest);
        }
    }
    widths
}

fn aligned(row: &TableRow, widths: &[usize; COLUMNS]) -> String {
    let cells = row.iter().zip(widths).zip(RIGHT).map(|((cell, &columns), right)| {
        let space = " ".repeat(columns.saturating_sub(width(cell)));
        if right { format!("{space}{cell}") } else { format!("{cell}{space}") }
    });
    let joined: Vec<String> = cells.collect();
    format!("  {}", joined.join("  ").trim_end())
}
