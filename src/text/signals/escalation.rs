//! Reads an escalation block.
//!
//! It never fails: a question matters more than its form, and unreadable parts are passed on
//! as they are.

use crate::model::{Escalation, EscalationKind};

use super::fields::{Fields, join_unread, split_tag};
use super::find::find_ignore_case;
use super::options;

const FIELDS: [&[&str]; 4] = [&["summary"], &["context"], &["options"], &["question"]];
const SUMMARY_CHARS: usize = 200;

/// `block` starts with `<escalate` and ends before its closing tag.
pub(super) fn parse(block: &str) -> Escalation {
    let (tag, body) = split_tag(block);
    let kind = read_kind(tag);
    let fields = Fields::read(body, &FIELDS);
    let [summary, context, options, question] = fields.values.map(|v| v.unwrap_or_default().trim());
    let (options, not_options) = options::read(options);
    let unread_tag = if is_understood(tag, kind) { "" } else { tag };
    let unread = join_unread([&[unread_tag], fields.unread.as_slice(), &[&not_options]].concat());
    let summary = first_telling_line(&[summary, question, context, body, tag], summary);
    Escalation {
        kind,
        summary,
        context: context.to_owned(),
        options,
        question: question.to_owned(),
        unread,
    }
}

fn attributes(tag: &str) -> &str {
    let inside = tag.trim().trim_end_matches(['>', '/']);
    inside.split_at_checked("<escalate".len()).map_or("", |(_, rest)| rest.trim())
}

fn read_kind(tag: &str) -> EscalationKind {
    match type_of(attributes(tag)).map(str::to_ascii_lowercase).as_deref() {
        Some("stuck") => EscalationKind::Stuck,
        Some("deviation") => EscalationKind::Deviation,
        _ => EscalationKind::Unstated,
    }
}

fn type_of(attributes: &str) -> Option<&str> {
    let at = find_ignore_case(attributes, "type")?;
    let value =
        attributes.get(at + "type".len()..)?.trim_start().strip_prefix(['=', ':'])?.trim_start();
    let quoted = value.strip_prefix(['"', '\'', '“', '”', '‘', '`']);
    match quoted {
        Some(value) => value.split(['"', '\'', '”', '“', '’', '`']).next().map(str::trim),
        None => value.split_whitespace().next(),
    }
}

fn is_understood(tag: &str, kind: EscalationKind) -> bool {
    kind != EscalationKind::Unstated || attributes(tag).is_empty()
}

/// The summary, or else the first line with more than a tag.
fn first_telling_line(texts: &[&str], summary: &str) -> String {
    if !summary.is_empty() {
        return summary.to_owned();
    }
    let lines = || {
        texts.iter().flat_map(|text| text.lines()).map(str::trim).filter(|line| !line.is_empty())
    };
    let telling = lines().find(|line| !is_lone_tag(line)).or_else(|| lines().next());
    telling.unwrap_or_default().chars().take(SUMMARY_CHARS).collect()
}

fn is_lone_tag(line: &str) -> bool {
    line.starts_with('<') && line.ends_with('>') && line.matches('<').count() == 1
}
