//! What each command does. Nothing here knows clap.

mod check;
mod cost;
mod dry_run;
mod error;
mod init;
mod mark;
mod place;
mod preflight;
mod prompt;
mod run;
mod session;
mod snapshots;
mod status;
mod terminal;
mod trust;
mod undo;

pub use check::check;
pub use cost::{CostFormat, CostGrouping, cost};
pub use dry_run::dry_run;
pub use error::CommandError;
pub use init::init;
pub use mark::{StoryMark, mark, nudge};
pub use place::system_clock;
pub use prompt::prompt;
pub use run::{RunOptions, run};
pub use snapshots::{checkpoint, diff, log, restore};
pub use status::status;
pub use terminal::print;
pub use trust::trust;
pub use undo::undo;
