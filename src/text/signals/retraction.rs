//! Sentences that retract a claim.
//!
//! A retraction is not a fixed phrase, so the match is generous: a missed claim costs one
//! iteration, but accepting a retracted claim would be wrong. A mention, a question or a condition
//! does not retract.

use super::markdown::{find_ignore_case, is_doubt};

#[rustfmt::skip]
const COMPLETIONS: &[&str] = &[
    "complete", "completed", "done", "finished", "finish", "finishing", "ready", "working",
    "work", "works", "pass", "passes", "passing", "fixed", "implemented", "solved", "resolved",
    "over", "there", "yet", "closed", "correct", "really", "true",
];

#[rustfmt::skip]
const NEGATIONS: &[&str] = &[
    "not", "never", "cannot", "cant", "isnt", "wasnt", "hasnt", "arent", "nowhere", "neither",
    "wrong", "wrongly", "mistaken", "mistakenly", "untrue", "false", "falsely", "premature",
    "prematurely", "retract", "retracting", "retraction", "retracted", "withdraw",
    "withdrawing", "withdrawn", "scratch", "unable", "far", "longer",
];

#[rustfmt::skip]
const DEGREES: &[&str] = &[
    "almost", "nearly", "partially", "partly", "partial", "mostly", "half", "halfway",
    "largely", "practically", "virtually", "roughly", "barely", "hardly", "somewhat", "close",
    "maybe", "perhaps", "possibly", "probably", "likely", "hopefully", "supposedly",
    "allegedly", "theoretically", "tentatively", "provisionally", "conditionally",
];

#[rustfmt::skip]
const MODALS: &[&str] = &[
    "will", "shall", "should", "would", "could", "might", "may", "must", "can", "going",
    "gonna", "soon", "to", "being", "getting", "becoming", "expected", "it'll", "about",
];

#[rustfmt::skip]
const FAILURES: &[&str] = &[
    "incomplete", "unfinished", "undone", "failed", "fails", "failing", "broken", "blocked",
    "stuck", "reverted", "reopened", "rejected", "unresolved", "pending", "wip", "ongoing",
    "progress", "in-progress", "open", "missing", "needs", "half-done", "half-finished",
];

/// These retract anywhere in the sentence.
const LACKS: &[&str] = &["incomplete", "unfinished", "undone", "half-done", "half-finished"];

#[rustfmt::skip]
const QUALIFIERS: &[&str] = &[
    "if", "once", "when", "unless", "until", "except", "pending", "assuming", "provided",
    "apart", "aside", "modulo", "maybe", "soon", "tomorrow", "later",
];

#[rustfmt::skip]
const CONDITIONS: &[&str] = &[
    "if", "once", "when", "whenever", "unless", "until", "till", "after", "before", "whether",
    "assuming", "provided", "as", "while", "suppose",
];

/// Words that may be between a story and its predicate.
#[rustfmt::skip]
const FILLERS: &[&str] = &[
    "is", "was", "are", "were", "be", "been", "has", "have", "had", "remains", "remain",
    "stays", "still", "currently", "now", "only", "actually", "just", "sadly", "unfortunately",
    "in", "fact", "a", "the", "quite", "very", "at", "all", "completely", "totally", "so",
    "status", "it", "marked", "from", "near", "again", "however", "really", "does", "did", "do",
    "yet",
];

/// A word of a sentence, and how it was written.
#[derive(Clone, Copy)]
struct Word<'a> {
    raw: &'a str,
    bare: &'a str,
}

/// The line says that this story is not complete.
pub(super) fn retracts_story(line: &str, story: &str) -> bool {
    retracts(line, story, is_distinctive(Word::new(story).bare))
}

/// The line says that this marker does not hold.
pub(super) fn retracts_marker(line: &str, marker: &str) -> bool {
    let is_word = !marker.contains(char::is_whitespace) && marker.contains(['_', '-']);
    is_word && retracts(line, marker, true)
}

/// `distinctive`: the name always means the story.
fn retracts(line: &str, name: &str, distinctive: bool) -> bool {
    if find_ignore_case(line, name).is_none() {
        return false;
    }
    // Punctuation around a word is stripped on both sides of the comparison.
    let name = Word::new(name).bare;
    let words: Vec<Word<'_>> = line.split_whitespace().map(Word::new).collect();
    let sentences = words.split_inclusive(|word| word.ends_sentence());
    let mut stated = sentences.filter(|sentence| !sentence.last().is_some_and(|word| word.asks()));
    stated.any(|sentence| denies(sentence, name, distinctive))
}

