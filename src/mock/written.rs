//! A script as people write it, and what can be wrong with it.
//!
//! Reads the file's shape first and its steps second, so that a complaint about
//! a step can point at that step.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::{Spanned, Table, Value};

use super::script::{Attempt, Script, StoryScript};
use super::step::{ACTIONS, Step, TAG, WORDS};
use crate::core::id::StoryId;

/// What is wrong, and at which byte.
#[derive(Debug)]
pub struct Problem {
    pub at: usize,
    pub text: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WrittenScript {
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
    pub fn understand(self) -> Result<Script, Problem> {
        let stories =
            self.story.into_iter().map(|(id, story)| Ok((id, WrittenStory::understand(story)?)));
        Ok(Script {
            story: stories.collect::<Result<_, Problem>>()?,
            default: self.default.map(WrittenStory::understand).transpose()?,
        })
    }
}

impl WrittenStory {
    fn understand(written: Spanned<Self>) -> Result<StoryScript, Problem> {
        let at = written.span().start;
        let attempts = written
            .into_inner()
            .attempts()
            .map_err(|text| Problem { at, text: text.to_owned() })?;
        let mut attempts = attempts.into_iter().map(WrittenAttempt::understand);
        let empty =
            || Err(Problem { at, text: "`attempts` is empty; give at least one".to_owned() });
        Ok(StoryScript {
            first: attempts.next().unwrap_or_else(empty)?,
            further: attempts.collect::<Result<_, _>>()?,
        })
    }

    fn attempts(self) -> Result<Vec<WrittenAttempt>, &'static str> {
        let Self { steps, plain, init, read_prompt, attempts } = self;
        let has_manner = plain.or(init).or(read_prompt).is_some();
        match (steps, attempts) {
            (Some(steps), None) => Ok(vec![WrittenAttempt { steps, plain, init, read_prompt }]),
            (None, Some(_)) if has_manner => {
                Err("`plain`, `init` and `read_prompt` belong into each of the `attempts`")
            }
            (None, Some(attempts)) => Ok(attempts),
            (Some(_), Some(_)) => Err("give either `steps` or `attempts`, not both"),
            (None, None) => Err("`steps` is missing (or `attempts`, each with its own `steps`)"),
        }
    }
}

impl WrittenAttempt {
    fn understand(self) -> Result<Attempt, Problem> {
        Ok(Attempt {
            steps: understand_steps(self.steps)?,
            plain: self.plain.unwrap_or(false),
            init: self.init.unwrap_or(true),
            read_prompt: self.read_prompt.unwrap_or(true),
        })
    }
}

fn understand_steps(written: Vec<Spanned<Value>>) -> Result<Vec<Step>, Problem> {
    let mut steps: Vec<Step> = Vec::with_capacity(written.len());
    for value in written {
        let at = value.span().start;
        if steps.last().is_some_and(Step::ends_the_attempt) {
            let text = "this step would never play: the one before it ends the attempt".to_owned();
            return Err(Problem { at, text });
        }
        steps.push(understand_step(value.into_inner()).map_err(|text| Problem { at, text })?);
    }
    Ok(steps)
}

fn understand_step(value: Value) -> Result<Step, String> {
    match value {
        Value::String(word) => read_step(name_of_word(&word)?, Table::new()),
        Value::Table(table) => read_step(name_of_table(&table)?, table),
        _ => Err("a step is a table like { say = \"…\" } or a word like \"complete\"".to_owned()),
    }
}

fn read_step(action: &str, mut table: Table) -> Result<Step, String> {
    table.insert(TAG.to_owned(), Value::String(action.to_owned()));
    Step::deserialize(table)
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

impl From<toml::de::Error> for Problem {
    fn from(error: toml::de::Error) -> Self {
        let at = error.span().map_or(0, |span| span.start);
        Self { at, text: in_plain_words(error.message()) }
    }
}
