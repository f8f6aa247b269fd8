//! Reads a hand-off block.
//!
//! It never fails: the content matters more than its form.

use crate::model::Handoff;

use super::fields::{Fields, join_unread, split_tag};

const FIELDS: [&[&str]; 8] = [
    &["phase"],
    &["completed", "done"],
    &["pending", "open"],
    &["blocked"],
    &["decisions"],
    &["assumptions"],
    &["constraints"],
    &["next_step", "next-step", "next step", "nextstep", "next"],
];

/// `block` starts with `<handoff` and ends before its closing tag.
pub(super) fn parse(block: &str) -> Handoff {
    let (_, body) = split_tag(block);
    let fields = Fields::read(body, &FIELDS);
    let texts = fields.values.map(|value| value.unwrap_or_default().trim().to_owned());
    let [phase, completed, pending, blocked, decisions, assumptions, constraints, next_step] =
        texts;
    let unread = join_unread(fields.unread);
    Handoff {
        phase,
        completed,
        pending,
        blocked,
        decisions,
        assumptions,
        constraints,
        next_step,
        unread,
    }
}
