//! Blocks: an opening tag, fields, and the rest. Reads hand-offs.
//!
//! It never fails: the content matters more than its form, and unreadable parts are passed on as
//! they are.

use std::ops::Range;

use crate::model::Handoff;

use super::decoration::strip_ignore_case;

const HANDOFF_FIELDS: [&[&str]; 8] = [
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
pub(super) fn parse_handoff(block: &str) -> Handoff {
    let (_, body) = split_tag(block);
    let fields = BlockFields::read(body, &HANDOFF_FIELDS);
    let [phase, completed, pending, blocked, decisions, assumptions, constraints, next_step] =
        fields.values.map(|value| value.unwrap_or_default().trim().to_owned());
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

/// The opening tag ends at its `>`; if that is missing, where the next tag or line starts.
pub(super) fn split_tag(block: &str) -> (&str, &str) {
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

/// The parts of a block's body, and the text between them.
pub(super) struct BlockFields<'a, const N: usize> {
    /// Every way to write each field's name.
    names: &'static [&'static [&'static str]; N],
    pub values: [Option<&'a str>; N],
    pub unread: Vec<&'a str>,
}

impl<'a, const N: usize> BlockFields<'a, N> {
    pub(super) fn read(body: &'a str, names: &'static [&'static [&'static str]; N]) -> Self {
        let mut fields = Self { names, values: [None; N], unread: Vec::new() };
        let mut rest = body;
        while let Some((at, tag)) = fields.next_opening(rest, |_| true) {
            let (before, inside) = cut(rest, &tag);
            fields.unread.push(before);
            // A field is read once: its own tag does not end it.
            fields.values[at] = Some("");
            let (content, after) = fields.split_content(inside, at);
            fields.values[at] = Some(content);
            rest = after;
        }
        fields.unread.push(rest);
        fields
    }

    /// The first opening of a field that is still to be read.
    fn next_opening(
        &self,
        text: &str,
        counts: impl Fn(usize) -> bool,
    ) -> Option<(usize, Range<usize>)> {
        let open = self.values.iter().zip(self.names).enumerate();
        let open = open.filter(|(_, (value, _))| value.is_none());
        let tags = open.flat_map(|(at, (_, names))| names.iter().map(move |name| (at, name)));
        tags.filter_map(|(at, name)| Some((at, find_tag(text, name)?)))
            .filter(|(_, tag)| counts(tag.start))
            .min_by_key(|(_, tag)| tag.start)
    }

    /// A field ends at its closing tag, or where another one starts if that is missing or too
    /// late. Tags in running text end nothing.
    fn split_content(&self, text: &'a str, own: usize) -> (&'a str, &'a str) {
        let closes = self.names[own].iter().filter_map(|name| find_tag(text, &format!("/{name}")));
        let close = closes.min_by_key(|tag| tag.start);
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

pub(super) fn join_unread(parts: Vec<&str>) -> Option<String> {
    let parts = parts.into_iter().map(str::trim).filter(|part| !part.is_empty());
    let unread = parts.collect::<Vec<_>>().join("\n");
    (!unread.is_empty()).then_some(unread)
}

/// The first `<name>`; `name` starts with a slash for a closing tag.
pub(super) fn find_tag(text: &str, name: &str) -> Option<Range<usize>> {
    text.match_indices('<').find_map(|(start, _)| {
        let inside = text.get(start + 1..)?;
        let after = strip_ignore_case(inside, name)?.trim_start().strip_prefix('>')?;
        Some(start..text.len() - after.len())
    })
}

/// The start of the first `<name` or `</name` that is not part of a longer name.
pub(super) fn find_tag_start(text: &str, tag: &str) -> Option<usize> {
    text.match_indices('<')
        .map(|(start, _)| start)
        .find(|&start| text.get(start..).is_some_and(|from| starts_with_tag(from, tag)))
}

pub(super) fn starts_with_tag(text: &str, tag: &str) -> bool {
    strip_ignore_case(text, tag).is_some_and(|rest| {
        !rest.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | ':' | '.'))
    })
}
