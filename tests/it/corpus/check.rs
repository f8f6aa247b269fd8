//! What must be true after each run, whatever was attacked.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::support::World;
use crate::support::world::Runs;

use super::scene::{COMMITTED, STORIES, USERS, gate};

/// Held files; most of them are not there.
const HELD: [&str; 13] = [
    "ralph.toml",
    "PROMPT.md",
    "check.sh",
    "check-one.sh",
    ".gitattributes",
    ".claude",
    ".mcp.json",
    ".git/config",
    ".git/hooks",
    ".git/info/attributes",
    ".git/info/exclude",
    ".git/info/grafts",
    ".git/objects/info/alternates",
];
/// Characters of each fact in a message.
const SHOWN: usize = 300;
const REFS: &str = "--format=%(refname) %(objectname)";

/// What nobody but the human may change, by name.
pub struct Facts {
    facts: BTreeMap<String, String>,
    /// The branch's commit.
    start: String,
}

impl Facts {
    pub fn of(world: &World) -> Self {
        let mut facts = BTreeMap::new();
        for folder in ["../home", "../outside"] {
            files(&world.path(folder), folder, &mut facts);
        }
        for name in HELD.iter().chain(USERS.iter().chain(&COMMITTED).map(|(name, _)| name)) {
            files(&world.path(name), name, &mut facts);
        }
        let refs = git(world, &["for-each-ref", REFS]);
        let is_ours = |line: &str| line.contains("/ralph/") || line.starts_with("refs/heads/work ");
        for line in refs.lines().filter(|line| !is_ours(line)) {
            facts.insert(line.to_owned(), "a ref".to_owned());
        }
        let mut git = |name: &str, args: &[&str]| facts.insert(name.to_owned(), git(world, args));
        git("HEAD", &["symbolic-ref", "HEAD"]);
        git("stashes", &["stash", "list", "--format=%H %gs"]);
        let committed = COMMITTED.iter().map(|(name, _)| *name);
        let indexed: Vec<&str> = ["ls-files", "--"].into_iter().chain(committed).collect();
        git("committed files in the index", &indexed);
        let start = self::git(world, &["rev-parse", "work"]).trim().to_owned();
        Self { facts, start }
    }

    fn differences(&self, other: &Self) -> Vec<String> {
        let mut names: Vec<&String> = self.facts.keys().chain(other.facts.keys()).collect();
        names.sort();
        names.dedup();
        let is_other = |name: &&String| self.facts.get(*name) != other.facts.get(*name);
        let short = |facts: &Self, name: &String| {
            facts.facts.get(name).map(|text| text.chars().take(SHOWN).collect::<String>())
        };
        let shown = |name: &String| format!("{:?} → {:?}", short(self, name), short(other, name));
        names.into_iter().filter(is_other).map(|name| format!("{name}: {}", shown(name))).collect()
    }
}

/// All that is wrong.
pub fn wrong_after(world: &World, before: &Facts, code: i32) -> Vec<String> {
    let mut wrong = before.differences(&Facts::of(world));
    let is_ancestor = ["merge-base", "--is-ancestor", &before.start, "work"];
    if world.command("git").args(is_ancestor).said().code != 0 {
        wrong.push("the branch lost the human's commits".to_owned());
    }
    wrong.extend(wrong_marks(world, &before.start, code));
    let committed = git(world, &["ls-tree", "-r", "--name-only", "work"]);
    for name in ["mine.txt", "added.txt", "own.local"] {
        if committed.lines().any(|line| line.ends_with(name)) {
            wrong.push(format!("{name} is committed"));
        }
    }
    let processes = world.processes();
    if !processes.is_empty() {
        wrong.push(format!("{processes:?} still run"));
    }
    let fsck = world.command("git").args(["fsck", "--strict", "--no-dangling"]).said();
    if fsck.code != 0 {
        wrong.push(format!("git fsck: {}{}", fsck.out, fsck.err));
    }
    wrong
}

/// Exit 0 means that each story of the start passes on a clean checkout. A mark means so for its
/// story, and has its commit.
fn wrong_marks(world: &World, start: &str, code: i32) -> Vec<String> {
    let mut wrong = Vec::new();
    let original = git(world, &["show", &format!("{start}:PRD.json")]);
    let mut files_found = BTreeMap::new();
    files(&world.path("PRD.json"), "PRD.json", &mut files_found);
    let on_disk = files_found.remove("PRD.json").unwrap_or_default();
    let committed = git(world, &["show", "work:PRD.json"]);
    for (name, text) in [("PRD.json", &on_disk), ("the committed PRD.json", &committed)] {
        if unmarked(text) != unmarked(&original) {
            wrong.push(format!("{name} is not what the human wrote: {text}"));
        }
    }
    let clean = world.path("../clean");
    let clone = ["clone", "-q", "--branch", "work", ".", clean.to_str().unwrap()];
    let cloned = world.command("git").args(clone).said();
    if cloned.code != 0 {
        wrong.push(format!("no clean checkout: {}", cloned.err));
        return wrong;
    }
    let _ = fs::remove_file(world.path("../control/gate"));
    let trailers = "--format=%(trailers:key=Ralph-Story,valueonly,separator=)";
    let closing = git(world, &["log", "work", trailers]);
    for story in STORIES {
        let id = story.0;
        let marked = is_marked(&on_disk, id) || is_marked(&committed, id);
        let has_commit = closing.lines().any(|line| line == id);
        let passes = ["sh check.sh".to_owned(), gate(story)].iter().all(|gate| {
            world.command("sh").args(["-c", gate]).current_dir(&clean).said().code == 0
        });
        for (is_wrong, what) in [
            (code == 0 && !passes, "fails on a clean checkout after exit 0"),
            (code == 0 && !is_marked(&committed, id), "has no committed mark after exit 0"),
            (marked && !passes, "is marked and fails on a clean checkout"),
            (marked && !has_commit, "is marked and has no commit"),
        ] {
            if is_wrong {
                wrong.push(format!("{id} {what}"));
            }
        }
    }
    wrong
}

/// A mark that was reverted may stay in the file, as false.
fn unmarked(prd: &str) -> String {
    prd.replace("\"passes\": true", "\"passes\": false").replace(", \"skipped\": false", "")
}

pub fn is_marked(prd: &str, id: &str) -> bool {
    let prd: serde_json::Value = serde_json::from_str(prd).unwrap_or_default();
    let stories = prd["userStories"].as_array().cloned().unwrap_or_default();
    stories.iter().any(|story| story["id"] == id && story["passes"] == true)
}

fn git(world: &World, args: &[&str]) -> String {
    let said = world.command("git").args(args).said();
    format!("{}{}", said.out, said.err)
}

/// A file's bytes, or those of all files below; links and pipes as what they are.
fn files(path: &Path, name: &str, found: &mut BTreeMap<String, String>) {
    let Ok(meta) = fs::symlink_metadata(path) else { return };
    let content = if meta.is_symlink() {
        format!("a link to {:?}", fs::read_link(path).unwrap())
    } else if meta.is_file() && meta.len() < 1 << 20 {
        String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned()
    } else if meta.is_dir() {
        for entry in fs::read_dir(path).unwrap().flatten() {
            let below = format!("{name}/{}", entry.file_name().to_string_lossy());
            files(&entry.path(), &below, found);
        }
        return;
    } else {
        "something else".to_owned()
    };
    found.insert(name.to_owned(), content);
}
