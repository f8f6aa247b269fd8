//! The human writes to the agent: lines until an empty one, or an editor.

use std::io;

use dialoguer::Editor;

use crate::ports::Asked;

use super::conversation::Conversation;
use super::keys::KeyPress;
use super::look::{Text, Tone};
use super::menu::MenuBody;
use super::printer::env_var;

/// None: nothing was written, or the human went back.
pub fn write(conversation: &mut Conversation<'_>) -> Result<Option<String>, Asked> {
    let text = match type_in(conversation)? {
        Written::Text(text) => Some(text),
        Written::Left(text) => {
            let note = "No key was pressed in time; using what you have written so far.";
            conversation.add(Text::new().with(Tone::Warning, note));
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

fn type_in(conversation: &mut Conversation<'_>) -> Result<Written, Asked> {
    let mut draft = GuidanceDraft::default();
    loop {
        conversation.show(|| draft.body());
        let key = match conversation.next() {
            // What somebody wrote is never lost.
            Err(Asked::NoAnswer) if draft.has_words() && !conversation.is_withdrawn() => {
                return Ok(Written::Left(draft.text()));
            }
            key => key?,
        };
        if let Some(written) = draft.press(key) {
            return Ok(written);
        }
    }
}

#[derive(Default)]
struct GuidanceDraft {
    lines: Vec<String>,
    current: String,
    pasting: bool,
}

impl GuidanceDraft {
    fn press(&mut self, key: KeyPress) -> Option<Written> {
        match key {
            KeyPress::Char(c) => self.current.push(c),
            KeyPress::Backspace => drop(self.current.pop()),
            KeyPress::EraseLine => self.current.clear(),
            KeyPress::EraseWord => self.erase_word(),
            KeyPress::PasteStart => self.pasting = true,
            KeyPress::PasteEnd => self.pasting = false,
            KeyPress::Enter => return self.enter(),
            KeyPress::End => return self.done(),
            KeyPress::Escape => return Some(Written::Nothing),
            _ => {}
        }
        None
    }

    /// Empty lines inside a pasted text belong to it.
    fn enter(&mut self) -> Option<Written> {
        if self.current.trim().is_empty() && !self.pasting {
            return self.done();
        }
        if self.lines.is_empty() && self.current == "e" && !self.pasting {
            return Some(Written::InEditor);
        }
        self.lines.push(std::mem::take(&mut self.current));
        None
    }

    fn done(&mut self) -> Option<Written> {
        Some(Written::Text(self.text()))
    }

    fn text(&mut self) -> String {
        self.lines.push(std::mem::take(&mut self.current));
        self.lines.join("\n")
    }

    fn body(&self) -> MenuBody {
        let help =
            format!("Finish with an empty line; Esc goes back; `e` + Enter opens {}.", editor());
        MenuBody::Typing {
            help,
            lines: self.lines.iter().chain([&self.current]).cloned().collect(),
        }
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
    let problem = match conversation.lend(open_editor)? {
        Edited::Text(text) => return Ok(Some(text)),
        Edited::Nothing => return Ok(None),
        Edited::Refused => "the editor failed; nothing was sent".to_owned(),
        Edited::Failed(why) => format!("cannot use {}: {why}", editor()),
    };
    conversation.warn(&problem);
    Ok(None)
}

/// dialoguer takes the text whether the editor failed or not. So the file goes when it fails,
/// and there is nothing left to take. The editor gets the terminal, as the menu does, even where
/// standard input or output is a pipe.
const OR_NOTHING: &str = r#"for file; do :; done
[ -t 0 ] || exec </dev/tty
"$@" >&2 || rm -f -- "$file""#;

enum Edited {
    Text(String),
    /// Closed without saving.
    Nothing,
    /// The editor failed, or the human made it fail (`:cq`).
    Refused,
    Failed(String),
}

/// `$VISUAL`, else `$EDITOR`, else vi.
fn editor() -> String {
    let names = ["VISUAL", "EDITOR"].into_iter().filter_map(env_var);
    let has_words = |command: &String| shlex::split(command).is_some_and(|words| !words.is_empty());
    names.into_iter().find(has_words).unwrap_or_else(|| "vi".to_owned())
}

fn open_editor() -> Edited {
    let Some(command) = command(&editor()) else {
        return Edited::Failed("its name contains a NUL".to_owned());
    };
    match Editor::new().executable(command).extension(".md").edit("") {
        Ok(Some(text)) => Edited::Text(text),
        Ok(None) => Edited::Nothing,
        Err(dialoguer::Error::IO(error)) if error.kind() == io::ErrorKind::NotFound => {
            Edited::Refused
        }
        Err(error) => Edited::Failed(error.to_string()),
    }
}

/// None for a name with a NUL in it.
fn command(editor: &str) -> Option<String> {
    let words = shlex::split(editor)?;
    let wrapped = ["sh", "-c", OR_NOTHING, "sh"].into_iter();
    shlex::try_join(wrapped.chain(words.iter().map(String::as_str))).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::keys::KeyDecoder;

    /// What the bytes amount to: the text, `EDITOR`, `BACK` or `TYPING`.
    fn typed(bytes: &str) -> String {
        let mut draft = GuidanceDraft::default();
        for key in KeyDecoder::default().feed(bytes.as_bytes()) {
            match draft.press(key) {
                Some(Written::Text(text) | Written::Left(text)) => return text,
                Some(Written::InEditor) => return "EDITOR".to_owned(),
                Some(Written::Nothing) => return "BACK".to_owned(),
                None => {}
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
            let mut draft = GuidanceDraft::default();
            for key in KeyDecoder::default().feed(bytes.as_bytes()) {
                draft.press(key);
            }
            assert_eq!(draft.has_words(), words, "{bytes:?}");
        }
    }
}
