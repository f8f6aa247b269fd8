//! The guard round one attempt that changes nothing, in a repository that does not change.

use std::path::Path;

use ralph::model::HeldKind;
use ralph::workspace::{Guard, GuardPart, Guarded, HeldPlace, WorkTree};

use crate::measure::{Times, commit_all, repository, tell};

const FILES: usize = 1_000;
const ROUNDS: usize = 60;
/// As many as a run has.
const PLACES: [&str; 6] =
    [".claude/settings.json", ".claude/hooks", ".mcp.json", ".codex", "PROMPT.md", "ralph.toml"];

pub fn bench() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("repo");
    let repo = repository(&root, FILES);
    for (name, text) in [
        (".gitignore", "*.local\ntarget/\n"),
        ("PROMPT.md", "Work.\n"),
        ("ralph.toml", "max_attempts = 3\n"),
    ] {
        std::fs::write(root.join(name), text).unwrap();
    }
    commit_all(&repo, "settings");
    for number in 0..20 {
        std::fs::write(root.join(format!("{number}.local")), "mine\n").unwrap();
    }
    let tree = WorkTree::open(&root).unwrap();
    let places: Vec<HeldPlace> = PLACES.iter().map(|name| place(&root, name)).collect();
    let base = tree.base().unwrap();
    tree.note_beside().unwrap();
    let around = || {
        let (base, before) = (base.clone(), base.clone());
        let guarded = Guarded { ran: "bench".to_owned(), base, before, snapshot: None };
        let guard = Guard::arm(&tree, guarded, &places).unwrap();
        for part in GuardPart::after_attempt() {
            assert_eq!(guard.check(&tree, *part).unwrap(), None);
        }
        guard.disarm(&tree).unwrap();
    };
    let scan = || drop(tree.base().unwrap());
    // What is younger than a moment is looked at again.
    std::thread::sleep(std::time::Duration::from_millis(50));
    around();
    let (guard, floor) = (Times::of(ROUNDS, around), Times::of(ROUNDS, scan));
    tell(&format!("arm, check and disarm, {FILES} files (below 1 ms)"), &guard);
    tell("floor: a scan of the work tree", &floor);
}

fn place(root: &Path, name: &str) -> HeldPlace {
    let kind = match name {
        "PROMPT.md" => HeldKind::Instructions,
        "ralph.toml" => HeldKind::Settings,
        _ => HeldKind::AgentSettings,
    };
    HeldPlace { kind, path: root.join(name) }
}
