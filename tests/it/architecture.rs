//! The map of the modules is kept by reading their `use` lines.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

fn sources(folder: &Path) -> Vec<PathBuf> {
    if folder.is_file() {
        return vec![folder.to_owned()];
    }
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

/// The pure rooms, which everything else may use.
const PURE: [&str; 4] = ["model", "text", "state", "decide"];

/// What a room may use of the others; edges may use every pure room too.
const ALLOWED: [(&str, &[&str]); 17] = [
    ("model", &[]),
    ("text", &["model"]),
    ("state", &["model", "text"]),
    ("decide", &["model", "state", "text"]),
    ("ports.rs", &["files"]),
    ("files", &[]),
    ("settings", &["agent", "files"]),
    ("agent", &["files"]),
    ("mock", &[]),
    ("process", &["files"]),
    ("workspace", &["files"]),
    ("store", &["files"]),
    ("runner", &["agent", "files", "ports", "process", "settings", "store", "workspace"]),
    ("report", &["ports", "store"]),
    ("ui", &["files", "ports"]),
    (
        "ops",
        &[
            "agent",
            "files",
            "mock",
            "ports",
            "process",
            "report",
            "runner",
            "settings",
            "store",
            "ui",
            "workspace",
        ],
    ),
    ("cli", &["mock", "ops", "ports", "process", "settings", "ui"]),
];

#[test]
fn every_room_uses_only_what_it_may() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for (room, allowed) in ALLOWED {
        for path in sources(&root.join(room)).into_iter().filter(|path| !is_test(path)) {
            let text = fs::read_to_string(&path).unwrap();
            for used in text.split("crate::").skip(1) {
                let name: String = used.chars().take_while(|c| c.is_ascii_lowercase()).collect();
                let is_pure = PURE.contains(&name.as_str()) && !PURE.contains(&room);
                let fine = name == room.trim_end_matches(".rs")
                    || is_pure
                    || allowed.contains(&name.as_str());
                assert!(fine, "{} uses `{name}`", path.display());
            }
        }
    }
}

#[test]
fn only_the_command_line_knows_clap() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for path in sources(&root) {
        let inside = path.strip_prefix(&root).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert!(inside.starts_with("cli") || !text.contains("clap::"), "{}", inside.display());
    }
}

/// Agents and gates run below a supervisor; what else is started has a reason of its own.
#[test]
fn programs_are_started_in_few_places() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for path in sources(&root).into_iter().filter(|path| !is_test(path)) {
        let text = fs::read_to_string(&path).unwrap();
        let inside = path.strip_prefix(&root).unwrap();
        let may =
            ["mock", "process", "workspace/sign.rs"].iter().any(|one| inside.starts_with(one));
        assert!(may || !text.contains("Command::new("), "{} starts a program", inside.display());
    }
}

#[test]
fn decisions_are_pure() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let banned = [
        "std::fs",
        "std::env",
        "std::process",
        "std::net",
        "std::thread",
        "SystemTime",
        "Instant",
        "Timestamp::now",
        "Zoned::now",
        "tokio",
        "git2",
        "rusqlite",
        "console::",
        "dialoguer",
        "indicatif",
        "rustix",
    ];
    let pure = PURE.iter().flat_map(|room| sources(&root.join(room)));
    for path in pure.filter(|path| !is_test(path)) {
        let text = fs::read_to_string(&path).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        let is_code = |line: &&str| !line.trim_start().starts_with("//");
        let code: String = code.lines().filter(is_code).collect();
        for word in banned {
            assert!(!code.contains(word), "{} has `{word}`", path.display());
        }
    }
}

/// `cli` makes the one clock and passes it in, so that screens and files are the same each time.
#[test]
fn commands_display_and_report_read_no_clock() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let files =
        ["cli", "ops", "report", "ui"].into_iter().flat_map(|room| sources(&root.join(room)));
    for path in files.filter(|path| !is_test(path)) {
        let text = fs::read_to_string(&path).unwrap();
        for word in ["Instant", "SystemTime", "Timestamp::now", "Zoned::now", "TimeZone::system"] {
            assert!(!text.contains(word), "{} has `{word}`", path.display());
        }
    }
}

/// How agents are called, and what they say, only their backends know.
#[test]
fn no_room_but_the_agents_knows_a_vendors_word() {
    const WORDS: [&str; 20] = [
        "claude",
        "anthropic",
        "codex",
        "openai",
        "gemini",
        "copilot",
        "opencode",
        "qwen",
        "stream-json",
        "stream_json",
        "api_retry",
        "rate_limit_event",
        "error_max_turns",
        "error_max_budget_usd",
        "usage_limit_reached",
        "authentication_failed",
        "acceptedits",
        "bypasspermissions",
        "multiedit",
        "notebookedit",
    ];
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let rooms = PURE.into_iter().chain(["process", "workspace", "store", "runner", "report", "ui"]);
    // Whose keys are secrets is a list of vendors.
    let credentials = root.join("text/redact/credentials.rs");
    for path in rooms.flat_map(|room| sources(&root.join(room))) {
        let text = fs::read_to_string(&path).unwrap().to_lowercase();
        for word in WORDS {
            let may = is_test(&path) || path == credentials || !text.contains(word);
            assert!(may, "{} has `{word}`", path.display());
        }
    }
}

/// The modules of one room, and which of the others each of them names.
fn modules(room: &Path) -> BTreeMap<String, BTreeSet<String>> {
    let name = room.file_name().unwrap().to_string_lossy().into_owned();
    let module = |path: &Path| {
        let first = path.strip_prefix(room).unwrap().components().next().unwrap();
        first.as_os_str().to_string_lossy().trim_end_matches(".rs").to_owned()
    };
    let files: Vec<PathBuf> = sources(room).into_iter().filter(|path| !is_test(path)).collect();
    let all: BTreeSet<String> = files.iter().map(|path| module(path)).collect();
    let mut uses: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for path in &files {
        let (own, text) = (module(path), fs::read_to_string(path).unwrap());
        let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
        let own_room = format!("crate::{name}::");
        let mut prefixes = vec![own_room.as_str()];
        if path.parent() == Some(room) {
            prefixes.push("super::");
        }
        let named = prefixes.iter().flat_map(|prefix| text.split(prefix).skip(1));
        let is_word = |c: &char| c.is_alphanumeric() || *c == '_';
        let named = named.map(|rest| rest.chars().take_while(is_word).collect::<String>());
        let named = named.filter(|other| all.contains(other) && *other != own);
        uses.entry(own.clone()).or_default().extend(named);
    }
    uses
}

#[test]
fn no_room_has_modules_in_a_circle() {
    for room in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("src")).unwrap() {
        let room = room.unwrap().path();
        let mut uses = if room.is_dir() { modules(&room) } else { continue };
        // The room's face may name all of them.
        uses.remove("mod");
        while let Some(leaf) = uses.iter().find(|(_, named)| named.is_empty()) {
            let leaf = leaf.0.clone();
            uses.remove(&leaf);
            for named in uses.values_mut() {
                named.remove(&leaf);
            }
        }
        assert!(uses.is_empty(), "{}: {uses:?}", room.display());
    }
}
