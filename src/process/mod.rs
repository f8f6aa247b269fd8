//! The only spawner.
//!
//! Theory of operation. Every agent runs below a supervisor of its own: a hidden
//! subcommand of this binary, in a session of its own, that adopts whatever the
//! agent leaves behind (a subreaper on Linux). The supervisor's standard input is
//! a socket to the driver: orders come in, reports go out, and its end is the life
//! line. When the driver dies, however it dies, the socket closes and the
//! supervisor kills everything below it.
//!
//! The agent writes straight into the driver's pipes; the supervisor lets go of
//! them as soon as the agent has them. A pipe's end of file is never waited for:
//! something the agent left behind may hold it open for hours.
//!
//! Nothing is left means: `wait` says that there are no children. Only when daemons
//! are there that the human wants kept, looking has to do. And when a supervisor was
//! killed together with its driver, the next run looks for what it left (`sweep`).

mod driver;
mod ending;
pub mod message;
#[cfg_attr(target_os = "linux", path = "linux.rs")]
#[cfg_attr(not(target_os = "linux"), path = "elsewhere.rs")]
mod platform;
pub mod supervisor;
pub mod sweep;
mod tree;

pub use driver::{Leader, Running, SpawnError, Spec, Supervisor, ordered};
pub use message::Order;
pub use tree::Keep;
