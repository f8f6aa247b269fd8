//! The script: which story's which attempt plays which steps, and how people write it.
//!
//! Reads the file's shape first and its steps second, so that a complaint about
//! a step can point at that step.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use serde::Deserialize;
use toml::{Spanned, Table, Value};

use crate::model::StoryId;

use super::step::{ACTIONS, MockStep, TAG, WORDS};

/// The story's name when nobody said which one it is.
const NO_STORY: &str = "unnamed";

/// What the agent process finds around it: the story, the attempt, the folder.
pub struct Scene {
    pub story: StoryId,
    /// Counts from 1.
    pub attempt: u32,
    pub iteration: u32,
    /// What the driver wants to hear instead of a claim.
    pub stages: Vec<String>,
    pub folder: PathBuf,
    pub prompt: Vec<u8>,
    pub now: Timestamp,
}

impl Scene {
    pub fn from_environment() -> Result<Self, String> {
        let folder = std::env::current_dir().map_err(|e| format!("no current folder: {e}"))?;
        Self::new(|name| std::env::var(name).ok(), folder)
    }

    pub fn new(variable: impl Fn(&str) -> Option<String>, folder: PathBuf) -> Result<Self, String> {
        let story = variable("RALPH_STORY").unwrap_or_else(|| NO_STORY.to_owned());
        Ok(Self {
            story: StoryId::try_from(story).map_err(|e| format!("RALPH_STORY: {e}"))?,
            attempt: count(variable("RALPH_ATTEMPT")),
            iteration: count(variable("RALPH_ITERATION")),
            stages: variable("RALPH_STAGES")
                .iter()
                .flat_map(|s| s.lines())
                .map(str::to_owned)
                .collect(),
            folder,
            prompt: Vec::new(),
            now: Timestamp::now(),
        })
    }

    /// Replaces the placeholders in a script before it is read as TOML. Safe, as
    /// neither ids nor numbers hold a character that means anything in TOML.
    pub fn fill_in(&self, source: &str) -> String {
        source
            .replace("${STORY}", self.story.as_str())
            .replace("${ATTEMPT}", &self.attempt.to_string())
            .replace("${ITERATION}", &self.iteration.to_string())
    }

