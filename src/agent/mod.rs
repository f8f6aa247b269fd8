//! Agents: how each is started, and one normalised stream of what it says.
//!
//! Bytes of an agent's output go through `lines` (bounded), `decode` (facts of
//! Claude's stream-json, or plain text; told apart by themselves) and end in a
//! `Reading`: the signals of the main agent's own text and the facts from which
//! `core::outcome` makes a class.

mod background;
mod claude;
pub mod command;
mod consumption;
pub mod decode;
pub mod echo;
pub mod lines;
pub mod reading;
mod shallow;
mod stream_json;

pub use command::{Agent, AgentError, GIT_PLACES, Launch, message};
pub use reading::Reading;
