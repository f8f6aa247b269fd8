//! The question whether what the repository's files name may be run.

use std::time::Duration;

use super::confirm::Doubt;
use super::menu::TerminalHuman;
use crate::engine::ports::Asked;

impl TerminalHuman {
    /// `texts` are shown as they are; control characters in them have been made visible.
    pub fn ask_trust(&self, texts: &str, patience: Duration) -> Result<bool, Asked> {
        let doubt = Doubt {
            heading: "Trust",
            summary: "May this repository's files decide what runs?",
            facts: texts,
            means: "You are asked once for each text, and again when one changes.",
            no: ('n', "no, stop here"),
            yes: ('y', "yes, I have read it and accept it"),
        };
        self.confirm(&doubt, patience)
    }

    /// Whether these commands shall decide what is done.
    pub fn ask_gates(&self, commands: &str, patience: Duration) -> Result<bool, Asked> {
        let doubt = Doubt {
            heading: "Gates",
            summary: "Shall a story count as done only when these pass?",
            facts: commands,
            means: "They run in the work tree when an agent says that it is done. ralph.toml can \
                    have others at any time.",
            no: ('n', "no gates now"),
            yes: ('y', "yes, write them to ralph.toml"),
        };
        self.confirm(&doubt, patience)
    }
}
