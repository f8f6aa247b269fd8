//! A question before the run begins: no, or yes.

use std::time::Duration;

use super::choices::{Item, choose};
use super::line::{Line, Text, Tone};
use super::menu::{TerminalHuman, chosen, time};
use crate::core::signal::{Escalation, EscalationKind};
use crate::engine::ports::Asked;

pub(super) struct Doubt<'a> {
    pub heading: &'a str,
    pub summary: &'a str,
    /// Shown as it is; control characters in it have been made visible.
    pub facts: &'a str,
    pub means: &'a str,
    /// Key and label. The careful one is chosen when nobody moves.
    pub no: (char, &'a str),
    pub yes: (char, &'a str),
}

impl TerminalHuman {
    pub(super) fn confirm(&self, doubt: &Doubt<'_>, patience: Duration) -> Result<bool, Asked> {
        self.converse(patience, |conversation| {
            conversation.print(&Line::Blank);
            conversation.print(&doubt.line());
            let wait = format!("Waits {} for an answer, then stops.", time(patience));
            conversation.print(&Text::new().with(Tone::Dim, wait).into());
            let items = doubt.items();
            let item = choose(conversation, &items)?;
            conversation.print(&chosen(item));
            Ok(item.choice)
        })
    }
}

impl Doubt<'_> {
    fn line(&self) -> Line {
        let escalation = Escalation {
            kind: EscalationKind::Unstated,
            summary: self.summary.to_owned(),
            context: self.facts.to_owned(),
            options: Vec::new(),
            question: self.means.to_owned(),
            unread: None,
        };
        Line::Question { heading: self.heading.to_owned(), escalation }
    }

    fn items(&self) -> [Item<bool>; 2] {
        let item = |(key, label): (char, &str), choice| Item {
            key: Some(key),
            label: label.to_owned(),
            choice,
        };
        [item(self.no, false), item(self.yes, true)]
    }
}
