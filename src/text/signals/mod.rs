//! Signals in an agent's text: claim, promise, escalation, hand-off.
//!
//! Owns their grammar and where in a text they count. It reads only the agent's prose, no
//! tool output and no files, and decides nothing. A doubtful claim or promise is ignored; a
//! doubtful escalation or hand-off counts.

mod bounded;
mod claim;
mod dressing;
mod escalation;
mod fields;
mod find;
mod handoff;
mod options;
mod place;
mod promise;
mod retraction;
mod scanner;
mod signs;
mod vocabulary;

#[cfg(test)]
mod corpus;
#[cfg(test)]
mod escalation_tests;
#[cfg(test)]
mod handoff_tests;
#[cfg(test)]
mod signs_tests;
#[cfg(test)]
mod tests;

pub use scanner::Scanner;
pub use signs::{can_be_a_line, can_be_promised, ticks_task_complete};
