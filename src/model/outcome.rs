//! How an attempt ended: the process, the service, the verdict.

use serde::{Deserialize, Serialize};

use super::question::Escalation;

/// How an attempt's process ended. The agent's backend decides the class.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "class", rename_all = "snake_case")]
pub enum Outcome {
    /// Exit 0 and a result without an error. Says nothing about the work.
    Completed,
    /// The agent ended without a result.
    NoResult { detail: String },
    /// The account's limit is reached. `resets_at` is in seconds since the Unix epoch.
    UsageLimit { resets_at: Option<i64>, detail: String },
    /// The service refused because of its load.
    Overloaded { detail: String },
    /// The service failed.
    ServerError { detail: String },
    /// The service could not be reached.
    Connection { detail: String },
    /// The agent is not logged in.
    Login { detail: String },
    /// The account cannot pay.
    Billing { detail: String },
    /// The prompt does not fit into the model's context.
    PromptTooLong { detail: String },
    /// The model does not exist for this account.
    ModelNotFound { detail: String },
    /// The agent used all of its turns.
    TurnLimit,
    /// The agent used up the cost limit of the iteration.
    IterationBudget,
    /// The model refused to continue.
    Refusal { detail: String },
    /// The agent reported an error that fits no other class.
    AgentError { detail: String },
    /// The process could not be started.
    SpawnFailed { detail: String },
    /// The agent printed nothing.
    FirstEventTimeout,
    /// The agent stopped printing.
    IdleTimeout,
    /// The iteration took too long.
    IterationTimeout,
    /// It printed output without progress for too long.
    Stuck,
    /// ralph ended it for a reason of the run.
    EndedByUs,
    /// A signal that ralph did not send killed it.
    KilledBySomeoneElse { signal: i32 },
}

/// How a process exited.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// By itself.
    Code(i32),
    /// Killed by a signal.
    Signal(i32),
    /// It never started.
    NotSpawned { error: String },
    /// Unknown: its supervisor is gone.
    #[default]
    Unknown,
}

/// Why ralph ended it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndedBy {
    Human,
    /// It had a result but did not exit.
    AfterResult,
    /// It kept retrying what cannot succeed.
    HopelessRetry,
    FirstEventTimeout,
    IdleTimeout,
    IterationTimeout,
    Stuck,
}

impl Outcome {
    /// What happened, in a few words.
    pub fn describe(&self) -> String {
        match self {
            Self::Completed => "the agent finished".to_owned(),
            Self::NoResult { detail } | Self::AgentError { detail } if detail.is_empty() => {
                "the agent ended without a result".to_owned()
            }
            Self::NoResult { detail } => detail.clone(),
            Self::AgentError { detail } => format!("the agent reported an error: {detail}"),
            Self::UsageLimit { detail, .. } => format!("usage limit: {detail}"),
            Self::Overloaded { detail } => format!("the service is overloaded: {detail}"),
            Self::ServerError { detail } => format!("the service failed: {detail}"),
            Self::Connection { detail } => format!("no connection to the service: {detail}"),
            Self::Login { detail } => format!("the agent is not logged in: {detail}"),
            Self::Billing { detail } => format!("billing problem: {detail}"),
            Self::PromptTooLong { detail } => format!("the prompt is too long: {detail}"),
            Self::ModelNotFound { detail } => format!("no such model: {detail}"),
            Self::TurnLimit => "the agent used all of its turns".to_owned(),
            Self::IterationBudget => "the iteration's budget is used up".to_owned(),
            Self::Refusal { detail } => format!("the model refused: {detail}"),
            Self::SpawnFailed { detail } => format!("the agent could not be started: {detail}"),
            Self::FirstEventTimeout => "the agent printed nothing".to_owned(),
            Self::IdleTimeout => "the agent stopped printing".to_owned(),
            Self::IterationTimeout => "the iteration took too long".to_owned(),
            Self::Stuck => "the agent made no progress for too long and was ended".to_owned(),
            Self::EndedByUs => "ralph ended the agent".to_owned(),
            Self::KilledBySomeoneElse { signal } => {
                format!("the agent was killed by signal {signal}, not by ralph")
            }
        }
    }

