//! The question whether to work beside uncommitted edits.

use std::time::Duration;

use super::confirm::Doubt;
use super::menu::TerminalHuman;
use crate::engine::ports::Asked;

impl TerminalHuman {
    /// One file per line.
    pub fn ask_about_edits(&self, files: &str, patience: Duration) -> Result<bool, Asked> {
        let doubt = Doubt {
            heading: "Uncommitted edits",
            summary: "Work beside uncommitted edits of tracked files?",
            facts: files,
            means: "They would stay in place and out of the commits.",
            no: ('s', "stop, to commit or stash them first"),
            yes: ('g', "go on, as with --allow-dirty"),
        };
        self.confirm(&doubt, patience)
    }
}
