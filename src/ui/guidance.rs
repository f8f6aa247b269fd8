//! The human writes to the agent: lines until an empty one, or an editor.

use std::io;

use dialoguer::Editor;

use crate::ports::Asked;

use super::conversation::Conversation;
use super::keyboard::KeyPress;
use super::look::{TextLine, Tone};
use super::menu::MenuBody;
use super::printer::env_var;

/// None: nothing was written, or the human went back.
pub fn write(conversation: &mut Conversation<'_>) -> Result<Option<String>, Asked> {
    let text = match type_in(conversation)? {
        Written::Text(text) => Some(text),
        Written::InEditor => edit(conversation)?,
        Written::Nothing => None,
    };
    Ok(text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty()))
}

enum Written {
    Text(String),
    InEditor,
    Nothing,
}

fn type_in(conversation: &mut Conversation<'_>) -> Result<Written, Asked> {
    let mut draft = GuidanceDraft::default();
    loop {
        conversation.show(|| draft.body());
        let key = match conversation.next() {
            // Text that was written is never lost.
            Err(Asked::NoAnswer) if draft.has_words() && !conversation.is_withdrawn() => {
                let note = "No key was pressed in time; using what you have written so far.";
                conversation.add(TextLine::new().with(Tone::Warning, note));
                return Ok(draft.done());
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
            KeyPress::EraseWord => {
                let words = self.current.trim_end();
                let kept = words.trim_end_matches(|c: char| !c.is_whitespace()).len();
                self.current.truncate(kept);
            }
            KeyPress::PasteStart => self.pasting = true,
            KeyPress::PasteEnd => self.pasting = false,
            KeyPress::Enter => return self.enter(),
            KeyPress::End => return Some(self.done()),
            KeyPress::Escape => return Some(Written::Nothing),
            _ => {}
        }
        None
    }

    /// Empty lines inside a pasted text belong to it.
    fn enter(&mut self) -> Option<Written> {
        if self.current.trim().is_empty() && !self.pasting {
            return Some(self.done());
        }
        if self.is_command() && !self.pasting {
            return Some(Written::InEditor);
        }
        self.lines.push(std::mem::take(&mut self.current));
        None
    }

    fn done(&mut self) -> Written {
        self.lines.push(std::mem::take(&mut self.current));
        Written::Text(self.lines.join("\n"))
    }

    fn body(&self) -> MenuBody {
        let lines = self.lines.iter().chain([&self.current]).cloned().collect();
        let help =
            format!("Finish with an empty line; Esc goes back; `e` + Enter opens {}.", editor());
        MenuBody::Typing { help, lines }
    }

    /// A lone `e` opens the editor.
    fn is_command(&self) -> bool {
        self.lines.is_empty() && self.current == "e"
    }

    fn has_words(&self) -> bool {
        let mut lines = self.lines.iter().chain([&self.current]);
        !self.is_command() && lines.any(|line| !line.trim().is_empty())
    }
}

/// If the editor fails, a warning says so and the menu returns.
fn edit(conversation: &mut Conversation<'_>) -> Result<Option<String>, Asked> {
    Ok(conversation.lend(open_editor)?.unwrap_or_else(|problem| {
        conversation.warn(&problem);
        None
    }))
}

/// dialoguer uses the text even if the editor failed (`:cq`), so this removes the file then. The
/// editor gets the terminal, like the menu, even if standard input or output is a pipe.
const OR_NOTHING: &str = r#"for file; do :; done
[ -t 0 ] || exec </dev/tty
"$@" >&2 || rm -f -- "$file""#;

/// `$VISUAL`, else `$EDITOR`, else vi.
fn editor() -> String {
    let names = ["VISUAL", "EDITOR"].into_iter().filter_map(env_var);
    let has_words = |command: &String| shlex::split(command).is_some_and(|words| !words.is_empty());
    names.into_iter().find(has_words).unwrap_or_else(|| "vi".to_owned())
}

/// None: closed without saving. Fails with the message for the human.
fn open_editor() -> Result<Option<String>, String> {
    let editor = editor();
    let failed = |why: String| format!("cannot use {editor}: {why}");
    let command = command(&editor).ok_or_else(|| failed("its name contains a NUL".to_owned()))?;
    Editor::new().executable(command).extension(".md").edit("").map_err(|error| match error {
        dialoguer::Error::IO(error) if error.kind() == io::ErrorKind::NotFound => {
            "the editor failed; nothing was sent".to_owned()
        }
        error => failed(error.to_string()),
    })
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
    use crate::ui::keyboard::KeyDecoder;

    /// What the bytes amount to: the text, `EDITOR`, `BACK` or `TYPING`.
    fn typed(bytes: &str) -> String {
        let mut draft = GuidanceDraft::default();
        for key in KeyDecoder::default().feed(bytes.as_bytes()) {
            match draft.press(key) {
                Some(Written::Text(text)) => return text,
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
