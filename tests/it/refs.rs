//! What agents do to branches, tags and the other refs of the user's.

use std::fs;

use ralph::model::{Event, Recorded, Violation};

use crate::support::world::{Ends, until};
use crate::support::{Prd, World};

const ACT: &str = r#"git branch -qD old; git tag -d v1; git branch -f topic HEAD~1
    git replace HEAD HEAD~1; git branch mine; rm -f .git/packed-refs; echo w > w.txt"#;
/// The agent's mark is in the reflog of what has one; nothing tells who moved the others.
#[test]
fn an_agent_moves_no_branch_forward() {
    for (act, stays) in [
        ("git branch -f main HEAD", false),
        ("git update-ref refs/heads/main HEAD", false),
        ("git fetch -q . HEAD:main", false),
        ("env -u GIT_REFLOG_ACTION git fetch -q . HEAD:main", true),
    ] {
        let script =
            format!("[default]\nsteps = [{{ run = \"{act}; echo w > w.txt\" }}, \"complete\"]\n");
        let world = World::scripted(&Prd::stories(1), &script);
        world.git(&["branch", "main", "HEAD~1"]);
        let before = world.git(&["rev-parse", "main"]);
        let said = world.run(&[]);
        assert_eq!(said.code, 0, "{}", said.err);
        assert_eq!(world.git(&["rev-parse", "main"]) != before, stays, "{act}: {}", said.err);
        assert_eq!(
            said.err.contains("refs that the agent changed: heads/main"),
            !stays,
            "{}",
            said.err
        );
    }
}

#[test]
fn a_stash_that_an_agent_made_is_named_once() {
    let act = "echo x > README.md; git stash push -q -m planted; echo w > w.txt";
    let script = format!("[default]\nsteps = [{{ run = \"{act}\" }}, \"complete\"]\n");
    let world = World::scripted(&Prd::stories(1), &script);
    world.write("ralph.toml", "verify = [\"true\", \"test -e w.txt\"]\n");
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    let told = "there are stashes that were not there before the agent: On work: planted";
    assert_eq!(said.err.matches(told).count(), 1, "{}", said.err);
    assert_eq!(said.err.matches("stashes").count(), 1, "{}", said.err);
    assert!(world.git(&["stash", "list"]).contains("planted"));
}

const LIST: [&str; 3] =
    ["for-each-ref", "--format=%(refname) %(objectname)", "--exclude=refs/ralph"];

/// Stories for an agent that does this, then the steps.
fn world(steps: &str) -> World {
    let script = format!("[default]\nsteps = [{{ run = '''{ACT}''' }}, {steps}]\n");
    let world = World::scripted(&Prd::stories(1), &script);
    for branch in ["topic", "old"] {
        world.git(&["branch", branch]);
    }
    world.git(&["tag", "-a", "-m", "released", "v1", "HEAD~1"]);
    world.git(&["tag", "v2"]);
    world.git(&["pack-refs", "--all"]);
    world.write(".git/refs/heads/work", &world.git(&["rev-parse", "HEAD"]));
    world
}

/// Without the run's branch and what ralph stores.
fn users(world: &World) -> Vec<String> {
    let all = world.git(&LIST);
    let is_users = |line: &&str| {
        !["refs/heads/work ", "refs/worktree/"].iter().any(|own| line.starts_with(own))
    };
    all.lines().filter(is_users).map(str::to_owned).collect()
}

fn restored(world: &World) -> Vec<(Vec<String>, Option<String>)> {
    let journal = world.journal();
    let refs = |one: &Recorded| match &one.event {
        Event::Repaired { violation: Violation::Refs { names, kept, .. }, .. } => {
            Some((names.clone(), kept.clone()))
        }
        _ => None,
    };
    journal.iter().filter_map(refs).collect()
}

#[test]
fn branches_and_tags_that_an_agent_deleted_or_moved_are_back() {
    let world = world("\"complete\"");
    let before = users(&world);
    let moved_to = world.git(&["rev-parse", "HEAD~1"]);
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    let now = users(&world);
    let theirs: Vec<&String> = now.iter().filter(|line| !before.contains(line)).collect();
    assert!(before.iter().all(|line| now.contains(line)), "{now:?}\n{}", said.err);
    assert_eq!(theirs.len(), 1, "{theirs:?}");
    assert!(theirs[0].starts_with("refs/heads/mine "), "a new branch stays");
    let told =
        "restored branches, tags or other refs that the agent changed: heads/old, heads/topic";
    assert!(said.err.contains(told), "{}", said.err);
    let found = restored(&world);
    assert_eq!(found.len(), 1, "{found:?}");
    let kept = found[0].1.clone().expect("where it is kept");
    let at = format!("{kept}/heads/topic/{}", moved_to.trim());
    assert_eq!(world.git(&["rev-parse", &at]), moved_to);
    assert_eq!(world.git(&["fsck", "--strict", "--no-dangling"]), "");
    assert_eq!(world.notices()[0]["violation"]["what"], "refs");
}

#[test]
fn what_an_agent_did_to_refs_before_its_driver_was_killed_is_undone_too() {
    let world = world("{ run = \"echo y > ../here\" }, \"hang\"");
    let before = users(&world);
    let mut child = world.start(&[]);
    world.await_file("../here");
    child.kill().unwrap();
    child.code();
    until("every process to be gone", || world.processes().is_empty().then_some(()));
    fs::remove_file(world.script()).unwrap();
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    let now = users(&world);
    assert!(before.iter().all(|line| now.contains(line)), "{now:?}\n{}", said.err);
    assert!(!now.iter().any(|line| line.starts_with("refs/replace/")), "{now:?}");
    assert_eq!(restored(&world).len(), 1, "{}", said.err);
    assert_eq!(world.passing(), ["US-001"]);
}