/// Each mention is judged by the words up to the next one, so a line full of
/// mentions is still read only once.
fn denies(sentence: &[Word<'_>], name: &str, distinctive: bool) -> bool {
    let parts: Vec<&[Word<'_>]> =
        sentence.split(|word| word.bare.eq_ignore_ascii_case(name)).collect();
    let mut mentions = parts.iter().zip(parts.iter().skip(1));
    mentions.any(|(before, after)| mention_denies(before, up_to_another_id(after), distinctive))
}

/// `before` and `after` are the words around the story's id.
fn mention_denies(before: &[Word<'_>], after: &[Word<'_>], distinctive: bool) -> bool {
    let (before, named) = without_noun(before);
    if (!named && !distinctive) || is_conditional(before) {
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
    let mut clause = before.iter().rev().take_while(|word| !word.raw.ends_with([',', ':'])).take(3);
    clause.any(|word| word.is_in(CONDITIONS))
}

/// `I could not finish Task X`, `It is not so that Task X is complete`, `[ ] Task X complete`.
fn denied_before(before: &[Word<'_>], after: &[Word<'_>]) -> bool {
    let mut denied = false;
    for word in before {
        if denied && word.is_in(COMPLETIONS) {
            return true;
        }
        denied |= word.denies_ahead();
        denied &= !(word.raw.ends_with(',') || word.bare.eq_ignore_ascii_case("but"));
    }
    denied && after.iter().any(|word| word.is_in(COMPLETIONS))
}

/// What the words after the id say so far.
#[derive(Default)]
struct Predicate {
    denial: bool,
    doubt: bool,
    completion: bool,
    aside: bool,
}

/// Without the word `Task` only the words directly after the id count.
fn denied_after(after: &[Word<'_>], named: bool) -> bool {
    let mut said = Predicate::default();
    for (at, word) in after.iter().enumerate() {
        if said.aside && !named {
            return false;
        }
        if said.is_denied_by(*word, after.get(at + 1)) {
            return true;
        }
    }
    ends_in_denial(after, said.aside)
}

/// `Task X is not`, `Task X complete: no`.
fn ends_in_denial(after: &[Word<'_>], aside: bool) -> bool {
    let Some((last, rest)) = after.split_last() else { return false };
    let denies = last.is_negation() || last.bare.eq_ignore_ascii_case("no");
    denies && (!aside || rest.last().is_some_and(|word| word.is_in(COMPLETIONS)))
}

impl Predicate {
    fn is_denied_by(&mut self, word: Word<'_>, next: Option<&Word<'_>>) -> bool {
        let failed = word.is_in(FAILURES) && !self.aside && !self.completion || word.is_in(LACKS);
        if failed && !self.denial {
            return true;
        }
        if word.is_in(COMPLETIONS) {
            let lowered = self.denial || (self.doubt && !self.completion);
            self.completion = true;
            return lowered || next.is_some_and(|next| next.is_in(QUALIFIERS));
        }
        let doubts = word.is_degree() || word.is_in(MODALS);
        let leads_on = doubts || word.is_negation() || word.is_in(FILLERS);
        self.denial |= word.is_negation();
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

    fn is_in(&self, list: &[&str]) -> bool {
        list.iter().any(|known| known.eq_ignore_ascii_case(self.bare))
    }

    fn is_negation(&self) -> bool {
        let lower = self.bare.to_ascii_lowercase();
        self.is_in(NEGATIONS)
            || lower.ends_with("n't")
            || lower.ends_with("n’t")
            || self.bare.starts_with(is_doubt)
    }

    /// Incomplete or uncertain: `almost`, `90%`, `maybe`.
    fn is_degree(&self) -> bool {
        let percent = self.bare.strip_suffix('%');
        self.is_in(DEGREES) || percent.is_some_and(|number| number != "100")
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
        mark || self.is_negation() || self.is_degree() || self.bare.eq_ignore_ascii_case("failed")
    }

    fn is_struck(&self) -> bool {
        self.raw.starts_with("~~")
    }
}
