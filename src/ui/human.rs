//! The human at the terminal: questions of the run, questions before it, and Enter during a wait.
//!
//! A question owns the keyboard only while it is open. The display draws it, so events of other
//! stories scroll by above the menu.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, TryLockError};
use std::thread;
use std::time::Duration;

use crate::model::{Answer, Escalation, PermissionMode, PermissionModes, visible_line};
use crate::ports::{Ask, Asked, Human, Withdrawal};

use super::GLANCE;
use super::conversation::{Conversation, Reply, TYPING_PAUSE};
use super::display::DisplayQueue;
use super::keyboard::{Keyboard, can_draw};
use super::menu::{self, Menu, MenuChoice, MenuItem};
use super::screen::Screen;

pub struct TerminalHuman {
    display: DisplayQueue,
    /// For the questions before the run; each of the run's has its own.
    withdrawal: Withdrawal,
    /// Held while keys are read. Until this time, keys may be meant for the last menu or wait.
    pub(super) keyboard: Mutex<Duration>,
    /// Menus that are open or about to open. They take precedence over Enter during a wait.
    menus: AtomicUsize,
}

impl TerminalHuman {
    pub(super) fn new(display: DisplayQueue) -> Self {
        let (withdrawal, keyboard) = (Withdrawal::default(), Mutex::default());
        Self { display, withdrawal, keyboard, menus: AtomicUsize::new(0) }
    }

    /// Whether a menu can be shown and keys can be read; not in the background.
    pub fn is_there() -> bool {
        can_draw() && Keyboard::open().is_ok_and(|keyboard| !keyboard.is_in_background())
    }

    /// Ends the questions before the run without an answer.
    pub fn withdraw(&self) {
        self.withdrawal.close();
    }

    /// Returns whether the human said yes. Control characters in `facts` must be visible already.
    pub fn confirm(&self, what: &Confirmation, facts: &str, patience: Duration) -> Reply<bool> {
        self.choose(what.menu(facts, patience), &what.items())
    }

    pub fn ask_mode(&self, modes: PermissionModes, patience: Duration) -> Reply<PermissionMode> {
        self.choose(permission_menu(modes, patience), &permission_items(modes))
    }

    fn choose<C: Copy>(&self, menu: Menu, items: &[MenuItem<C>]) -> Reply<C> {
        self.converse(menu, &self.withdrawal, |talk| talk.choose(items).copied())
    }

