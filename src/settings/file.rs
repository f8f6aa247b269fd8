//! ralph.toml, at the root of the work tree.

use std::ops::Range;
use std::path::Path;
use std::{fs, io};

use serde::Deserialize;
use serde::de::IntoDeserializer;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::model::{Gate, visible, visible_line};
use crate::text::backlog::Diagnostic;

use super::kind::{Form, ValueKind};

pub const FILE_NAME: &str = "ralph.toml";

/// How much alike two names are that one is taken for the other.
const ALIKE: f64 = 0.88;

/// None: there is no such file.
pub(super) fn read(root: &Path) -> io::Result<Option<String>> {
    match fs::read_to_string(root.join(FILE_NAME)) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

pub(super) struct SettingsFile<'a> {
    text: &'a str,
    table: DeTable<'a>,
}

impl<'a> SettingsFile<'a> {
    pub(super) fn parse(text: &'a str) -> Result<Self, Diagnostic> {
        let table = DeTable::parse(text).map_err(|error| problem(&error))?;
        Ok(Self { text, table: table.into_inner() })
    }

    fn find(&self, key: &str) -> Option<&Spanned<DeValue<'a>>> {
        match key.split_once('.') {
            None => self.table.get(key),
            Some((table, name)) => match self.table.get(table)?.get_ref() {
                DeValue::Table(table) => table.get(name),
                _ => None,
            },
        }
    }

    pub(super) fn span(&self, key: &str) -> Option<Range<usize>> {
        self.find(key).map(Spanned::span)
    }

    /// None: the file does not have it.
    pub(super) fn value<T>(&self, kind: &ValueKind<T>, key: &str) -> Option<Result<T, Diagnostic>> {
        self.find(key).map(|value| self.parsed(kind, key, value))
    }

    pub(super) fn list<T: PartialEq>(
        &self,
        kind: &ValueKind<T>,
        key: &str,
    ) -> Option<Result<Vec<T>, Diagnostic>> {
        let value = self.find(key)?;
        let DeValue::Array(items) = value.get_ref() else {
            return Some(Err(self.bad(key, value.span(), "a list in `[` and `]`")));
        };
        let mut values = Vec::new();
        for item in items.iter() {
            match self.parsed(kind, key, item) {
                Ok(value) if kind.is_unique && values.contains(&value) => {
                    return Some(Err(self.bad(key, item.span(), "every line only once")));
                }
                Ok(value) => values.push(value),
                Err(problem) => return Some(Err(problem)),
            }
        }
        Some(Ok(values))
    }

    pub(super) fn gates(&self, key: &str) -> Option<Result<Vec<Gate>, Diagnostic>> {
        let value = self.find(key)?.clone();
        let gates = Vec::<Gate>::deserialize(value.into_deserializer());
        Some(gates.map_err(|error| problem(&error)))
    }

    fn parsed<T>(
        &self,
        kind: &ValueKind<T>,
        key: &str,
        value: &Spanned<DeValue<'_>>,
    ) -> Result<T, Diagnostic> {
        let text = match (value.get_ref(), kind.form) {
            (DeValue::String(text), Form::Text | Form::Number) => Some(text.to_string()),
            (DeValue::Integer(number), Form::Number) => {
                i64::from_str_radix(number.as_str(), number.radix()).ok().map(|n| n.to_string())
            }
            (DeValue::Float(number), Form::Number) => Some(number.as_str().to_owned()),
            (DeValue::Boolean(switch), Form::Switch) => Some(switch.to_string()),
            _ => None,
        };
        let parsed = text.and_then(|text| kind.parse(&text));
        parsed.ok_or_else(|| self.bad(key, value.span(), kind.expected))
    }

    pub(super) fn bad(&self, key: &str, span: Range<usize>, expected: &str) -> Diagnostic {
        let written = self.text.get(span.clone()).unwrap_or_default();
        let written = visible_line(written);
        Diagnostic::error(format!("invalid value `{written}` for `{key}`: expected {expected}"))
            .at(span)
    }

    /// What no setting is called.
    pub(super) fn unknown(&self, keys: &[&'static str]) -> Vec<Diagnostic> {
        let mut problems = Vec::new();
        for (name, value) in &self.table {
            let prefix = format!("{}.", name.get_ref());
            let is_table = keys.iter().any(|key| key.starts_with(&prefix));
            match value.get_ref() {
                DeValue::Table(table) if is_table => {
                    let inner = table.keys().filter(|inner| {
                        let key = format!("{prefix}{}", inner.get_ref());
                        !keys.contains(&key.as_str())
                    });
                    problems.extend(inner.map(|inner| unknown(&prefix, inner, keys)));
                }
                _ if is_table => {
                    let name = name.get_ref();
                    let text = format!("`{name}` is a table: expected `[{name}]`");
                    problems.push(Diagnostic::error(text).at(value.span()));
                }
                _ if keys.contains(&name.get_ref().as_ref()) => {}
                _ => problems.push(unknown("", name, keys)),
            }
        }
        problems
    }
}

fn problem(error: &toml::de::Error) -> Diagnostic {
    let diagnostic = Diagnostic::error(visible(error.message().trim()).into_owned());
    match error.span() {
        Some(span) => diagnostic.at(span),
        None => diagnostic,
    }
}

fn unknown(prefix: &str, name: &Spanned<std::borrow::Cow<'_, str>>, keys: &[&str]) -> Diagnostic {
    let (written, span) = (name.get_ref().as_ref(), name.span());
    let key = format!("{prefix}{written}");
    let problem = Diagnostic::error(format!("unknown setting `{}`", visible_line(&key))).at(span);
    if !prefix.is_empty() && keys.contains(&written) {
        let table = prefix.trim_end_matches('.');
        return problem.help(format!("put `{written}` above `[{table}]`"));
    }
    let last = |key: &str| key.rsplit('.').next().map(str::to_owned).unwrap_or_default();
    let alike = |known: &str| {
        let whole = strsim::jaro_winkler(known, &key);
        whole.max(strsim::jaro_winkler(&last(known), written) - 0.01)
    };
    let best = keys.iter().max_by(|a, b| alike(a).total_cmp(&alike(b)));
    match best.filter(|known| alike(known) > ALIKE) {
        Some(known) => problem.help(format!("did you mean `{known}`?")),
        None => problem.help("docs/settings.md lists all settings"),
    }
}
