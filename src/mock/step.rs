//! One step of a script: what it may say, and how it is written.
//!
//! A step is a table named by its one action (`{ write = "a.txt", text = "…" }`)
//! or a single word (`"complete"`). Only shapes live here; nothing is done.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Deserializer, de::Error as _};

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
pub enum MockStep {
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
        tokens: MockTokens,
    },
    Model {
        model: String,
    },
    Retry {
        retry: Retried,
        times: Option<u32>,
    },
    Fail {
        fail: FailureClass,
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
pub struct MockTokens {
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

/// The failures the agent tries again before it gives up.
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
    #[serde(default)]
    pub holds_output: bool,
    /// Without the environment by which the driver could know it.
    #[serde(default)]
    pub clean_env: bool,
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

/// Many processes that outlive the agent.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tree {
    /// How many processes there are in it.
    pub tree: u32,
    /// None of them ends when it is only asked to.
    #[serde(default)]
    pub ignore_term: bool,
}

impl MockStep {
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
