//! What agents and gates leave in ralph's own folder in the git folder: it neither counts as ralph's,
//! nor becomes the human's, nor leads outside, nor blocks anything later.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;

use crate::hostile::kill_when_here;
use crate::support::world::{Ends, Runs, until};
use crate::support::{Prd, World};

/// Of everything that ralph has there, but the journal, without which it is another run.
const NAMES: [&str; 22] = [
    "attempt",
    "beside",
    "changed",
    "changed/interrupted",
    "changed/replaced",
    "half-done",
    "hidden",
    "ignored",
    "ignored.json",
    "index",
    "journal.db-journal",
    "journal.db-newest",
    "kept",
    "kept.new",
    "lock",
    "new",
    "numbers",
    "restoring",
    "rules",
    "unseen",
    ".restoring.ralph-a1B2c3.tmp",
    "writing-1-0-x",
];
const KINDS: [&str; 8] =
    ["folder", "pipe", "link", "link to a folder", "link to nothing", "huge", "socket", "closed"];

/// The first story's `new.local` is in no commit.
const GATE: &str = "test -e a.txt && { test -e b.txt || test ! -e new.local; }";

/// Two stories, with a gate that needs the work of one, and a file of the user's that git ignores.
fn world(act: &str) -> World {
    with_gate(GATE, act)
}

fn with_gate(gate: &str, act: &str) -> World {
    let script = format!(
        r#"
        [[story.US-001.attempts]]
        steps = [{{ run = '''OUT=$(cd .. && pwd)/outside; {act}''' }},
                 {{ run = "echo a > a.txt; echo new > new.local" }}, "complete"]
        [default]
        steps = [{{ run = "echo a > a.txt; echo b > b.txt; echo new > new.local" }}, "complete"]
        "#
    );
    let world = World::scripted(&Prd::stories(2), &script);
    fs::create_dir(world.path("../outside")).unwrap();
    world.write("../outside/file", "theirs\n");
    world.write(".gitignore", "*.local\nconf/\n");
    world.write("ralph.toml", &format!("verify = [\"{gate}\"]\n"));
    world.git(&["add", "."]);
    world.git(&["commit", "-qm", "rules"]);
    world.write("mine.local", "ignored\n");
    world
}

fn outside_is_untouched(world: &World, case: &str) {
    assert_eq!(world.read("../outside/file"), "theirs\n", "{case}");
    assert_eq!(fs::read_dir(world.path("../outside")).unwrap().count(), 1, "{case}");
    let mode = fs::metadata(world.path("../outside/file")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o644, "{case}");
}

fn is_complete(world: &World, case: &str) {
    outside_is_untouched(world, case);
    assert_eq!(world.passing(), ["US-001", "US-002"], "{case}");
    assert_eq!(world.status(), "", "{case}");
    assert_eq!(world.read("mine.local") + &world.read("new.local"), "ignored\nnew\n", "{case}");
    assert_eq!(world.git(&["ls-tree", "-r", "--name-only", "HEAD"]).matches("local").count(), 0);
    assert_eq!(world.git(&["fsck", "--strict", "--no-dangling"]), "", "{case}");
}

const HOOK: &str = r#"printf '#!/bin/sh\ntouch ../ran\n' > $F/.git/hooks/post-commit;
    chmod +x $F/.git/hooks/post-commit; echo Obey > $F/PROMPT.md; mkdir -p $F/.claude;
    echo '{}' > $F/.claude/settings.json; echo planted > $F/planted.local"#;

#[test]
fn what_was_put_where_hidden_files_go_stays_out_of_the_tree() {
    for gate in [true, false] {
        let plant = format!("F=.git/ralph/unseen; mkdir -p $F/.git/hooks; {HOOK}");
        let world = world(&plant);
        if !gate {
            world.write("ralph.toml", "");
            world.git(&["commit", "-qam", "no gate"]);
        }
        let said = world.run(&["--once"]);
        assert_eq!(world.passing(), ["US-001"], "{}", said.err);
        let said = world.run(&[]);
        assert_eq!(said.code, 0, "{}", said.err);
        for name in [".git/hooks/post-commit", "PROMPT.md", ".claude", "planted.local", "../ran"] {
            assert!(!world.path(name).exists(), "{name}: {}", said.err);
        }
        is_complete(&world, &said.err);
    }
}

#[test]
fn what_a_gate_puts_to_the_hidden_files_is_put_back_or_away() {
    // An empty folder of the agent's is away while the gate runs.
    let world = world("mkdir .claude");
    let gate = format!("F=.git/ralph/unseen; mkdir -p $F/.git/hooks; {HOOK}\ntest -e a.txt\n");
    world.write("gate.sh", &gate);
    world.write("ralph.toml", "verify = [\"sh gate.sh\"]\n");
    world.git(&["add", "."]);
    world.git(&["commit", "-qm", "a gate"]);
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    for name in [".git/hooks/post-commit", "PROMPT.md", ".claude/settings.json", "planted.local"] {
        assert!(!world.path(name).exists(), "{name}: {}", said.err);
    }
    is_complete(&world, &said.err);
}

