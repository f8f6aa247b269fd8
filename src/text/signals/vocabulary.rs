//! Words that retract a claim.

use super::dressing::is_doubt;

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

pub(super) fn is_completion(word: &str) -> bool {
    is_one_of(word, COMPLETIONS)
}

pub(super) fn is_negation(word: &str) -> bool {
    let lower = word.to_ascii_lowercase();
    is_one_of(word, NEGATIONS)
        || lower.ends_with("n't")
        || lower.ends_with("n’t")
        || word.starts_with(is_doubt)
}

/// Incomplete or uncertain: `almost`, `90%`, `maybe`.
pub(super) fn is_degree(word: &str) -> bool {
    is_one_of(word, DEGREES) || word.strip_suffix('%').is_some_and(|number| number != "100")
}

pub(super) fn is_modal(word: &str) -> bool {
    is_one_of(word, MODALS)
}

pub(super) fn is_failure(word: &str) -> bool {
    is_one_of(word, FAILURES)
}

pub(super) fn is_lack(word: &str) -> bool {
    is_one_of(word, LACKS)
}

pub(super) fn is_qualifier(word: &str) -> bool {
    is_one_of(word, QUALIFIERS)
}

pub(super) fn is_condition(word: &str) -> bool {
    is_one_of(word, CONDITIONS)
}

pub(super) fn is_filler(word: &str) -> bool {
    is_one_of(word, FILLERS)
}

fn is_one_of(word: &str, list: &[&str]) -> bool {
    list.iter().any(|known| known.eq_ignore_ascii_case(word))
}
