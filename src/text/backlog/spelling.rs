//! Suggestions for unknown names.
//!
//! A wrong suggestion is worse than none, so distant and ambiguous ones are left out.

use strsim::osa_distance;

/// Longer names are not misspellings of a field.
const MAX_FIELD: usize = 40;

/// With more equally close ids there is no suggestion.
const MAX_NEAREST: usize = 3;

/// Does `written` look like a misspelling or a short form of `known`?
pub fn looks_like(written: &str, known: &str) -> bool {
    if written.len() > MAX_FIELD {
        return false;
    }
    let (written, known) = (letters(written), letters(known));
    is_most_of(&written, &known) || within(&written, &known, mistakes_allowed(known.len()))
}

/// `skip` for `skipped`, `stories` for `userStories`; but not `user`.
fn is_most_of(written: &str, known: &str) -> bool {
    let long_enough = written.len() >= 4 && written.len() * 2 >= known.len();
    long_enough && (known.starts_with(written) || known.ends_with(written))
}

fn mistakes_allowed(len: usize) -> usize {
    match len {
        0..=3 => 0,
        4..=5 => 1,
        _ => 2,
    }
}

fn within(a: &str, b: &str, mistakes: usize) -> bool {
    a.len().abs_diff(b.len()) <= mistakes && osa_distance(a, b) <= mistakes
}

fn letters(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Ids that a missing one probably means, best first; none if it is unclear.
pub fn nearest_ids<'i>(missing: &str, ids: &[&'i str]) -> Vec<&'i str> {
    let reduced = without_padding(missing);
    let same = matching(ids, |id| without_padding(id) == reduced);
    let alike = (1..=mistakes_allowed(missing.len()))
        .map(|mistakes| matching(ids, |id| within(missing, id, mistakes)));
    let nearest = std::iter::once(same).chain(alike).find(|near| !near.is_empty());
    nearest.filter(|near| near.len() <= MAX_NEAREST).unwrap_or_default()
}

fn matching<'i>(ids: &[&'i str], is_near: impl Fn(&str) -> bool) -> Vec<&'i str> {
    // One more than allowed is enough to know that there are too many.
    ids.iter().copied().filter(|id| is_near(id)).take(MAX_NEAREST + 1).collect()
}

/// `US-003`, `us_3` and `US-03` are the same to a human.
fn without_padding(id: &str) -> String {
    let mut reduced = String::with_capacity(id.len());
    let mut in_number = false;
    let mut chars = id.chars().peekable();
    while let Some(c) = chars.next() {
        let leads_a_number = !in_number && chars.peek().is_some_and(char::is_ascii_digit);
        if c == '0' && leads_a_number {
            continue;
        }
        in_number = c.is_ascii_digit();
        if c.is_alphanumeric() {
            reduced.extend(c.to_lowercase());
        }
    }
    reduced
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelled_fields_are_recognized() {
        for (written, known) in [
            ("dependson", "depends_on"),
            ("depends", "depends_on"),
            ("criterias", "criteria"),
            ("criterion", "criteria"),
            ("pases", "passes"),
            ("passed", "passes"),
            ("pass", "passes"),
            ("titel", "title"),
            ("Title", "title"),
            ("ID", "id"),
            ("skip", "skipped"),
            ("userstories", "userStories"),
            ("stories", "userStories"),
            ("acceptance_criteria", "acceptanceCriteria"),
        ] {
            assert!(looks_like(written, known), "{written} is {known}");
        }
        for (written, known) in [
            ("file", "title"),
            ("tests", "title"),
            ("notes", "passes"),
            ("user", "userStories"),
            ("version", "description"),
            ("script", "description"),
            ("it", "id"),
            ("status", "passes"),
            ("phases", "priority"),
        ] {
            assert!(!looks_like(written, known), "{written} is not {known}");
        }
    }

    #[test]
    fn a_missing_id_suggests_similar_ids() {
        let ids = ["US-001", "US-002", "US-003", "US-010", "US-011", "US-012", "US-013", "login"];
        for (missing, found) in [
            ("US-03", vec!["US-003"]),
            ("us-003", vec!["US-003"]),
            ("US_10", vec!["US-010"]),
            ("US-1", vec!["US-001"]),
            ("logn", vec!["login"]),
            ("lgoin", vec!["login"]),
            ("US-O13", vec!["US-013"]),
            // US-010, -011, -012 and -013 are all as near.
            ("US-01O", vec![]),
            ("checkout", vec![]),
            ("", vec![]),
        ] {
            assert_eq!(nearest_ids(missing, &ids), found, "{missing}");
        }
        assert_eq!(nearest_ids("a1", &["A-1", "a.1", "b"]), ["A-1", "a.1"]);
    }

    #[test]
    fn leading_zeros_of_a_number_are_ignored() {
        for (id, reduced) in [
            ("US-003", "us3"),
            ("a0", "a0"),
            ("a00", "a0"),
            ("a-100-007", "a1007"),
            ("x010y00", "x10y0"),
        ] {
            assert_eq!(without_padding(id), reduced);
        }
    }
}
