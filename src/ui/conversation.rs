//! An open menu and its keys: the human chooses an item, or writes to the agent.

use std::io;
use std::sync::atomic::Ordering;
use std::time::Duration;

use console::Term;
use dialoguer::Editor;

use crate::ports::{Asked, Withdrawal};

use super::GLANCE;
use super::display::DisplayQueue;
use super::keyboard::{KeyPress, Keyboard, RawKeyboard};
use super::look::{Line, TextLine, Tone};
use super::menu::{Menu, MenuBody, MenuItem, MenuList};
use super::printer::env_var;

/// Without a key for this long, nobody is typing.
pub const TYPING_PAUSE: Duration = Duration::from_secs(1);
const KEYS_IGNORED: &str = "Your keys are ignored until you stop typing for a second.";

/// What the human says, or why nothing.
pub type Reply<T> = Result<T, Asked>;

pub struct Conversation<'a> {
    keyboard: RawKeyboard,
    display: &'a DisplayQueue,
    patience: Duration,
    withdrawal: &'a Withdrawal,
    /// The human may finish a text after the question was withdrawn, and was told so.
    is_writing: bool,
    is_late: bool,
    size: (u16, u16),
    /// The next keys may be meant for something else.
    is_hasty: bool,
    /// The lines that stay below the question when the menu closes.
    outcome: Vec<Line>,
}

impl<'a> Conversation<'a> {
    /// `is_hasty`: keys may be meant for something that ended a moment ago.
    pub fn open(
        display: &'a DisplayQueue,
        menu: Menu,
        withdrawal: &'a Withdrawal,
        is_hasty: bool,
    ) -> Reply<Self> {
        let patience = menu.patience;
        // Wait for the display: if the terminal accepts no output, the human cannot answer.
        drop(display.hold(patience, || withdrawal.is_withdrawn())?);
        let keyboard = Keyboard::open().and_then(RawKeyboard::open);
        let keyboard = keyboard.map_err(|_| Asked::NoAnswer)?;
        let mut talk = Self::new(keyboard, display, menu, withdrawal);
        talk.is_hasty |= is_hasty;
        Ok(talk)
    }

    pub fn new(
        keyboard: RawKeyboard,
        display: &'a DisplayQueue,
        menu: Menu,
        withdrawal: &'a Withdrawal,
    ) -> Self {
        let (patience, size, is_hasty) =
            (menu.patience, Term::stderr().size(), keyboard.was_in_use);
        display.send(move |screen| screen.open_menu(menu));
        Self {
            keyboard,
            display,
            patience,
            withdrawal,
            is_writing: false,
            is_late: false,
            size,
            is_hasty,
            outcome: Vec::new(),
        }
    }

    /// Draws nothing while more keys are pending.
    fn show(&self, body: impl FnOnce() -> MenuBody) {
        if !self.keyboard.has_more() {
            let body = body();
            self.display.send(move |screen| screen.change_menu(body));
        }
    }

    pub fn add(&mut self, line: impl Into<Line>) {
        self.outcome.push(line.into());
    }

    pub fn add_text(&mut self, heading: &str, text: &str) {
        self.add(TextLine::new().with(Tone::Dim, heading));
        text.lines().for_each(|line| self.add(TextLine::new().plain(format!("  {line}"))));
    }

    /// The question was withdrawn. Only a text still counts.
    pub fn is_late(&self) -> bool {
        self.withdrawal.is_withdrawn()
    }

    /// The next key. Every key restarts the timeout.
    fn next(&mut self) -> Reply<KeyPress> {
        self.key_within(self.patience)?.ok_or(Asked::NoAnswer)
    }

    fn key_within(&mut self, patience: Duration) -> Reply<Option<KeyPress>> {
        let deadline = self.display.deadline(patience);
        loop {
            if self.withdrawal.is_closed() {
                return Err(Asked::NoAnswer);
            }
            if self.is_late() && !self.is_writing {
                self.add(TextLine::new().with(Tone::Dim, "The question was withdrawn."));
                return Err(Asked::NoAnswer);
            }
            if self.is_late() && !std::mem::replace(&mut self.is_late, true) {
                return Ok(Some(KeyPress::Redraw));
            }
            let size = Term::stderr().size();
            if std::mem::replace(&mut self.size, size) != size {
                return Ok(Some(KeyPress::Redraw));
            }
            match self.keyboard.key(GLANCE) {
                Ok(Some(KeyPress::Interrupt)) => return Err(Asked::Interrupted),
                Ok(None) if !self.display.is_over(deadline) => {}
                Ok(key) => return Ok(key),
                Err(_) => return Err(Asked::NoAnswer),
            }
        }
    }

