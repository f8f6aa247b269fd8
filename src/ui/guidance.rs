//! The human writes to the agent: lines until an empty one, or an editor.

use console::Term;

use super::conversation::Conversation;
use super::editor::{self, Edited};
use super::keys::Key;
use super::line::{Line, Text, Tone};
use super::look::one_line;
use super::region::Region;
use crate::engine::ports::Asked;

/// None: nothing was written, or the human went back.
pub fn write(conversation: &mut Conversation<'_>) -> Result<Option<String>, Asked> {
    let help =
        format!("An empty line ends it, Esc goes back, `e` + Enter opens {}.", editor::name());
    conversation.print(&Text::new().with(Tone::Dim, help).into());
    let _ = conversation.terminal.show_cursor();
    let mut region = Region::default();
    let written = type_in(conversation, &mut region);
    region.clear(&conversation.terminal);
    let _ = conversation.terminal.hide_cursor();
    let text = match written? {
        Written::Text(text) => Some(text),
        Written::Left(text) => {
            let note = "No key for so long: what is written so far is the answer.";
            conversation.print(&Text::new().with(Tone::Warning, note).into());
            Some(text)
        }
        Written::InEditor => edit(conversation)?,
        Written::Nothing => None,
    };
    Ok(text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty()))
}

enum Written {
    Text(String),
    /// Nobody went on with it.
    Left(String),
    InEditor,
    Nothing,
}

fn type_in(conversation: &mut Conversation<'_>, region: &mut Region) -> Result<Written, Asked> {
    let mut draft = Draft::default();
    loop {
        if !conversation.tty.has_more() {
            draw(&draft, &conversation.terminal, region);
        }
        let key = match conversation.next() {
            // What somebody wrote is never lost.
            Err(Asked::NobodyThere) if draft.has_words() => {
                return Ok(Written::Left(draft.text()));
            }
            key => key?,
        };
        match draft.press(key) {
            Step::Typing => {}
            Step::LineEnded => {
                let ended = draft.lines.last().map_or("", String::as_str);
                region.draw(&conversation.terminal, vec![prompt(ended)]);
                region.keep(&conversation.terminal);
            }
            Step::Done(written) => return Ok(written),
        }
    }
}

fn draw(draft: &Draft, terminal: &Term, region: &mut Region) {
    region.draw(terminal, vec![prompt(&draft.current)]);
}

fn prompt(line: &str) -> String {
    format!("> {}", one_line(line))
}

#[derive(Default)]
struct Draft {
    lines: Vec<String>,
    current: String,
    pasting: bool,
}

enum Step {
    Typing,
    LineEnded,
    Done(Written),
}

impl Draft {
    fn press(&mut self, key: Key) -> Step {
        match key {
            Key::Char(c) => self.current.push(c),
            Key::Backspace => drop(self.current.pop()),
            Key::EraseLine => self.current.clear(),
            Key::EraseWord => self.erase_word(),
            Key::PasteStart => self.pasting = true,
            Key::PasteEnd => self.pasting = false,
            Key::Enter => return self.enter(),
            Key::End => return self.done(),
            Key::Escape => return Step::Done(Written::Nothing),
            _ => {}
        }
        Step::Typing
    }

    /// Empty lines inside a pasted text belong to it.
    fn enter(&mut self) -> Step {
        if self.current.trim().is_empty() && !self.pasting {
            return self.done();
        }
        if self.lines.is_empty() && self.current == "e" && !self.pasting {
            return Step::Done(Written::InEditor);
        }
        self.lines.push(std::mem::take(&mut self.current));
        Step::LineEnded
    }

    fn done(&mut self) -> Step {
        Step::Done(Written::Text(self.text()))
    }

    fn text(&mut self) -> String {
        self.lines.push(std::mem::take(&mut self.current));
        self.lines.join("\n")
    }

    /// A lone `e` was on its way to the editor.
    fn has_words(&self) -> bool {
        let is_command = self.lines.is_empty() && self.current == "e";
        !is_command && self.lines.iter().chain([&self.current]).any(|line| !line.trim().is_empty())
    }

    fn erase_word(&mut self) {
        let kept = self.current.trim_end();
        let end = kept.rfind(char::is_whitespace).map_or(0, |place| place + 1);
        self.current = self
            .current
            .chars()
            .scan(0, |at, c| {
                let keep = (*at < end).then_some(c);
                *at += c.len_utf8();
                keep
            })
            .collect();
    }
}

/// An editor that fails is told, and the menu comes back.
fn edit(conversation: &mut Conversation<'_>) -> Result<Option<String>, Asked> {
    let edited = conversation.tty.lend(editor::edit).map_err(|_| Asked::NobodyThere)?;
    let problem = match edited {
        Edited::Text(text) => return Ok(Some(text)),
        Edited::Nothing => return Ok(None),
        Edited::Refused => "the editor said no; nothing was taken".to_owned(),
        Edited::Failed(why) => format!("{} cannot be used: {why}", editor::name()),
    };
    let line: Line = Text::new().with(Tone::Warning, "warning: ").plain(problem).into();
    conversation.print(&line);
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::keys::Decoder;

    /// What the bytes amount to: the text, `EDITOR`, `BACK` or `TYPING`.
    fn typed(bytes: &str) -> String {
        let mut draft = Draft::default();
        for key in Decoder::default().feed(bytes.as_bytes()) {
            match draft.press(key) {
                Step::Done(Written::Text(text)) => return text,
                Step::Done(Written::Left(text)) => return text,
                Step::Done(Written::InEditor) => return "EDITOR".to_owned(),
                Step::Done(Written::Nothing) => return "BACK".to_owned(),
                Step::Typing | Step::LineEnded => {}
            }
        }
        "TYPING".to_owned()
    }

    #[test]
    fn lines_are_edited_and_an_empty_one_ends() {
        for (bytes, text) in [
            ("use sqlite\r\r", "use sqlite\n"),
            ("one\rtwo\r\r", "one\ntwo\n"),
            ("\r", ""),
            ("漢字\x7f漢\r\r", "漢漢\n"),
            ("wrong\x15right\x04", "right"),
            ("keep this gone\x17\x04", "keep this "),
            ("ü one  \x17\x17\x17\x04", ""),
            ("e\r", "EDITOR"),
            ("\x1b\x1bx", "BACK"),
            ("x\re\r", "TYPING"),
            ("\x1b[200~e\r\rb\x1b[201~\r\r", "e\n\nb\n"),
        ] {
            assert_eq!(typed(bytes), text, "{bytes:?}");
        }
    }

    #[test]
    fn only_what_somebody_meant_is_kept() {
        for (bytes, words) in [
            ("", false),
            ("  ", false),
            ("e", false),
            ("half", true),
            ("one\r", true),
            ("x\re", true),
        ] {
            let mut draft = Draft::default();
            for key in Decoder::default().feed(bytes.as_bytes()) {
                draft.press(key);
            }
            assert_eq!(draft.has_words(), words, "{bytes:?}");
        }
    }
}
