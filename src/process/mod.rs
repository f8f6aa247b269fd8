//! Starts processes, and proves that whole process trees are gone.
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
//! The proof that nothing is left is `wait` reporting no children. Only with kept daemons
//! the process table has to be scanned. If a supervisor was killed together with its
//! driver, the next run ends what it left (`sweep`).

mod driver;
mod ending;
pub mod message;
#[cfg_attr(target_os = "linux", path = "linux.rs")]
#[cfg_attr(not(target_os = "linux"), path = "elsewhere.rs")]
mod platform;
pub mod pump;
pub mod supervisor;
pub mod sweep;
mod tree;

pub use driver::{Running, SpawnError, Spec, Supervisor};
pub use message::{Order, ProcessExit};
pub use tree::KeepList;
