//! Decoration around a claim that does not change its meaning.

/// Symbols that mean the opposite, or "not yet".
const DOUBTS: &str = "❌❎✗✘✕✖☐☒❓❔⏳⌛⏰⏸🚫⛔🔜🚧⚠🤔🛑🟡🟠🔴🔄👎🙅🤷⬜◻◽□▢🔲🔳❯❮❛❜❝❞";

const SHORTCODES: [&str; 8] = [
    ":white_check_mark:",
    ":heavy_check_mark:",
    ":ballot_box_with_check:",
    ":tada:",
    ":rocket:",
    ":sparkles:",
    ":100:",
    ":+1:",
];

const CHECKED_BOXES: [&str; 5] = ["[x]", "[X]", "[✓]", "[✔]", "[✅]"];

/// Strips bullets, headings, emphasis, checked boxes and emoji from the front.
pub(super) fn without_leading(line: &str) -> &str {
    let text = line.trim_start_matches('\u{feff}').trim_start();
    let mut rest = without_number(text).unwrap_or(text);
    while let Some(less) = without_sign(rest).or_else(|| without_rule(rest)) {
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
        match stop
            .or_else(|| without_sign(rest))
            .or_else(|| rest.strip_prefix(['!', '#', '=', '-']))
        {
            Some(less) => rest = less.trim_start(),
            None => return false,
        }
    }
    true
}

/// Skips emphasis and white space, of which there must be some.
pub(super) fn after_gap(text: &str) -> Option<&str> {
    let rest = text.trim_start_matches(|c| is_emphasis(c) || c.is_whitespace());
    let gap = text.strip_suffix(rest)?;
    gap.contains(char::is_whitespace).then_some(rest)
}

pub(super) fn is_emphasis(c: char) -> bool {
    matches!(c, '*' | '_')
}

pub(super) fn is_doubt(c: char) -> bool {
    DOUBTS.contains(c)
}

fn without_sign(text: &str) -> Option<&str> {
    let any_of = |list: &[&str]| list.iter().find_map(|sign| text.strip_prefix(sign));
    text.strip_prefix(|c| is_emphasis(c) || is_bullet(c) || is_emoji(c))
        .or_else(|| any_of(&CHECKED_BOXES))
        .or_else(|| any_of(&SHORTCODES))
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

fn without_number(text: &str) -> Option<&str> {
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let after = rest.strip_prefix(['.', ')'])?;
    (rest.len() < text.len() && after.starts_with(char::is_whitespace))
        .then_some(after.trim_start())
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
