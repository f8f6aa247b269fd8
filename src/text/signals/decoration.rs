//! Decoration around a line that does not change its meaning, and case-insensitive search.

/// Symbols that mean the opposite, or "not yet".
const DOUBTS: &str = "❌❎✗✘✕✖☐☒❓❔⏳⌛⏰⏸🚫⛔🔜🚧⚠🤔🛑🟡🟠🔴🔄👎🙅🤷⬜◻◽□▢🔲🔳❯❮❛❜❝❞";

/// Checked boxes and emoji in words.
#[rustfmt::skip]
const DONE: [&str; 13] = [
    "[x]", "[X]", "[✓]", "[✔]", "[✅]", ":white_check_mark:", ":heavy_check_mark:",
    ":ballot_box_with_check:", ":tada:", ":rocket:", ":sparkles:", ":100:", ":+1:",
];

/// Strips bullets, headings, emphasis, checked boxes and emoji from the front.
pub(super) fn without_leading(line: &str) -> &str {
    let text = line.trim_start_matches('\u{feff}').trim_start();
    let numbered = after_number(text).filter(|rest| rest.starts_with(char::is_whitespace));
    let mut rest = numbered.map_or(text, str::trim_start);
    while let Some(less) = without_symbol(rest).or_else(|| without_rule(rest)) {
        rest = less.trim_start();
    }
    rest
}

/// Only decoration, with at most one full stop.
pub(super) fn is_trailing(text: &str) -> bool {
    let mut rest = text.trim_start();
    let mut stopped = false;
    while !rest.is_empty() {
        let stop = if stopped { None } else { rest.strip_prefix('.') };
        stopped |= stop.is_some();
        let less = stop.or_else(|| without_symbol(rest));
        let Some(less) = less.or_else(|| rest.strip_prefix(['!', '#', '=', '-'])) else {
            return false;
        };
        rest = less.trim_start();
    }
    true
}

/// Skips emphasis and white space, of which there must be some.
pub(super) fn after_gap(text: &str) -> Option<&str> {
    let rest = without_gap(text);
    let gap = text.strip_suffix(rest)?;
    gap.contains(char::is_whitespace).then_some(rest)
}

pub(super) fn without_gap(text: &str) -> &str {
    text.trim_start_matches(|c| is_emphasis(c) || c.is_whitespace())
}

pub(super) fn is_emphasis(c: char) -> bool {
    matches!(c, '*' | '_')
}

pub(super) fn is_doubt(c: char) -> bool {
    DOUBTS.contains(c)
}

fn without_symbol(text: &str) -> Option<&str> {
    text.strip_prefix(|c| is_emphasis(c) || is_bullet(c) || is_emoji(c))
        .or_else(|| DONE.iter().find_map(|symbol| text.strip_prefix(symbol)))
}

/// `- `, `## `, `=== `: without the space it is a diff, a tag, an option.
fn without_rule(text: &str) -> Option<&str> {
    let mark = text.chars().next().filter(|c| matches!(c, '-' | '+' | '=' | '#'))?;
    let rest = match mark {
        '+' => text.strip_prefix('+')?,
        _ => text.trim_start_matches(mark),
    };
    rest.starts_with(char::is_whitespace).then_some(rest)
}

/// Skips the number of a list item: `1.` or `1)`.
pub(super) fn after_number(text: &str) -> Option<&str> {
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    if rest.len() < text.len() { rest.strip_prefix(['.', ')']) } else { None }
}

fn is_bullet(c: char) -> bool {
    matches!(c, '•' | '‣' | '·' | '–' | '—' | '∙')
}

fn is_emoji(c: char) -> bool {
    let drawn = matches!(c,
        '\u{2190}'..='\u{21ff}' | '\u{23e9}'..='\u{23ff}' | '\u{25a0}'..='\u{27bf}'
        | '\u{2b00}'..='\u{2bff}' | '\u{1f000}'..='\u{1faff}' | '\u{fe0f}' | '\u{200d}');
    drawn && !is_doubt(c)
}

pub(super) fn find_ignore_case(text: &str, needle: &str) -> Option<usize> {
    let needle = needle.as_bytes();
    let first = needle.first()?.to_ascii_lowercase();
    text.as_bytes().windows(needle.len()).position(|part| {
        // Comparing the first byte alone is cheaper and rejects most places.
        part.first().is_some_and(|byte| byte.to_ascii_lowercase() == first)
            && part.eq_ignore_ascii_case(needle)
    })
}

pub(super) fn strip_ignore_case<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let (head, rest) = text.split_at_checked(prefix.len())?;
    head.eq_ignore_ascii_case(prefix).then_some(rest)
}
