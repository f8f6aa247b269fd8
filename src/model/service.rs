//! Faults of the service; they say nothing about the story.

use serde::{Deserialize, Serialize};

use crate::model::outcome::Outcome;

/// What is wrong with the service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "trouble", rename_all = "snake_case")]
pub enum ServiceFault {
    /// Seconds since the Unix epoch.
    Limit {
        resets_at: Option<i64>,
    },
    Outage,
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

    pub fn is_like(&self, other: &Self) -> bool {
        self.gravity() == other.gravity()
    }

    /// Waiting as long as for the other would be too short.
    pub fn is_graver_than(&self, other: &Self) -> bool {
        self.gravity() > other.gravity()
    }

    fn gravity(&self) -> u8 {
        match self {
            Self::Silence => 0,
            Self::Outage => 1,
            Self::Limit { .. } => 2,
            Self::Account => 3,
            Self::Setup => 4,
        }
    }
}
