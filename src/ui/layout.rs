//! Text in columns. Wide characters count as two; long words are broken.

use std::array;
use std::path::Path;

use crate::model::{visible, visible_line};

/// Columns that a text without control characters takes.
pub fn width(text: &str) -> usize {
    console::measure_text_width(text)
}

/// As much as fits, with `…` at the cut.
pub fn cut(text: &str, columns: usize) -> String {
    console::truncate_str(text, columns, "…").into_owned()
}

/// Makes control characters visible, line ends too.
pub fn one_line(content: &str) -> String {
    visible(content).replace(['\n', '\t'], " ")
}

/// A path on one line, its control characters visible.
pub fn shown(path: &Path) -> String {
    visible_line(&path.to_string_lossy())
}

/// A text in pieces of at most `columns`, as a terminal breaks it.
pub fn broken(text: &str, columns: usize) -> Vec<String> {
    let (mut pieces, mut piece, mut used) = (Vec::new(), String::new(), 0);
    for c in text.chars() {
        let wide = width(c.encode_utf8(&mut [0; 4]));
        if used + wide > columns && used > 0 {
            pieces.push(std::mem::take(&mut piece));
            used = 0;
        }
        used += wide;
        piece.push(c);
    }
    pieces.push(piece);
    pieces
}

/// Pieces of text side by side, each with its tone.
type Parts<T> = Vec<(T, String)>;

/// Rows of at most `columns`, broken between words; all but the first begin with `hanging` spaces.
pub fn flow<T>(parts: Parts<T>, columns: usize, hanging: usize) -> Vec<Parts<T>>
where
    T: Copy + Default + PartialEq,
{
    if parts.iter().map(|(_, text)| width(text)).sum::<usize>() <= columns {
        return vec![parts];
    }
    let hanging = hanging.min(columns / 2).min(columns.saturating_sub(2));
    let room = columns.saturating_sub(hanging).max(1);
    let (mut rows, mut row, mut used) = (Vec::new(), Parts::new(), 0);
    for (tone, text) in parts {
        for mut piece in text.split_inclusive(' ').flat_map(|word| broken(word, room)) {
            if used > 0 && used + width(piece.trim_end()) > columns {
                if let Some((_, text)) = row.last_mut() {
                    text.truncate(text.trim_end().len());
                }
                let indent = (T::default(), " ".repeat(hanging));
                rows.push(std::mem::replace(&mut row, vec![indent]));
                used = hanging;
            }
            // The space after a word that just fits would begin a row of its own.
            if used + width(&piece) > columns {
                piece.truncate(piece.trim_end().len());
            }
            used += width(&piece);
            match row.last_mut() {
                Some((last, text)) if *last == tone => text.push_str(&piece),
                _ => row.push((tone, piece)),
            }
        }
    }
    rows.push(row);
    rows
}

