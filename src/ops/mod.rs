//! What each command does. Nothing here knows clap.

mod accounts;
mod applied;
mod asking;
mod check;
mod cost;
mod diff;
mod dry_run;
mod error;
mod init;
mod log;
mod mark;
mod permissions;
mod place;
mod preflight;
mod prompt;
mod restore;
mod run;
mod session;
mod status;
mod trust;
mod undo;

use std::io;
use std::io::Write;

pub use check::check;
pub use cost::{CostFormat, CostGrouping, CostQuery, cost};
pub use diff::diff;
pub use dry_run::dry_run;
pub use error::CommandError;
pub use init::init;
pub use log::log;
pub use mark::{StoryMark, mark, nudge};
pub use place::system_clock;
pub use prompt::{PromptQuery, prompt};
pub use restore::{checkpoint, restore};
pub use run::{RunOptions, run};
pub use status::status;
pub use trust::trust;
pub use undo::undo;

/// Data goes to standard output; a reader that has gone is no error.
pub fn print(text: &str) -> Result<(), CommandError> {
    print_bytes(text.as_bytes())
}

fn print_bytes(bytes: &[u8]) -> Result<(), CommandError> {
    let mut out = io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(CommandError::Pipe),
        result => Ok(result?),
    }
}