    /// The moment `wait` from now, in Unix seconds.
    pub fn second_after(&self, wait: Duration) -> i64 {
        let wait = i64::try_from(wait.as_secs()).unwrap_or(i64::MAX);
        self.now.as_second().saturating_add(wait)
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

/// What all stories play. A story the script does not name plays `default`, and
/// without that what the mock agent does by itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Script {
    default: Option<Vec<MockAttempt>>,
    story: BTreeMap<StoryId, Vec<MockAttempt>>,
}

/// What one process plays.
#[derive(Clone, Debug, PartialEq)]
pub struct MockAttempt {
    pub steps: Vec<MockStep>,
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
        let written = toml::from_str::<WrittenScript>(source).map_err(ScriptProblem::from);
        written.and_then(WrittenScript::understand).map_err(|problem| {
            let (line, column) = position(source, problem.at);
            ScriptError::Invalid { path: path.to_owned(), line, column, problem: problem.text }
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
        let claim = match stages.is_empty() {
            true => format!("Task {story} complete"),
            false => stages.join("\n"),
        };
        let steps = vec![
            MockStep::Say { say: format!("Working on {story}.") },
            MockStep::Write { write: PathBuf::from(&path), text, append: false },
            MockStep::Say { say: format!("Wrote {path}.\n\n{claim}") },
        ];
        Self { steps, plain: false, init: true, read_prompt: true }
    }

    pub fn ignores_term(&self) -> bool {
        self.steps.iter().any(MockStep::ignores_term)
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

/// What is wrong, and at which byte.
#[derive(Debug)]
struct ScriptProblem {
    at: usize,
    text: String,
}

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

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenAttempt {
    steps: Vec<Spanned<Value>>,
    plain: Option<bool>,
    init: Option<bool>,
    read_prompt: Option<bool>,
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
        let attempts = written.into_inner().attempts();
        let attempts = attempts.map_err(|text| ScriptProblem { at, text: text.to_owned() })?;
        attempts.into_iter().map(WrittenAttempt::understand).collect()
    }

    fn attempts(self) -> Result<Vec<WrittenAttempt>, &'static str> {
        let Self { steps, plain, init, read_prompt, attempts } = self;
        let has_manner = plain.or(init).or(read_prompt).is_some();
        match (steps, attempts) {
            (Some(steps), None) => Ok(vec![WrittenAttempt { steps, plain, init, read_prompt }]),
            (None, Some(_)) if has_manner => {
                Err("`plain`, `init` and `read_prompt` belong into each of the `attempts`")
            }
            (None, Some(attempts)) if attempts.is_empty() => {
                Err("`attempts` is empty; give at least one")
            }
            (None, Some(attempts)) => Ok(attempts),
            (Some(_), Some(_)) => Err("give either `steps` or `attempts`, not both"),
            (None, None) => Err("`steps` is missing (or `attempts`, each with its own `steps`)"),
        }
    }
}

impl WrittenAttempt {
    fn understand(self) -> Result<MockAttempt, ScriptProblem> {
        Ok(MockAttempt {
            steps: understand_steps(self.steps)?,
            plain: self.plain.unwrap_or(false),
            init: self.init.unwrap_or(true),
            read_prompt: self.read_prompt.unwrap_or(true),
        })
    }
}

fn understand_steps(written: Vec<Spanned<Value>>) -> Result<Vec<MockStep>, ScriptProblem> {
    let mut steps: Vec<MockStep> = Vec::with_capacity(written.len());
    for value in written {
        let at = value.span().start;
        if steps.last().is_some_and(MockStep::ends_the_attempt) {
            let text = "this step would never play: the one before it ends the attempt".to_owned();
            return Err(ScriptProblem { at, text });
        }
        steps.push(understand_step(value.into_inner()).map_err(|text| ScriptProblem { at, text })?);
    }
    Ok(steps)
}

fn understand_step(value: Value) -> Result<MockStep, String> {
    match value {
        Value::String(word) => read_step(name_of_word(&word)?, Table::new()),
        Value::Table(table) => read_step(name_of_table(&table)?, table),
        _ => Err("a step is a table like { say = \"…\" } or a word like \"complete\"".to_owned()),
    }
}

fn read_step(action: &str, mut table: Table) -> Result<MockStep, String> {
    table.insert(TAG.to_owned(), Value::String(action.to_owned()));
    MockStep::deserialize(table)
        .map_err(|error| format!("`{action}`: {}", in_plain_words(error.message())))
}

fn name_of_word(word: &str) -> Result<&str, String> {
    if WORDS.contains(&word) {
        Ok(word)
    } else if ACTIONS.contains(&word) {
        Err(format!("`{word}` needs a value: {{ {word} = … }}"))
    } else {
        Err(unknown(word, WORDS))
    }
}

fn name_of_table(table: &Table) -> Result<&'static str, String> {
    let actions: Vec<&str> = ACTIONS.iter().copied().filter(|a| table.contains_key(*a)).collect();
    match (actions.as_slice(), table.keys().next()) {
        ([action], _) => Ok(action),
        ([one, other, ..], _) => {
            Err(format!("a step does one thing; make `{one}` and `{other}` two steps"))
        }
        ([], Some(word)) if WORDS.contains(&word.as_str()) => {
            Err(format!("`{word}` stands alone; write it as \"{word}\""))
        }
        ([], Some(key)) => Err(unknown(key, ACTIONS)),
        ([], None) => Err("a step cannot be empty".to_owned()),
    }
}

fn unknown(name: &str, known: &[&str]) -> String {
    let distance = |other: &&&str| strsim::osa_distance(name, other);
    let near = |best: &&&str| distance(best) <= (name.chars().count() / 3).max(1);
    match known.iter().min_by_key(distance).filter(near) {
        Some(best) => format!("unknown step `{name}`; did you mean `{best}`?"),
        None => format!("unknown step `{name}`; known are {}", known.join(", ")),
    }
}

/// Whoever writes a script need not know how it is read.
fn in_plain_words(message: &str) -> String {
    message.replace("unknown variant", "unknown value").replace(" field `", " key `")
}

impl From<toml::de::Error> for ScriptProblem {
    fn from(error: toml::de::Error) -> Self {
        let at = error.span().map_or(0, |span| span.start);
        Self { at, text: in_plain_words(error.message()) }
    }
}
