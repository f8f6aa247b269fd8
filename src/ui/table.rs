//! The table at the end of a run: one row per story that the run touched.

use super::figures::{cost, duration, short_commit};
use super::line::{Line, Text, Tone};
use super::wrap::width;
use crate::core::id::StoryId;
use crate::core::state::{RunState, StoryResult, StoryState};
use crate::engine::ports::View;

const COLUMNS: usize = 6;
type Row = [String; COLUMNS];

/// Figures stand right, words left.
const RIGHT: [bool; COLUMNS] = [false, false, true, true, true, false];

pub fn lines(view: View<'_>) -> Vec<Line> {
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
    let text = |(number, row)| Text::new().with(tone(number), aligned(row, &widths)).into();
    std::iter::once(Line::Blank).chain(rows.iter().enumerate().map(text)).collect()
}

/// In the backlog's order; what was taken out of it comes last.
fn touched(view: View<'_>) -> Vec<(&StoryId, &StoryState)> {
    let place = |id: &StoryId| view.backlog.stories.iter().position(|story| story.id == *id);
    let mut stories: Vec<_> = view.state.stories.iter().filter(|(_, s)| is_touched(s)).collect();
    stories.sort_by_key(|(id, _)| place(id).unwrap_or(usize::MAX));
    stories
}

fn is_touched(story: &StoryState) -> bool {
    story.attempts > 0 || story.result != StoryResult::Open || story.question.is_some()
}

fn row(id: &StoryId, story: &StoryState) -> Row {
    let (result, commit) = match &story.result {
        StoryResult::Closed { commit } => ("✓ complete", short_commit(commit)),
        StoryResult::Skipped => ("→ skipped", String::new()),
        StoryResult::Open if story.question.is_some() => ("? open question", String::new()),
        StoryResult::Open => ("… open", String::new()),
    };
    let time = if story.elapsed_ms == 0 { String::new() } else { duration(story.elapsed_ms) };
    let cost = cost(story.usage.cost_usd).unwrap_or_default();
    [id.to_string(), result.to_owned(), story.attempts.to_string(), time, cost, commit]
}

fn total(state: &RunState, stories: &[(&StoryId, &StoryState)]) -> Row {
    let attempts: u32 = stories.iter().map(|(_, story)| story.attempts).sum();
    let elapsed = stories.iter().map(|(_, story)| story.elapsed_ms).sum();
    let cost = cost(state.cost_usd()).unwrap_or_default();
    let total = "Total".to_owned();
    [total, String::new(), attempts.to_string(), duration(elapsed), cost, String::new()]
}

fn widths(rows: &[Row]) -> [usize; COLUMNS] {
    let mut widths = [0; COLUMNS];
    for row in rows {
        for (widest, cell) in widths.iter_mut().zip(row) {
            *widest = width(cell).max(*widest);
        }
    }
    widths
}

fn aligned(row: &Row, widths: &[usize; COLUMNS]) -> String {
    let cells = row.iter().zip(widths).zip(RIGHT).map(|((cell, &columns), right)| {
        let space = " ".repeat(columns.saturating_sub(width(cell)));
        if right { format!("{space}{cell}") } else { format!("{cell}{space}") }
    });
    let joined: Vec<String> = cells.collect();
    format!("  {}", joined.join("  ").trim_end())
}
