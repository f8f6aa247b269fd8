//! The script: the steps of each story's attempts, and their syntax.
//!
//! The file's shape is read first and its steps second, so that an error in a step has that step's
//! position.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use toml::{Spanned, Value};

use crate::model::StoryId;
use crate::text::backlog::{Position, position};

use super::step::{MockStep, in_plain_words};

/// What the agent process finds around it: the story, the attempt, the folder.
pub struct Scene {
    pub story: StoryId,
    /// Counts from 1.
    pub attempt: u32,
    pub iteration: u32,
    /// Lines that the driver expects instead of a claim.
    pub stages: Vec<String>,
    pub folder: PathBuf,
    pub prompt: Vec<u8>,
}

impl Scene {
    /// `variable` looks up the environment.
    pub fn new(variable: impl Fn(&str) -> Option<String>, folder: PathBuf) -> Result<Self, String> {
        let story = variable("RALPH_STORY").unwrap_or_else(|| "unnamed".to_owned());
        let stages = variable("RALPH_STAGES").unwrap_or_default();
        Ok(Self {
            story: StoryId::try_from(story).map_err(|e| format!("RALPH_STORY: {e}"))?,
            attempt: count(variable("RALPH_ATTEMPT")),
            iteration: count(variable("RALPH_ITERATION")),
            stages: stages.lines().map(str::to_owned).collect(),
            folder,
            prompt: Vec::new(),
        })
    }

    /// Replaces the placeholders in a script before it is read as TOML. This is safe, because
    /// neither ids nor numbers have a character that means anything in TOML.
    pub fn fill_in(&self, source: &str) -> String {
        source
            .replace("${STORY}", self.story.as_str())
            .replace("${ATTEMPT}", &self.attempt.to_string())
            .replace("${ITERATION}", &self.iteration.to_string())
    }
}

fn count(text: Option<String>) -> u32 {
    text.and_then(|t| t.trim().parse().ok()).filter(|n| *n > 0).unwrap_or(1)
}

#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    #[error("cannot read the mock script {path}: {source}")]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("{path}:{line}:{column}: {problem}")]
    Invalid { path: PathBuf, line: usize, column: usize, problem: String },
}

/// The steps of all stories. A story without a section uses `default`, or else the steps of an
/// unscripted mock agent.
#[derive(Debug, Default)]
pub struct Script {
    default: Option<Vec<MockAttempt>>,
    story: BTreeMap<StoryId, Vec<MockAttempt>>,
}

/// What one process plays.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MockAttempt<Step = MockStep> {
    pub steps: Vec<Step>,
    /// `true`: plain text instead of stream-json.
    pub plain: Option<bool>,
    /// `false`: no event before the first step.
    pub init: Option<bool>,
    /// `false`: leaves the prompt in the pipe.
    pub read_prompt: Option<bool>,
}

impl Script {
    /// `fill_in` replaces the placeholders.
    pub fn load(path: &Path, fill_in: impl FnOnce(String) -> String) -> Result<Self, ScriptError> {
        let source = std::fs::read_to_string(path)
            .map_err(|source| ScriptError::Unreadable { path: path.to_owned(), source })?;
        Self::parse(path, &fill_in(source))
    }

    pub fn parse(path: &Path, source: &str) -> Result<Self, ScriptError> {
        let written = toml::from_str::<WrittenScript>(source).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            (at, in_plain_words(error.message()))
        });
        written.and_then(WrittenScript::understand).map_err(|(at, problem)| {
            let Position { line, column } = position(source, at);
            ScriptError::Invalid { path: path.to_owned(), line, column, problem }
        })
    }

    /// The attempt to play: the last one repeats.
    pub fn attempt(&self, scene: &Scene) -> MockAttempt {
        let attempts = self.story.get(&scene.story).or(self.default.as_ref());
        let number = (scene.attempt as usize).saturating_sub(1);
        let scripted = attempts.and_then(|all| all.get(number).or(all.last()));
        scripted.cloned().unwrap_or_else(|| MockAttempt::unscripted(scene))
    }
}

impl MockAttempt {
    /// What the agent does without a script.
    fn unscripted(scene: &Scene) -> Self {
        let Scene { story, attempt, stages, .. } = scene;
        let path = format!("mock/{story}.md");
        let text = format!("# {story}\n\nWritten by ralph's mock agent, attempt {attempt}.\n");
        let claimed = format!("Task {story} complete");
        let claim = if stages.is_empty() { claimed } else { stages.join("\n") };
        let steps = vec![
            MockStep::Say { say: format!("Working on {story}.") },
            MockStep::Write { write: PathBuf::from(&path), text: Some(text), append: None },
            MockStep::Say { say: format!("Wrote {path}.\n\n{claim}") },
        ];
        Self { steps, plain: None, init: None, read_prompt: None }
    }
}

/// The byte that is wrong, and why.
type ScriptProblem = (usize, String);

type WrittenAttempt = MockAttempt<Spanned<Value>>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenScript {
    default: Option<Spanned<WrittenStory>>,
    #[serde(default)]
    story: BTreeMap<StoryId, Spanned<WrittenStory>>,
}

/// One list of steps, or one per attempt.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenStory {
    steps: Option<Vec<Spanned<Value>>>,
    plain: Option<bool>,
    init: Option<bool>,
    read_prompt: Option<bool>,
    attempts: Option<Vec<WrittenAttempt>>,
}

impl WrittenScript {
    fn understand(self) -> Result<Script, ScriptProblem> {
        let stories =
            self.story.into_iter().map(|(id, story)| Ok((id, WrittenStory::understand(story)?)));
        Ok(Script {
            story: stories.collect::<Result<_, ScriptProblem>>()?,
            default: self.default.map(WrittenStory::understand).transpose()?,
        })
    }
}

impl WrittenStory {
    fn understand(written: Spanned<Self>) -> Result<Vec<MockAttempt>, ScriptProblem> {
        let at = written.span().start;
        let attempts = written.into_inner().attempts().map_err(|text| (at, text.to_owned()))?;
        attempts.into_iter().map(WrittenAttempt::understand).collect()
    }

    fn attempts(self) -> Result<Vec<WrittenAttempt>, &'static str> {
        let Self { steps, plain, init, read_prompt, attempts } = self;
        let has_options = plain.or(init).or(read_prompt).is_some();
        match (steps, attempts) {
            (Some(steps), None) => Ok(vec![MockAttempt { steps, plain, init, read_prompt }]),
            (None, Some(_)) if has_options => {
                Err("put `plain`, `init` and `read_prompt` into each of the `attempts`")
            }
            (None, Some(attempts)) if attempts.is_empty() => {
                Err("`attempts` is empty; add at least one")
            }
            (None, Some(attempts)) => Ok(attempts),
            (Some(_), Some(_)) => Err("use either `steps` or `attempts`, not both"),
            (None, None) => Err("`steps` is missing (or `attempts`, each with its own `steps`)"),
        }
    }
}

impl WrittenAttempt {
    fn understand(self) -> Result<MockAttempt, ScriptProblem> {
        let Self { steps: written, plain, init, read_prompt } = self;
        let mut steps: Vec<MockStep> = Vec::with_capacity(written.len());
        for step in written {
            let at = step.span().start;
            let step = match steps.last().is_some_and(MockStep::ends_the_attempt) {
                true => Err("this step never runs: the one before it ends the attempt".into()),
                false => MockStep::read(step.into_inner()),
            };
            steps.push(step.map_err(|problem| (at, problem))?);
        }
        Ok(MockAttempt { steps, plain, init, read_prompt })
    }
}
