//! The fields of a backlog file: names, aliases and examples. Reads those of one object, and reports
//! duplicate, missing, misspelled and mistyped ones.

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::ops::Range;

use super::diagnostic::{Diagnostic, Diagnostics, Severity, quoted};
use super::json::{self, Member, RawValue};
use super::spelling::looks_like;

pub struct FieldSpec {
    pub name: &'static str,
    /// The name in other tools, read as the same.
    pub alias: Option<&'static str>,
    pub required: bool,
    /// What to write if it is missing.
    pub example: &'static str,
    /// Similar names are probably misspellings of it.
    pub guessed: bool,
}

const fn required(name: &'static str, example: &'static str) -> FieldSpec {
    FieldSpec { name, alias: None, required: true, example, guessed: true }
}

const fn optional(name: &'static str) -> FieldSpec {
    FieldSpec { name, alias: None, required: false, example: "", guessed: true }
}

const fn also(field: FieldSpec, alias: &'static str) -> FieldSpec {
    FieldSpec { alias: Some(alias), ..field }
}

/// So short and common that others resemble it by chance: `pages`, `images`.
const fn never_guessed(field: FieldSpec) -> FieldSpec {
    FieldSpec { guessed: false, ..field }
}

pub const PROJECT: FieldSpec = required("project", r#""project": "…""#);
pub const SUMMARY: FieldSpec = required("description", r#""description": "…""#);
pub const STORIES: FieldSpec = required("userStories", r#""userStories": [ … ]"#);

pub const ID: FieldSpec = required("id", r#""id": "US-001""#);
pub const TITLE: FieldSpec = required("title", r#""title": "…""#);
pub const DESCRIPTION: FieldSpec = required("description", r#""description": "…""#);
pub const CRITERIA: FieldSpec =
    also(required("criteria", r#""criteria": ["…"]"#), "acceptanceCriteria");
pub const PASSES: FieldSpec = required("passes", r#""passes": false"#);
pub const DEPENDS_ON: FieldSpec = also(optional("depends_on"), "dependsOn");
pub const SKIPPED: FieldSpec = optional("skipped");
pub const PRIORITY: FieldSpec = optional("priority");
pub const VERIFY: FieldSpec = optional("verify");
pub const MAX_ATTEMPTS: FieldSpec = also(optional("max_attempts"), "maxAttempts");
pub const PROMISE: FieldSpec = also(optional("completion_promise"), "completionPromise");
pub const SIGNALS: FieldSpec = never_guessed(optional("signals"));
pub const STAGES: FieldSpec = never_guessed(optional("stages"));

pub const OF_FILE: &[FieldSpec] = &[PROJECT, SUMMARY, STORIES];
#[rustfmt::skip]
pub const OF_STORY: &[FieldSpec] = &[
    ID, TITLE, DESCRIPTION, CRITERIA, PASSES, DEPENDS_ON, SKIPPED, PRIORITY, VERIFY, MAX_ATTEMPTS,
    PROMISE, SIGNALS, STAGES,
];

impl FieldSpec {
    pub fn looks_like(&self, written: &str) -> bool {
        let is_like = |name| looks_like(written, name);
        self.guessed && (is_like(self.name) || self.alias.is_some_and(is_like))
    }
}

/// The fields of one kind of object, with a cache for unknown names.
pub struct KnownFields {
    fields: &'static [FieldSpec],
    /// The same unknown field is usually in every story.
    meant: HashMap<String, Option<&'static FieldSpec>>,
}

/// Cached names; a file can consist of different ones.
const MAX_REMEMBERED: usize = 1000;

impl KnownFields {
    pub fn new(fields: &'static [FieldSpec]) -> Self {
        Self { fields, meant: HashMap::new() }
    }

    pub fn has(&self, name: &str) -> bool {
        self.fields.iter().any(|field| field.name == name || field.alias == Some(name))
    }

    /// The field that an unknown name probably means.
    pub fn meant_by(&mut self, name: &str) -> Option<&'static FieldSpec> {
        if let Some(meant) = self.meant.get(name) {
            return *meant;
        }
        let meant = self.fields.iter().find(|field| field.looks_like(name));
        if self.meant.len() < MAX_REMEMBERED {
            self.meant.insert(name.to_owned(), meant);
        }
        meant
    }
}

/// What the fields belong to, for messages.
#[derive(Clone, Debug)]
pub enum Owner<'a> {
    File,
    Story { number: usize, id: Option<Cow<'a, str>> },
}

impl Owner<'_> {
    /// "`title` of story `US-001`", or only "`project`".
    pub fn field(&self, name: &str) -> String {
        match self {
            Self::File => quoted(name),
            Self::Story { .. } => format!("{} of {self}", quoted(name)),
        }
    }
}

impl fmt::Display for Owner<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File => f.write_str("the file"),
            Self::Story { id: Some(id), .. } if !id.trim().is_empty() => {
                write!(f, "story {}", quoted(id))
            }
            Self::Story { number, .. } => write!(f, "story number {number}"),
        }
    }
}

/// A string of the file, with its place.
#[derive(Clone, Debug)]
pub struct JsonString<'a> {
    pub text: Cow<'a, str>,
    pub raw: &'a RawValue,
}

/// Reports duplicate keys of one object. JSON parsers disagree about which one counts, so they are
/// an error at any depth, even in unknown fields.
pub fn check_keys<'a>(found: &mut Diagnostics<'a>, members: &[Member<'a>]) {
    let mut first_of: HashMap<&str, &RawValue> = HashMap::with_capacity(members.len());
    for member in members {
        match first_of.entry(member.name.as_ref()) {
            Entry::Vacant(free) => _ = free.insert(member.key),
            Entry::Occupied(_) if found.is_full_of(Severity::Error) => break,
            Entry::Occupied(first) => {
                let name = quoted(&member.name);
                let line = found.line(first.get());
                let message = format!("duplicate field {name}");
                let help = format!("keep one of them; the first is on line {line}");
                found.error(member.key, message, help);
            }
        }
    }
}

/// Reports duplicate keys inside a value. The recursion depth was checked before.
pub fn check_inside<'a>(found: &mut Diagnostics<'a>, value: &'a RawValue) {
    let text = value.get().as_bytes();
    if memchr::memchr(b'{', text).is_none() {
        return;
    }
    if text.first() == Some(&b'{') {
        let members = json::members(value).unwrap_or_default();
        check_keys(found, &members);
        members.iter().for_each(|member| check_inside(found, member.value));
    } else if text.first() == Some(&b'[') {
        let elements = json::elements(value).unwrap_or_default();
        elements.into_iter().for_each(|element| check_inside(found, element));
    }
}

/// Reads one object. None: the field is not there, or it is invalid and reported.
pub struct ObjectReader<'r, 'a> {
    pub found: &'r mut Diagnostics<'a>,
    pub owner: Owner<'a>,
    pub members: &'r [Member<'a>],
    pub known: &'r mut KnownFields,
    /// Where a missing field is reported.
    pub anchor: Range<usize>,
    /// Unknown names already reported as a misspelling of a required field.
    pub explained: Vec<&'r str>,
}

impl<'a> ObjectReader<'_, 'a> {
    /// The raw value; reports if it is required and missing, or there under two names. An optional
    /// field may be `null`.
    pub fn value(&mut self, field: &FieldSpec) -> Option<&'a RawValue> {
        let by_name = |name| self.members.iter().find(|member| member.name == name);
        let named = by_name(field.name);
        let aliased = field.alias.and_then(by_name);
        if let (Some(_), Some(aliased)) = (named, aliased) {
            let (owner, alias) = (&self.owner, &aliased.name);
            let message = format!("{owner} has both `{}` and `{alias}`", field.name);
            self.found.error(aliased.key, message, "they mean the same; remove one");
        }
        let value = named.or(aliased).map(|member| member.value);
        if value.is_none() && field.required {
            self.report_missing(field);
        }
        value.filter(|value| field.required || value.get() != "null")
    }

    /// The default without the field; None if `read` refuses it.
    pub fn optional<T: Default>(
        &mut self,
        field: &FieldSpec,
        read: impl FnOnce(&mut Self, &'a RawValue) -> Option<T>,
    ) -> Option<T> {
        match self.value(field) {
            None => Some(T::default()),
            Some(raw) => read(self, raw),
        }
    }

    pub fn string(&mut self, field: &FieldSpec) -> Option<JsonString<'a>> {
        let raw = self.value(field)?;
        self.string_in(field, raw)
    }

    pub fn string_in(&mut self, field: &FieldSpec, raw: &'a RawValue) -> Option<JsonString<'a>> {
        if !raw.get().starts_with('"') {
            let help = format!("write it in double quotes: `\"{}\": \"…\"`", field.name);
            return self.mistyped(field.name, raw, "a string", &help);
        }
        self.text(field, raw)
    }

    pub fn flag(&mut self, field: &FieldSpec) -> Option<bool> {
        let raw = self.value(field)?;
        let help = "write `true` or `false`, without quotes";
        let flag = raw.get().parse().ok();
        flag.or_else(|| self.mistyped(field.name, raw, "`true` or `false`", help))
    }

    pub fn number(&mut self, field: &FieldSpec) -> Option<f64> {
        let raw = self.value(field)?;
        let Ok(number) = raw.get().parse::<f64>() else {
            let help = "write a number without quotes, or remove the field";
            return self.mistyped(field.name, raw, "a number", help);
        };
        if !number.is_finite() {
            let message = format!("{} is too large", self.owner.field(field.name));
            return self.refuse(raw, message, "write a smaller number");
        }
        Some(number)
    }

    /// The strings of a list; reports the first element that is not a string.
    pub fn strings(&mut self, field: &FieldSpec, raw: &'a RawValue) -> Option<Vec<JsonString<'a>>> {
        let Some(elements) = json::elements(raw) else {
            let help = format!("write it as a list: `\"{}\": [\"…\"]`", field.name);
            return self.mistyped(field.name, raw, "an array of strings", &help);
        };
        if let Some(odd) = elements.iter().find(|one| !one.get().starts_with('"')) {
            let help = "write every entry in double quotes";
            return self.mistyped(field.name, odd, "an array of strings", help);
        }
        elements.into_iter().map(|one| self.text(field, one)).collect()
    }

    /// Reports an error there.
    pub fn refuse<T>(&mut self, raw: &RawValue, message: String, help: &str) -> Option<T> {
        self.found.error(raw, message, help);
        None
    }

    /// Reports an entry of a field.
    pub fn refuse_entry<T>(&mut self, of: &FieldSpec, raw: &RawValue, help: &str) -> Option<T> {
        let owned = self.owner.field(of.name);
        self.refuse(raw, format!("{owned} has an invalid entry"), help)
    }

    /// Warns of unknown fields that look like known ones.
    pub fn warn_of_misspelled(&mut self) {
        for member in self.members {
            if self.found.is_full_of(Severity::Warning) {
                break;
            }
            let name = member.name.as_ref();
            if self.known.has(name) || self.explained.contains(&name) {
                continue;
            }
            if let Some(meant) = self.known.meant_by(name) {
                let message = format!("{} has an unknown field {}", self.owner, quoted(name));
                let help = format!("did you mean `{}`? Unknown fields are ignored", meant.name);
                self.found.warn(member.key, message, help);
            }
        }
    }

    fn text(&mut self, field: &FieldSpec, raw: &'a RawValue) -> Option<JsonString<'a>> {
        let Some(text) = json::string(raw) else {
            let owned = self.owner.field(field.name);
            let message = format!("{owned} has an invalid `\\u` escape");
            return self.refuse(raw, message, "write the character itself");
        };
        Some(JsonString { text, raw })
    }

    fn mistyped<T>(&mut self, name: &str, raw: &RawValue, must: &str, help: &str) -> Option<T> {
        let (owned, found) = (self.owner.field(name), json::kind(raw));
        self.refuse(raw, format!("{owned} must be {must}, found {found}"), help)
    }

    fn report_missing(&mut self, field: &FieldSpec) {
        let misspelled = self.members.iter().find(|member| {
            !self.known.has(&member.name)
                && !self.explained.contains(&member.name.as_ref())
                && field.looks_like(&member.name)
        });
        let message = format!("{} has no `{}`", self.owner, field.name);
        let Some(member) = misspelled else {
            let help = format!("add `{}`", field.example);
            self.found.push(Diagnostic::error(message).at(self.anchor.clone()).help(help));
            return;
        };
        self.explained.push(&member.name);
        let written = quoted(&member.name);
        let help = format!("rename {written} to `{}`", field.name);
        self.found.error(member.key, message, help);
    }
}
