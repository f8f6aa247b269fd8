//! Commands that have to pass before a claim is believed.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Component, Path};
use std::time::Duration;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::backlog::Backlog;
use super::id::StoryId;
use super::text::{visible, visible_line};
use super::time;

const DEFAULT_TIMEOUT: Duration = Duration::from_mins(30);
const MOST_RETRIES: u32 = 10;

/// One command, as ralph.toml or a story has it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Gate {
    pub run: Run,
    pub timeout: Duration,
    /// Below the root of the work tree.
    pub dir: Option<String>,
    pub env: BTreeMap<String, String>,
    /// How often it may fail and be run again.
    pub retries: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(untagged)]
pub enum Run {
    Shell(String),
    Program(Vec<String>),
}

impl Gate {
    pub fn shell(command: &str) -> Self {
        Self {
            run: Run::Shell(command.to_owned()),
            timeout: DEFAULT_TIMEOUT,
            dir: None,
            env: BTreeMap::new(),
            retries: 0,
        }
    }
}

/// Which earlier stories' gates run again when a later story claims to be done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Recheck {
    #[default]
    All,
    None,
}

/// The gates of a run, as they were at its start.
#[derive(Clone, Debug, Default)]
pub struct Gates {
    /// For every story.
    pub all: Vec<Gate>,
    pub of: BTreeMap<StoryId, Vec<Gate>>,
    pub recheck: Recheck,
    /// They are known, and none is run: a dry run has no code that they could look at.
    pub dry: bool,
}

/// A gate that a claim has to pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Due<'a> {
    pub gate: &'a Gate,
    /// The closed story for whose sake it is run.
    pub guards: Option<&'a StoryId>,
}

impl Gates {
    pub fn is_empty(&self) -> bool {
        self.all.is_empty() && self.of.values().all(Vec::is_empty)
    }

    pub fn of_story(&self, story: &StoryId) -> &[Gate] {
        self.of.get(story).map_or(&[], Vec::as_slice)
    }

    /// What a claim of the story has to pass: the cheapest to understand first, none twice.
    pub fn due(&self, story: &StoryId, backlog: &Backlog) -> Vec<Due<'_>> {
        if self.dry {
            return Vec::new();
        }
        let own = self.all.iter().chain(self.of_story(story));
        let mut due: Vec<Due<'_>> = Vec::new();
        let mut add = |gate, guards| {
            if !due.iter().any(|other| other.gate == gate) {
                due.push(Due { gate, guards });
            }
        };
        own.for_each(|gate| add(gate, None));
        let closed = backlog.stories.iter().filter(|other| other.passes && other.id != *story);
        for other in closed.filter(|_| self.recheck == Recheck::All) {
            let Some((id, gates)) = self.of.get_key_value(&other.id) else { continue };
            gates.iter().for_each(|gate| add(gate, Some(id)));
        }
        due
    }
}

/// As people name it: the command alone.
impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.run {
            Run::Shell(command) => f.write_str(&visible_line(command)),
            Run::Program(words) => f.write_str(&visible_line(&words.join(" "))),
        }
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
        let run = RunVisitor.visit_str(command)?;
        Ok(Gate { run, ..Gate::shell("") })
    }

    fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<Gate, M::Error> {
        let table = Table::deserialize(MapAccessDeserializer::new(map))?;
        Ok(Gate {
            run: table.run,
            timeout: table.timeout.map_or(Ok(DEFAULT_TIMEOUT), |text| {
                let bad = || Error::custom(format!("`{}` is not {}", visible(&text), time::A_TIME));
                time::duration(&text).ok_or_else(bad)
            })?,
            dir: table.dir.map(inside).transpose()?,
            env: table.env,
            retries: match table.retries {
                retries if retries <= MOST_RETRIES => retries,
                _ => return Err(Error::custom(format!("`retries` is at most {MOST_RETRIES}"))),
            },
        })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    run: Run,
    timeout: Option<String>,
    dir: Option<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    retries: u32,
}

/// The work tree is what a gate looks at, so it runs in there.
fn inside<E: Error>(dir: String) -> Result<String, E> {
    let is_inside = |part| matches!(part, Component::Normal(_) | Component::CurDir);
    if Path::new(&dir).components().all(is_inside) {
        return Ok(dir);
    }
    let dir = visible(&dir);
    Err(Error::custom(format!("`{dir}` is not a folder below the root of the work tree")))
}

impl<'de> Deserialize<'de> for Run {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RunVisitor)
    }
}

struct RunVisitor;

const EMPTY: &str = "a gate without a command";

impl<'de> Visitor<'de> for RunVisitor {
    type Value = Run;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a shell command, or a list of a program and its arguments")
    }

    fn visit_str<E: Error>(self, command: &str) -> Result<Run, E> {
        if command.trim().is_empty() {
            return Err(Error::custom(EMPTY));
        }
        Ok(Run::Shell(command.to_owned()))
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut list: S) -> Result<Run, S::Error> {
        let mut words: Vec<String> = Vec::new();
        while let Some(word) = list.next_element()? {
            words.push(word);
        }
        if words.first().is_none_or(|program| program.trim().is_empty()) {
            return Err(Error::custom(EMPTY));
        }
        Ok(Run::Program(words))
    }
}

#[cfg(test)]
mod tests;
