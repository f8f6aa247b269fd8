//! ralph.toml, environment and flags → one validated `RunSettings`.
//!
//! `declared` has one declaration per setting; flags, file, environment and the tables in the
//! documentation are generated from it. A flag overrides the environment, the
//! environment ralph.toml, and ralph.toml the default.

mod agent;
mod declared;
mod file;
mod kind;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;

use crate::model::{Gate, visible_line};
use crate::text::backlog::{Diagnostic, render, summary};

use file::{Checked, FileValue, SettingsFile, gates};
use kind::ValueKind;

pub use agent::AgentChoice;
pub use declared::{Flags, RunSettings};
pub use file::{FILE_NAME, read_file};
pub use kind::SettingChoice;

/// One declaration, which generates flag, ralph.toml key, environment variable and documentation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Setting {
    /// Its heading in the help and in the documentation.
    pub group: &'static str,
    /// In ralph.toml: `budget.per_run` is `per_run` in `[budget]`.
    pub key: &'static str,
    /// Without the `--`.
    pub flag: Option<&'static str>,
    /// What the flag takes, `N` in `--max-iterations N`. Empty: it is a switch.
    pub takes: &'static str,
    pub env: Option<&'static str>,
    /// As ralph.toml would have it. Empty: there is none.
    pub default: &'static str,
    /// What happens by default, if no value says it.
    pub default_note: &'static str,
    pub help: &'static str,
    /// The only valid values. Empty: there are others.
    pub choices: Vec<SettingChoice>,
    /// What a value looks like: `a number of at least 1, or `none``.
    pub expected: &'static str,
}

/// Begins a declaration.
fn setting(key: &'static str) -> Setting {
    Setting { key, ..Default::default() }
}

impl Setting {
    fn flag(self, flag: &'static str, takes: &'static str) -> Self {
        Self { flag: Some(flag), takes, ..self }
    }

    fn env(self, name: &'static str) -> Self {
        Self { env: Some(name), ..self }
    }

    fn default(self, value: &'static str) -> Self {
        Self { default: value, ..self }
    }

    fn by_default(self, note: &'static str) -> Self {
        Self { default_note: note, ..self }
    }

    /// `none` is a value, and means that there is no limit.
    pub fn takes_none(&self) -> bool {
        self.expected.ends_with("or `none`") && self.choices.is_empty()
    }

    /// For people: the note, or the value.
    pub fn shown_default(&self) -> &'static str {
        if self.default_note.is_empty() { self.default } else { self.default_note }
    }
}

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

type Read<T> = Result<T, SettingsError>;

/// Where a value comes from; the default has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    File,
    Environment,
    Flag,
}

/// The values of the flags, by the key of their setting.
pub type FlagValues = BTreeMap<&'static str, OsString>;

/// Looks up a variable of the environment.
pub type EnvVars<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Reads settings, and remembers which there are and where each value comes from.
struct SettingsReader<'a> {
    flags: &'a FlagValues,
    env: EnvVars<'a>,
    file: SettingsFile<'a>,
    /// Group and help of the setting that is read next.
    pub group: &'static str,
    pub help: &'static str,
    pub declared: Vec<Setting>,
    pub origins: BTreeMap<&'static str, Origin>,
    problems: Vec<Diagnostic>,
}

impl<'a> SettingsReader<'a> {
    /// `text` is that of a ralph.toml.
    fn new(flags: &'a FlagValues, env: EnvVars<'a>, text: &'a str) -> Self {
        let mut problems = Vec::new();
        let file = SettingsFile::parse(text, &mut problems);
        let (declared, origins) = (Vec::new(), BTreeMap::new());
        Self { flags, env, file, group: "", help: "", declared, origins, problems }
    }

    fn value<T>(&mut self, kind: &ValueKind<T>, setting: Setting) -> Read<T> {
        let (key, default) = (setting.key, setting.default);
        let found = self.optional(kind, setting)?;
        found.map_or_else(|| parsed(kind, key, default), Ok)
    }

