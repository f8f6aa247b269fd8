//! Messages between driver and supervisor: one JSON object per line.

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
pub enum SupervisorReport {
    Spawned {
        pid: i32,
    },
    SpawnFailed {
        error: String,
    },
    /// The agent itself has ended; its children may still run.
    Exited {
        exit: ProcessExit,
    },
    /// Nothing of its tree is left, except `survivors` of SIGKILL and `kept` daemons.
    Gone {
        ended: Vec<String>,
        kept: Vec<String>,
        survivors: Vec<String>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProcessExit {
    Code(i32),
    Signal(i32),
}
