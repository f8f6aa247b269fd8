//! The human's own signs of completion, beside `Task ID complete`.

use std::collections::BTreeMap;

use super::dressing::{is_trailing, without_leading};
use super::find::strip_ignore_case;
use super::promise::promised;
use super::scanner::Scanner;
use crate::core::id::StoryId;

/// The longest of them, in characters.
const LONGEST: usize = 200;

/// What else says that a story is complete.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Signs {
    /// The word of a `<promise>` that claims the story.
    pub promise: Option<String>,
    /// Lines, any of which claims the story.
    pub signals: Vec<String>,
    /// Lines that come in this order; only the last claims the story, and nothing else does.
    pub stages: Vec<String>,
}

/// Those of a run, as they were at its start.
#[derive(Clone, Debug, Default)]
pub struct AllSigns {
    pub run: Signs,
    pub of: BTreeMap<StoryId, Signs>,
}

impl AllSigns {
    /// `now` is what the file says, which counts for a story that came later.
    pub fn of_story(&self, story: &StoryId, now: &Signs) -> Signs {
        self.of.get(story).unwrap_or(now).or(&self.run)
    }
}

impl Signs {
    /// Each by itself: these where they say something, else those of the whole run.
    pub fn or(&self, run: &Self) -> Self {
        let list = |own: &Vec<String>, run: &Vec<String>| {
            if own.is_empty() { run.clone() } else { own.clone() }
        };
        Self {
            promise: self.promise.clone().or_else(|| run.promise.clone()),
            signals: list(&self.signals, &run.signals),
            stages: list(&self.stages, &run.stages),
        }
    }

    /// How many stages, from the first on, are among those that were reached.
    pub fn reached(&self, known: &[String]) -> usize {
        // The last is a claim: when that was not believed, it has to be made again.
        let most = self.stages.len().saturating_sub(1);
        self.stages.iter().take(most).take_while(|stage| known.contains(stage)).count()
    }

    pub(super) fn is_claimed_by(&self, line: &str) -> bool {
        let promise = self.promise.as_deref();
        promise.is_some_and(|word| {
            promised(line).is_some_and(|said| said.eq_ignore_ascii_case(word.trim()))
        }) || self.signals.iter().any(|signal| is_sign(line, signal))
    }
}

/// The line is the sign and nothing else but dressing.
pub(super) fn is_sign(line: &str, sign: &str) -> bool {
    let sign = without_leading(sign).trim_end();
    let rest = strip_ignore_case(without_leading(line), sign);
    !sign.is_empty() && rest.is_some_and(is_trailing)
}

/// A line that an agent can print and ralph hears.
pub fn can_be_a_line(sign: &str) -> bool {
    let signs = Signs { signals: vec![sign.to_owned()], ..Signs::default() };
    is_short(sign) && is_said_by(without_leading(sign)) && is_heard(signs, sign)
}

/// A word that can stand in a `<promise>`.
pub fn can_be_promised(word: &str) -> bool {
    let signs = Signs { promise: Some(word.to_owned()), ..Signs::default() };
    is_short(word) && is_said_by(word) && is_heard(signs, &format!("<promise>{word}</promise>"))
}

fn is_short(sign: &str) -> bool {
    sign.chars().count() <= LONGEST && !sign.contains(['\n', '\r'])
}

/// Something that is said, and no mere mark.
fn is_said_by(sign: &str) -> bool {
    sign.contains(char::is_alphanumeric)
}

fn is_heard(signs: Signs, line: &str) -> bool {
    // Nobody's id, so that only the sign itself can be heard.
    let Ok(nobody) = StoryId::try_from("0") else { return false };
    let mut scanner = Scanner::listening(&nobody, signs, 0);
    scanner.push(line);
    scanner.finish().claims_story
}

/// A line `- [x] TASK_COMPLETE` that was not among the instructions before.
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
