//! Reads a hand-off out of a block that an agent wrote by hand.
//!
//! It never fails: what an agent leaves for the next one is worth more than its form.

use serde::{Deserialize, Serialize};

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

/// What an agent leaves for the next one. Every text in it is data from outside.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Handoff {
    pub phase: String,
    pub completed: String,
    pub pending: String,
    /// With the reason.
    pub blocked: String,
    pub decisions: String,
    pub assumptions: String,
    pub constraints: String,
    pub next_step: String,
    /// What could not be read of a malformed block, as it came.
    pub unread: Option<String>,
}

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
