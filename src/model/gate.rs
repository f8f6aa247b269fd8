//! Commands that a claim must pass.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Component, Path};
use std::time::Duration;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::text::{A_TIME, duration, visible, visible_line};

const DEFAULT_TIMEOUT: Duration = Duration::from_mins(30);
const MOST_RETRIES: u32 = 10;

/// One command of ralph.toml or a story.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Gate {
    pub run: GateCommand,
    pub timeout: Duration,
    /// Below the root of the work tree.
    pub dir: Option<String>,
    pub env: BTreeMap<String, String>,
    /// How often it may fail and be run again.
    pub retries: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(untagged)]
pub enum GateCommand {
    Shell(String),
    Program(Vec<String>),
}

impl Gate {
    pub fn shell(command: &str) -> Self {
        Self {
            run: GateCommand::Shell(command.to_owned()),
            timeout: DEFAULT_TIMEOUT,
            dir: None,
            env: BTreeMap::new(),
            retries: 0,
        }
    }
}

/// Which closed stories' gates run again with a claim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Recheck {
    #[default]
    All,
    None,
}

/// The command alone.
impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&match &self.run {
            GateCommand::Shell(command) => visible_line(command),
            GateCommand::Program(words) => visible_line(&words.join(" ")),
        })
    }
}

impl<'de> Deserialize<'de> for Gate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(GateVisitor)
    }
}

struct GateVisitor;

impl<'de> Visitor<'de> for GateVisitor {
    type Value = Gate;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a shell command, or a table with `run`")
    }

    fn visit_str<E: Error>(self, command: &str) -> Result<Gate, E> {
        let run = CommandVisitor.visit_str(command)?;
        Ok(Gate { run, ..Gate::shell("") })
    }

    fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<Gate, M::Error> {
        let table = GateTable::deserialize(MapAccessDeserializer::new(map))?;
        let timeout = table.timeout.map_or(Ok(DEFAULT_TIMEOUT), |text| {
            let bad = || Error::custom(format!("`{}` is not {A_TIME}", visible(&text)));
            duration(&text).ok_or_else(bad)
        })?;
        let dir = table.dir.map(inside).transpose()?;
        if table.retries > MOST_RETRIES {
            return Err(Error::custom(format!("`retries` is at most {MOST_RETRIES}")));
        }
        Ok(Gate { run: table.run, timeout, dir, env: table.env, retries: table.retries })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GateTable {
    run: GateCommand,
    timeout: Option<String>,
    dir: Option<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    retries: u32,
}

/// A gate runs inside the work tree.
fn inside<E: Error>(dir: String) -> Result<String, E> {
    let is_inside = |part| matches!(part, Component::Normal(_) | Component::CurDir);
    if Path::new(&dir).components().all(is_inside) {
        return Ok(dir);
    }
    let dir = visible(&dir);
    Err(Error::custom(format!("`{dir}` is not a folder below the root of the work tree")))
}

impl<'de> Deserialize<'de> for GateCommand {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(CommandVisitor)
    }
}

struct CommandVisitor;

const EMPTY: &str = "a gate without a command";

impl<'de> Visitor<'de> for CommandVisitor {
    type Value = GateCommand;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a shell command, or a list of a program and its arguments")
    }

    fn visit_str<E: Error>(self, command: &str) -> Result<GateCommand, E> {
        if command.trim().is_empty() {
            return Err(Error::custom(EMPTY));
        }
        Ok(GateCommand::Shell(command.to_owned()))
    }

    fn visit_seq<S: SeqAccess<'de>>(self, list: S) -> Result<GateCommand, S::Error> {
        let words = Vec::<String>::deserialize(SeqAccessDeserializer::new(list))?;
        if words.first().is_none_or(|program| program.trim().is_empty()) {
            return Err(Error::custom(EMPTY));
        }
        Ok(GateCommand::Program(words))
    }
}

#[cfg(test)]
mod tests;
