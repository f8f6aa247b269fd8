//! What an iteration is at, judged by what its agent does.
//!
//! A guess for people who look on: nothing is decided by it.

use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// It has not changed anything yet.
    Planning,
    Implementing,
    /// Its tests or ralph's gates run.
    Testing,
    /// It looks at its own changes, or ralph weighs its claim.
    Reviewing,
    /// Over, with something left for the next one.
    Handoff,
    /// Its story is closed.
    Complete,
}

const EDITORS: [&str; 5] = ["Edit", "MultiEdit", "Write", "NotebookEdit", "Update"];
/// Words of commands that try something out.
const TRIES: [&str; 18] = [
    "test", "tests", "check", "clippy", "lint", "eslint", "pytest", "jest", "vitest", "mocha",
    "rspec", "phpunit", "ctest", "nextest", "tsc", "mypy", "ruff", "tox",
];
/// git's ways of showing what was done.
const LOOKS: [&str; 4] = ["diff", "status", "show", "log"];

impl Phase {
    /// `doing` is one line such as `Edit src/a.rs` or `Bash cargo test`. What fits nothing, reading
    /// for example, leaves the phase as it is.
    pub fn after(self, doing: &str) -> Self {
        let (tool, subject) = doing.split_once(' ').unwrap_or((doing, ""));
        if EDITORS.contains(&tool) {
            return Self::Implementing;
        }
        if tool != "Bash" {
            return self;
        }
        let has_begun = self != Self::Planning;
        if words(subject).any(|word| TRIES.contains(&word)) {
            Self::Testing
        } else if has_begun && looks_at_changes(subject) {
            Self::Reviewing
        } else {
            self
        }
    }
}

fn words(command: &str) -> impl Iterator<Item = &str> {
    command.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty())
}

fn looks_at_changes(command: &str) -> bool {
    let mut words = words(command).skip_while(|word| *word != "git").skip(1);
    words.any(|word| LOOKS.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_agent_does_tells_the_phase() {
        use Phase::{Implementing, Planning, Reviewing, Testing};
        for (before, doing, after) in [
            (Planning, "Read src/a.rs", Planning),
            (Planning, "Grep test", Planning),
            (Planning, "Bash ls -la", Planning),
            (Planning, "Bash git log --oneline", Planning),
            (Planning, "Edit src/a.rs", Implementing),
            (Planning, "Write src/tests.rs", Implementing),
            (Planning, "Bash cargo test", Testing),
            (Implementing, "Read src/a.rs", Implementing),
            (Implementing, "Bash mkdir x", Implementing),
            (Implementing, "Bash cd web && npm run test:unit", Testing),
            (Implementing, "Bash python -m pytest -q", Testing),
            (Implementing, "Bash cat latest.txt", Implementing),
            (Testing, "Bash ./mvnw -q test", Testing),
            (Testing, "MultiEdit src/a.rs", Implementing),
            (Testing, "Bash git diff", Reviewing),
            (Implementing, "Bash git -C sub status", Reviewing),
            (Implementing, "Bash diff a b", Implementing),
            (Reviewing, "Edit src/a.rs", Implementing),
            (Reviewing, "retry 1 of 10: overloaded", Reviewing),
            (Testing, "", Testing),
            (Testing, "Bash", Testing),
        ] {
            assert_eq!(before.after(doing), after, "{before:?} {doing}");
        }
    }
}
