//! Gates: commands that a claim must pass, and the evidence that they give.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Component, Path};
use std::time::Duration;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::id::StoryId;
use super::text::{A_TIME, duration, first_few, visible, visible_line};

const DEFAULT_TIMEOUT: Duration = Duration::from_mins(30);
const MOST_RETRIES: u32 = 10;
/// Files that are named.
const NAMED: usize = 10;
/// Bytes of a gate's output, from its end, for the journal and the next prompt.
pub const GATE_TAIL: usize = 2048;

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
    /// It may change files: what it changes is the story's work.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub fix: bool,
    /// It is about one story at a time. None: its text says so, or not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub each_story: Option<bool>,
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
            fix: false,
            each_story: None,
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
        CommandVisitor.visit_str(command)?;
        Ok(Gate::shell(command))
    }

    fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<Gate, M::Error> {
        let table = GateTable::deserialize(MapAccessDeserializer::new(map))?;
        let timeout = table.timeout.map_or(Ok(DEFAULT_TIMEOUT), |text| {
            let bad = || Error::custom(format!("`{}` is not {A_TIME}", visible(&text)));
            duration(&text).ok_or_else(bad)
        })?;
        let dir = table.dir.map(inside).transpose()?;
        if table.retries > MOST_RETRIES {
            return Err(Error::custom(format!("`retries` must be at most {MOST_RETRIES}")));
        }
        let GateTable { run, env, retries, fix, each_story, .. } = table;
        Ok(Gate { run, timeout, dir, env, retries, fix, each_story })
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
    #[serde(default)]
    fix: bool,
    each_story: Option<bool>,
}

/// A gate runs inside the work tree.
fn inside<E: Error>(dir: String) -> Result<String, E> {
    let is_inside = |part| matches!(part, Component::Normal(_) | Component::CurDir);
    if Path::new(&dir).components().all(is_inside) {
        return Ok(dir);
    }
    let dir = visible(&dir);
    Err(Error::custom(format!("`{dir}` is not a relative path inside the work tree")))
}

impl<'de> Deserialize<'de> for GateCommand {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(CommandVisitor)
    }
}

struct CommandVisitor;

const EMPTY: &str = "the gate has no command";

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

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "item", rename_all = "snake_case")]
pub enum EvidenceItem {
    Gate(GateReport),
}

/// The result of one gate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateReport {
    /// The command.
    pub gate: String,
    /// The closed story that it was run again for.
    pub guards: Option<StoryId>,
    pub end: GateEnd,
    pub elapsed_ms: u64,
    /// The end of its output.
    pub tail: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "end", rename_all = "snake_case")]
pub enum GateEnd {
    Passed,
    Failed {
        code: i32,
    },
    Killed {
        signal: i32,
    },
    TimedOut,
    NotStarted {
        error: String,
    },
    /// It reset or deleted the story's work.
    Undid {
        paths: Vec<String>,
    },
    /// A closed story's gate, which failed without this story's work too. `how`: with it.
    RedBefore {
        how: String,
    },
}

impl GateEnd {
    pub fn describe(&self) -> String {
        match self {
            Self::Passed => "passed".to_owned(),
            Self::Failed { code: 127 } => "is not there yet (exit code 127)".to_owned(),
            Self::Failed { code: 126 } => "could not be run (exit code 126)".to_owned(),
            Self::Failed { code } => format!("failed with exit code {code}"),
            Self::Killed { signal } => format!("was killed by signal {signal}"),
            Self::TimedOut => "timed out".to_owned(),
            Self::NotStarted { error } => format!("could not be started: {}", visible_line(error)),
            Self::Undid { paths } => {
                let paths = first_few(paths, NAMED);
                format!("undid the story's work in {paths}; it was restored")
            }
            Self::RedBefore { how } => format!("{how}, and was red before this story"),
        }
    }
}

impl GateReport {
    pub fn passed(&self) -> bool {
        self.end == GateEnd::Passed
    }

    /// It says something against the claim.
    pub fn counts_against(&self) -> bool {
        !matches!(self.end, GateEnd::Passed | GateEnd::RedBefore { .. })
    }

    /// It failed, and without the story's work too.
    pub fn was_red_before(&self) -> bool {
        matches!(self.end, GateEnd::RedBefore { .. })
    }

    /// `cargo test failed with exit code 101`.
    pub fn describe(&self) -> String {
        format!("`{}` {}", self.gate, self.end.describe())
    }

    /// The command itself is missing; says nothing about the work.
    pub fn cannot_run(&self) -> bool {
        matches!(self.end, GateEnd::NotStarted { .. } | GateEnd::Failed { code: 126 | 127 })
    }
}

/// A change that could make the agent's own work look done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Concern {
    /// One line: what changed.
    pub what: String,
    /// The diff, as text.
    pub diff: String,
}

#[cfg(test)]
mod tests;
