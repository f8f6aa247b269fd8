//! Where indicatif draws its line: the cursor waits at the line's start.
//!
//! indicatif itself leaves it at the right edge. What the terminal echoes there (a key, `^C`)
//! goes to the next row, and a window that gets narrower breaks the line in two: both leave a
//! dead copy behind. From its start everything that follows can be wiped, however it was broken.

use std::io;
use std::sync::{Mutex, PoisonError};

use console::Term;
use indicatif::TermLike;

/// To the line's start, and nothing from there on.
const WIPE: &str = "\r\x1b[J";

#[derive(Debug)]
pub struct Anchor {
    terminal: Term,
    drawn: Mutex<String>,
}

impl Anchor {
    pub fn stderr() -> Self {
        Self { terminal: Term::stderr(), drawn: Mutex::new(String::new()) }
    }

    fn with<T>(&self, change: impl FnOnce(&mut String) -> T) -> T {
        change(&mut self.drawn.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// There is one line, so the cursor has nowhere to go.
impl TermLike for Anchor {
    fn width(&self) -> u16 {
        self.terminal.size().1
    }

    fn height(&self) -> u16 {
        self.terminal.size().0
    }

    fn move_cursor_up(&self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn move_cursor_down(&self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn move_cursor_right(&self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn move_cursor_left(&self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn write_line(&self, text: &str) -> io::Result<()> {
        self.write_str(text)
    }

    /// Without the spaces that indicatif fills the row with.
    fn write_str(&self, text: &str) -> io::Result<()> {
        if !text.trim().is_empty() {
            self.with(|drawn| drawn.push_str(text));
        }
        Ok(())
    }

    fn clear_line(&self) -> io::Result<()> {
        self.with(String::clear);
        Ok(())
    }

    fn flush(&self) -> io::Result<()> {
        let line = self.with(std::mem::take);
        self.terminal.write_str(&format!("{WIPE}{line}\r"))
    }
}
