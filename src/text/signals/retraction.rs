//! Sentences that retract a claim.
//!
//! Unlike a claim this is not a fixed phrase, so it matches generously: a lost claim costs
//! another iteration, but a claim that the agent retracted is false. A mention, a question or a
//! condition does not retract.

use super::find::find_ignore_case;
use super::vocabulary::{
    is_completion, is_condition, is_degree, is_failure, is_filler, is_lack, is_modal, is_negation,
    is_qualifier,
};

/// A word of a sentence, and how it was written.
#[derive(Clone, Copy)]
struct Word<'a> {
    raw: &'a str,
    bare: &'a str,
}

/// What a sentence may be about.
#[derive(Clone, Copy)]
struct Subject<'a> {
    name: &'a str,
    /// Always means the story.
    distinctive: bool,
}

/// The line says that this story is not complete.
pub(super) fn takes_back(line: &str, story: &str) -> bool {
    takes_back_subject(line, story, is_distinctive(Word::new(story).bare))
}

/// The line says that this marker does not hold.
pub(super) fn takes_back_sign(line: &str, sign: &str) -> bool {
    let is_word = !sign.contains(char::is_whitespace) && sign.contains(['_', '-']);
    is_word && takes_back_subject(line, sign, true)
}

fn takes_back_subject(line: &str, name: &str, distinctive: bool) -> bool {
    if find_ignore_case(line, name).is_none() {
        return false;
    }
    // Punctuation around a word is stripped on both sides of the comparison.
    let subject = Subject { name: Word::new(name).bare, distinctive };
    let words: Vec<Word<'_>> = line.split_whitespace().map(Word::new).collect();
    words
        .split_inclusive(|word| word.ends_sentence())
        .filter(|sentence| !sentence.last().is_some_and(|word| word.asks()))
        .any(|sentence| denies(sentence, subject))
}

/// Each mention is judged by the words up to the next one, so a line full of
/// mentions is still read only once.
fn denies(sentence: &[Word<'_>], subject: Subject<'_>) -> bool {
    let parts: Vec<&[Word<'_>]> =
        sentence.split(|word| word.bare.eq_ignore_ascii_case(subject.name)).collect();
    let mut mentions = parts.iter().zip(parts.iter().skip(1));
    mentions.any(|(before, after)| mention_denies(before, up_to_another_id(after), subject))
}

/// `before` and `after` are the words around the story's id.
fn mention_denies(before: &[Word<'_>], after: &[Word<'_>], subject: Subject<'_>) -> bool {
    let (before, named) = without_noun(before);
    if (!named && !subject.distinctive) || is_conditional(before) {
        return false;
    }
    denied_before(before, after) || denied_after(after, named)
}

/// `Task`, struck through or not; a struck task stays in view as a negation.
fn without_noun<'w, 'a>(before: &'w [Word<'a>]) -> (&'w [Word<'a>], bool) {
    match before.split_last() {
        Some((noun, rest)) if noun.bare.eq_ignore_ascii_case("task") => {
            (if noun.is_struck() { before } else { rest }, true)
        }
        _ => (before, false),
    }
}

/// Only the words since the last comma or colon can form a condition.
fn is_conditional(before: &[Word<'_>]) -> bool {
    before
        .iter()
        .rev()
        .take_while(|word| !word.raw.ends_with([',', ':']))
        .take(3)
        .any(|word| is_condition(word.bare))
}

/// `I could not finish Task X`, `It is not so that Task X is complete`, `[ ] Task X complete`.
fn denied_before(before: &[Word<'_>], after: &[Word<'_>]) -> bool {
    let mut denied = false;
    for word in before {
        if denied && is_completion(word.bare) {
            return true;
        }
        denied |= word.denies_ahead();
        denied &= !(word.raw.ends_with(',') || word.bare.eq_ignore_ascii_case("but"));
    }
    denied && after.iter().any(|word| is_completion(word.bare))
}

/// What the rest of the sentence says so far.
#[derive(Default)]
struct Heard {
    denial: bool,
    doubt: bool,
    completion: bool,
    aside: bool,
}

/// Without the word `Task` only the words directly after the id count.
fn denied_after(after: &[Word<'_>], named: bool) -> bool {
    let mut heard = Heard::default();
    for (at, word) in after.iter().enumerate() {
        if heard.aside && !named {
            return false;
        }
        if heard.is_denied_by(word.bare, after.get(at + 1)) {
            return true;
        }
    }
    ends_in_denial(after, heard.aside)
}

/// `Task X is not`, `Task X complete: no`.
fn ends_in_denial(after: &[Word<'_>], aside: bool) -> bool {
    let Some((last, rest)) = after.split_last() else {
        return false;
    };
    let denies = is_negation(last.bare) || last.bare.eq_ignore_ascii_case("no");
    denies && (!aside || rest.last().is_some_and(|word| is_completion(word.bare)))
}

impl Heard {
    fn is_denied_by(&mut self, word: &str, next: Option<&Word<'_>>) -> bool {
        let failed = is_failure(word) && !self.aside && !self.completion || is_lack(word);
        if failed && !self.denial {
            return true;
        }
        if is_completion(word) {
            let lowered = self.denial || (self.doubt && !self.completion);
            self.completion = true;
            return lowered || next.is_some_and(|next| is_qualifier(next.bare));
        }
        let doubts = is_degree(word) || is_modal(word);
        let leads_on = doubts || is_negation(word) || is_filler(word);
        self.denial |= is_negation(word);
        // A title may contain such words; they count only next to the word they weaken.
        self.doubt = doubts || (self.doubt && leads_on);
        self.aside |= !leads_on;
        false
    }
}

/// Words after another story's id are about that story.
fn up_to_another_id<'w, 'a>(after: &'w [Word<'a>]) -> &'w [Word<'a>] {
    let is_id = |word: &Word<'_>| is_distinctive(word.bare);
    after.split(is_id).next().unwrap_or_default()
}

/// Such a word always means a story.
fn is_distinctive(id: &str) -> bool {
    id.contains(|c: char| c.is_ascii_digit()) && id.contains(|c: char| c.is_ascii_alphabetic())
}

impl<'a> Word<'a> {
    fn new(raw: &'a str) -> Self {
        let bare = raw.trim_matches(|c: char| {
            c.is_ascii_punctuation() && c != '%' || "“”‘’«»—–…".contains(c)
        });
        Self { raw, bare }
    }

    /// The last character that is not a closing bracket, quote or emphasis.
    fn last_sign(&self) -> Option<char> {
        self.raw.chars().rev().find(|c| !"*_\"'”’)]`~".contains(*c))
    }

    fn ends_sentence(&self) -> bool {
        self.last_sign().is_some_and(|c| matches!(c, '.' | '!' | '?' | ';'))
    }

    fn asks(&self) -> bool {
        self.last_sign() == Some('?')
    }

    /// It negates what follows.
    fn denies_ahead(&self) -> bool {
        let mark = matches!(self.raw, "[" | "[]") || self.is_struck();
        mark || is_negation(self.bare)
            || is_degree(self.bare)
            || self.bare.eq_ignore_ascii_case("failed")
    }

    fn is_struck(&self) -> bool {
        self.raw.starts_with("~~")
    }
}
