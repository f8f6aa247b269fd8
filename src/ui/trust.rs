//! The question whether what the repository's files name may be run.

use std::time::Duration;

use super::choices::{Item, choose};
use super::line::{Line, Text, Tone};
use super::menu::{TerminalHuman, chosen, time};
use crate::core::signal::{Escalation, EscalationKind};
use crate::engine::ports::Asked;

impl TerminalHuman {
    /// `texts` are shown as they are; control characters in them have been made visible.
    pub fn ask_trust(&self, texts: &str, patience: Duration) -> Result<bool, Asked> {
        self.converse(patience, |conversation| {
            conversation.print(&Line::Blank);
            conversation.print(&question(texts));
            let wait = format!("Waits {} for an answer, then stops.", time(patience));
            conversation.print(&Text::new().with(Tone::Dim, wait).into());
            let items = items();
            let item = choose(conversation, &items)?;
            conversation.print(&chosen(item));
            Ok(item.choice)
        })
    }
}

fn question(texts: &str) -> Line {
    let escalation = Escalation {
        kind: EscalationKind::Unstated,
        summary: "May this repository's files decide what runs?".to_owned(),
        context: texts.to_owned(),
        options: Vec::new(),
        question: "You are asked once for each text, and again when one changes.".to_owned(),
        unread: None,
    };
    Line::Question { heading: "Trust".to_owned(), escalation }
}

/// The careful one is chosen when nobody moves.
fn items() -> [Item<bool>; 2] {
    [
        Item { key: Some('n'), label: "no, stop here".to_owned(), choice: false },
        Item {
            key: Some('y'),
            label: "yes, I have read it and accept it".to_owned(),
            choice: true,
        },
    ]
}
