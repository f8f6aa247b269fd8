//! ralph.toml + environment + flags → one validated `Plan`.
//!
//! Flag over environment over file over default; each value knows where it came
//! from, so that an error can say which of them to change.

mod agent;
mod budget;
mod completion;
mod file;
mod limits;
mod memory;
mod permissions;
mod plan;
mod size;
mod staging;

pub use agent::{AgentKind, AgentSettings};
pub use budget::BudgetFlags;
pub use file::{FILE_NAME, FileError, SettingsFile};
pub use plan::{AgentChoice, Flags, Plan, PlanError};
