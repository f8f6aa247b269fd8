//! Whole nights through the real dispatcher: random backlogs, agents, services and humans as fake
//! effects, and a clock that nobody waits for. The same seed is the same night.
//!
//! The bench plays thousands of them, the tests fewer.

mod attacks;
mod branch;
mod check;
mod dice;
mod effects;
mod human;
mod jobs;
mod night;
mod reply;
mod scene;
mod world;

pub use night::{Play, play};
