//! The grammar of PRD.json, with diagnostics.

mod dependencies;
mod depth;
pub mod diagnostic;
mod duplicates;
mod fields;
mod graph;
mod ids;
mod knots;
mod parse;
pub mod position;
pub(crate) mod raw;
mod render;
mod report;
mod schema;
mod signs;
mod spelling;
mod story;
mod syntax;
#[cfg(test)]
mod tests;

pub use diagnostic::{Diagnostic, Severity};
pub use parse::{MAX_BYTES, MAX_DEPTH, MAX_STORIES, Parsed, parse};
pub use position::{LineIndex, Position, position};
pub use render::{render, summary};
