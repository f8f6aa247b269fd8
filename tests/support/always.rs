//! What must always hold, whatever died and whenever.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use ralph::model::Event;

use super::World;

/// Path → content.
type Files = BTreeMap<String, String>;

/// What a run leaves behind that does not depend on when it ran, or how often.
#[derive(Debug, PartialEq)]
pub struct Outcome {
    /// The tree of the last commit.
    committed: String,
    /// The work tree, the user's files among them.
    files: Files,
    /// Settings and hooks.
    git: Files,
    around: Files,
    subjects: Vec<String>,
    status: String,
    /// The story of every commit that closes one, newest first.
    closed: Vec<String>,
}

/// What changes with every run, and is checked by what it means.
const GIT_STATE: [&str; 8] =
    ["objects", "refs", "logs", "ralph", "index", "HEAD", "ORIG_HEAD", "COMMIT_EDITMSG"];

pub fn outcome(world: &World) -> Outcome {
    let stories = "--format=%(trailers:key=Ralph-Story,valueonly,separator=)";
    let closed = world.git(&["log", stories]);
    Outcome {
        committed: world.git(&["rev-parse", "HEAD^{tree}"]),
        files: files(&world.root(), &[".git", ".ralph"]),
        git: files(&world.path(".git"), &GIT_STATE),
        around: files(world.root().parent().unwrap(), &["repo"]),
        subjects: world.subjects(),
        status: world.status(),
        closed: closed.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect(),
    }
}

/// Refs of kept work, by name.
pub fn kept(world: &World) -> BTreeSet<String> {
    let refs = world.git(&["for-each-ref", "--format=%(refname) %(objectname)", "refs/ralph"]);
    refs.lines().map(str::to_owned).collect()
}

/// All but the files, which the test itself has to know. `before` is what was kept before the run.
pub fn holds(world: &World, before: &BTreeSet<String>, label: &str) {
    let found = outcome(world);
    assert!(kept(world).is_superset(before), "{label}: {:?} and before {before:?}", kept(world));
    // What passes was accepted, and its commit is on the branch.
    let events: Vec<Event> = world.journal().into_iter().map(|recorded| recorded.event).collect();
    let planned: BTreeSet<&str> = events.iter().filter_map(accepted).collect();
    let closed: BTreeMap<&str, &str> = events.iter().filter_map(settled).collect();
    let history = world.git(&["log", "--format=%H"]);
    for story in world.passing() {
        assert!(planned.contains(story.as_str()), "{label}: {story} was never accepted");
        let commit = closed[story.as_str()];
        assert!(history.contains(commit), "{label}: {commit} of {story} is not on the branch");
    }
    // Each story was committed once.
    let once: BTreeSet<&String> = found.closed.iter().collect();
    assert_eq!(once.len(), found.closed.len(), "{label}: {:?}", found.closed);
    // Nothing runs any more.
    assert_eq!(world.processes(), [""; 0], "{label}");
    // Branch and HEAD are where the journal says.
    let started = events.iter().rev().find_map(|event| match event {
        Event::RunStarted(run) => run.branch.clone(),
        _ => None,
    });
    assert_eq!(Some(world.git(&["branch", "--show-current"]).trim()), started.as_deref());
    let last = events.iter().rev().find_map(settled).unwrap().1;
    assert_eq!(history.lines().next(), Some(last), "{label}");
    assert_eq!(leftovers(world), [""; 0], "{label}");
}

fn accepted(event: &Event) -> Option<&str> {
    match event {
        Event::ClosePlanned { story, .. } => Some(story.as_str()),
        _ => None,
    }
}

fn settled(event: &Event) -> Option<(&str, &str)> {
    match event {
        Event::StoryClosed(closed) => Some((closed.story.as_str(), &closed.commit)),
        Event::StorySkipped { story, commit } => Some((story.as_str(), commit.as_deref()?)),
        _ => None,
    }
}

/// Locks, notes and half-written files of a write that was cut off. Objects that nobody names are
/// git's to collect.
pub fn leftovers(world: &World) -> Vec<String> {
    let git = files(&world.path(".git"), &["objects"]).into_keys();
    let folder = Some(world.path(".ralph")).filter(|folder| folder.exists());
    let own = folder.map(|folder| files(&folder, &[])).unwrap_or_default().into_keys();
    let is_left = |name: &String| {
        name.ends_with(".lock")
            || name.contains("ralph/writing-")
            || name.ends_with("ralph/attempt")
            || name.ends_with(".tmp")
    };
    git.chain(own).filter(is_left).collect()
}

/// Everything below but what is left out.
fn files(folder: &Path, left_out: &[&str]) -> Files {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if left_out.contains(&name.as_str()) {
            continue;
        }
        if path.is_dir() {
            let below = files(&path, &[]).into_iter();
            found.extend(below.map(|(inner, bytes)| (format!("{name}/{inner}"), bytes)));
            found.insert(name, "a folder".to_owned());
        } else {
            found.insert(name, String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned());
        }
    }
    found
}
