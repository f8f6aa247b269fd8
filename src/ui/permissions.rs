//! The one question before a first run: what the agent may do.

use std::time::Duration;

use super::choices::{Item, choose};
use super::line::{Line, Text, Tone};
use super::menu::{TerminalHuman, chosen, time};
use crate::core::permission::PermissionMode;
use crate::core::signal::{Escalation, EscalationKind};
use crate::engine::ports::Asked;

impl TerminalHuman {
    pub fn ask_permissions(&self, patience: Duration) -> Result<PermissionMode, Asked> {
        self.converse(patience, |conversation| {
            conversation.print(&Line::Blank);
            conversation.print(&question());
            let wait = format!("Waits {} for an answer, then takes [1] this once.", time(patience));
            conversation.print(&Text::new().with(Tone::Dim, wait).into());
            let items = items();
            let item = choose(conversation, &items)?;
            conversation.print(&chosen(item));
            Ok(item.choice)
        })
    }
}

/// As an agent's questions look.
fn question() -> Line {
    let escalation = Escalation {
        kind: EscalationKind::Unstated,
        summary: "What may Claude Code do in this repository?".to_owned(),
        context: "Nobody is there to say yes while it works: what it may not do is denied, and \
            told after the iteration. What tests your code belongs into `verify` (the gates) or \
            `allowed_tools` in ralph.toml."
            .to_owned(),
        options: PermissionMode::ALL.map(|mode| meaning(mode).to_owned()).to_vec(),
        question: "Your answer is remembered here. `permission_mode` in ralph.toml and \
            `--permission-mode` go before it."
            .to_owned(),
        unread: None,
    };
    Line::Question { heading: "Permissions".to_owned(), escalation }
}

fn meaning(mode: PermissionMode) -> &'static str {
    match mode {
        PermissionMode::AcceptEdits => {
            "acceptEdits: edit, move and delete files here; run harmless commands, the gates and \
             `allowed_tools`"
        }
        PermissionMode::Auto => {
            "auto: Claude Code judges each step itself and denies what looks dangerous; not every \
             account has it"
        }
        PermissionMode::DontAsk => {
            "dontAsk: edit files here; run harmless commands, the gates and `allowed_tools`; \
             nothing more"
        }
        PermissionMode::BypassPermissions => {
            "bypassPermissions: do anything. Only in a sandbox, a container or VM without your \
             secrets; as root Claude Code wants IS_SANDBOX=1 for it"
        }
    }
}

fn items() -> [Item<PermissionMode>; 4] {
    let note = |mode| match mode {
        PermissionMode::AcceptEdits => " (the usual choice)",
        PermissionMode::BypassPermissions => " (only in a sandbox)",
        PermissionMode::Auto | PermissionMode::DontAsk => "",
    };
    let mut keys = '1'..;
    PermissionMode::ALL.map(|mode| Item {
        key: keys.next(),
        label: format!("{}{}", mode.name(), note(mode)),
        choice: mode,
    })
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;

    use super::*;
    use crate::ui::look::Look;

    #[test]
    fn each_choice_is_explained() {
        let look = Look { colors: false, columns: Some(92), zone: TimeZone::UTC };
        insta::assert_snapshot!(look.render(&question()).join("\n"), @r"
        ┌─ Permissions ────────────────────────────────────────────────────────────────────────────┐
        │ Question: What may Claude Code do in this repository?                                    │
        │                                                                                          │
        │ Nobody is there to say yes while it works: what it may not do is denied, and told after  │
        │ the iteration. What tests your code belongs into `verify` (the gates) or `allowed_tools` │
        │ in ralph.toml.                                                                           │
        │                                                                                          │
        │ [1] acceptEdits: edit, move and delete files here; run harmless commands, the gates and  │
        │     `allowed_tools`                                                                      │
        │ [2] auto: Claude Code judges each step itself and denies what looks dangerous; not every │
        │     account has it                                                                       │
        │ [3] dontAsk: edit files here; run harmless commands, the gates and `allowed_tools`;      │
        │     nothing more                                                                         │
        │ [4] bypassPermissions: do anything. Only in a sandbox, a container or VM without your    │
        │     secrets; as root Claude Code wants IS_SANDBOX=1 for it                               │
        │                                                                                          │
        │ Your answer is remembered here. `permission_mode` in ralph.toml and `--permission-mode`  │
        │ go before it.                                                                            │
        └──────────────────────────────────────────────────────────────────────────────────────────┘
        ");
        let labels: Vec<String> = items().iter().map(Item::text).collect();
        insta::assert_snapshot!(labels.join("\n"), @r"
        [1] acceptEdits (the usual choice)
        [2] auto
        [3] dontAsk
        [4] bypassPermissions (only in a sandbox)
        ");
    }
}