    /// Keys that are meant for something else must not choose an item.
    fn wait_for_pause(&mut self) -> Reply<()> {
        loop {
            self.show(|| MenuBody::Typing { help: KEYS_IGNORED.to_owned(), lines: Vec::new() });
            if self.key_within(TYPING_PAUSE)?.is_none() {
                return Ok(());
            }
        }
    }

    /// Shows the list until an item is chosen.
    pub fn choose<'i, C>(&mut self, items: &'i [MenuItem<C>]) -> Reply<&'i C> {
        if std::mem::take(&mut self.is_hasty) {
            self.wait_for_pause()?;
        }
        let mut list = MenuList { selected: 0, pasting: false, items };
        loop {
            self.show(|| list.body());
            if let Some(item) = list.press(self.next()?) {
                self.add(TextLine::new().with(Tone::Question, "› ").plain(item.text()));
                return Ok(&item.choice);
            }
        }
    }

    /// The human writes guidance: lines up to an empty one, or in an editor. None if nothing was
    /// written or the human pressed Esc.
    pub fn write(&mut self) -> Reply<Option<String>> {
        self.is_writing = true;
        let text = match self.type_in()? {
            Written::Text(text) => Some(text),
            Written::InEditor => self.edit()?,
            Written::Nothing => None,
        };
        self.is_writing = false;
        Ok(text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty()))
    }

    fn type_in(&mut self) -> Reply<Written> {
        let mut draft = GuidanceDraft::default();
        loop {
            self.show(|| draft.body(self.is_late));
            let key = match self.next() {
                // Text that was written is never lost.
                Err(asked)
                    if draft.has_words()
                        && (asked == Asked::Interrupted || self.withdrawal.is_closed()) =>
                {
                    self.add_text("This text was not sent:", &draft.text());
                    return Err(asked);
                }
                Err(Asked::NoAnswer) if draft.has_words() => {
                    let note = "No key was pressed in time; using your text so far.";
                    self.add(TextLine::new().with(Tone::Warning, note));
                    return Ok(draft.done());
                }
                key => key?,
            };
            if let Some(written) = draft.press(key) {
                return Ok(written);
            }
        }
    }

    /// If the editor fails, a warning says so and the menu returns. Nothing else is drawn until the
    /// editor ends.
    fn edit(&mut self) -> Reply<Option<String>> {
        let held = self.display.hold(self.patience, || self.withdrawal.is_closed())?;
        self.withdrawal.in_editor.store(true, Ordering::SeqCst);
        let edited = self.keyboard.lend(open_editor);
        self.withdrawal.in_editor.store(false, Ordering::SeqCst);
        drop(held);
        let edited = edited.map_err(|_| Asked::NoAnswer)?;
        Ok(edited.unwrap_or_else(|problem| {
            self.display.print(vec![TextLine::warning(problem).into()]);
            None
        }))
    }
}

impl Drop for Conversation<'_> {
    fn drop(&mut self) {
        let outcome = std::mem::take(&mut self.outcome);
        self.display.send(move |screen| screen.close_menu(&outcome));
    }
}

enum Written {
    Text(String),
    InEditor,
    Nothing,
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

    fn done(&self) -> Written {
        Written::Text(self.text())
    }

    fn text(&self) -> String {
        let lines: Vec<&str> =
            self.lines.iter().chain([&self.current]).map(String::as_str).collect();
        lines.join("\n")
    }

    fn body(&self, is_late: bool) -> MenuBody {
        let lines = self.lines.iter().chain([&self.current]).cloned().collect();
        let help = if is_late {
            "The question was withdrawn. Finish your text with an empty line, or press Esc."
                .to_owned()
        } else {
            format!("Finish with an empty line; Esc goes back; `e` + Enter opens {}.", editor())
        };
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

/// Removes the file if the editor fails (`:cq`), because dialoguer would use it anyway. Gives the
/// editor the terminal, even if standard input or output is a pipe.
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
    fn lines_can_be_edited_and_an_empty_one_ends_the_text() {
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
    fn a_draft_has_words_unless_it_is_blank_or_a_command() {
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