    /// The class alone, as it is stored, to tell errors apart.
    pub fn class(&self) -> String {
        let stored = serde_json::to_value(self).unwrap_or_default();
        stored["class"].as_str().unwrap_or_default().to_owned()
    }
}

/// A failure of the service; it says nothing about the story.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "trouble", rename_all = "snake_case")]
pub enum ServiceFault {
    /// The account's usage limit; `resets_at` is in seconds since the Unix epoch.
    Limit { resets_at: Option<i64> },
    /// The service is overloaded, failing or not reachable.
    Outage,
    /// The agent printed nothing.
    Silence,
    /// Login or billing: the next story would fail too.
    Account,
    /// The agent cannot be started, or not with this model.
    Setup,
}

impl ServiceFault {
    pub fn of(outcome: &Outcome) -> Option<Self> {
        Some(match outcome {
            Outcome::UsageLimit { resets_at, .. } => Self::Limit { resets_at: *resets_at },
            Outcome::Overloaded { .. }
            | Outcome::ServerError { .. }
            | Outcome::Connection { .. } => Self::Outage,
            Outcome::FirstEventTimeout => Self::Silence,
            Outcome::Login { .. } | Outcome::Billing { .. } => Self::Account,
            Outcome::ModelNotFound { .. } | Outcome::SpawnFailed { .. } => Self::Setup,
            _ => return None,
        })
    }

    /// A graver fault needs a longer wait.
    pub fn gravity(&self) -> u8 {
        match self {
            Self::Silence => 0,
            Self::Outage => 1,
            Self::Limit { .. } => 2,
            Self::Account => 3,
            Self::Setup => 4,
        }
    }
}

/// The result of an attempt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Verdict {
    /// It claims the story; the evidence decides.
    Done,
    /// The agent needs the human.
    Escalated { escalation: Escalation },
    /// Something changed, no claim yet: continue with the same story.
    Progress,
    /// It failed. Equal fingerprints are the same error.
    Failed { error: String, fingerprint: String },
    /// The service failed; it says nothing about the story.
    NotTheStory {
        #[serde(rename = "trouble")]
        fault: ServiceFault,
        error: String,
    },
    /// The prompt was too long for the agent.
    PromptTooLong { error: String },
    /// The human stopped it; it says nothing about the story.
    Interrupted,
}

impl Verdict {
    /// Neither the service, nor the prompt's length, nor the human ended it.
    pub fn is_about_the_work(&self) -> bool {
        !matches!(self, Self::NotTheStory { .. } | Self::PromptTooLong { .. } | Self::Interrupted)
    }
}

/// The result of an iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum IterationResult {
    /// It claims its story; the claim is not decided yet.
    Claimed,
    Closed,
    Rejected,
    Progress,
    Escalated,
    Failed,
    PromptTooLong,
    ServiceTrouble,
    Interrupted,
    /// ralph itself ended before the agent's end was recorded.
    CutOff,
}

impl IterationResult {
    pub fn of(verdict: &Verdict) -> Self {
        match verdict {
            Verdict::Done => Self::Claimed,
            Verdict::Progress => Self::Progress,
            Verdict::Escalated { .. } => Self::Escalated,
            Verdict::Failed { .. } => Self::Failed,
            Verdict::NotTheStory { .. } => Self::ServiceTrouble,
            Verdict::PromptTooLong { .. } => Self::PromptTooLong,
            Verdict::Interrupted => Self::Interrupted,
        }
    }

    /// As programs read it.
    pub fn word(self) -> String {
        let stored = serde_json::to_value(self).unwrap_or_default();
        stored.as_str().unwrap_or_default().to_owned()
    }

    pub fn is_failure(self) -> bool {
        matches!(self, Self::Failed | Self::Rejected | Self::PromptTooLong)
    }

    /// Neither the service nor the human ended it.
    pub fn counts_for_health(self) -> bool {
        !matches!(self, Self::ServiceTrouble | Self::Interrupted | Self::CutOff)
    }
}
