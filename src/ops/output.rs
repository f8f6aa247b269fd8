//! What a command prints: data goes to standard output.

use std::fmt::Display;
use std::io;
use std::io::Write;

use crate::ui;

use super::error::CommandError;

/// A closed pipe is an error without a message.
pub fn print(text: &str) -> Result<(), CommandError> {
    print_bytes(text.as_bytes())
}

pub fn print_bytes(bytes: &[u8]) -> Result<(), CommandError> {
    let mut out = io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(CommandError::Pipe),
        result => Ok(result?),
    }
}

/// Rows of cells with a remark after them. Columns with figures are aligned to the right.
pub fn table<const N: usize>(rows: &[([String; N], String)], figures: [bool; N]) -> String {
    let mut widths = [0; N];
    for (cells, _) in rows {
        for (width, cell) in widths.iter_mut().zip(cells) {
            *width = ui::width(cell).max(*width);
        }
    }
    let line = |(cells, remark): &([String; N], String)| {
        let padded = cells.iter().zip(widths).zip(figures).map(|((cell, width), is_figure)| {
            let space = " ".repeat(width.saturating_sub(ui::width(cell)));
            if is_figure { format!("{space}{cell}") } else { format!("{cell}{space}") }
        });
        let line = format!("{}  {remark}", padded.collect::<Vec<_>>().join("  "));
        format!("{}\n", line.trim_end())
    };
    rows.iter().map(line).collect()
}

/// `1 file`, `5 files`.
pub fn counted<N: Display + PartialEq + From<u8>>(count: N, what: &str) -> String {
    if count == N::from(1) { format!("1 {what}") } else { format!("{count} {what}s") }
}
