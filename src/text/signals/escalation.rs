//! Reads an escalation block.
//!
//! It never fails: a question matters more than its form, and unreadable parts are passed on
//! as they are.

use crate::model::{Escalation, EscalationKind};

use super::block::{BlockFields, join_unread, split_tag};
use super::decoration::{after_number, find_ignore_case};

const FIELDS: [&[&str]; 4] = [&["summary"], &["context"], &["options"], &["question"]];
const SUMMARY_CHARS: usize = 200;
/// A human picks one with a single key.
const MAX_OPTIONS: usize = 9;

/// `block` starts with `<escalate` and ends before its closing tag.
pub(super) fn parse_escalation(block: &str) -> Escalation {
    let (tag, body) = split_tag(block);
    let attributes = attributes(tag);
    let kind = read_kind(attributes);
    let fields = BlockFields::read(body, &FIELDS);
    let [summary, context, options, question] = fields.values.map(|v| v.unwrap_or_default().trim());
    let (options, not_options) = read_options(options);
    let is_understood = kind != EscalationKind::Unstated || attributes.is_empty();
    let unread_tag = if is_understood { "" } else { tag };
    let unread = join_unread([&[unread_tag], fields.unread.as_slice(), &[&not_options]].concat());
    let summary = match summary {
        "" => first_telling_line(&[question, context, body, tag]),
        summary => summary.to_owned(),
    };
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
