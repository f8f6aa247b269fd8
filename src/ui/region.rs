//! Lines on the terminal that are drawn again in place.

use console::{Term, strip_ansi_codes};

use super::wrap;

/// The cursor stays at the end of the last line.
#[derive(Default)]
pub struct Region {
    drawn: Vec<String>,
}

impl Region {
    pub fn draw(&mut self, terminal: &Term, lines: Vec<String>) {
        let text = format!("{}{}", self.back_to_start(terminal), lines.join("\n"));
        let _ = terminal.write_str(&text);
        self.drawn = lines;
    }

    pub fn clear(&mut self, terminal: &Term) {
        let _ = terminal.write_str(&self.back_to_start(terminal));
        self.drawn.clear();
    }

    /// What stands there stays; the next drawing comes below.
    pub fn keep(&mut self, terminal: &Term) {
        let _ = terminal.write_str("\n");
        self.drawn.clear();
    }

    /// A window that got narrower has broken the lines anew, so rows are counted by its width now.
    fn back_to_start(&self, terminal: &Term) -> String {
        let columns = usize::from(terminal.size().1);
        let rows = |line: &String| wrap::rows(&strip_ansi_codes(line), columns);
        let above = self.drawn.iter().map(rows).sum::<usize>().saturating_sub(1);
        let up = if above > 0 { format!("\x1b[{above}A") } else { String::new() };
        format!("\r{up}\x1b[J")
    }
}
