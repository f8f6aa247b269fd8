//! Lines that claim a story: the built-in one, promises and completion markers.
//!
//! Each has a small grammar for the whole line; anything else is no claim, so hedged wording need
//! not be listed.

use crate::model::CompletionMarkers;

use super::markdown::{
    LineRole, MarkdownState, after_gap, find_ignore_case, is_emphasis, is_trailing,
    strip_ignore_case, without_gap, without_leading,
};

const COMPLETIONS: [&str; 4] = ["complete", "completed", "done", "finished"];

/// What an id may be wrapped in, and what closes it.
const OPENING: &str = "[({<`\"'“‘«";
const CLOSING: &str = "])}>`\"'”’»";

/// A claimed story.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ClaimLine<'a> {
    pub id: &'a str,
    /// In brackets, ticks or quotes, so it is an id even if it is an ordinary word.
    pub wrapped: bool,
}

pub(super) fn read_claim(line: &str) -> Option<ClaimLine<'_>> {
    find_ignore_case(line, "task")?;
    let after_task = strip_ignore_case(without_leading(line), "task")?;
    let at_id = after_gap(after_task)?;
    let underscores = line.strip_suffix(at_id)?.matches('_').count();
    let (claim, rest) = read_id(at_id, underscores)?;
    is_completion(rest).then_some(claim)
}

/// `opened` underscores before the id are emphasis and may close after it.
fn read_id(text: &str, mut opened: usize) -> Option<(ClaimLine<'_>, &str)> {
    let mut closers = Vec::new();
    let mut rest = text;
    while let Some((closer, inner)) = open_wrapper(rest) {
        closers.push(closer);
        opened += rest.strip_suffix(inner)?.matches('_').count();
        rest = inner;
    }
    let (id, mut after) = split_id(rest, opened)?;
    for closer in closers.iter().rev() {
        after = after.trim_start_matches(is_emphasis).strip_prefix(*closer)?;
    }
    Some((ClaimLine { id, wrapped: !closers.is_empty() }, after))
}

fn open_wrapper(text: &str) -> Option<(char, &str)> {
    let text = text.trim_start_matches(is_emphasis);
    let opened = |(open, close): (char, char)| Some((close, text.strip_prefix(open)?));
    let (close, rest) = OPENING.chars().zip(CLOSING.chars()).find_map(opened)?;
    Some((close, rest.trim_start_matches(is_emphasis)))
}

fn split_id(text: &str, opened: usize) -> Option<(&str, &str)> {
    let is_id = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let token = text.strip_suffix(text.trim_start_matches(is_id))?;
    let emphasis = token.len() - token.trim_end_matches('_').len();
    let (id, rest) = text.split_at_checked(token.len() - emphasis.min(opened))?;
    (!id.is_empty()).then_some((id, rest))
}

/// `: complete`, ` is complete`, ` is now complete`, ` complete`, then only decoration.
fn is_completion(after_id: &str) -> bool {
    let predicate = match without_gap(after_id).strip_prefix(':') {
        Some(rest) => Some(without_gap(rest)),
        None => after_gap(after_id).and_then(without_verb),
    };
    let complete = |text| COMPLETIONS.iter().find_map(|word| strip_word(text, word));
    predicate.and_then(complete).is_some_and(is_trailing)
}

fn without_verb(text: &str) -> Option<&str> {
    let Some(after_is) = strip_word(text, "is") else { return Some(text) };
    let rest = after_gap(after_is)?;
    strip_word(rest, "now").map_or(Some(rest), after_gap)
}

fn strip_word<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    strip_ignore_case(text, word).filter(|rest| !rest.starts_with(char::is_alphanumeric))
}

/// The line promises that the whole backlog is done.
pub(super) fn promises_all(line: &str) -> bool {
    promised(line).is_some_and(|word| word.eq_ignore_ascii_case("done"))
}

/// What the line promises, if it is only a promise, maybe bold or italic.
fn promised(line: &str) -> Option<&str> {
    let mut text = line.trim();
    while let Some(inner) = without_pair(text, '*').or_else(|| without_pair(text, '_')) {
        text = inner;
    }
    text.strip_prefix("<promise>")?.strip_suffix("</promise>").map(str::trim)
}

fn without_pair(text: &str, mark: char) -> Option<&str> {
    text.strip_prefix(mark)?.strip_suffix(mark)
}

/// One of the markers claims the story on this line.
pub(super) fn is_claimed_by(markers: &CompletionMarkers, line: &str) -> bool {
    let is_promised =
        |word: &str| promised(line).is_some_and(|said| said.eq_ignore_ascii_case(word.trim()));
    markers.promise.as_deref().is_some_and(is_promised)
        || markers.signals.iter().any(|signal| is_marker(line, signal))
}

/// The line is only the marker and decoration.
pub(super) fn is_marker(line: &str, marker: &str) -> bool {
    let marker = without_leading(marker).trim_end();
    let rest = strip_ignore_case(without_leading(line), marker);
    !marker.is_empty() && rest.is_some_and(is_trailing)
}

/// A line `- [x] TASK_COMPLETE` that was not in the instructions before.
pub fn ticks_task_complete(before: &str, after: &str) -> bool {
    ticks(after) > ticks(before)
}

fn ticks(text: &str) -> usize {
    let mut state = MarkdownState::default();
    let prose = text.lines().filter(|line| state.enter(line) == LineRole::Prose);
    let items = prose.filter_map(|line| line.trim().strip_prefix(['-', '*', '+']));
    let ticked = items.filter_map(|item| {
        item.trim_start().strip_prefix('[')?.strip_prefix(['x', 'X'])?.strip_prefix(']')
    });
    ticked.filter(|text| text.trim() == "TASK_COMPLETE").count()
}