/// Rows of cells in columns, two spaces apart; those of `figures` are aligned to the right.
pub fn table<const N: usize>(rows: &[[String; N]], figures: [bool; N]) -> Vec<String> {
    let cells = |column| rows.iter().filter_map(move |row| row.get(column));
    let widths: [usize; N] =
        array::from_fn(|column| cells(column).map(|cell| width(cell)).max().unwrap_or(0));
    let line = |row: &[String; N]| {
        let padded = row.iter().zip(widths).zip(figures).map(|((cell, columns), is_figure)| {
            let space = " ".repeat(columns.saturating_sub(width(cell)));
            if is_figure { format!("{space}{cell}") } else { format!("{cell}{space}") }
        });
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

/// Lines of at most `columns`; a line that fits stays as it is.
fn wrap(text: &str, columns: usize) -> Vec<String> {
    let expanded = text.replace('\t', "    ");
    expanded.lines().flat_map(|line| wrap_line(line.trim_end(), columns)).collect()
}

fn wrap_line(line: &str, columns: usize) -> Vec<String> {
    if width(line) <= columns {
        return vec![line.to_owned()];
    }
    let indent = leading_spaces(line).min(columns / 2);
    let hanging = indent + line.split_whitespace().next().map_or(0, marker_width);
    // In a command that is approved, each space counts.
    let text = format!("{}{}", " ".repeat(indent), line.trim_start());
    let rows = flow(vec![((), text)], columns, hanging).into_iter();
    rows.map(|row| row.into_iter().map(|(_, text)| text).collect()).collect()
}

pub fn leading_spaces(line: &str) -> usize {
    line.chars().take_while(|c| *c == ' ').count()
}

/// A list item continues under its text, not under its `-` or `[1]`.
fn marker_width(first: &str) -> usize {
    let numbered = first.starts_with('[') && first.ends_with(']') && width(first) <= 4;
    if numbered || ["-", "*", "•"].contains(&first) { width(first) + 1 } else { 0 }
}

/// A box of `columns`, with an empty line between sections. Empty sections are left out.
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
    use crate::ui::look::Tone;

    #[test]
    fn words_wrap_and_long_ones_break() {
        for (text, columns, wrapped) in [
            ("", 5, vec![]),
            ("a b", 5, vec!["a b"]),
            ("  kept   as is", 20, vec!["  kept   as is"]),
            ("one two three", 7, vec!["one two", "three"]),
            ("one  two   three", 8, vec!["one  two", "three"]),
            ("a\n\nb", 5, vec!["a", "", "b"]),
            ("abcdefgh ij", 3, vec!["abc", "def", "gh", "ij"]),
            ("漢字漢字 x", 5, vec!["漢字", "漢字", "x"]),
            ("漢", 1, vec!["漢"]),
            ("\tx", 8, vec!["    x"]),
            ("[1] one two", 9, vec!["[1] one", "    two"]),
            ("  - ab cd ef", 9, vec!["  - ab cd", "    ef"]),
            ("                  deep", 6, vec!["   dee", "   p"]),
        ] {
            assert_eq!(wrap(text, columns), wrapped, "{text:?}");
        }
    }

    #[test]
    fn rows_are_counted_as_a_terminal_breaks_them() {
        for (line, columns, count) in
            [("", 5, 1), ("abcde", 5, 1), ("abcdef", 5, 2), ("漢漢漢", 5, 2), ("漢漢漢漢漢", 5, 3)]
        {
            assert_eq!(broken(line, columns).len(), count, "{line}");
        }
    }

    #[test]
    fn cutting_counts_columns() {
        assert_eq!(cut("漢字漢字", 5), "漢字…");
        assert_eq!(cut("short", 5), "short");
    }

    fn flowed(parts: &[(Tone, &str)], columns: usize, hanging: usize) -> Vec<String> {
        let parts = parts.iter().map(|(tone, text)| (*tone, (*text).to_owned())).collect();
        let join = |row: Parts<Tone>| row.into_iter().map(|(_, text)| text).collect();
        flow(parts, columns, hanging).into_iter().map(join).collect()
    }

    #[test]
    fn words_are_broken_only_if_they_are_too_long() {
        let (plain, bad) = (Tone::Normal, Tone::Bad);
        for (parts, columns, hanging, rows) in [
            (vec![(plain, "fits as it  is ")], 15, 2, vec!["fits as it  is "]),
            (vec![(plain, "one two three")], 8, 2, vec!["one two", "  three"]),
            (vec![(bad, "one: "), (plain, "two three")], 8, 0, vec!["one: two", "three"]),
            (vec![(plain, "a verylongword")], 6, 2, vec!["a very", "  long", "  word"]),
            (vec![(plain, "漢字漢字 x")], 5, 0, vec!["漢字", "漢字", "x"]),
            (vec![(plain, "  in dented")], 7, 2, vec!["  in", "  dente", "  d"]),
        ] {
            assert_eq!(flowed(&parts, columns, hanging), rows, "{parts:?}");
        }
    }

    #[test]
    fn no_row_is_wider_than_the_terminal() {
        for columns in 2..40 {
            let text = "mixed 漢字 text, averyveryverylongwordindeed and more ".repeat(3);
            let rows = flowed(&[(Tone::Dim, "[10:00:00] "), (Tone::Bad, &text)], columns, 11);
            assert!(rows.iter().all(|row| width(row) <= columns), "{columns}: {rows:#?}");
        }
    }

    fn draw(title: &str, sections: &[&str], columns: usize) -> String {
        let sections: Vec<String> = sections.iter().map(|&s| s.to_owned()).collect();
        boxed(title, &sections, columns).join("\n")
    }

    #[test]
    fn sections_are_separated_by_an_empty_line() {
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
