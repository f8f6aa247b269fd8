//! Kinds of values: how each is written, and how it is parsed.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use serde::de::value::{Error, StrDeserializer};
use serde::de::{DeserializeOwned, IntoDeserializer};

use crate::agent::{AgentKind, all_permission_modes, permission_mode};
use crate::decide::staging::Pattern;
use crate::model::{
    A_TIME, LONGEST_KEPT, MOST_KEPT, OnEscalation, OnLimit, PermissionMode, Recheck, Usd, duration,
};
use crate::text::signals::{can_be_a_line, can_be_promised};

const SMALLEST_LOG: u64 = 1_000_000;
const MOST_IN_ALL: usize = 100_000;

/// A value, and what it means where its name does not say it.
pub type SettingChoice = (&'static str, &'static str);

pub(super) struct ValueKind<T: 'static> {
    /// Completes "expected …".
    pub expected: &'static str,
    /// Its type in ralph.toml.
    pub form: Form,
    pub choices: fn() -> Vec<SettingChoice>,
    /// In a list, the same value twice is a mistake.
    pub is_unique: bool,
    pub from_text: fn(&str) -> Option<T>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Text,
    /// A word such as `none` is fine too.
    Number,
    Switch,
}

impl<T> ValueKind<T> {
    pub(super) fn parse(&self, text: &str) -> Option<T> {
        (self.from_text)(if self.form == Form::Number { text.trim() } else { text })
    }

    const fn new(form: Form, expected: &'static str, from_text: fn(&str) -> Option<T>) -> Self {
        Self { expected, form, choices: Vec::new, is_unique: false, from_text }
    }

    const fn text(expected: &'static str, parse: fn(&str) -> Option<T>) -> Self {
        Self::new(Form::Text, expected, parse)
    }

    const fn number(expected: &'static str, parse: fn(&str) -> Option<T>) -> Self {
        Self::new(Form::Number, expected, parse)
    }
}

impl<T: DeserializeOwned> ValueKind<T> {
    const fn choice(expected: &'static str, choices: fn() -> Vec<SettingChoice>) -> Self {
        Self { choices, ..Self::text(expected, named) }
    }
}

pub(super) const COUNT: ValueKind<NonZeroU32> =
    ValueKind::number("a number of at least 1", |text| text.parse().ok());
/// `none` disables a limit; with `0` a run could do nothing.
pub(super) const LIMIT: ValueKind<Option<u32>> =
    ValueKind::number("a number of at least 1, or `none`", |text| or_none(text, at_least_one));
pub(super) const UP_TO_TEN: ValueKind<Option<u32>> =
    ValueKind::number("a number from 1 to 10, or `none`", |text| {
        or_none(text, |text| at_least_one(text).filter(|number| *number <= 10))
    });
pub(super) const NUMBER: ValueKind<u32> = ValueKind::number("a number", |text| text.parse().ok());
pub(super) const FILE_COUNT: ValueKind<Option<usize>> =
    ValueKind::number("a number, or `none`", |text| or_none(text, |text| text.parse().ok()));
pub(super) const MEMORY_COUNT: ValueKind<usize> =
    ValueKind::number("a number from 0 to 20", |text| up_to(text, MOST_KEPT));
pub(super) const ENTRY_LENGTH: ValueKind<usize> =
    ValueKind::number("a number of characters from 0 to 2000", |text| up_to(text, LONGEST_KEPT));
pub(super) const TOTAL_LENGTH: ValueKind<usize> =
    ValueKind::number("a number of characters from 0 to 100000", |text| up_to(text, MOST_IN_ALL));
pub(super) const DOLLARS: ValueKind<f64> =
    ValueKind::number("an amount of dollars above 0 such as `25` or `0.50`", |text| {
        Usd::parse(text).map(Usd::as_f64)
    });
pub(super) const DOLLAR_LIMIT: ValueKind<Option<Usd>> =
    ValueKind::number("an amount of dollars above 0 such as `25` or `0.50`, or `none`", |text| {
        or_none(text, Usd::parse)
    });
pub(super) const LOG_SIZE: ValueKind<u64> =
    ValueKind::number("a size of at least `1MB`, such as `256MB`", |text| {
        size(text).filter(|bytes| *bytes >= SMALLEST_LOG)
    });
pub(super) const SIZE_LIMIT: ValueKind<Option<u64>> =
    ValueKind::number("a size such as `10MB` or `1GB`, or `none`", |text| or_none(text, size));
pub(super) const TIME: ValueKind<Duration> = ValueKind::text(A_TIME, duration);
pub(super) const TIME_LIMIT: ValueKind<Option<Duration>> =
    ValueKind::text("a time such as `12h` or `90s`, at most 30 days, or `none`", |text| {
        or_none(text, duration)
    });
