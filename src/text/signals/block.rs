//! Blocks: an opening tag, fields, and the rest. Reads escalations and hand-offs.
//!
//! Never fails: unreadable parts are passed on unchanged.

use std::ops::Range;

use crate::model::{Escalation, EscalationKind, Handoff};

use super::markdown::{after_number, find_ignore_case, strip_ignore_case};

const ESCALATION_FIELDS: [&[&str]; 4] = [&["summary"], &["context"], &["options"], &["question"]];
const SUMMARY_CHARS: usize = 200;
/// A human picks one with a single key.
const MAX_OPTIONS: usize = 9;

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
fn split_tag(block: &str) -> (&str, &str) {
    let mut starts = block.match_indices(['<', '\n']).map(|(at, _)| at);
    let end = match block.find('>') {
        Some(close) if block.get(1..close).is_some_and(is_inside_of_tag) => close + 1,
        _ => starts.find(|at| *at > 0).unwrap_or(block.len()),
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
struct BlockFields<'a, const N: usize> {
    /// Every way to write each field's name.
    names: &'static [&'static [&'static str]; N],
    values: [Option<&'a str>; N],
    unread: Vec<&'a str>,
}

impl<'a, const N: usize> BlockFields<'a, N> {
    fn read(body: &'a str, names: &'static [&'static [&'static str]; N]) -> Self {
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

fn join_unread(parts: Vec<&str>) -> Option<String> {
    let parts = parts.into_iter().map(str::trim).filter(|part| !part.is_empty());
    let unread = parts.collect::<Vec<_>>().join("\n");
    (!unread.is_empty()).then_some(unread)
}

/// The first `<name>`; `name` starts with a slash for a closing tag.
fn find_tag(text: &str, name: &str) -> Option<Range<usize>> {
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

/// `block` starts with `<escalate` and ends before its closing tag.
pub(super) fn parse_escalation(block: &str) -> Escalation {
    let (tag, body) = split_tag(block);
    let attributes = attributes(tag);
    let kind = read_kind(attributes);
    let fields = BlockFields::read(body, &ESCALATION_FIELDS);
    let [summary, context, options, question] = fields.values.map(|v| v.unwrap_or_default().trim());
    let (options, not_options) = read_options(options);
    let is_understood = kind != EscalationKind::Unstated || attributes.is_empty();
    let unread_tag = if is_understood { "" } else { tag };
    let unread = join_unread([&[unread_tag], fields.unread.as_slice(), &[&not_options]].concat());
    let summary = match summary {
        "" => first_telling_line(&[question, context, body, tag]),
        summary => summary.to_owned(),
    };
    let (context, question) = (context.to_owned(), question.to_owned());
    Escalation { kind, summary, context, options, question, unread }
}

fn attributes(tag: &str) -> &str {
    let inside = tag.trim().trim_end_matches(['>', '/']);
    inside.split_at_checked("<escalate".len()).map_or("", |(_, rest)| rest.trim())
}

fn read_kind(attributes: &str) -> EscalationKind {
    match type_of(attributes).map(str::to_ascii_lowercase).as_deref() {
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

/// The first line with more than a tag.
fn first_telling_line(texts: &[&str]) -> String {
    let lines = || {
        texts.iter().flat_map(|text| text.lines()).map(str::trim).filter(|line| !line.is_empty())
    };
    let telling = lines().find(|line| !is_lone_tag(line)).or_else(|| lines().next());
    telling.unwrap_or_default().chars().take(SUMMARY_CHARS).collect()
}

fn is_lone_tag(line: &str) -> bool {
    line.starts_with('<') && line.ends_with('>') && line.matches('<').count() == 1
}

/// The options in order, and the lines that belong to none.
fn read_options(text: &str) -> (Vec<String>, String) {
    let mut list = OptionList::default();
    text.lines().filter(|line| !line.trim().is_empty()).for_each(|line| list.take(line));
    if let [only] = list.options.as_slice() {
        list.options = split_inline(only);
    }
    list.options.retain(|option| !option.is_empty());
    (list.options, list.unread.trim().to_owned())
}

#[derive(Default)]
struct OptionList {
    options: Vec<String>,
    unread: String,
    /// The first item's marker: other or deeper markers belong to an item's text.
    first: Option<ListMarker>,
    full: bool,
}

#[derive(Clone, Copy)]
struct ListMarker {
    indent: usize,
    numbered: bool,
}

impl OptionList {
    fn take(&mut self, line: &str) {
        let begun = begin_item(line).filter(|(item, _)| self.is_item(*item));
        self.full |= begun.is_some() && self.options.len() == MAX_OPTIONS;
        match (begun, self.options.last_mut()) {
            (Some((item, text)), _) if !self.full => {
                self.first.get_or_insert(item);
                self.options.push(text.to_owned());
            }
            (None, Some(last)) if !self.full => {
                if !last.is_empty() {
                    last.push(' ');
                }
                last.push_str(line.trim());
            }
            _ => {
                self.unread.push_str(line);
                self.unread.push('\n');
            }
        }
    }

    fn is_item(&self, item: ListMarker) -> bool {
        self.first.is_none_or(|first| {
            item.indent <= first.indent + 1 && (item.numbered || !first.numbered)
        })
    }
}

/// `1. text`, `1) text`, `- text`.
fn begin_item(line: &str) -> Option<(ListMarker, &str)> {
    let text = line.trim();
    let number = after_number(text);
    let rest = number.or_else(|| text.strip_prefix(['-', '*', '+', '•']))?;
    let indent = line.len() - line.trim_start().len();
    let separate = rest.is_empty() || rest.starts_with(char::is_whitespace);
    separate.then_some((ListMarker { indent, numbered: number.is_some() }, rest.trim()))
}

/// `a 2. b 3. c`: a list on one line.
fn split_inline(first: &str) -> Vec<String> {
    let mut options = Vec::new();
    let mut rest = first;
    for number in 2..=MAX_OPTIONS {
        let dotted = rest.split_once(&format!(" {number}. "));
        let split = dotted.or_else(|| rest.split_once(&format!(" {number}) ")));
        let Some((option, after)) = split else { break };
        options.push(option.trim().to_owned());
        rest = after;
    }
    options.push(rest.trim().to_owned());
    options
}
