//! What each command does. Nothing here knows clap.

mod approvals;
mod check;
mod cost;
mod error;
mod head;
mod held;
mod held_backlog;
mod in_force;
mod init;
mod lost_journal;
mod mark;
mod place;
mod preflight;
mod prompt;
mod run;
mod session;
mod setup;
mod snapshots;
mod status;
mod terminal;
mod trust;
mod undo;
mod watch;

pub use check::check;
pub use cost::{CostFormat, CostGrouping, cost};
pub use error::CommandError;
pub use init::init;
pub use mark::{StoryMark, mark, nudge};
pub use prompt::prompt;
pub use run::{dry_run, run};
pub use snapshots::{checkpoint, diff, log, restore};
pub use status::status;
pub use terminal::print;
pub use trust::trust;
pub use undo::undo;