#[test]
fn a_killed_gates_hidden_files_return_and_no_others() {
    let gate = format!(
        "test -e a.txt || exit 1; test -e ../here && exit 0; F=.git/ralph/unseen; mkdir -p $F/.git/hooks; {HOOK}\n\
         echo x > ../here; exec sleep 1000\n"
    );
    let world = world("mkdir .claude");
    world.write("gate.sh", &gate);
    world.write("ralph.toml", "verify = [\"sh gate.sh\"]\n");
    world.git(&["add", "."]);
    world.git(&["commit", "-qm", "a gate"]);
    let mut child = world.start(&[]);
    world.await_file("../here");
    child.kill().unwrap();
    child.code();
    until("every process to be gone", || world.processes().is_empty().then_some(()));
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    for name in [".git/hooks/post-commit", "PROMPT.md", ".claude/settings.json", "planted.local"] {
        assert!(!world.path(name).exists(), "{name}: {}", said.err);
    }
    is_complete(&world, &said.err);
}

/// In the shell of an agent; not for sockets.
fn planting(name: &str, kind: &str) -> String {
    let path = format!(".git/ralph/{name}");
    let plant = match kind {
        "folder" | "socket" => format!("mkdir -p {path}; : > {path}/x"),
        "pipe" => format!("mkfifo {path}"),
        "link" => format!("ln -s $OUT/file {path}"),
        "link to a folder" => format!("ln -s $OUT {path}"),
        "link to nothing" => format!("ln -s $OUT/new {path}"),
        "huge" => format!("truncate -s 2G {path}"),
        _ => format!(": > {path}; chmod 0 {path}"),
    };
    format!("D=$(dirname {path}); test -L $D || {{ rm -rf {path}; mkdir -p $D; {plant}; }}\n")
}

/// By the test, between two commands.
fn plant(world: &World, name: &str, kind: &str) {
    let folder = world.path(".git/ralph");
    let path = if name.is_empty() { folder } else { folder.join(name) };
    let outside = world.path("../outside").canonicalize().unwrap();
    if path.symlink_metadata().is_ok_and(|found| found.is_dir()) {
        fs::remove_dir_all(&path).unwrap();
    }
    let _ = fs::remove_file(&path);
    let _ = fs::create_dir_all(path.parent().unwrap());
    if !path.parent().unwrap().symlink_metadata().unwrap().is_dir() {
        return;
    }
    match kind {
        "folder" => fs::create_dir_all(path.join("x")).unwrap(),
        "pipe" => assert_eq!(world.command("mkfifo").arg(&path).said().code, 0),
        "link" => symlink(outside.join("file"), &path).unwrap(),
        "link to a folder" => symlink(outside, &path).unwrap(),
        "link to nothing" => symlink(outside.join("new"), &path).unwrap(),
        "huge" => fs::File::create(&path).unwrap().set_len(2 << 30).unwrap(),
        "socket" => drop(UnixListener::bind(short(&path)).unwrap()),
        _ => {
            fs::write(&path, "").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
        }
    }
}

/// The address of a socket is at most a hundred bytes.
fn short(path: &Path) -> std::path::PathBuf {
    let here = std::env::current_dir().unwrap();
    let up = here.components().skip(1).map(|_| "..").collect::<std::path::PathBuf>();
    let from_root = up.join(path.strip_prefix("/").unwrap());
    if from_root.as_os_str().len() < path.as_os_str().len() { from_root } else { path.to_owned() }
}

/// Each name gets each kind once over all of them.
fn cases() -> impl Iterator<Item = Vec<(&'static str, &'static str)>> {
    (0..KINDS.len()).map(|shift| {
        let kind = |at: usize| KINDS[(at * 3 + shift) % KINDS.len()];
        NAMES.iter().enumerate().map(|(at, name)| (*name, kind(at))).collect()
    })
}

#[test]
fn whatever_an_agent_plants_costs_nothing() {
    for planted in cases() {
        let act: String = planted.iter().map(|(name, kind)| planting(name, kind)).collect();
        let world = world(&act);
        let said = world.run(&[]);
        let case = format!("{planted:?}\n{}", said.err);
        assert_eq!(said.code, 0, "{case}");
        is_complete(&world, &case);
    }
}

#[test]
fn whatever_is_planted_between_two_commands_blocks_none() {
    for planted in cases().step_by(2) {
        let world = with_gate("test -e a.txt", "");
        world.run(&["--once"]);
        assert_eq!(world.passing(), ["US-001"]);
        for command in [
            &["status"][..],
            &["log"],
            &["diff", "US-001"],
            &["checkpoint"],
            &["restore", "1", "README.md"],
            &["mark", "US-002", "skip"],
            &["mark", "US-002", "reopen"],
            &["undo", "US-001"],
        ] {
            planted.iter().for_each(|(name, kind)| plant(&world, name, kind));
            let said = world.ralph(command);
            assert_eq!(said.code, 0, "{command:?} {planted:?}\n{}{}", said.out, said.err);
            outside_is_untouched(&world, &format!("{command:?}"));
        }
        planted.iter().for_each(|(name, kind)| plant(&world, name, kind));
        let said = world.run(&[]);
        assert_eq!(said.code, 0, "{planted:?}\n{}", said.err);
        is_complete(&world, &format!("{planted:?}\n{}", said.err));
    }
}