    /// The conversation has the keyboard until it ends.
    fn converse<T>(
        &self,
        menu: Menu,
        withdrawal: &Withdrawal,
        talk: impl FnOnce(&mut Conversation<'_>) -> Reply<T>,
    ) -> Reply<T> {
        if !Self::is_there() {
            return Err(Asked::NoAnswer);
        }
        self.menus.fetch_add(1, Ordering::SeqCst);
        let result = {
            let mut busy_until = self.keyboard.lock().unwrap_or_else(PoisonError::into_inner);
            let is_busy = !self.display.is_over(Some(*busy_until));
            let result = Conversation::open(&self.display, menu, withdrawal, is_busy)
                .and_then(|mut conversation| talk(&mut conversation));
            *busy_until = self.next_keys();
            result
        };
        self.menus.fetch_sub(1, Ordering::SeqCst);
        result
    }

    /// When keys are surely not meant for what just ended.
    fn next_keys(&self) -> Duration {
        self.display.deadline(TYPING_PAUSE).unwrap_or_default()
    }

    /// Reads whole lines. The terminal's modes do not change, so there is nothing to restore, and
    /// Ctrl-C, Ctrl-Z and a kill work as usual.
    pub(super) fn listen_for_enter(
        &self,
        keyboard: &Keyboard,
        over: &AtomicBool,
    ) -> io::Result<bool> {
        let mut listening = false;
        while !over.load(Ordering::SeqCst) {
            let is_free = self.menus.load(Ordering::SeqCst) == 0 && !keyboard.is_in_background();
            let lock = match self.keyboard.try_lock() {
                Err(TryLockError::WouldBlock) => None,
                Err(TryLockError::Poisoned(lock)) => Some(lock.into_inner()),
                Ok(lock) => Some(lock),
            };
            let mut lock = lock.filter(|_| is_free);
            if lock.is_some() != listening {
                listening = lock.is_some();
                if listening {
                    keyboard.forget()?;
                }
                self.display.send(move |screen| screen.keys_are_read(listening));
            }
            if lock.is_none() {
                thread::sleep(GLANCE);
            } else if keyboard.is_readable(GLANCE)? && is_enter(keyboard)? {
                self.display.send(Screen::line_was_typed);
                if let Some(busy_until) = &mut lock {
                    **busy_until = self.next_keys();
                }
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl Human for TerminalHuman {
    fn ask(&self, ask: &Ask) -> Asked {
        let heading = format!("{} {}", ask.story.id, visible_line(&ask.story.title));
        let sections = menu::sections(&ask.question);
        let then = if ask.ends_agent { "ralph ends the agent" } else { "the question is parked" };
        let menu = Menu::new(heading, sections, ask.patience, then);
        self.converse(menu, &ask.withdrawal, |talk| answer(talk, &ask.question))
            .map_or_else(|asked| asked, Asked::Answered)
    }

    fn open_questions(&self, count: usize) {
        self.display.send(move |screen| screen.count_questions(count));
    }

    fn wait_skipped(&self, over: &AtomicBool) -> bool {
        if !can_draw() {
            return false;
        }
        let skipped = Keyboard::open().and_then(|keyboard| self.listen_for_enter(&keyboard, over));
        self.display.send(|screen| screen.keys_are_read(false));
        skipped.unwrap_or(false)
    }
}

fn is_enter(keyboard: &Keyboard) -> io::Result<bool> {
    // The process may have been moved to the background during the wait.
    if keyboard.is_in_background() {
        return Ok(false);
    }
    let mut buffer = [0; 1024];
    let bytes = keyboard.read(&mut buffer)?;
    if bytes.is_some_and(<[u8]>::is_empty) {
        // Ctrl-D, or the terminal is gone; then it would be readable all the time.
        thread::sleep(GLANCE);
    }
    Ok(bytes.is_some_and(|bytes| bytes.iter().any(|byte| matches!(byte, b'\n' | b'\r'))))
}

fn answer(talk: &mut Conversation<'_>, question: &Escalation) -> Reply<Answer> {
    let items = menu::items(question);
    loop {
        if let MenuChoice::Answer(answer) = talk.choose(&items)? {
            return Ok(answer.clone());
        }
        if let Some(text) = talk.write()? {
            let late = "If the story continues, its agent will read:";
            talk.add_text(if talk.is_late() { late } else { "The agent will read:" }, &text);
            return Ok(Answer::Guidance { text });
        }
    }
}

/// A yes-or-no question before the run.
pub struct Confirmation {
    heading: &'static str,
    question: &'static str,
    /// What a yes means.
    means: &'static str,
    /// Key and label; also the answer if none is given.
    no: (char, &'static str),
    yes: (char, &'static str),
}

/// Approves the commands and permissions that files of the repository configure.
pub const TRUST: Confirmation = Confirmation {
    heading: "Trust",
    question: "Approve these commands and settings from the repository's files?",
    means: "ralph asks again only if they change.",
    no: ('n', "no, stop here"),
    yes: ('y', "yes, I have read and approve them"),
};

/// Uses the commands that were found as gates.
pub const GATES: Confirmation = Confirmation {
    heading: "Gates",
    question: "Require these commands to pass before a story counts as done?",
    means: "They run in the work tree whenever an agent claims its story. You can change them in \
            ralph.toml at any time.",
    no: ('n', "no gates for now"),
    yes: ('y', "yes, write them to ralph.toml"),
};

/// Runs although tracked files have uncommitted edits.
pub const EDITS: Confirmation = Confirmation {
    heading: "Uncommitted edits",
    question: "Run with uncommitted edits in tracked files?",
    means: "They stay in place and are not committed.",
    no: ('s', "stop; I commit or stash them first"),
    yes: ('g', "go ahead, as with --allow-dirty"),
};

/// Continues a run with a ralph.toml that changed while it was interrupted.
pub const SETTINGS: Confirmation = Confirmation {
    heading: "Changed settings",
    question: "Did you change ralph.toml while the run was interrupted?",
    means: "If you did not, an agent may have changed it.",
    no: ('r', "restore the original; the changed version is kept"),
    yes: ('y', "yes, use the changed version"),
};

/// Keeps changes to files that an interrupted attempt must not change.
pub const UNKNOWN_SETUP: Confirmation = Confirmation {
    heading: "Git's setup",
    question: "The record of git's setup before the interrupted attempt is gone. Is this your setup?",
    means: "An agent may have changed it; git's configuration can name programs that run.",
    no: ('n', "no, stop here; I will look at it"),
    yes: ('y', "yes, it is mine"),
};
pub const GATES_MEANWHILE: Confirmation = Confirmation {
    heading: "What gates run",
    question: "ralph's journal is lost. Did you make these changes of what gates run?",
    means: "An agent may have made them, so that its work looks done.",
    no: ('n', "no, stop here; I will look at them"),
    yes: ('y', "yes, they are mine"),
};
pub const RUNS_MEANWHILE: Confirmation = Confirmation {
    heading: "Earlier runs",
    question: "`.ralph` has files of earlier runs, but their journal and snapshots are gone. \
               Are all files and commits as you want them?",
    means: "An agent may have deleted them. ralph starts with what is here.",
    no: ('n', "no, stop here; I will look at it"),
    yes: ('y', "yes, start with what is here"),
};
pub const CHANGED_MEANWHILE: Confirmation = Confirmation {
    heading: "Changed files or refs",
    question: "These changed since the interrupted attempt or gate began. Did you change them?",
    means: "Otherwise it changed them, and they are put back.",
    no: ('p', "put them back; the changed versions are kept"),
    yes: ('k', "keep them; I changed them"),
};

impl Confirmation {
    fn menu(&self, facts: &str, patience: Duration) -> Menu {
        let question = format!("Question: {}", self.question);
        let sections = vec![question, facts.trim().to_owned(), self.means.to_owned()];
        let then = format!("[{}] is chosen", self.no.0);
        Menu::new(self.heading.to_owned(), sections, patience, &then)
    }

    fn items(&self) -> [MenuItem<bool>; 2] {
        [MenuItem::new(self.no.0, self.no.1, false), MenuItem::new(self.yes.0, self.yes.1, true)]
    }
}

fn permission_menu(modes: PermissionModes, patience: Duration) -> Menu {
    let option =
        |(key, mode): (char, &PermissionMode)| format!("[{key}] {}: {}", mode.name, mode.meaning);
    let options: Vec<String> = ('1'..).zip(modes.modes).map(option).collect();
    let sections = vec![
        format!("Question: What may {} do in this repository?", modes.agent),
        "It cannot ask during a run: anything else is denied and reported after the iteration. Add \
         the commands that test your code to `verify` (the gates) or `allowed_tools` in \
         ralph.toml."
            .to_owned(),
        options.join("\n"),
        "ralph remembers your answer for this repository. `permission_mode` in ralph.toml and \
         `--permission-mode` override it."
            .to_owned(),
    ];
    Menu::new("Permissions".to_owned(), sections, patience, "[1] is used for this run")
}

fn permission_items(modes: PermissionModes) -> Vec<MenuItem<PermissionMode>> {
    let label = |mode: &PermissionMode| match mode.advice {
        "" => mode.name.to_owned(),
        advice => format!("{} ({advice})", mode.name),
    };
    let modes = ('1'..).zip(modes.modes);
    modes.map(|(key, mode)| MenuItem::new(key, label(mode), *mode)).collect()
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;

    use super::*;
    use crate::ui::look::Look;
    use crate::ui::menu::MenuBody;

    const MODES: PermissionModes = PermissionModes {
        agent: "Some Agent",
        modes: &[
            PermissionMode { name: "careful", meaning: "edit files", advice: "the usual choice" },
            PermissionMode { name: "bold", meaning: "do anything", advice: "" },
        ],
    };

    #[test]
    fn every_permission_mode_is_explained() {
        let look = Look { colors: false, columns: Some(80), zone: TimeZone::UTC };
        let mut menu = permission_menu(MODES, Duration::from_mins(10));
        let labels = permission_items(MODES).iter().map(MenuItem::text).collect();
        menu.body = MenuBody::Choices { labels, selected: 0 };
        insta::assert_snapshot!(menu.whole(&look, 0).join("\n"), @r"
        ┌─ Permissions ────────────────────────────────────────────────────────────────┐
        │ Question: What may Some Agent do in this repository?                         │
        │                                                                              │
        │ It cannot ask during a run: anything else is denied and reported after the   │
        │ iteration. Add the commands that test your code to `verify` (the gates) or   │
        │ `allowed_tools` in ralph.toml.                                               │
        │                                                                              │
        │ [1] careful: edit files                                                      │
        │ [2] bold: do anything                                                        │
        │                                                                              │
        │ ralph remembers your answer for this repository. `permission_mode` in        │
        │ ralph.toml and `--permission-mode` override it.                              │
        └──────────────────────────────────────────────────────────────────────────────┘
        Without an answer within 10 minutes, [1] is used for this run.
        ❯ [1] careful (the usual choice)
          [2] bold
        ");
    }

    #[test]
    fn confirmations_preselect_no() {
        let look = Look { colors: false, columns: Some(80), zone: TimeZone::UTC };
        let shown = |confirmation: Confirmation, facts| {
            let labels = confirmation.items().iter().map(MenuItem::text).collect();
            let mut menu = confirmation.menu(facts, Duration::from_mins(10));
            menu.body = MenuBody::Choices { labels, selected: 0 };
            menu.whole(&look, 0).join("\n")
        };
        let all = [
            shown(TRUST, "cargo test\nralph.toml: verify"),
            shown(GATES, "cargo test"),
            shown(EDITS, "README.md\nsrc/a.rs"),
            shown(SETTINGS, "-verify = [\"a\"]\n+verify = []"),
            shown(CHANGED_MEANWHILE, "PROMPT.md\n.mcp.json"),
        ];
        insta::assert_snapshot!(all.join("\n"), @r#"
        ┌─ Trust ──────────────────────────────────────────────────────────────────────┐
        │ Question: Approve these commands and settings from the repository's files?   │
        │                                                                              │
        │ cargo test                                                                   │
        │ ralph.toml: verify                                                           │
        │                                                                              │
        │ ralph asks again only if they change.                                        │
        └──────────────────────────────────────────────────────────────────────────────┘
        Without an answer within 10 minutes, [n] is chosen.
        ❯ [n] no, stop here
          [y] yes, I have read and approve them

        ┌─ Gates ──────────────────────────────────────────────────────────────────────┐
        │ Question: Require these commands to pass before a story counts as done?      │
        │                                                                              │
        │ cargo test                                                                   │
        │                                                                              │
        │ They run in the work tree whenever an agent claims its story. You can change │
        │ them in ralph.toml at any time.                                              │
        └──────────────────────────────────────────────────────────────────────────────┘
        Without an answer within 10 minutes, [n] is chosen.
        ❯ [n] no gates for now
          [y] yes, write them to ralph.toml

        ┌─ Uncommitted edits ──────────────────────────────────────────────────────────┐
        │ Question: Run with uncommitted edits in tracked files?                       │
        │                                                                              │
        │ README.md                                                                    │
        │ src/a.rs                                                                     │
        │                                                                              │
        │ They stay in place and are not committed.                                    │
        └──────────────────────────────────────────────────────────────────────────────┘
        Without an answer within 10 minutes, [s] is chosen.
        ❯ [s] stop; I commit or stash them first
          [g] go ahead, as with --allow-dirty

        ┌─ Changed settings ───────────────────────────────────────────────────────────┐
        │ Question: Did you change ralph.toml while the run was interrupted?           │
        │                                                                              │
        │ -verify = ["a"]                                                              │
        │ +verify = []                                                                 │
        │                                                                              │
        │ If you did not, an agent may have changed it.                                │
        └──────────────────────────────────────────────────────────────────────────────┘
        Without an answer within 10 minutes, [r] is chosen.
        ❯ [r] restore the original; the changed version is kept
          [y] yes, use the changed version

        ┌─ Changed files or refs ──────────────────────────────────────────────────────┐
        │ Question: These changed since the interrupted attempt or gate began. Did you │
        │ change them?                                                                 │
        │                                                                              │
        │ PROMPT.md                                                                    │
        │ .mcp.json                                                                    │
        │                                                                              │
        │ Otherwise it changed them, and they are put back.                            │
        └──────────────────────────────────────────────────────────────────────────────┘
        Without an answer within 10 minutes, [p] is chosen.
        ❯ [p] put them back; the changed versions are kept
          [k] keep them; I changed them
        "#);
    }
}
