//! Duplicate keys.
//!
//! JSON parsers disagree about which one counts, so it is an error at any depth, even in unknown
//! fields.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::diagnostic::{Diagnostic, Severity};
use super::raw::{self, Member, RawValue};
use super::report::{Report, quoted};

/// The keys of one object.
pub fn check_keys<'a>(report: &mut Report<'a>, members: &[Member<'a>]) {
    let mut first_of: HashMap<&str, &RawValue> = HashMap::with_capacity(members.len());
    for member in members {
        match first_of.entry(member.name.as_ref()) {
            Entry::Vacant(free) => {
                free.insert(member.key);
            }
            Entry::Occupied(_) if report.is_full_of(Severity::Error) => break,
            Entry::Occupied(first) => report_twice(report, member, first.get()),
        }
    }
}

/// All keys inside a value. The recursion depth was checked before.
pub fn check_inside<'a>(report: &mut Report<'a>, value: &'a RawValue) {
    let text = value.get().as_bytes();
    if memchr::memchr(b'{', text).is_none() {
        return;
    }
    if text.first() == Some(&b'{') {
        let members = raw::members(value).unwrap_or_default();
        check_keys(report, &members);
        members.iter().for_each(|member| check_inside(report, member.value));
    } else if text.first() == Some(&b'[') {
        let elements = raw::elements(value).unwrap_or_default();
        elements.into_iter().for_each(|element| check_inside(report, element));
    }
}

fn report_twice<'a>(report: &mut Report<'a>, member: &Member<'a>, first: &RawValue) {
    let message = format!("the field {} is in the same object twice", quoted(&member.name));
    let help = format!("keep one of them; the first is on line {}", report.line(first));
    report.push(Diagnostic::error(message).at(report.span(member.key)).help(help));
}
