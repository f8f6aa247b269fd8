//! The fields of a backlog file: names, aliases and examples.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use super::diagnostic::quoted;
use super::spelling::looks_like;

#[derive(Debug)]
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
