//! Signals in an agent's text: claim, promise, escalation, hand-off.
//!
//! Owns their grammar and where in a text they count. It reads only the agent's prose, no
//! tool output and no files, and decides nothing. A doubtful claim or promise is ignored; a
//! doubtful escalation or hand-off counts.

mod block;
mod claim;
mod decoration;
mod escalation;
mod markdown;
mod retraction;
mod scanner;
#[cfg(test)]
mod tests;

pub use claim::ticks_task_complete;
pub use scanner::{Scanner, can_be_a_line, can_be_promised};
