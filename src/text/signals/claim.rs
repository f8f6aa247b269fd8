//! The line that claims a story.
//!
//! A small grammar for the whole line; anything else is no claim, so hedged wording need not
//! be listed.

use super::dressing::{after_gap, is_emphasis, is_trailing, without_leading};
use super::find::{find_ignore_case, strip_ignore_case};

const COMPLETIONS: [&str; 4] = ["complete", "completed", "done", "finished"];

const WRAPPERS: [(char, char); 10] = [
    ('[', ']'),
    ('(', ')'),
    ('{', '}'),
    ('<', '>'),
    ('`', '`'),
    ('"', '"'),
    ('\'', '\''),
    ('“', '”'),
    ('‘', '’'),
    ('«', '»'),
];

/// A claimed story.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Claim<'a> {
    pub id: &'a str,
    /// In brackets, ticks or quotes, so it is an id even if it is an ordinary word.
    pub wrapped: bool,
}

impl Claim<'_> {
    /// `Task list complete` names no story, `Task [list] complete` does.
    pub(super) fn surely_names_a_story(&self) -> bool {
        self.wrapped || !self.id.bytes().all(|b| b.is_ascii_alphabetic())
    }
}

pub(super) fn read(line: &str) -> Option<Claim<'_>> {
    find_ignore_case(line, "task")?;
    let after_task = strip_ignore_case(without_leading(line), "task")?;
    let at_id = after_gap(after_task)?;
    let underscores = line.strip_suffix(at_id)?.matches('_').count();
    let (claim, rest) = read_id(at_id, underscores)?;
    is_completion(rest).then_some(claim)
}

/// `opened` underscores before the id are emphasis and may close after it.
fn read_id(text: &str, mut opened: usize) -> Option<(Claim<'_>, &str)> {
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
    Some((Claim { id, wrapped: !closers.is_empty() }, after))
}

fn open_wrapper(text: &str) -> Option<(char, &str)> {
    let text = text.trim_start_matches(is_emphasis);
    let opened = |&(open, close): &(char, char)| Some((close, text.strip_prefix(open)?));
    WRAPPERS
        .iter()
        .find_map(opened)
        .map(|(close, rest)| (close, rest.trim_start_matches(is_emphasis)))
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
    let unspaced = after_id.trim_start_matches(|c| is_emphasis(c) || c.is_whitespace());
    let predicate = match unspaced.strip_prefix(':') {
        Some(rest) => Some(rest.trim_start_matches(|c| is_emphasis(c) || c.is_whitespace())),
        None => after_gap(after_id).and_then(without_verb),
    };
    predicate.and_then(after_completion).is_some_and(is_trailing)
}

fn without_verb(text: &str) -> Option<&str> {
    let Some(after_is) = strip_word(text, "is") else {
        return Some(text);
    };
    let rest = after_gap(after_is)?;
    strip_word(rest, "now").map_or(Some(rest), after_gap)
}

fn after_completion(text: &str) -> Option<&str> {
    COMPLETIONS.iter().find_map(|word| strip_word(text, word))
}

fn strip_word<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    strip_ignore_case(text, word).filter(|rest| !rest.starts_with(char::is_alphanumeric))
}
