//! Text: untrusted text for people, and durations.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::fmt::Write;
use std::time::Duration;

/// Makes characters visible that could act on a terminal: control characters (except line feed
/// and tab), and those that reorder or hide text.
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.chars().any(acts_on_terminals) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if !acts_on_terminals(c) {
            shown.push(c);
        } else if c.is_ascii() {
            // Writing to a String cannot fail.
            let _ = write!(shown, "\\x{:02x}", u32::from(c));
        } else {
            let _ = write!(shown, "\\u{{{:x}}}", u32::from(c));
        }
    }
    Cow::Owned(shown)
}

/// `visible`, on one line.
pub fn visible_line(text: &str) -> String {
    let one_line: Vec<&str> = text.split_whitespace().collect();
    visible(&one_line.join(" ")).into_owned()
}

fn acts_on_terminals(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        '\u{061c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' => true,
        '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' => true,
        // Tag characters: invisible text.
        '\u{e0000}'..='\u{e007f}' => true,
        _ => c.is_control(),
    }
}

/// The first `max` characters, with `…` where something was cut.
pub fn shorten(text: &str, max: usize) -> String {
    if text.chars().count() <= max {
        return text.to_owned();
    }
    let start: String = text.chars().take(max.saturating_sub(1)).collect();
    format!("{start}…")
}

/// At most `max` characters: the beginning, and more of the end, where errors are.
pub fn both_ends(text: &str, max: usize) -> String {
    let count = text.chars().count();
    if count <= max {
        return text.to_owned();
    }
    const GAP: &str = " … ";
    let room = max.saturating_sub(GAP.chars().count());
    let head = room / 3;
    let start: String = text.chars().take(head).collect();
    let end: String = text.chars().skip(count - (room - head)).collect();
    // With next to no room, half of the gap is all that fits.
    format!("{start}{GAP}{end}").chars().take(max).collect()
}

/// `a, b and 7 more`, on one line.
pub fn first_few(names: &[impl AsRef<OsStr>], most: usize) -> String {
    let named = names.iter().take(most);
    let named = named.map(|name| visible_line(&name.as_ref().to_string_lossy()));
    let named = named.collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(most) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

pub const A_TIME: &str = "a time such as `10m` or `90s`, at most 30 days";
const LONGEST: Duration = Duration::from_hours(30 * 24);

/// `90s`, `10m`, `1h 30m`. None if it is invalid, zero or too long.
pub fn duration(text: &str) -> Option<Duration> {
    let span: jiff::SignedDuration = text.trim().parse().ok()?;
    let duration = Duration::try_from(span).ok()?;
    (!duration.is_zero() && duration <= LONGEST).then_some(duration)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_act_on_a_terminal_become_visible() {
        for (raw, shown) in [
            ("plain\n\ttext ✓ 漢字", "plain\n\ttext ✓ 漢字"),
            ("\x1b[2J", "\\x1b[2J"),
            ("a\rb\0c\x7f", "a\\x0db\\x00c\\x7f"),
            ("\u{9b}31m", "\\u{9b}31m"),
            ("abc\u{202e}cba", "abc\\u{202e}cba"),
            ("\u{e0041}", "\\u{e0041}"),
        ] {
            assert_eq!(visible(raw), shown);
        }
        assert_eq!(visible_line(" a\n b\x1b "), "a b\\x1b");
    }

    #[test]
    fn shortening_counts_characters() {
        assert_eq!(shorten("漢字かな", 4), "漢字かな");
        assert_eq!(shorten("漢字かな", 3), "漢字…");
    }

    #[test]
    fn a_long_text_keeps_both_ends() {
        assert_eq!(both_ends("漢字かな", 4), "漢字かな");
        assert_eq!(both_ends("0123456789abcdef", 12), "012 … abcdef");
        for max in 0..20 {
            assert_eq!(both_ends(&"é".repeat(20), max).chars().count(), max, "{max}");
        }
    }
}
