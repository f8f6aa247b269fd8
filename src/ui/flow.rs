//! Painted text in columns, broken between words.

use super::line::Tone;
use super::wrap::{broken, width};

type Row = Vec<(Tone, String)>;

/// Rows of at most `columns`; all but the first begin under `hanging` spaces.
pub fn flow(parts: Row, columns: usize, hanging: usize) -> Vec<Row> {
    if parts.iter().map(|(_, text)| width(text)).sum::<usize>() <= columns {
        return vec![parts];
    }
    let hanging = hanging.min(columns / 2).min(columns.saturating_sub(2));
    let room = columns.saturating_sub(hanging).max(1);
    let mut rows = Rows { rows: vec![vec![]], used: 0, columns, hanging };
    for (tone, text) in &parts {
        for word in text.split_inclusive(' ') {
            broken(word, room).into_iter().for_each(|piece| rows.append(*tone, piece));
        }
    }
    rows.rows
}

pub fn leading_spaces(parts: &Row) -> usize {
    parts.first().map_or(0, |(_, text)| text.chars().take_while(|c| *c == ' ').count())
}

struct Rows {
    rows: Vec<Row>,
    used: usize,
    columns: usize,
    hanging: usize,
}

impl Rows {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn flowed(parts: &[(Tone, &str)], columns: usize, hanging: usize) -> Vec<String> {
        let parts = parts.iter().map(|(tone, text)| (*tone, (*text).to_owned())).collect();
        let join = |row: Row| row.into_iter().map(|(_, text)| text).collect();
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
}
