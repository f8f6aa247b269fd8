//! One step of a script: what it may say, and how it is written.
//!
//! A step is a table named by its one action (`{ write = "a.txt", text = "…" }`)
//! or a single word (`"complete"`). Only shapes live here; nothing is done.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Deserializer, de::Error as _};

use super::api_error::Retried;
use super::failure::Class;
use super::grandchild::Grandchild;
use super::scene::Scene;
use super::tree::Tree;

/// Steps that stand alone as a word.
pub const WORDS: &[&str] = &[
    "complete",
    "claim",
    "false_claim",
    "promise",
    "hang",
    "hang_after_result",
    "no_result",
    "hear",
];
/// Keys that name the action of a table.
pub const ACTIONS: &[&str] = &[
    "say",
    "write",
    "delete",
    "run",
    "sleep",
    "fail",
    "retry",
    "escalate",
    "claim",
    "hang",
    "grandchild",
    "tree",
    "exit",
    "raw",
    "stderr",
    "output",
    "subagent",
    "thinking",
    "denied",
    "cost",
    "turns",
    "tokens",
    "model",
    "echo_prompt",
];
/// Stands in the table for the action's name while it is read; no action has an empty name.
pub const TAG: &str = "";

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "", rename_all = "snake_case", deny_unknown_fields)]
pub enum Step {
    Say {
        say: String,
    },
    Thinking {
        thinking: String,
    },
    Subagent {
        subagent: String,
    },
    Escalate {
        escalate: Escalate,
    },
    Complete {},
    FalseClaim {},
    Claim {
        claim: Option<String>,
    },
    Promise {},
    Write {
        write: PathBuf,
        #[serde(default)]
        text: String,
        #[serde(default)]
        append: bool,
    },
    Delete {
        delete: PathBuf,
    },
    Run {
        run: String,
    },
    Denied {
        denied: String,
    },
    Sleep {
        #[serde(deserialize_with = "duration")]
        sleep: Duration,
    },
    Cost {
        cost: f64,
    },
    Turns {
        turns: u64,
    },
    Tokens {
        tokens: Tokens,
    },
    Model {
        model: String,
    },
    Retry {
        retry: Retried,
        times: Option<u32>,
    },
    Fail {
        fail: Class,
        #[serde(default = "an_hour", deserialize_with = "duration")]
        resets_in: Duration,
        retries: Option<u32>,
    },
    Exit {
        exit: u8,
        #[serde(default)]
        result: bool,
    },
    NoResult {},
    Hang {
        hang: Option<Hang>,
    },
    HangAfterResult {},
    Grandchild(Grandchild),
    Tree(Tree),
    Raw {
        raw: String,
    },
    Stderr {
        stderr: String,
    },
    Output {
        output: Flood,
    },
    EchoPrompt {
        echo_prompt: bool,
    },
    /// Waits for a message to the running agent, and says it.
    Hear {},
}

/// What the model is said to have read and written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Tokens {
    pub input: u64,
    pub output: u64,
    pub cache_read: u64,
    pub cache_write: u64,
}

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
    /// So many megabytes in many lines.
    Mb(u64),
    /// So many megabytes in one line.
    LineMb(u64),
}

impl Step {
    /// What the agent does without a script.
    pub fn unscripted(scene: &Scene) -> Vec<Self> {
        let Scene { story, attempt, stages, .. } = scene;
        let path = format!("mock/{story}.md");
        let text = format!("# {story}\n\nWritten by ralph's mock agent, attempt {attempt}.\n");
        let claim = match stages.is_empty() {
            true => format!("Task {story} complete"),
            false => stages.join("\n"),
        };
        vec![
            Self::Say { say: format!("Working on {story}.") },
            Self::Write { write: PathBuf::from(&path), text, append: false },
            Self::Say { say: format!("Wrote {path}.\n\n{claim}") },
        ]
    }

    pub fn ends_the_attempt(&self) -> bool {
        matches!(
            self,
            Self::Fail { .. }
                | Self::Exit { .. }
                | Self::NoResult {}
                | Self::Hang { .. }
                | Self::HangAfterResult {}
        )
    }

    pub fn ignores_term(&self) -> bool {
        matches!(self, Self::Hang { hang: Some(Hang::IgnoreTerm) })
    }
}

fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(deserializer)?;
    let signed = text.parse::<jiff::SignedDuration>().ok();
    signed.and_then(|d| Duration::try_from(d).ok()).ok_or_else(|| {
        D::Error::custom(format!(
            "`{text}` is no length of time; write it like 200ms, 2s, 1m or 1h"
        ))
    })
}

fn an_hour() -> Duration {
    Duration::from_secs(3600)
}
