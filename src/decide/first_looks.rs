//! Gates that run before a story's first attempt: without a change in the tree nothing else tells
//! whether the attempt turned them green.
//!
//! An attempt must not wait long for this, and a gate is not stopped halfway: so only gates that read
//! something and do nothing else.

use std::path::Path;

use crate::model::{Gate, StoryId};

use super::gate_files::Sight;
use super::recheck::is_each_story;
use super::shell::TextPlace;
use super::weigh::Gates;

const READERS: [&str; 14] = [
    "[", "cat", "cmp", "diff", "false", "grep", "head", "jq", "ls", "readlink", "stat", "tail",
    "test", "true",
];
/// What else a text for a shell can do: write, or run what it cannot be known to run.
const MORE: [&str; 5] = [">", "`", "$(", "<(", "<<"];

/// The story's own, and those for each story.
pub fn first_look<'a>(
    gates: &'a Gates,
    story: &StoryId,
    sight: Sight<'a>,
) -> impl Iterator<Item = &'a Gate> {
    let each = gates.all.iter().filter(move |gate| is_each_story(gate, sight));
    gates.of_story(story).iter().chain(each).filter(move |gate| only_reads(gate, sight.root))
}

fn only_reads(gate: &Gate, root: &Path) -> bool {
    let commands = TextPlace { root, here: Path::new("") }.of_gate(gate);
    let reads = |word: Option<&String>| word.is_some_and(|word| READERS.contains(&word.as_str()));
    let text = gate.to_string();
    !commands.is_empty()
        && !gate.fix
        && !MORE.iter().any(|more| text.contains(more))
        && commands.iter().all(|command| {
            reads(command.words.first()) && command.before.iter().all(|word| word == "!")
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::GateCommand;

    #[test]
    fn gates_that_only_read_run_before_the_first_attempt() {
        let program = |words: &[&str]| Gate {
            run: GateCommand::Program(words.iter().map(|word| (*word).to_owned()).collect()),
            ..Gate::shell("x")
        };
        for (gate, is_one) in [
            (Gate::shell("test -e ../served"), true),
            (Gate::shell("[ -s a ] && ! grep -q TODO a | head -1"), true),
            (program(&["grep", "-q", "x", "a"]), true),
            (Gate { fix: true, ..Gate::shell("test -e a") }, false),
            (Gate::shell("cargo test"), false),
            (Gate::shell("test -e a && ./check.sh"), false),
            (Gate::shell("cat a > b"), false),
            (Gate::shell("test $(make count) = 3"), false),
            (Gate::shell("sudo cat a"), false),
            (program(&["sh", "check.sh"]), false),
        ] {
            assert_eq!(only_reads(&gate, Path::new("/repo")), is_one, "{gate:?}");
        }
    }
}
