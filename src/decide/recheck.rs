//! Gates that run again for closed stories: for whom, and in which order.

use std::path::{Path, PathBuf};

use crate::decide::gate_files::{GateFiles, Sight};
use crate::model::{Gate, GateCommand, StoryId};

/// The variable that tells a gate which story it runs for.
pub const STORY: &str = "RALPH_STORY";

/// A gate that is about to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueGate {
    pub gate: Gate,
    /// The closed story that it is run again for.
    pub guards: Option<StoryId>,
    /// How long it took when it ran last.
    pub last_ms: Option<u64>,
}

/// Whether a gate is about one story at a time: as it says itself, else if its command or a file that
/// decides what it runs mentions the story.
pub fn is_each_story(gate: &Gate, sight: Sight<'_>) -> bool {
    gate.each_story.unwrap_or_else(|| {
        let in_command = match &gate.run {
            GateCommand::Shell(command) => command.contains(STORY),
            GateCommand::Program(words) => words.iter().any(|word| word.contains(STORY)),
        };
        in_command || GateFiles::of([gate], sight).mention(STORY, sight)
    })
}

/// The story's own gates as they are listed, then the others: the cheapest first, and last those
/// that run in a folder without a change.
pub fn in_order(mut due: Vec<DueGate>, changed: &[PathBuf]) -> Vec<DueGate> {
    let is_untouched = |due: &DueGate| {
        let dir = due.gate.dir.as_ref();
        dir.is_some_and(|dir| !changed.iter().any(|path| is_below(path, Path::new(dir))))
    };
    due.sort_by_cached_key(|due| match due.guards {
        None => (false, false, 0),
        Some(_) => (true, is_untouched(due), due.last_ms.unwrap_or(u64::MAX)),
    });
    due
}

/// The folder may be written as `./web/`.
fn is_below(path: &Path, dir: &Path) -> bool {
    let dir: PathBuf = dir.components().filter(|part| part.as_os_str() != ".").collect();
    path.starts_with(dir)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::samples::{id, sight};

    #[test]
    fn a_gate_that_mentions_the_story_is_for_each() {
        let program = |words: &[&str]| Gate {
            run: GateCommand::Program(words.iter().map(|word| (*word).to_owned()).collect()),
            ..Gate::shell("x")
        };
        let said = |each_story, gate| Gate { each_story: Some(each_story), ..gate };
        for (gate, is_each) in [
            (Gate::shell("cargo test"), false),
            (Gate::shell("pytest -k \"$RALPH_STORY\""), true),
            (program(&["sh", "-c", "echo ${RALPH_STORY}"]), true),
            (Gate::shell("cd web && ./check.sh"), true),
            (Gate::shell("sh sources.sh"), true),
            (Gate::shell("make -s check"), true),
            (Gate::shell("pytest -q"), true),
            (Gate::shell("cd lib && pytest"), true),
            (Gate::shell("python3 -m unittest"), false),
            (Gate::shell("./other.sh"), false),
            (Gate::shell("./missing.sh"), false),
            (said(false, Gate::shell("pytest -k $RALPH_STORY")), false),
            (said(true, Gate::shell("cargo test")), true),
        ] {
            let files = [
                ("web/check.sh", "test -e $RALPH_STORY.txt"),
                ("other.sh", "true"),
                ("sources.sh", ". web/check.sh"),
                ("tests/conftest.py", "os.environ['RALPH_STORY']"),
                ("lib/conftest.py", "os.environ['RALPH_STORY']"),
                ("Makefile", "check:\n\ttest -e $(RALPH_STORY).txt\n"),
            ];
            let look = sight(&files);
            let sight = Sight { root: Path::new("/repo"), look: &look };
            assert_eq!(is_each_story(&gate, sight), is_each, "{gate:?}");
        }
    }

    #[test]
    fn the_own_gates_come_first_and_then_the_cheapest_that_can_have_been_touched() {
        let due = |name: &str, guards: Option<&str>, dir: Option<&str>, last_ms| DueGate {
            gate: Gate { dir: dir.map(str::to_owned), ..Gate::shell(name) },
            guards: guards.map(id),
            last_ms,
        };
        let all = vec![
            due("own slow", None, None, Some(900)),
            due("own", None, Some("api"), Some(1)),
            due("slow", Some("A"), None, Some(500)),
            due("new", Some("B"), None, None),
            due("elsewhere", Some("C"), Some("api"), Some(2)),
            due("cheap", Some("D"), Some("./web"), Some(3)),
            due("cheaper", Some("E"), None, Some(1)),
        ];
        let ordered = in_order(all, &[PathBuf::from("web/a.ts")]);
        let names: Vec<_> = ordered.iter().map(|due| due.gate.to_string()).collect();
        let expected = ["own slow", "own", "cheaper", "cheap", "slow", "new", "elsewhere"];
        assert_eq!(names, expected);
    }
}
