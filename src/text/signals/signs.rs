//! Completion markers, in addition to `Task ID complete`.

use crate::model::{CompletionMarkers, StoryId};

use super::dressing::{is_trailing, without_leading};
use super::find::strip_ignore_case;
use super::promise::promised;
use super::scanner::Scanner;

/// The longest marker, in characters.
const LONGEST: usize = 200;

/// One of the markers claims the story on this line.
pub(super) fn is_claimed_by(markers: &CompletionMarkers, line: &str) -> bool {
    let promise = markers.promise.as_deref();
    promise.is_some_and(|word| {
        promised(line).is_some_and(|said| said.eq_ignore_ascii_case(word.trim()))
    }) || markers.signals.iter().any(|signal| is_sign(line, signal))
}

/// The line is only the marker and decoration.
pub(super) fn is_sign(line: &str, sign: &str) -> bool {
    let sign = without_leading(sign).trim_end();
    let rest = strip_ignore_case(without_leading(line), sign);
    !sign.is_empty() && rest.is_some_and(is_trailing)
}

/// A line that the scanner would find.
pub fn can_be_a_line(sign: &str) -> bool {
    let signs =
        CompletionMarkers { signals: vec![sign.to_owned()], ..CompletionMarkers::default() };
    is_short(sign) && is_said_by(without_leading(sign)) && is_heard(signs, sign)
}

/// A text that can be in a `<promise>`.
pub fn can_be_promised(word: &str) -> bool {
    let signs =
        CompletionMarkers { promise: Some(word.to_owned()), ..CompletionMarkers::default() };
    is_short(word) && is_said_by(word) && is_heard(signs, &format!("<promise>{word}</promise>"))
}

fn is_short(sign: &str) -> bool {
    sign.chars().count() <= LONGEST && !sign.contains(['\n', '\r'])
}

/// It contains letters or digits.
fn is_said_by(sign: &str) -> bool {
    sign.contains(char::is_alphanumeric)
}

fn is_heard(signs: CompletionMarkers, line: &str) -> bool {
    // Not a story's id, so that only the marker itself can match.
    let Ok(no_story) = StoryId::try_from("0") else { return false };
    let mut scanner = Scanner::listening(&no_story, signs, 0);
    scanner.push(line);
    scanner.finish().claims_story
}

/// A line `- [x] TASK_COMPLETE` that was not in the instructions before.
pub fn ticks_task_complete(before: &str, after: &str) -> bool {
    ticks(after) > ticks(before)
}

fn ticks(text: &str) -> usize {
    let mut place = super::place::Place::default();
    let ticked =
        |line: &&str| place.enter(line) == super::place::Standing::Prose && is_ticked(line.trim());
    text.lines().filter(ticked).count()
}

fn is_ticked(line: &str) -> bool {
    let item = line.strip_prefix(['-', '*', '+']).map(str::trim_start);
    let text = item.and_then(|item| {
        item.strip_prefix("[x]").or_else(|| item.strip_prefix("[X]")).map(str::trim)
    });
    text == Some("TASK_COMPLETE")
}