pub(super) const SWITCH: ValueKind<bool> =
    ValueKind::new(Form::Switch, "`true` or `false`", |text| text.parse().ok());
pub(super) const TEXT: ValueKind<String> =
    ValueKind::text("text in quotes", |text| Some(text.to_owned()));
pub(super) const PATH: ValueKind<PathBuf> =
    ValueKind::text("a path in quotes", |text| Some(PathBuf::from(text)));
pub(super) const PROGRAM_NAME: ValueKind<String> =
    ValueKind::text("a program's name, without its folder", |text| {
        let name = text.trim();
        (!name.is_empty() && !name.contains(['/', '\0'])).then(|| name.to_owned())
    });
pub(super) const PATTERN: ValueKind<Pattern> =
    ValueKind::text("the name of a file or folder; `*` matches any characters", Pattern::new);
pub(super) const PROMISE: ValueKind<String> =
    ValueKind::text("the text of a `<promise>`, such as `SHIPPED`", |text| {
        can_be_promised(text).then(|| text.to_owned())
    });
pub(super) const MARKER: ValueKind<String> = ValueKind {
    is_unique: true,
    ..ValueKind::text("one line of plain text, not a quote, comment or code", |text| {
        can_be_a_line(text).then(|| text.trim().to_owned())
    })
};

pub(super) const ON_ESCALATION: ValueKind<OnEscalation> =
    ValueKind::choice("`ask`, `park`, `skip` or `abort`", || {
        vec![("ask", ""), ("park", ""), ("skip", ""), ("abort", "")]
    });
pub(super) const ON_LIMIT: ValueKind<OnLimit> =
    ValueKind::choice("`wait` or `stop`", || vec![("wait", ""), ("stop", "")]);
pub(super) const RECHECK: ValueKind<Recheck> =
    ValueKind::choice("`all` or `none`", || vec![("all", ""), ("none", "")]);
pub(super) const AGENT_NAME: ValueKind<AgentKind> = ValueKind::choice("`claude` or `mock`", || {
    vec![("claude", "Claude Code"), ("mock", "The built-in scripted agent")]
});
pub(super) const PERMISSION_MODE: ValueKind<PermissionMode> = ValueKind {
    choices: || all_permission_modes().map(|mode| (mode.name, mode.meaning)).collect(),
    ..ValueKind::text("`acceptEdits`, `auto`, `dontAsk` or `bypassPermissions`", permission_mode)
};

/// By its name in ralph.toml.
fn named<T: DeserializeOwned>(text: &str) -> Option<T> {
    let name: StrDeserializer<'_, Error> = text.into_deserializer();
    T::deserialize(name).ok()
}

/// The outer option says whether the text is valid.
#[expect(clippy::option_option, reason = "`none` is a value, and a bad value is another thing")]
fn or_none<T>(text: &str, parse: impl Fn(&str) -> Option<T>) -> Option<Option<T>> {
    let text = text.trim();
    if text == "none" { Some(None) } else { parse(text).map(Some) }
}

fn at_least_one(text: &str) -> Option<u32> {
    text.parse::<NonZeroU32>().ok().map(NonZeroU32::get)
}

fn up_to(text: &str, most: usize) -> Option<usize> {
    text.parse().ok().filter(|number| *number <= most)
}

const UNITS: [(&str, u64); 10] = [
    ("b", 1),
    ("", 1),
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("tb", 1_000_000_000_000),
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("tib", 1 << 40),
];

/// Bytes: `256MB`, `1.5 GB`, `64MiB`. Only digits and one point: `1e3` is no size.
fn size(text: &str) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(end)?;
    let unit = unit.trim().to_ascii_lowercase();
    let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit)?;
    let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
    let denominator = 10_u64.checked_pow(u32::try_from(part.len()).ok()?)?;
    let part = u128::from(part.parse::<u64>().ok()?) * u128::from(*factor);
    let part = u64::try_from(part / u128::from(denominator)).ok()?;
    whole.parse::<u64>().ok()?.checked_mul(*factor)?.checked_add(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_with_any_unit_and_a_fraction() {
        for (text, bytes) in [
            ("0", 0),
            ("1024", 1024),
            ("17 B", 17),
            ("256MB", 256_000_000),
            ("256 mb", 256_000_000),
            ("1.5GB", 1_500_000_000),
            ("0.25kB", 250),
            ("64MiB", 64 * 1024 * 1024),
            ("900TB", 900_000_000_000_000),
        ] {
            assert_eq!(size(text), Some(bytes), "{text}");
        }
        for bad in ["", "MB", "-1MB", "1e3", "1.2.3GB", "1.GB", ".5GB", "5 potatoes", "99999999TB"]
        {
            assert_eq!(size(bad), None, "{bad}");
        }
    }
}
