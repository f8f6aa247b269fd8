//! ralph.toml, at the root of the work tree.

use std::borrow::Cow;
use std::io;
use std::ops::Range;
use std::path::Path;

use serde::Deserialize;
use serde::de::IntoDeserializer;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::files;
use crate::model::{Gate, visible, visible_line};
use crate::text::backlog::Diagnostic;

use super::kind::{Form, ValueKind};
use super::{Read, SettingsError};

pub const FILE_NAME: &str = "ralph.toml";

/// In bytes; the largest in use have a few thousand. The journal has a copy.
const LONGEST: u64 = 256 * 1024;

/// How similar an unknown name must be to a known one to suggest that.
const SIMILAR: f64 = 0.88;

pub(super) type FileValue<'a> = Spanned<DeValue<'a>>;

/// A value, or what is wrong with it.
pub(super) type Checked<T> = Result<T, Diagnostic>;

/// None if there is no such file.
pub fn read_file(root: &Path) -> Read<Option<String>> {
    match files::read_text(&root.join(FILE_NAME), LONGEST).map_err(io::Error::from) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        read => read.map(Some).map_err(SettingsError::Unreadable),
    }
}

pub(super) struct SettingsFile<'a> {
    pub text: &'a str,
    table: DeTable<'a>,
}

impl<'a> SettingsFile<'a> {
    /// A file that is not TOML has no settings.
    pub fn parse(text: &'a str, problems: &mut Vec<Diagnostic>) -> Self {
        let table = DeTable::parse(text).map_err(|error| problems.push(problem(&error)));
        Self { text, table: table.map(Spanned::into_inner).unwrap_or_default() }
    }

    pub fn find(&self, key: &str) -> Option<&FileValue<'a>> {
        match key.split_once('.') {
            None => self.table.get(key),
            Some((table, name)) => self.table.get(table)?.get_ref().as_table()?.get(name),
        }
    }

    pub fn value<T>(&self, kind: &ValueKind<T>, key: &str, value: &FileValue<'_>) -> Checked<T> {
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
        parsed.ok_or_else(|| self.invalid(key, value.span(), kind.expected))
    }

    pub fn list<T: PartialEq>(
        &self,
        kind: &ValueKind<T>,
        key: &str,
        value: &FileValue<'_>,
    ) -> Checked<Vec<T>> {
        let items = value.get_ref().as_array();
        let items =
            items.ok_or_else(|| self.invalid(key, value.span(), "a list, such as `[\"…\"]`"))?;
        let mut values = Vec::new();
        for item in items.iter() {
            let value = self.value(kind, key, item)?;
            if kind.is_unique && values.contains(&value) {
                return Err(self.invalid(key, item.span(), "each line only once"));
            }
            values.push(value);
        }
        Ok(values)
    }

    fn invalid(&self, key: &str, span: Range<usize>, expected: &str) -> Diagnostic {
        let written = visible_line(self.text.get(span.clone()).unwrap_or_default());
        Diagnostic::error(format!("invalid value `{written}` for `{key}`: expected {expected}"))
            .at(span)
    }

    /// Names that are not a setting's.
    pub fn unknown(&self, keys: &[&'static str]) -> Vec<Diagnostic> {
        let mut problems = Vec::new();
        for (name, value) in &self.table {
            let written = name.get_ref().as_ref();
            let prefix = format!("{written}.");
            let is_table = keys.iter().any(|key| key.starts_with(&prefix));
            match value.get_ref() {
                DeValue::Table(table) if is_table => {
                    let is_known = |name: &str| keys.contains(&format!("{prefix}{name}").as_str());
                    let inner = table.keys().filter(|inner| !is_known(inner.get_ref()));
                    problems.extend(inner.map(|inner| unknown(&prefix, inner, keys)));
                }
                _ if is_table => {
                    let text = format!("`{written}` is a table: expected `[{written}]`");
                    problems.push(Diagnostic::error(text).at(value.span()));
                }
                _ if keys.contains(&written) => {}
                _ => problems.push(unknown("", name, keys)),
            }
        }
        problems
    }
}

pub(super) fn gates(value: &FileValue<'_>) -> Checked<Vec<Gate>> {
    Vec::deserialize(value.clone().into_deserializer()).map_err(|error| problem(&error))
}

fn problem(error: &toml::de::Error) -> Diagnostic {
    let message = visible(error.message().trim()).into_owned();
    Diagnostic { span: error.span(), ..Diagnostic::error(message) }
}

fn unknown(prefix: &str, name: &Spanned<Cow<'_, str>>, keys: &[&str]) -> Diagnostic {
    let (written, span) = (name.get_ref().as_ref(), name.span());
    let key = format!("{prefix}{written}");
    let problem = Diagnostic::error(format!("unknown setting `{}`", visible_line(&key))).at(span);
    if !prefix.is_empty() && keys.contains(&written) {
        let table = prefix.trim_end_matches('.');
        return problem.help(format!("put `{written}` above `[{table}]`"));
    }
    let similarity = |known: &str| {
        let name = known.rsplit('.').next().unwrap_or_default();
        let whole = strsim::jaro_winkler(known, &key);
        whole.max(strsim::jaro_winkler(name, written) - 0.01)
    };
    let best = keys.iter().max_by(|a, b| similarity(a).total_cmp(&similarity(b)));
    match best.filter(|known| similarity(known) > SIMILAR) {
        Some(known) => problem.help(format!("did you mean `{known}`?")),
        None => problem.help("docs/settings.md lists all settings"),
    }
}
