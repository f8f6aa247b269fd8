//! Questions before a run begins.

use std::time::Duration;

use crate::model::{Escalation, EscalationKind, PermissionMode, PermissionModes};
use crate::ports::Asked;

use super::conversation::choose;
use super::human::{TerminalHuman, time};
use super::menu::{Menu, MenuItem};

/// No, or yes.
struct Confirmation<'a> {
    heading: &'a str,
    summary: &'a str,
    /// Shown as it is; control characters in it have been made visible.
    facts: &'a str,
    means: &'a str,
    /// KeyPress and label. The careful one is chosen when nobody moves.
    no: (char, &'a str),
    yes: (char, &'a str),
}

impl TerminalHuman {
    /// `texts` are shown as they are; control characters in them have been made visible.
    pub fn ask_trust(&self, texts: &str, patience: Duration) -> Result<bool, Asked> {
        self.confirm(&trust(texts), patience)
    }

    /// Whether these commands decide that a story is done.
    pub fn ask_gates(&self, commands: &str, patience: Duration) -> Result<bool, Asked> {
        self.confirm(&gates(commands), patience)
    }

    /// One file per line.
    pub fn ask_about_edits(&self, files: &str, patience: Duration) -> Result<bool, Asked> {
        self.confirm(&edits(files), patience)
    }

    pub fn ask_permissions(
        &self,
        modes: PermissionModes,
        patience: Duration,
    ) -> Result<PermissionMode, Asked> {
        let menu = permission_menu(modes, patience);
        self.converse(menu, patience, &self.withdrawn, |talk| {
            choose(talk, &permission_items(modes)).copied()
        })
    }

    fn confirm(&self, confirmation: &Confirmation<'_>, patience: Duration) -> Result<bool, Asked> {
        self.converse(confirmation.menu(patience), patience, &self.withdrawn, |talk| {
            choose(talk, &confirmation.items()).copied()
        })
    }
}

impl Confirmation<'_> {
    fn menu(&self, patience: Duration) -> Menu {
        let question = Escalation {
            kind: EscalationKind::Unstated,
            summary: self.summary.to_owned(),
            context: self.facts.to_owned(),
            options: Vec::new(),
            question: self.means.to_owned(),
            unread: None,
        };
        let (wait, key) = (time(patience), self.no.0);
        let note = format!("Waiting {wait} for an answer; then [{key}] is chosen.");
        Menu::new(self.heading.to_owned(), question, note)
    }

    fn items(&self) -> [MenuItem<bool>; 2] {
        let item = |(key, label): (char, &str), choice| MenuItem {
            key: Some(key),
            label: label.to_owned(),
            choice,
        };
        [item(self.no, false), item(self.yes, true)]
    }
}

fn trust(texts: &str) -> Confirmation<'_> {
    Confirmation {
        heading: "Trust",
        summary: "Do you trust what this repository's files run?",
        facts: texts,
        means: "ralph asks once for each text, and again when one changes.",
        no: ('n', "no, stop here"),
        yes: ('y', "yes, I have read it and trust it"),
    }
}

fn gates(commands: &str) -> Confirmation<'_> {
    Confirmation {
        heading: "Gates",
        summary: "Require these commands to pass before a story counts as done?",
        facts: commands,
        means: "They run in the work tree whenever an agent claims its story. You can change them \
                in ralph.toml at any time.",
        no: ('n', "no gates for now"),
        yes: ('y', "yes, write them to ralph.toml"),
    }
}

fn edits(files: &str) -> Confirmation<'_> {
    Confirmation {
        heading: "Uncommitted edits",
        summary: "Run with uncommitted edits in tracked files?",
        facts: files,
        means: "They stay in place and are not committed.",
        no: ('s', "stop, so that I can commit or stash them"),
        yes: ('g', "go on, as with --allow-dirty"),
    }
}

