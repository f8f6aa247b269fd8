//! A world of its own for each test.

pub mod always;
pub mod busy;
pub mod daemon;
mod memory;
mod prd;
pub mod pty;
pub mod world;

pub use daemon::{Daemon, Sleeper};
pub use prd::Prd;
pub use world::World;
