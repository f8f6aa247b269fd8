//! What driver and supervisor say to each other: one JSON object per line.

use serde::{Deserialize, Serialize};

/// Driver → supervisor. End of file means: kill everything at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// SIGTERM, a grace, SIGKILL.
    Stop,
    /// SIGKILL.
    Kill,
}

/// Driver → supervisor, for a program whose standard input stays open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Input {
    Write(String),
    Close,
}

/// Supervisor → driver, in this order: one of the first two, `Exited`, `Gone`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Report {
    Spawned {
        pid: i32,
    },
    SpawnFailed {
        error: String,
    },
    /// The agent itself has ended; what it left behind may still run.
    Exited {
        exit: Exit,
    },
    /// Nothing is left of its tree, but for `survivors` that even SIGKILL did not end, and for
    /// what the human wants `kept`.
    Gone {
        ended: Vec<String>,
        kept: Vec<String>,
        survivors: Vec<String>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    Code(i32),
    Signal(i32),
}
