//! Text in columns: wide characters count two, long words are broken.

use crate::model::visible;

use super::look::{Tone, one_line};

/// Columns that a harmless text takes.
pub fn width(text: &str) -> usize {
    console::measure_text_width(text)
}

/// What fits, with `…` where something was cut.
pub fn cut(text: &str, columns: usize) -> String {
    console::truncate_str(text, columns, "…").into_owned()
}

/// Lines of at most `columns`; what already fits stays as it is.
pub fn wrap(text: &str, columns: usize) -> Vec<String> {
    let expanded = text.replace('\t', "    ");
    expanded.lines().flat_map(|line| wrap_line(line.trim_end(), columns)).collect()
}

fn wrap_line(line: &str, columns: usize) -> Vec<String> {
    if width(line) <= columns {
        return vec![line.to_owned()];
    }
    let indent = leading_spaces(line).min(columns / 2);
    let hanging = (indent + marker_width(line)).min(columns / 2);
    let mut lines = vec![" ".repeat(indent)];
    for piece in line.split_whitespace().flat_map(|word| broken(word, columns - hanging)) {
        append(&mut lines, &piece, columns, hanging);
    }
    lines
}

fn append(lines: &mut Vec<String>, piece: &str, columns: usize, hanging: usize) {
    match lines.last_mut() {
        Some(last) if last.trim().is_empty() => last.push_str(piece),
        Some(last) if width(last) + 1 + width(piece) <= columns => {
            last.push(' ');
            last.push_str(piece);
        }
        _ => lines.push(format!("{}{piece}", " ".repeat(hanging))),
    }
}

fn leading_spaces(line: &str) -> usize {
    line.chars().take_while(|c| *c == ' ').count()
}

/// A list's item goes on under its text, not under its `-` or `[1]`.
fn marker_width(line: &str) -> usize {
    let first = line.split_whitespace().next().unwrap_or_default();
    let numbered = first.starts_with('[') && first.ends_with(']') && width(first) <= 4;
    if numbered || ["-", "*", "•"].contains(&first) { width(first) + 1 } else { 0 }
}

/// A word in pieces that fit.
pub fn broken(word: &str, columns: usize) -> Vec<String> {
    let mut pieces = vec![String::new()];
    let mut used = 0;
    for c in word.chars() {
        let wide = char_width(c);
        if used + wide > columns && used > 0 {
            pieces.push(String::new());
            used = 0;
        }
        used += wide;
        if let Some(piece) = pieces.last_mut() {
            piece.push(c);
        }
    }
    pieces
}

/// Rows that a terminal of that many columns needs for the line.
pub fn rows(line: &str, columns: usize) -> usize {
    let mut rows = 1;
    let mut used = 0;
    for wide in line.chars().map(char_width) {
        if used + wide > columns && used > 0 {
            rows += 1;
            used = 0;
        }
        used += wide;
    }
    rows
}

fn char_width(c: char) -> usize {
    width(c.encode_utf8(&mut [0; 4]))
}

/// Painted pieces of text, side by side.
type Painted = Vec<(Tone, String)>;

/// Rows of at most `columns`; all but the first begin under `hanging` spaces.
pub fn flow(parts: Painted, columns: usize, hanging: usize) -> Vec<Painted> {
    if parts.iter().map(|(_, text)| width(text)).sum::<usize>() <= columns {
        return vec![parts];
    }
    let hanging = hanging.min(columns / 2).min(columns.saturating_sub(2));
    let room = columns.saturating_sub(hanging).max(1);
    let mut rows = PaintedRows { rows: vec![vec![]], used: 0, columns, hanging };
    for (tone, text) in &parts {
        for word in text.split_inclusive(' ') {
            broken(word, room).into_iter().for_each(|piece| rows.append(*tone, piece));
        }
    }
    rows.rows
}

pub fn hanging_spaces(parts: &Painted) -> usize {
    parts.first().map_or(0, |(_, text)| text.chars().take_while(|c| *c == ' ').count())
}

struct PaintedRows {
    rows: Vec<Painted>,
    used: usize,
    columns: usize,
    hanging: usize,
}

impl PaintedRows {
    fn append(&mut self, tone: Tone, piece: String) {
        let mut piece = piece;
        if self.used > 0 && self.used + width(piece.trim_end()) > self.columns {
            self.begin();
        }
        // The space after a word that just fits would begin a row of its own.
        if self.used + width(&piece) > self.columns {
            piece.truncate(piece.trim_end().len());
        }
        self.used += width(&piece);
        let row = self.rows.last_mut();
        match row.and_then(|row| row.last_mut()).filter(|(last, _)| *last == tone) {
            Some((_, text)) => text.push_str(&piece),
            None => self.push(tone, piece),
        }
    }

    fn begin(&mut self) {
        if let Some((_, text)) = self.rows.last_mut().and_then(|row| row.last_mut()) {
            text.truncate(text.trim_end().len());
        }
        self.rows.push(vec![(Tone::Normal, " ".repeat(self.hanging))]);
        self.used = self.hanging;
    }

    fn push(&mut self, tone: Tone, piece: String) {
        if let Some(row) = self.rows.last_mut() {
            row.push((tone, piece));
        }
    }
}

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

    #[test]
    fn words_wrap_and_long_ones_break() {
        for (text, columns, wrapped) in [
            ("", 5, vec![]),
            ("a b", 5, vec!["a b"]),
            ("  kept   as is", 20, vec!["  kept   as is"]),
            ("one two three", 7, vec!["one two", "three"]),
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
            assert_eq!(rows(line, columns), count, "{line}");
        }
    }

    #[test]
    fn cutting_counts_columns() {
        assert_eq!(cut("漢字漢字", 5), "漢字…");
        assert_eq!(cut("short", 5), "short");
    }

    fn flowed(parts: &[(Tone, &str)], columns: usize, hanging: usize) -> Vec<String> {
        let parts = parts.iter().map(|(tone, text)| (*tone, (*text).to_owned())).collect();
        let join = |row: Painted| row.into_iter().map(|(_, text)| text).collect();
        flow(parts, columns, hanging).into_iter().map(join).collect()
    }

    #[test]
    fn words_stay_whole_where_they_can() {
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
