//! What lies on the disk.
//!
//! The journal, PRD.json's exact-text editor, atomic files, locks and the working
//! folder. Knows nothing of agents, git or terminals.

pub mod atomic;
pub mod journal;
pub mod lock;
pub mod prd;
pub mod room;
