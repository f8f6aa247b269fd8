//! The parts of a block: its opening tag, its fields, and the rest.
//!
//! It never fails: unreadable parts are passed on as they are.

use std::ops::Range;

use super::find::find_tag;

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
pub(super) struct Fields<'a, const N: usize> {
    /// Every way to write each field's name.
    names: &'static [&'static [&'static str]; N],
    pub values: [Option<&'a str>; N],
    pub unread: Vec<&'a str>,
}

impl<'a, const N: usize> Fields<'a, N> {
    pub(super) fn read(body: &'a str, names: &'static [&'static [&'static str]; N]) -> Self {
        let mut fields = Self { names, values: [None; N], unread: Vec::new() };
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
        let names = self.names.get(own).copied().unwrap_or_default();
        let closes = names.iter().filter_map(|name| find_tag(text, &format!("/{name}")));
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
    let parts: Vec<&str> =
        parts.into_iter().map(str::trim).filter(|part| !part.is_empty()).collect();
    (!parts.is_empty()).then(|| parts.join("\n"))
}
