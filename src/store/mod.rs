//! What lies on the disk.
//!
//! The journal, what is remembered, PRD.json's exact-text editor, atomic files,
//! locks, logs and the working folder. Knows nothing of agents, git or terminals.

pub mod atomic;
pub mod books;
pub mod disk;
pub mod instructions;
pub mod journal;
pub mod lock;
pub mod log;
pub mod memory;
pub mod prd;
pub mod room;
mod rotate;
pub mod scratchpad;
pub mod trust;
pub mod wishes;
