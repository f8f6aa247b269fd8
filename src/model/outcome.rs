//! How an attempt's process ended. The agent's backend decides the class.

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "class", rename_all = "snake_case")]
pub enum Outcome {
    /// Exit 0 and a result without an error. Says nothing about the work.
    Completed,
    NoResult {
        detail: String,
    },
    /// `resets_at` is in seconds since the Unix epoch.
    UsageLimit {
        resets_at: Option<i64>,
        detail: String,
    },
    Overloaded {
        detail: String,
    },
    ServerError {
        detail: String,
    },
    Connection {
        detail: String,
    },
    Login {
        detail: String,
    },
    Billing {
        detail: String,
    },
    PromptTooLong {
        detail: String,
    },
    ModelNotFound {
        detail: String,
    },
    TurnLimit,
    IterationBudget,
    Refusal {
        detail: String,
    },
    /// The agent reported an error that fits no other class.
    AgentError {
        detail: String,
    },
    SpawnFailed {
        detail: String,
    },
    FirstEventTimeout,
    IdleTimeout,
    IterationTimeout,
    /// It printed output without progress for too long.
    Stuck,
    EndedByUs,
    KilledBySomeoneElse {
        signal: i32,
    },
}

/// How the process exited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exit {
    Code(i32),
    Signal(i32),
    /// It never started.
    NotSpawned {
        error: String,
    },
    /// Unknown: its supervisor is gone.
    Unknown,
}

/// Why we ended it, if we did.
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
            Self::Billing { detail } => format!("billing: {detail}"),
            Self::PromptTooLong { detail } => format!("the agent refused the prompt: {detail}"),
            Self::ModelNotFound { detail } => format!("no such model: {detail}"),
            Self::TurnLimit => "the agent used all of its turns".to_owned(),
            Self::IterationBudget => "the iteration's budget is used up".to_owned(),
            Self::Refusal { detail } => format!("the model refused: {detail}"),
            Self::SpawnFailed { detail } => format!("the agent could not be started: {detail}"),
            Self::FirstEventTimeout => "the agent printed nothing".to_owned(),
            Self::IdleTimeout => "the agent went silent".to_owned(),
            Self::IterationTimeout => "the iteration took too long".to_owned(),
            Self::Stuck => "the agent made no progress for too long and was ended".to_owned(),
            Self::EndedByUs => "ended by ralph".to_owned(),
            Self::KilledBySomeoneElse { signal } => {
                format!("the agent was killed from outside (signal {signal})")
            }
        }
    }

    /// The class alone, to tell errors apart.
    pub fn class(&self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::NoResult { .. } => "no_result",
            Self::UsageLimit { .. } => "usage_limit",
            Self::Overloaded { .. } => "overloaded",
            Self::ServerError { .. } => "server_error",
            Self::Connection { .. } => "connection",
            Self::Login { .. } => "login",
            Self::Billing { .. } => "billing",
            Self::PromptTooLong { .. } => "prompt_too_long",
            Self::ModelNotFound { .. } => "model_not_found",
            Self::TurnLimit => "turn_limit",
            Self::IterationBudget => "iteration_budget",
            Self::Refusal { .. } => "refusal",
            Self::AgentError { .. } => "agent_error",
            Self::SpawnFailed { .. } => "spawn_failed",
            Self::FirstEventTimeout => "first_event_timeout",
            Self::IdleTimeout => "idle_timeout",
            Self::IterationTimeout => "iteration_timeout",
            Self::Stuck => "stuck",
            Self::EndedByUs => "ended_by_us",
            Self::KilledBySomeoneElse { .. } => "killed_by_someone_else",
        }
    }
}
