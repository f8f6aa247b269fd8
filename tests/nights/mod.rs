//! Whole nights on the core alone: random backlogs, agents, services and humans, and a clock that
//! nobody waits for. The same seed is the same night.
//!
//! The bench plays a thousand of them, the tests fewer.

mod check;
mod dice;
mod night;
mod reply;
mod scene;

pub use night::play;
