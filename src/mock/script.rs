//! The script: which story's which attempt plays which steps.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use super::scene::Scene;
use super::step::Step;
use super::written::{Problem, WrittenScript};
use crate::core::id::StoryId;

#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    #[error("cannot read the mock script {path}: {source}")]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("{path}:{line}:{column}: {problem}")]
    Invalid { path: PathBuf, line: usize, column: usize, problem: String },
}

/// What all stories play. A story the script does not name plays `default`, and
/// without that what the mock agent does by itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Script {
    pub default: Option<StoryScript>,
    pub story: BTreeMap<StoryId, StoryScript>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct StoryScript {
    pub first: Attempt,
    pub further: Vec<Attempt>,
}

/// What one process plays.
#[derive(Clone, Debug, PartialEq)]
pub struct Attempt {
    pub steps: Vec<Step>,
    /// Plain text instead of stream-json.
    pub plain: bool,
    /// `false`: nothing is said before the first step.
    pub init: bool,
    /// `false`: leaves the prompt in the pipe.
    pub read_prompt: bool,
}

impl Script {
    /// `fill_in` replaces the placeholders.
    pub fn load(path: &Path, fill_in: impl FnOnce(String) -> String) -> Result<Self, ScriptError> {
        let source = std::fs::read_to_string(path)
            .map_err(|source| ScriptError::Unreadable { path: path.to_owned(), source })?;
        Self::parse(path, &fill_in(source))
    }

    pub fn parse(path: &Path, source: &str) -> Result<Self, ScriptError> {
        let written = toml::from_str::<WrittenScript>(source).map_err(Problem::from);
        written.and_then(WrittenScript::understand).map_err(|problem| {
            let (line, column) = position(source, problem.at);
            ScriptError::Invalid { path: path.to_owned(), line, column, problem: problem.text }
        })
    }

    /// The attempt to play: the last one repeats.
    pub fn attempt(&self, scene: &Scene) -> Attempt {
        match self.story.get(&scene.story).or(self.default.as_ref()) {
            Some(story) => story.attempt(scene.attempt).clone(),
            None => Attempt::of(Step::unscripted(scene)),
        }
    }
}

impl StoryScript {
    fn attempt(&self, number: u32) -> &Attempt {
        let further = (number as usize).saturating_sub(1).min(self.further.len());
        further.checked_sub(1).and_then(|i| self.further.get(i)).unwrap_or(&self.first)
    }
}

impl Attempt {
    pub fn of(steps: Vec<Step>) -> Self {
        Self { steps, plain: false, init: true, read_prompt: true }
    }

    pub fn ignores_term(&self) -> bool {
        self.steps.iter().any(Step::ignores_term)
    }
}

/// Line and column, counted from 1 in characters, of a byte of `source`.
fn position(source: &str, byte: usize) -> (usize, usize) {
    let before = source.char_indices().take_while(|(at, _)| *at < byte);
    before.fold((1, 1), |(line, column), (_, c)| match c {
        '\n' => (line + 1, 1),
        _ => (line, column + 1),
    })
}
