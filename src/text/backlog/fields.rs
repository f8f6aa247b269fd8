//! Reads the fields of one object, and reports wrong types, missing and misspelt fields.

use std::borrow::Cow;
use std::ops::Range;

use super::diagnostic::{Diagnostic, Severity};
use super::raw::{self, Member, RawValue};
use super::report::{Report, quoted};
use super::schema::{Field, Owner, Vocabulary};

/// A string of the file, with its place.
#[derive(Clone, Debug)]
pub struct Text<'a> {
    pub text: Cow<'a, str>,
    pub raw: &'a RawValue,
}

pub struct Fields<'r, 'a> {
    pub report: &'r mut Report<'a>,
    pub owner: Owner<'a>,
    members: &'r [Member<'a>],
    vocabulary: &'r mut Vocabulary,
    /// What to point at if something is missing.
    anchor: Range<usize>,
    /// Unknown names already reported as a misspelling of a required field.
    explained: Vec<&'r str>,
}

impl<'r, 'a> Fields<'r, 'a> {
    pub fn new(
        report: &'r mut Report<'a>,
        owner: Owner<'a>,
        members: &'r [Member<'a>],
        vocabulary: &'r mut Vocabulary,
        anchor: Range<usize>,
    ) -> Self {
        Self { report, owner, members, vocabulary, anchor, explained: Vec::new() }
    }

    /// The raw value; reports if it is missing, duplicated or `null`.
    pub fn value(&mut self, field: &Field) -> Option<&'a RawValue> {
        let by_name = |name| self.members.iter().find(|member| member.name == name);
        let found = by_name(field.name);
        let aliased = field.alias.and_then(by_name);
        if let (Some(_), Some(aliased)) = (found, aliased) {
            self.report_both_spellings(field, aliased);
        }
        match found.or(aliased) {
            Some(member) if !field.required && member.value.get() == "null" => None,
            Some(member) => Some(member.value),
            None if field.required => self.report_missing(field),
            None => None,
        }
    }

    pub fn string(&mut self, field: &Field) -> Option<Text<'a>> {
        let raw = self.value(field)?;
        if !raw.get().starts_with('"') {
            let help = format!("write it in double quotes: `\"{}\": \"…\"`", field.name);
            return self.report_type(field, raw, "a string", &help);
        }
        self.text(field, raw)
    }

    pub fn flag(&mut self, field: &Field) -> Option<bool> {
        let raw = self.value(field)?;
        match raw.get() {
            "true" => Some(true),
            "false" => Some(false),
            _ => self.report_type(
                field,
                raw,
                "`true` or `false`",
                "write `true` or `false`, without quotes",
            ),
        }
    }

    pub fn number(&mut self, field: &Field) -> Option<f64> {
        let raw = self.value(field)?;
        let Ok(number) = raw.get().parse::<f64>() else {
            let help = "write a number without quotes, or remove the field";
            return self.report_type(field, raw, "a number", help);
        };
        if !number.is_finite() {
            let message = format!("{} is too large", self.owner.field(field.name));
            return self.report_at(raw, message, "write a smaller number");
        }
        Some(number)
    }

    /// The strings of a list; reports the first element that is not a string.
    pub fn strings(&mut self, field: &Field) -> Option<Vec<Text<'a>>> {
        let raw = self.value(field)?;
        let Some(elements) = raw::elements(raw) else {
            let help = format!("write it as a list: `\"{}\": [\"…\"]`", field.name);
            return self.report_type(field, raw, "an array of strings", &help);
        };
        let not_text = elements.iter().copied().find(|one| !one.get().starts_with('"'));
        if let Some(odd) = not_text {
            let help = "write every entry in double quotes";
            return self.report_type(field, odd, "an array of strings", help);
        }
        elements.into_iter().map(|one| self.text(field, one)).collect()
    }

    /// Warns of unknown fields that look like known ones.
    pub fn warn_of_misspelt(&mut self) {
        for member in self.members {
            if self.report.is_full_of(Severity::Warning) {
                break;
            }
            let name = member.name.as_ref();
            if self.vocabulary.knows(name) || self.explained.contains(&name) {
                continue;
            }
            if let Some(meant) = self.vocabulary.meant_by(name) {
                self.warn_of_unknown(member, meant);
            }
        }
    }

    fn warn_of_unknown(&mut self, member: &Member<'a>, meant: &Field) {
        let message = format!("{} has an unknown field {}", self.owner, quoted(&member.name));
        let help = format!("did you mean `{}`? As it is, it is ignored", meant.name);
        let span = self.report.span(member.key);
        self.report.push(Diagnostic::warning(message).at(span).help(help));
    }

    pub fn report_at<T>(&mut self, raw: &RawValue, message: String, help: &str) -> Option<T> {
        let span = self.report.span(raw);
        self.report.push(Diagnostic::error(message).at(span).help(help));
        None
    }

    fn text(&mut self, field: &Field, raw: &'a RawValue) -> Option<Text<'a>> {
        let Some(text) = raw::string(raw) else {
            let owned = self.owner.field(field.name);
            let message = format!("{owned} has a `\\u` escape that is half a character");
            return self.report_at(raw, message, "write the character itself");
        };
        Some(Text { text, raw })
    }

    fn report_type<T>(
        &mut self,
        field: &Field,
        raw: &RawValue,
        expected: &str,
        help: &str,
    ) -> Option<T> {
        let found = raw::kind(raw);
        let message = format!("{} must be {expected}, found {found}", self.owner.field(field.name));
        self.report_at(raw, message, help)
    }

    fn report_both_spellings(&mut self, field: &Field, aliased: &Member<'a>) {
        let message = format!("{} has both `{}` and `{}`", self.owner, field.name, aliased.name);
        let help = "they mean the same: keep one of them";
        let _: Option<()> = self.report_at(aliased.key, message, help);
    }

    fn report_missing<T>(&mut self, field: &Field) -> Option<T> {
        let members = self.members;
        let misspelt = members.iter().find(|member| {
            !self.vocabulary.knows(&member.name)
                && !self.explained.contains(&member.name.as_ref())
                && field.looks_like(&member.name)
        });
        let error = Diagnostic::error(format!("{} has no `{}`", self.owner, field.name));
        self.report.push(match misspelt {
            None => error.at(self.anchor.clone()).help(format!("add `{}`", field.example)),
            Some(member) => {
                self.explained.push(&member.name);
                let written = quoted(&member.name);
                error
                    .at(self.report.span(member.key))
                    .help(format!("did you mean this {written}? Rename it to `{}`", field.name))
            }
        });
        None
    }
}
