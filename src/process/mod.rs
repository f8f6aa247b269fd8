//! Starts processes and ends whole process trees, with proof.
//!
//! Theory of operation. Every agent and gate runs below its own supervisor: a hidden
//! subcommand of this binary, in its own session, that adopts orphans (a subreaper on
//! Linux). The supervisor's standard input is a socket to the driver for orders and
//! reports. When the driver dies, the socket closes and the supervisor kills everything
//! below it.
//!
//! The agent writes straight into the driver's pipes; the supervisor closes its own ends
//! as soon as the agent has them. The driver never waits for a pipe's end of file: an
//! orphan may hold it open for hours.
//!
//! `wait` reporting no children proves that nothing is left. With kept daemons the process table is
//! scanned instead. If a supervisor was killed together with its driver, the next run ends what it
//! left (`sweep`).

mod driver;
pub mod pump;
pub mod supervised;
pub mod supervisor;
pub mod sweep;
mod tree;

use std::ffi::OsString;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::model::Exit;

pub use driver::{SpawnError, Supervisor};

pub const NO_INPUT: &str = "/dev/null";

/// A process to start.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Spec {
    pub program: OsString,
    pub args: Vec<OsString>,
    pub dir: PathBuf,
    /// Set, or removed when None. Everything else is inherited.
    pub env: Vec<(OsString, Option<OsString>)>,
    /// A file for its standard input, or `NO_INPUT`; None: it stays open for messages.
    pub input: Option<PathBuf>,
}

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
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum InputOrder {
    Write(String),
    Close,
}

/// Supervisor → driver, in this order: one of the first two, `Exited`, `Gone`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum SupervisorReport {
    /// The agent runs.
    Spawned { pid: i32 },
    /// The agent could not be started.
    SpawnFailed { error: String },
    /// The agent itself has ended; its children may still run.
    Exited { exit: Exit },
    /// Nothing of its tree is left, except `survivors` of SIGKILL and `kept` daemons.
    Gone { ended: Vec<String>, kept: Vec<String>, survivors: Vec<String> },
}

/// Driver and supervisor send one JSON value per line.
fn json_line(message: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    Ok(line)
}
