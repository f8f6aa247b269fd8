//! Story ids must be unique, ignoring case.
//!
//! Ids become names of refs and folders, and some file systems ignore case.

use std::collections::HashMap;

use super::diagnostic::Diagnostic;
use super::fields::Text;
use super::report::{Report, quoted};
use super::story::Draft;

pub fn check<'a>(report: &mut Report<'a>, drafts: &[Draft<'a>]) {
    let mut first_of: HashMap<String, &Text<'a>> = HashMap::with_capacity(drafts.len());
    for id in drafts.iter().filter_map(|draft| draft.id.as_ref()) {
        let first = *first_of.entry(id.text.to_lowercase()).or_insert(id);
        if !std::ptr::eq(first, id) {
            report_taken(report, id, first);
        }
    }
}

fn report_taken<'a>(report: &mut Report<'a>, id: &Text<'a>, first: &Text<'a>) {
    let line = report.line(first.raw);
    let (second, taken) = (quoted(&id.text), quoted(&first.text));
    let message = if id.text == first.text {
        format!("the id {second} is taken by the story on line {line}")
    } else {
        format!("the id {second} differs only by case from {taken} on line {line}")
    };
    let help = "give one of the two another id";
    report.push(Diagnostic::error(message).at(report.span(id.raw)).help(help));
}
