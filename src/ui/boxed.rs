//! Sections of text in a box.

use super::look::one_line;
use super::wrap::{cut, width, wrap};
use crate::core::text::visible;

/// A box of `columns`, sections divided by an empty line. Empty sections are left out.
pub fn boxed(title: &str, sections: &[String], columns: usize) -> Vec<String> {
    let inner = columns.saturating_sub(4).max(2);
    let mut lines = vec![top(title, inner)];
    let full = sections.iter().filter(|section| !section.trim().is_empty());
    for (number, section) in full.enumerate() {
        if number > 0 {
            lines.push(row("", inner));
        }
        lines.extend(wrap(visible(section).trim_end(), inner).iter().map(|line| row(line, inner)));
    }
    lines.push(format!("└{}┘", "─".repeat(inner + 2)));
    lines
}

fn top(title: &str, inner: usize) -> String {
    let title = cut(one_line(title).trim(), inner.saturating_sub(2));
    let rest = (inner - 1).saturating_sub(width(&title));
    format!("┌─ {title} {}┐", "─".repeat(rest))
}

fn row(line: &str, inner: usize) -> String {
    format!("│ {line}{} │", " ".repeat(inner.saturating_sub(width(line))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(title: &str, sections: &[&str], columns: usize) -> String {
        let sections: Vec<String> = sections.iter().map(|&s| s.to_owned()).collect();
        boxed(title, &sections, columns).join("\n")
    }

    #[test]
    fn sections_stand_apart() {
        insta::assert_snapshot!(draw("US-1 Title", &["One two three four five.", " ", "Second"], 24), @r"
        ┌─ US-1 Title ─────────┐
        │ One two three four   │
        │ five.                │
        │                      │
        │ Second               │
        └──────────────────────┘
        ");
    }

    #[test]
    fn wide_characters_and_long_words_stay_inside() {
        let text = "漢字漢字漢字漢字漢字漢字 https://example.com/a/very/long/address\u{1b}[31m";
        insta::assert_snapshot!(draw("漢字漢字漢字漢字漢字", &[text], 20), @r"
        ┌─ 漢字漢字漢字… ──┐
        │ 漢字漢字漢字漢字 │
        │ 漢字漢字         │
        │ https://example. │
        │ com/a/very/long/ │
        │ address\x1b[31m  │
        └──────────────────┘
        ");
    }

    #[test]
    fn every_line_is_as_wide_as_asked() {
        for columns in [20, 33, 62, 100] {
            for line in boxed("漢字 title", &["mixed 漢字 text ".repeat(20)], columns) {
                assert_eq!(width(&line), columns, "{line}");
            }
        }
    }
}
