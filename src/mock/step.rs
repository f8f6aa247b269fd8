//! One step of a script: its shape, and how it is written.
//!
//! A step is a table named by its one action (`{ write = "a.txt", text = "…" }`)
//! or a single word (`"complete"`). Nothing is done here.

use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use toml::{Table, Value};

use crate::model::Tokens;

/// Steps that are a single word.
#[rustfmt::skip]
pub const WORDS: &[&str] = &[
    "complete", "claim", "false_claim", "promise", "hang", "hang_after_result", "no_result", "hear",
];
/// Keys that name the action of a table.
#[rustfmt::skip]
pub const ACTIONS: &[&str] = &[
    "say", "write", "delete", "run", "sleep", "fail", "retry", "escalate", "claim", "hang",
    "grandchild", "tree", "exit", "raw", "stderr", "output", "subagent", "thinking", "denied",
    "cost", "turns", "tokens", "model", "echo_prompt",
];

const NOT_A_STEP: &str = "a step is a table like { say = \"…\" } or a word like \"complete\"";

/// The tag is the action's name; it has a key that no action has.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "", rename_all = "snake_case", deny_unknown_fields)]
pub enum MockStep {
    /// The main agent's text.
    Say { say: String },
    /// A thought, which is not to be acted on.
    Thinking { thinking: String },
    /// Text of a sub-agent.
    Subagent { subagent: String },
    /// A question to the human.
    Escalate { escalate: Escalate },
    /// Claims the story.
    Complete {},
    /// Claims the story, in scripts in which no work was done.
    FalseClaim {},
    /// Claims the story, or another one.
    Claim { claim: Option<String> },
    /// Promises that the whole backlog is done.
    Promise {},
    /// Writes a file, and its folders.
    Write { write: PathBuf, text: Option<String>, append: Option<bool> },
    /// Deletes a file.
    Delete { delete: PathBuf },
    /// Runs a shell command, which may fail.
    Run { run: String },
    /// A tool call that was not allowed.
    Denied { denied: String },
    /// Waits.
    Sleep { sleep: TimeSpan },
    /// The dollars of the result.
    Cost { cost: f64 },
    /// The turns of the result.
    Turns { turns: u64 },
    /// The tokens of the result.
    Tokens { tokens: Tokens },
    /// The model of the result.
    Model { model: String },
    /// Events of retries, without a failure.
    Retry { retry: Retried, times: Option<u32> },
    /// Fails as Claude Code does.
    Fail { fail: FailureClass, resets_in: Option<TimeSpan>, retries: Option<u32> },
    /// Exits with this code, perhaps after a result.
    Exit { exit: u8, result: Option<bool> },
    /// Exits without a result.
    NoResult {},
    /// Silent until it is killed.
    Hang { hang: Option<Hang> },
    /// Has a result and does not exit.
    HangAfterResult {},
    /// A process that outlives the agent.
    Grandchild(Grandchild),
    /// Many processes that outlive the agent.
    Tree { tree: u32, ignore_term: Option<bool> },
    /// A line as it is.
    Raw { raw: String },
    /// A line on standard error.
    Stderr { stderr: String },
    /// Megabytes of tool results.
    Output { output: Flood },
    /// The prompt as plain text.
    EchoPrompt { echo_prompt: bool },
    /// Waits for a message to the running agent, and says it.
    Hear {},
}

/// Written like `200ms`.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub struct TimeSpan(pub Duration);

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Escalate {
    #[serde(rename = "type")]
    pub kind: EscalateKind,
    pub summary: String,
    #[serde(default)]
    pub context: String,
    #[serde(default)]
    pub options: Vec<String>,
    pub question: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EscalateKind {
    Stuck,
    Deviation,
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Hang {
    IgnoreTerm,
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Flood {
    /// Megabytes in many lines.
    Mb(u64),
    /// Megabytes in one line.
    LineMb(u64),
}

/// The failures that the agent retries before it gives up.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Retried {
    RateLimit,
    Overloaded,
    Server,
    Connection,
    Login,
}

/// The ways a real agent fails.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailureClass {
    UsageLimit,
    RateLimit,
    Overloaded,
    Server,
    Connection,
    Login,
    Billing,
    PromptTooLong,
    ModelNotFound,
    TurnLimit,
    Budget,
    Refusal,
    Error,
}

/// A process that outlives the agent.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grandchild {
    pub grandchild: Kinship,
    pub command: Option<String>,
    pub pid_file: Option<PathBuf>,
    /// Keeps the agent's standard output open.
    pub holds_output: Option<bool>,
    /// Without the environment by which the driver could recognize it.
    pub clean_env: Option<bool>,
}

/// How a process that is left behind is related to the agent.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kinship {
    /// A child in the agent's own process group and session.
    Plain,
    /// A child in a session of its own.
    Setsid,
    /// In a session of its own, and its parent is gone.
    DoubleFork,
}

impl MockStep {
    pub fn read(written: Value) -> Result<Self, String> {
        let (action, mut table) = match written {
            Value::String(word) => (name_of_word(&word)?, Table::new()),
            Value::Table(table) => (name_of_table(&table)?, table),
            _ => return Err(NOT_A_STEP.to_owned()),
        };
        table.insert(String::new(), Value::String(action.to_owned()));
        Self::deserialize(table)
            .map_err(|error| format!("`{action}`: {}", in_plain_words(error.message())))
    }

    pub fn ends_the_attempt(&self) -> bool {
        matches!(self, Self::Fail { .. } | Self::Exit { .. } | Self::NoResult {})
            || matches!(self, Self::Hang { .. } | Self::HangAfterResult {})
    }
}

fn name_of_word(word: &str) -> Result<&'static str, String> {
    let known = WORDS.iter().copied().find(|known| *known == word);
    known.ok_or_else(|| match ACTIONS.contains(&word) {
        true => format!("`{word}` needs a value: {{ {word} = … }}"),
        false => unknown(word, WORDS),
    })
}

fn name_of_table(table: &Table) -> Result<&'static str, String> {
    let actions: Vec<&str> = ACTIONS.iter().copied().filter(|a| table.contains_key(*a)).collect();
    match (actions.as_slice(), table.keys().next()) {
        ([action], _) => Ok(action),
        ([one, other, ..], _) => {
            Err(format!("a step has one action; split `{one}` and `{other}` into two steps"))
        }
        ([], Some(word)) if WORDS.contains(&word.as_str()) => {
            Err(format!("`{word}` takes no value; write it as \"{word}\""))
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
        None => format!("unknown step `{name}`; expected one of {}", known.join(", ")),
    }
}

/// Replaces the words of serde by those of TOML.
pub fn in_plain_words(message: &str) -> String {
    message.replace("unknown variant", "unknown value").replace(" field `", " key `")
}

impl TryFrom<String> for TimeSpan {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let signed = text.parse::<jiff::SignedDuration>().ok();
        let span = signed.and_then(|signed| Duration::try_from(signed).ok());
        span.map(Self)
            .ok_or_else(|| format!("invalid duration `{text}`; write it like 200ms, 2s, 1m or 1h"))
    }
}
