//! Reads an escalation out of a block that an agent wrote by hand.
//!
//! It never fails: a question for a human is worth more than its form, and
//! what cannot be read is handed on as it came.

use std::ops::Range;

use super::find::{find_ignore_case, find_tag};
use super::{Escalation, EscalationKind, options};

const FIELDS: [&str; 4] = ["summary", "context", "options", "question"];
const SUMMARY_CHARS: usize = 200;

/// `block` starts with `<escalate` and ends before its closing tag.
pub(super) fn parse(block: &str) -> Escalation {
    let (tag, body) = split_tag(block);
    let kind = read_kind(tag);
    let fields = Fields::read(body);
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

/// The opening tag ends at its `>`; if that is missing, where the next tag or line starts.
fn split_tag(block: &str) -> (&str, &str) {
    let end = match block.find('>') {
        Some(close) if block.get(1..close).is_some_and(is_inside_of_tag) => close + 1,
        _ => block
            .match_indices(['<', '\n'])
            .map(|(at, _)| at)
            .find(|at| *at > 0)
            .unwrap_or(block.len()),
    };
    block.split_at_checked(end).unwrap_or((block, ""))
}

/// A tag may go over several lines only if there are attributes on them.
fn is_inside_of_tag(text: &str) -> bool {
    let is_attribute = |part: &str| part.contains('=') || part == "/";
    !text.contains('<')
        && (!text.contains('\n') || text.split_whitespace().skip(1).all(is_attribute))
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

/// The parts of a block's body, and what lies between them.
#[derive(Default)]
struct Fields<'a> {
    values: [Option<&'a str>; 4],
    unread: Vec<&'a str>,
}

impl<'a> Fields<'a> {
    fn read(body: &'a str) -> Self {
        let mut fields = Self::default();
        let mut rest = body;
        while let Some((at, tag)) = fields.next_opening(rest, |_| true) {
            let (before, inside) = cut(rest, &tag);
            fields.unread.push(before);
            fields.set(at, "");
            let (content, after) = fields.split_content(inside, at);
            fields.set(at, content);
            rest = after;
        }
        fields.unread.push(rest);
        fields
    }

    fn set(&mut self, at: usize, content: &'a str) {
        if let Some(value) = self.values.get_mut(at) {
            *value = Some(content);
        }
    }

    /// The first opening of a field that is still to be read.
    fn next_opening(
        &self,
        text: &str,
        counts: impl Fn(usize) -> bool,
    ) -> Option<(usize, Range<usize>)> {
        let open =
            self.values.iter().zip(FIELDS).enumerate().filter(|(_, (value, _))| value.is_none());
        open.filter_map(|(at, (_, name))| Some((at, find_tag(text, name)?)))
            .filter(|(_, tag)| counts(tag.start))
            .min_by_key(|(_, tag)| tag.start)
    }

    /// A field ends at its closing tag, or where another one starts if that
    /// is missing or stands too late. Tags in running text end nothing.
    fn split_content(&self, text: &'a str, own: usize) -> (&'a str, &'a str) {
        let close = FIELDS.get(own).and_then(|name| find_tag(text, &format!("/{name}")));
        let before_close = |at: usize| match &close {
            Some(close) => at < close.start && starts_a_line(text, at),
            None => true,
        };
        let next = self.next_opening(text, before_close);
        match (next, close) {
            (Some((_, next)), _) => text.split_at_checked(next.start).unwrap_or((text, "")),
            (None, Some(close)) => cut(text, &close),
            (None, None) => (text, ""),
        }
    }
}

fn cut<'a>(text: &'a str, out: &Range<usize>) -> (&'a str, &'a str) {
    (text.get(..out.start).unwrap_or_default(), text.get(out.end..).unwrap_or_default())
}

fn starts_a_line(text: &str, at: usize) -> bool {
    let before = text.get(..at).unwrap_or_default();
    before.rsplit('\n').next().is_some_and(|line| line.trim().is_empty())
}

fn join_unread(parts: Vec<&str>) -> Option<String> {
    let parts: Vec<&str> =
        parts.into_iter().map(str::trim).filter(|part| !part.is_empty()).collect();
    (!parts.is_empty()).then(|| parts.join("\n"))
}

/// A summary as it is, or else the first line that says more than a tag.
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
