//! The similarity of two texts.
//!
//! Edit distance is quadratic: 2 ms for 1 KB, 230 ms for 10 KB. So only the ends of texts are
//! compared, normalized, and only if their lengths allow them to be alike.

/// From here on two texts count as the same.
pub const ALIKE: f64 = 0.90;
/// Characters compared, from a text's end.
const TAIL: usize = 2000;
/// Bytes read to find them, before colors and white space are removed.
const RAW_TAIL: usize = 4 * TAIL;
/// This many hex digits are an id, not a word.
const SHORTEST_ID: usize = 7;

/// The end of a text without colors, numbers, ids, times and layout.
pub fn normalized(text: &str) -> String {
    let plain = without_ansi(end_of(text, RAW_TAIL));
    let words: Vec<String> = plain.split_whitespace().map(masked).collect();
    end_of(&words.join(" "), TAIL).to_owned()
}

/// From 0 (nothing in common) to 1; of texts as `normalized` made them.
pub fn likeness(a: &str, b: &str) -> f64 {
    if a == b {
        return 1.0;
    }
    let (a_count, b_count) = (a.chars().count(), b.chars().count());
    let number = |count: usize| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
    // Each extra character is an edit, which limits the result.
    let most = number(a_count.min(b_count)) / number(a_count.max(b_count));
    if most < ALIKE { 0.0 } else { strsim::normalized_levenshtein(a, b) }
}

/// The similarity to the closest of the others.
pub fn most_alike<'a>(text: &str, others: impl IntoIterator<Item = &'a String>) -> f64 {
    if text.is_empty() {
        return 0.0;
    }
    let mut most = 0.0;
    for other in others {
        most = likeness(text, other).max(most);
        if most >= ALIKE {
            break;
        }
    }
    most
}

/// The last `most` characters.
fn end_of(text: &str, most: usize) -> &str {
    let start = text.char_indices().rev().nth(most.saturating_sub(1)).map_or(0, |(at, _)| at);
    text.get(start..).unwrap_or(text)
}

/// In lower case, each number or id as `#`.
fn masked(word: &str) -> String {
    let mut masked = String::with_capacity(word.len());
    let is_separator = |c: char| !c.is_alphanumeric();
    for part in word.split_inclusive(is_separator) {
        let token = part.trim_end_matches(is_separator);
        if is_number_or_id(token) {
            masked.push('#');
        } else {
            masked.extend(token.chars().flat_map(char::to_lowercase));
        }
        masked.push_str(part.strip_prefix(token).unwrap_or_default());
    }
    masked
}

fn is_number_or_id(token: &str) -> bool {
    let is_hex = token.chars().all(|c| c.is_ascii_hexdigit());
    token.chars().any(|c| c.is_ascii_digit()) || (is_hex && token.len() >= SHORTEST_ID)
}

/// Without escape sequences and other control characters.
fn without_ansi(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => skip_sequence(&mut chars),
            '\n' | '\t' | '\r' => plain.push(' '),
            c if c.is_control() => {}
            c => plain.push(c),
        }
    }
    plain
}

fn skip_sequence(chars: &mut std::str::Chars<'_>) {
    match chars.next() {
        // `ESC [ … letter`
        Some('[') => while chars.next().is_some_and(|c| !('\u{40}'..='\u{7e}').contains(&c)) {},
        // `ESC ] … BEL`, or `… ESC \`.
        Some(']') if chars.find(|c| matches!(c, '\u{7}' | '\u{1b}')) == Some('\u{1b}') => {
            chars.next();
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_ids_times_and_colors_are_left_out() {
        for (text, expected) in [
            ("Fixed 3 of 12 tests in 4.2s", "fixed # of # tests in #.#"),
            ("at 10:32:07 on 2026-11-16", "at #:#:# on #-#-#"),
            ("commit 3f2a9c1 and deadbeef", "commit # and #"),
            ("a decade of faces", "a decade of faces"),
            ("\u{1b}[31mred\u{1b}[0m \u{1b}]0;title\u{7}text", "red text"),
            ("\u{1b}]8;;link\u{1b}\\here\u{1b}]8;;", "here"),
            ("  two\n\n lines\t", "two lines"),
            ("漢字 und Grüße", "漢字 und grüße"),
            ("", ""),
        ] {
            assert_eq!(normalized(text), expected);
        }
        let long = format!("{} the end", "é".repeat(50_000));
        let end = normalized(&long);
        assert!(end.ends_with("é the end") && end.chars().count() == TAIL);
    }

    #[test]
    fn texts_that_differ_in_figures_are_alike() {
        let summary = |n: u32, what: &str| {
            normalized(&format!(
                "I ran the whole test suite and {n} tests failed in {n}.4s. The login page still \
                 shows {what}; I could not find the reason for it in src/login.rs."
            ))
        };
        let one = summary(3, "an error");
        assert!((likeness(&one, &summary(12, "an error")) - 1.0).abs() < f64::EPSILON);
        assert!(likeness(&one, &summary(3, "an errors")) >= ALIKE);
        assert!(likeness(&one, &summary(3, "two boxes on top of each other")) < ALIKE);
        let other = normalized("All of it works now: the login, the logout and the reset.");
        assert!(likeness(&one, &other) < ALIKE);
    }

    #[test]
    fn texts_of_different_lengths_are_not_alike() {
        let (short, long) = ("a".repeat(89), "a".repeat(100));
        assert!(likeness(&short, &long).abs() < f64::EPSILON);
        assert!(likeness(&"a".repeat(90), &long) >= ALIKE);
        assert!((likeness("", "") - 1.0).abs() < f64::EPSILON);
    }

    #[test]
    fn an_empty_text_is_like_no_other() {
        assert!(most_alike("", [&String::new()]).abs() < f64::EPSILON);
        let others = ["x".to_owned(), "the same".to_owned()];
        assert!((most_alike("the same", &others) - 1.0).abs() < f64::EPSILON);
    }
}
