//! The map of the modules is kept by reading their `use` lines.

use std::fs;
use std::path::{Path, PathBuf};

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
    found
}

fn is_test(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str().to_string_lossy().contains("tests"))
}

/// What a room may use of the others.
const ALLOWED: [(&str, &[&str]); 12] = [
    ("core", &[]),
    ("settings", &["core"]),
    ("agent", &["core", "settings"]),
    ("mock", &["core"]),
    ("process", &["core"]),
    ("git", &["core"]),
    ("store", &["core"]),
    ("evidence", &["core", "process"]),
    ("engine", &["agent", "core", "evidence", "git", "process", "store"]),
    ("report", &["core", "engine", "store"]),
    ("ui", &["core", "engine"]),
    (
        "cli",
        &["agent", "core", "engine", "git", "mock", "process", "report", "settings", "store", "ui"],
    ),
];

#[test]
fn every_room_uses_only_what_it_may() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for (room, allowed) in ALLOWED {
        for path in sources(&root.join(room)) {
            let text = fs::read_to_string(&path).unwrap();
            for used in text.split("crate::").skip(1) {
                let name: String = used.chars().take_while(|c| c.is_ascii_lowercase()).collect();
                let fine = name == room || allowed.contains(&name.as_str());
                assert!(fine, "{} uses `{name}`", path.display());
            }
        }
    }
}

/// Agents and gates run below a supervisor; what else is started has a reason of its own.
#[test]
fn programs_are_started_in_few_places() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for path in sources(&root).into_iter().filter(|path| !is_test(path)) {
        let text = fs::read_to_string(&path).unwrap();
        let inside = path.strip_prefix(&root).unwrap();
        let may = ["mock", "process", "git/program.rs"].iter().any(|one| inside.starts_with(one));
        assert!(may || !text.contains("Command::new("), "{} starts a program", inside.display());
    }
}

#[test]
fn the_core_is_pure() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/core");
    let banned = [
        "std::fs",
        "std::env",
        "std::process",
        "std::net",
        "std::thread",
        "SystemTime",
        "Instant",
        "tokio",
        "git2",
        "rusqlite",
        "console::",
        "dialoguer",
        "indicatif",
        "rustix",
    ];
    for path in sources(&root).into_iter().filter(|path| !is_test(path)) {
        let text = fs::read_to_string(&path).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        let is_code = |line: &&str| !line.trim_start().starts_with("//");
        let code: String = code.lines().filter(is_code).collect();
        for word in banned {
            assert!(!code.contains(word), "{} has `{word}`", path.display());
        }
    }
}