    /// None: it is not set anywhere.
    fn optional<T>(&mut self, kind: &ValueKind<T>, setting: Setting) -> Read<Option<T>> {
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
        Ok(self.in_file(key, |file, value| file.value(kind, key, value)))
    }

    /// Only ralph.toml has lists.
    fn list<T: PartialEq>(&mut self, kind: &ValueKind<T>, setting: Setting) -> Vec<T> {
        let key = setting.key;
        self.declare(kind, setting);
        self.in_file(key, |file, value| file.list(kind, key, value)).unwrap_or_default()
    }

    fn gates(&mut self, setting: Setting) -> Vec<Gate> {
        let key = setting.key;
        self.declared.push(Setting { group: self.group, help: self.help, ..setting });
        self.in_file(key, |_, value| gates(value)).unwrap_or_default()
    }

    fn declare<T>(&mut self, kind: &ValueKind<T>, setting: Setting) {
        let (group, help) = (self.group, self.help);
        let (choices, expected) = ((kind.choices)(), kind.expected);
        self.declared.push(Setting { group, help, choices, expected, ..setting });
    }

    /// None: ralph.toml does not have it, or has a wrong value.
    fn in_file<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&SettingsFile<'_>, &FileValue<'_>) -> Checked<T>,
    ) -> Option<T> {
        let value = self.file.find(key)?;
        self.origins.insert(key, Origin::File);
        read(&self.file, value).map_err(|problem| self.problems.push(problem)).ok()
    }

    /// A value that does not fit with the others.
    fn reject(&mut self, key: &'static str, text: String) -> Read<()> {
        if self.origins.get(key) != Some(&Origin::File) {
            return Err(SettingsError::Usage(text));
        }
        let span = self.file.find(key).map(FileValue::span).unwrap_or_default();
        self.problems.push(Diagnostic::error(text).at(span));
        Ok(())
    }

    /// All errors of the file at once.
    fn finish(mut self) -> Read<()> {
        let keys: Vec<&'static str> = self.declared.iter().map(|setting| setting.key).collect();
        self.problems.extend(self.file.unknown(&keys));
        if self.problems.is_empty() {
            return Ok(());
        }
        let rendered = render(FILE_NAME, self.file.text, &self.problems);
        Err(SettingsError::InvalidFile { summary: summary(&self.problems), rendered })
    }
}

fn parsed<T>(kind: &ValueKind<T>, name: &str, text: &str) -> Read<T> {
    kind.parse(text).ok_or_else(|| {
        let (text, expected) = (visible_line(text), kind.expected);
        SettingsError::Usage(format!("invalid value `{text}` for {name}: expected {expected}"))
    })
}

/// Fields with the declarations that they are read by. A field's comment is the help of its
/// setting; a group is a heading of the help and of the documentation.
macro_rules! settings {
    ($(#[$about:meta])* struct $name:ident($from:ident, $flags:ident) {
        $( $group:literal {
            $( $(#[doc = $help:literal])* $field:ident: $type:ty = $read:expr; )*
        } )*
    }) => {
        $(#[$about])*
        #[derive(Clone, Debug)]
        pub struct $name {
            $( $( $(#[doc = $help])* pub $field: $type, )* )*
            origins: BTreeMap<&'static str, Origin>,
        }

        impl $name {
            fn read($from: &mut SettingsReader<'_>, $flags: &Flags) -> Read<Self> {
                $(
                    $from.group = $group;
                    $(
                        $from.help = concat!($($help),*).trim_start();
                        let $field: $type = $read;
                    )*
                )*
                Ok(Self { $( $( $field, )* )* origins: $from.origins.clone() })
            }
        }
    };
    // A part of a group, for a struct that is declared elsewhere.
    ($vis:vis fn $part:ident($from:ident) -> $name:ident {
        $( $(#[doc = $help:literal])* $field:ident = $read:expr; )*
    }) => {
        $vis fn $part($from: &mut SettingsReader<'_>) -> Read<$name> {
            $(
                $from.help = concat!($($help),*).trim_start();
                let $field = $read;
            )*
            Ok($name { $( $field ),* })
        }
    };
}

use settings;
