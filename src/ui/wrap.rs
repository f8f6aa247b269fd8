//! Text in columns: wide characters count two, long words are broken.

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
}
