//! ralph.toml, environment and flags → one validated `RunSettings`.
//!
//! `declared` has one declaration for each setting; flags, file, environment and
//! the tables in the documentation are made of it.

mod agent;
mod declared;
mod file;
mod kind;
mod setting;
#[cfg(test)]
mod tests;

pub use agent::AgentChoice;
pub use declared::{Flags, RunSettings};
pub use file::FILE_NAME;
pub use kind::SettingChoice;
pub use setting::{FlagValues, Origin, Setting, SettingsError};
