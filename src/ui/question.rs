//! A question for the human as sections of text.

use crate::core::signal::{Escalation, EscalationKind};

/// Everything the agent said, in the order people decide by.
pub fn sections(escalation: &Escalation) -> Vec<String> {
    let unread = escalation.unread.as_deref().filter(|text| !text.trim().is_empty());
    vec![
        format!("{}: {}", kind(escalation.kind), escalation.summary.trim()),
        escalation.context.trim().to_owned(),
        numbered(&escalation.options),
        escalation.question.trim().to_owned(),
        unread.map(|text| format!("Not understood, as it came:\n{text}")).unwrap_or_default(),
    ]
}

fn kind(kind: EscalationKind) -> &'static str {
    match kind {
        EscalationKind::Stuck | EscalationKind::Rut => "Stuck",
        EscalationKind::Deviation => "Deviation",
        EscalationKind::Unstated => "Question",
        EscalationKind::Claim => "Claim",
        EscalationKind::Commit => "Commit",
    }
}

fn numbered(options: &[String]) -> String {
    let lines = options.iter().enumerate();
    let lines: Vec<String> =
        lines.map(|(index, option)| format!("[{}] {}", index + 1, option.trim())).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_not_be_read_is_shown() {
        let escalation = Escalation {
            kind: EscalationKind::Unstated,
            summary: String::new(),
            context: String::new(),
            options: vec!["a".into(), "b".into()],
            question: String::new(),
            unread: Some("half a block".into()),
        };
        let shown = sections(&escalation).join("|");
        assert_eq!(shown, "Question: ||[1] a\n[2] b||Not understood, as it came:\nhalf a block");
    }
}
