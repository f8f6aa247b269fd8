//! Flag over environment over ralph.toml over default.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;

use crate::model::{Gate, visible_line};
use crate::text::backlog::{Diagnostic, render, summary};

use super::file::{FILE_NAME, SettingsFile};
use super::kind::ValueKind;
use super::setting::Setting;

#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    #[error("cannot read {FILE_NAME}: {0}")]
    Unreadable(#[source] io::Error),
    #[error("{FILE_NAME} is invalid: {summary}\n\n{rendered}")]
    InvalidFile { summary: String, rendered: String },
    /// The command line or the environment is wrong.
    #[error("{0}")]
    Usage(String),
}

/// Where a value comes from; the default has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    File,
    Environment,
    Flag,
}

/// What the flags of settings were given, by key.
pub type FlagValues = BTreeMap<&'static str, OsString>;

/// Reads settings, and remembers which there are and where each value comes from.
pub(super) struct Reader<'a> {
    pub flags: &'a FlagValues,
    pub env: &'a dyn Fn(&str) -> Option<String>,
    text: &'a str,
    file: Option<SettingsFile<'a>>,
    pub declared: Vec<Setting>,
    pub origins: BTreeMap<&'static str, Origin>,
    problems: Vec<Diagnostic>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(
        flags: &'a FlagValues,
        env: &'a dyn Fn(&str) -> Option<String>,
        text: &'a str,
    ) -> Self {
        let (file, problems) = match SettingsFile::parse(text) {
            Ok(file) => (Some(file), Vec::new()),
            Err(problem) => (None, vec![problem]),
        };
        let (declared, origins) = (Vec::new(), BTreeMap::new());
        Self { flags, env, text, file, declared, origins, problems }
    }

    pub(super) fn value<T>(
        &mut self,
        kind: &ValueKind<T>,
        setting: Setting,
    ) -> Result<T, SettingsError> {
        let default = kind.parse(setting.default);
        let default =
            default.ok_or_else(|| invalid(setting.default, setting.key, kind.expected))?;
        Ok(self.optional(kind, setting)?.unwrap_or(default))
    }

    /// None: no layer has it.
    pub(super) fn optional<T>(
        &mut self,
        kind: &ValueKind<T>,
        setting: Setting,
    ) -> Result<Option<T>, SettingsError> {
        let (key, flag, env) = (setting.key, setting.flag, setting.env);
        self.declare(kind, setting);
        if let (Some(name), Some(text)) = (flag, self.flags.get(key)) {
            self.origins.insert(key, Origin::Flag);
            return parsed(kind, &format!("--{name}"), &text.to_string_lossy()).map(Some);
        }
        if let Some((name, text)) = env.and_then(|name| Some((name, (self.env)(name)?))) {
            self.origins.insert(key, Origin::Environment);
            return parsed(kind, &format!("{name} in the environment"), &text).map(Some);
        }
        let found = self.file.as_ref().and_then(|file| file.value(kind, key));
        Ok(self.accept(key, found))
    }

    /// Of ralph.toml alone.
    pub(super) fn list<T: PartialEq>(&mut self, kind: &ValueKind<T>, setting: Setting) -> Vec<T> {
        let key = setting.key;
        self.declare(kind, setting);
        let found = self.file.as_ref().and_then(|file| file.list(kind, key));
        self.accept(key, found).unwrap_or_default()
    }

    pub(super) fn gates(&mut self, setting: Setting) -> Vec<Gate> {
        let key = setting.key;
        self.declared.push(setting);
        let found = self.file.as_ref().and_then(|file| file.gates(key));
        self.accept(key, found).unwrap_or_default()
    }

    fn declare<T>(&mut self, kind: &ValueKind<T>, setting: Setting) {
        let (choices, expected) = ((kind.choices)(), kind.expected);
        self.declared.push(Setting { choices, expected, ..setting });
    }

    fn accept<T>(&mut self, key: &'static str, found: Option<Result<T, Diagnostic>>) -> Option<T> {
        self.origins.extend(found.as_ref().map(|_| (key, Origin::File)));
        found?.map_err(|problem| self.problems.push(problem)).ok()
    }

    /// A value that does not fit with the others.
    pub(super) fn reject(&mut self, key: &'static str, text: String) -> Result<(), SettingsError> {
        if self.origins.get(key) != Some(&Origin::File) {
            return Err(SettingsError::Usage(text));
        }
        let span = self.file.as_ref().and_then(|file| file.span(key)).unwrap_or_default();
        self.problems.push(Diagnostic::error(text).at(span));
        Ok(())
    }

    /// All that is wrong with the file, at once.
    pub(super) fn finish(&mut self) -> Result<(), SettingsError> {
        let keys: Vec<&'static str> = self.declared.iter().map(|setting| setting.key).collect();
        self.problems.extend(self.file.iter().flat_map(|file| file.unknown(&keys)));
        if self.problems.is_empty() {
            return Ok(());
        }
        let rendered = render(FILE_NAME, self.text, &self.problems);
        Err(SettingsError::InvalidFile { summary: summary(&self.problems), rendered })
    }
}

fn parsed<T>(kind: &ValueKind<T>, name: &str, text: &str) -> Result<T, SettingsError> {
    kind.parse(text).ok_or_else(|| invalid(text, name, kind.expected))
}

fn invalid(text: &str, name: &str, expected: &str) -> SettingsError {
    let text = visible_line(text);
    SettingsError::Usage(format!("invalid value `{text}` for {name}: expected {expected}"))
}