/// Its agent deleted the note that it ran.
#[test]
fn whatever_a_killed_agent_planted_blocks_nothing() {
    for planted in cases().step_by(3) {
        let world = world("test -e ../here || { echo y > ../here; exec sleep 1000; }");
        kill_when_here(&world);
        let known = ["attempt", "index", "ignored.json"];
        let planted = planted.iter().filter(|(name, _)| !known.contains(name));
        planted.clone().for_each(|(name, kind)| plant(&world, name, kind));
        let _ = fs::remove_file(world.path(".git/ralph/attempt"));
        let status = world.ralph(&["status"]);
        assert_eq!(status.code, 0, "{}", status.err);
        let said = world.run(&[]);
        assert_eq!(said.code, 0, "{}", said.err);
        is_complete(&world, &said.err);
    }
}

#[test]
fn the_folder_itself_may_be_anything() {
    for kind in KINDS {
        let world = with_gate("test -e a.txt", "");
        world.run(&["--once"]);
        assert_eq!(world.passing(), ["US-001"]);
        plant(&world, "", kind);
        assert_eq!(world.ralph(&["status"]).code, 0, "{kind}");
        let said = world.run(&[]);
        assert_eq!(said.code, 0, "{kind}: {}", said.err);
        is_complete(&world, kind);
    }
}

#[test]
fn what_is_in_the_way_of_a_copy_does_not_stop_it() {
    for plant in
        [": > $F", "ln -s $OUT $F", "mkdir -p $F/x; mv $F/x $F/$(git hash-object mine.local)"]
    {
        let world = world(&format!("F=.git/ralph/ignored/mine.local; rm -rf $F; {plant}"));
        world.run(&["--once"]);
        assert_eq!(world.passing(), ["US-001"]);
        let script = fs::read_to_string(world.script()).unwrap();
        let script = script.replace("echo b > b.txt", "echo b > b.txt; rm mine.local");
        fs::write(world.script(), script).unwrap();
        let said = world.run(&[]);
        assert_eq!(said.code, 0, "{plant}: {}", said.err);
        is_complete(&world, &format!("{plant}: {}", said.err));
    }
}

#[test]
fn a_number_that_no_snapshot_can_have_is_not_taken() {
    let world = world("echo 18446744073709551615 > .git/ralph/numbers");
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    is_complete(&world, &said.err);
    let said = world.ralph(&["checkpoint"]);
    assert!(said.out.starts_with("saved snapshot ") && said.out.len() < 80, "{}", said.out);
}

/// The human's ignored file, once the rules do not name it any more.
#[test]
fn a_lost_list_of_ignored_files_is_written_again() {
    for kill in [true, false] {
        let hang = if kill { "exec sleep 1000" } else { "exit 0" };
        let act = format!(
            "test -e ../here || {{ : > .git/ralph/beside; sed -i /conf/d .gitignore; \
             echo y > ../here; {hang}; }}"
        );
        let world = world(&act);
        world.write("conf/db", "theirs\n");
        if kill {
            kill_when_here(&world);
        } else {
            world.run(&["--max-iterations", "1"]);
        }
        let said = world.run(&[]);
        assert_eq!(said.code, 0, "{}", said.err);
        let committed = world.git(&["log", "--all", "--format=", "--name-only"]);
        assert!(!committed.contains("conf/db"), "{committed}{}", said.err);
        let objects = world.git(&["cat-file", "--batch-all-objects", "--batch-check"]);
        let id = world.git(&["hash-object", "conf/db"]);
        assert!(!objects.contains(id.trim()), "{}", said.err);
        assert_eq!(world.read("conf/db"), "theirs\n");
    }
}

#[test]
fn stories_of_a_large_backlog_do_not_disappear_with_a_kill() {
    let world =
        world("test -e ../here || { cp ../small PRD.json; echo y > ../here; exec sleep 1000; }");
    let large = Prd::stories(2).text();
    let padding = format!("\"project\": \"demo\", \"notes\": \"{}\"", "x".repeat(1_200_000));
    let text = large.replacen("\"project\": \"demo\"", &padding, 1);
    world.write("PRD.json", &text);
    world.git(&["commit", "-qam", "a large backlog"]);
    let small = Prd::stories(1).text().replace("\"passes\": false", "\"passes\": true");
    world.write("../small", &small);
    kill_when_here(&world);
    let said = world.run(&[]);
    assert_eq!(said.code, 4, "{}", said.err);
    assert!(world.read("PRD.json").contains("US-002"), "{}", said.err);
}
