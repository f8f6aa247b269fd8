//! The scripts, and the cases that they make: each script × who runs it × how that ends.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// One script.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attack {
    pub name: String,
    /// A shell script, run once at the root of the work tree.
    pub act: String,
    /// A shell command that says whether the attack succeeded.
    pub succeeded: String,
    /// What an unsuspecting driver or human does next. Only the control does it.
    #[serde(default)]
    pub naive: String,
    /// Why some cases of `by` and `ends` are left out.
    #[serde(default)]
    pub why: String,
    #[serde(default = "all_actors")]
    pub by: Vec<Actor>,
    #[serde(default = "all_ends")]
    pub ends: Vec<End>,
    #[serde(default)]
    pub then: Then,
    /// The exit codes that the run may end with; those of `then` if there are none.
    #[serde(default)]
    pub codes: Vec<i32>,
    /// The run may stop with an error; the next one continues it.
    #[serde(default)]
    pub again: bool,
}

/// Who runs the script.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Actor {
    Agent,
    /// A gate of the first claim.
    Gate,
    Baseline,
}

/// How that process ends, or ralph while it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// An agent claims the story, a gate passes.
    Well,
    NonZero,
    TimeOut,
    /// Ctrl-C at ralph.
    Interrupt,
    Terminate,
    HangUp,
    /// ralph crashes.
    Abort,
    /// kill -9 of ralph.
    Kill,
}

/// What the agents do after the attack, and before it if it is not theirs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Then {
    /// They do the stories' work, so the run has to succeed.
    #[default]
    Work,
    /// They claim stories whose work nobody does, so no story may pass.
    Lie,
}

impl Actor {
    pub const ALL: [Self; 3] = [Self::Agent, Self::Gate, Self::Baseline];
}

impl End {
    pub const ALL: [Self; 8] = [
        Self::Well,
        Self::NonZero,
        Self::TimeOut,
        Self::Interrupt,
        Self::Terminate,
        Self::HangUp,
        Self::Abort,
        Self::Kill,
    ];
}

fn all_actors() -> Vec<Actor> {
    Actor::ALL.to_vec()
}

fn all_ends() -> Vec<End> {
    End::ALL.to_vec()
}

#[derive(Clone, Debug)]
pub struct Case {
    pub attack: Attack,
    pub actor: Actor,
    pub end: End,
}

impl Case {
    pub fn name(&self) -> String {
        format!("{}/{:?}/{:?}", self.attack.name, self.actor, self.end).to_lowercase()
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AttackFile {
    attack: Vec<Attack>,
}

pub fn attacks() -> Vec<Attack> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hostile");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|one| one.unwrap().path()).collect();
    files.sort();
    let read = |path: &PathBuf| {
        let read: Result<AttackFile, _> = toml::from_str(&fs::read_to_string(path).unwrap());
        assert!(read.is_ok(), "{}: {}", path.display(), read.err().unwrap());
        read.unwrap()
    };
    files.iter().map(read).flat_map(|file| file.attack).collect()
}

pub fn cases() -> Vec<Case> {
    let cases_of = |attack: Attack| {
        let pairs = attack.by.clone().into_iter();
        let ends = attack.ends.clone();
        let pairs = pairs.flat_map(move |actor| ends.clone().into_iter().map(move |e| (actor, e)));
        pairs.map(move |(actor, end)| Case { attack: attack.clone(), actor, end })
    };
    attacks().into_iter().flat_map(cases_of).collect()
}