/// Looks like an agent's question.
fn permission_menu(modes: PermissionModes, patience: Duration) -> Menu {
    let option = |mode: &PermissionMode| format!("{}: {}", mode.name, mode.meaning);
    let question = Escalation {
        kind: EscalationKind::Unstated,
        summary: format!("What may {} do in this repository?", modes.agent),
        context: "It cannot ask while it runs: anything else is denied and listed after the \
            iteration. Put the commands that test your code into `verify` (the gates) or \
            `allowed_tools` in ralph.toml."
            .to_owned(),
        options: modes.modes.iter().map(option).collect(),
        question: "ralph remembers your answer for this repository. `permission_mode` in \
            ralph.toml and `--permission-mode` override it."
            .to_owned(),
        unread: None,
    };
    let note = format!("Waiting {} for an answer; then [1] is used this once.", time(patience));
    Menu::new("Permissions".to_owned(), question, note)
}

fn permission_items(modes: PermissionModes) -> Vec<MenuItem<PermissionMode>> {
    let note = |advice: &str| match advice {
        "" => String::new(),
        advice => format!(" ({advice})"),
    };
    let item = |(key, mode): (char, &PermissionMode)| MenuItem {
        key: Some(key),
        label: format!("{}{}", mode.name, note(mode.advice)),
        choice: *mode,
    };
    ('1'..).zip(modes.modes).map(item).collect()
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
    fn each_choice_is_explained() {
        let look = Look { colors: false, columns: Some(80), zone: TimeZone::UTC };
        let menu = permission_menu(MODES, Duration::from_mins(10));
        let labels = permission_items(MODES).iter().map(MenuItem::text).collect();
        let menu = Menu { body: MenuBody::Choices { labels, selected: 0 }, ..menu };
        insta::assert_snapshot!(menu.whole(&look, 0).join("\n"), @r"
        ┌─ Permissions ────────────────────────────────────────────────────────────────┐
        │ Question: What may Some Agent do in this repository?                         │
        │                                                                              │
        │ It cannot ask while it runs: anything else is denied and listed after the    │
        │ iteration. Put the commands that test your code into `verify` (the gates) or │
        │ `allowed_tools` in ralph.toml.                                               │
        │                                                                              │
        │ [1] careful: edit files                                                      │
        │ [2] bold: do anything                                                        │
        │                                                                              │
        │ ralph remembers your answer for this repository. `permission_mode` in        │
        │ ralph.toml and `--permission-mode` override it.                              │
        └──────────────────────────────────────────────────────────────────────────────┘
        Waiting 10 minutes for an answer; then [1] is used this once.
        ❯ [1] careful (the usual choice)
          [2] bold
        ");
    }

    #[test]
    fn a_yes_needs_a_key() {
        let look = Look { colors: false, columns: Some(80), zone: TimeZone::UTC };
        let shown = |confirmation: Confirmation<'_>| {
            let labels = confirmation.items().iter().map(MenuItem::text).collect();
            let menu = confirmation.menu(Duration::from_mins(10));
            let menu = Menu { body: MenuBody::Choices { labels, selected: 0 }, ..menu };
            menu.whole(&look, 0).join("\n")
        };
        let all = [
            shown(trust("cargo test\nralph.toml: verify")),
            shown(gates("cargo test")),
            shown(edits("README.md\nsrc/a.rs")),
        ];
        insta::assert_snapshot!(all.join("\n"), @r"
        ┌─ Trust ──────────────────────────────────────────────────────────────────────┐
        │ Question: Do you trust what this repository's files run?                     │
        │                                                                              │
        │ cargo test                                                                   │
        │ ralph.toml: verify                                                           │
        │                                                                              │
        │ ralph asks once for each text, and again when one changes.                   │
        └──────────────────────────────────────────────────────────────────────────────┘
        Waiting 10 minutes for an answer; then [n] is chosen.
        ❯ [n] no, stop here
          [y] yes, I have read it and trust it

        ┌─ Gates ──────────────────────────────────────────────────────────────────────┐
        │ Question: Require these commands to pass before a story counts as done?      │
        │                                                                              │
        │ cargo test                                                                   │
        │                                                                              │
        │ They run in the work tree whenever an agent claims its story. You can change │
        │ them in ralph.toml at any time.                                              │
        └──────────────────────────────────────────────────────────────────────────────┘
        Waiting 10 minutes for an answer; then [n] is chosen.
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
        Waiting 10 minutes for an answer; then [s] is chosen.
        ❯ [s] stop, so that I can commit or stash them
          [g] go on, as with --allow-dirty
        ");
    }
}
