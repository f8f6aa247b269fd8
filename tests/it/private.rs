//! Files of the user's that no commit has, written over by agents and gates.

use std::fs;

use crate::support::{Prd, World};

use super::hostile::kill_when_here;

const MINE: [(&str, &str); 7] = [
    (".env", "URL=mine\n"),
    ("tls/own.key", "a key\n"),
    ("prod.env", "URL=prod\n"),
    ("notes.md", "mine\n"),
    ("report.json", "{}\n"),
    ("run.log", "one\n"),
    ("dev.sqlite3", "rows\n"),
];
const OVERWRITE: &str = "for file in .env tls/own.key prod.env notes.md report.json run.log dev.sqlite3; do echo evil > $file; done";

/// All but `prod.env` are ignored.
fn world(script: &str) -> World {
    let world = World::scripted(&Prd::stories(1), script);
    world.write(".gitignore", ".env\ntls/\nnotes.md\nreport.json\n*.log\n*.sqlite3\n");
    world.git(&["add", "."]);
    world.git(&["commit", "-qm", "rules"]);
    for (name, text) in MINE {
        world.write(name, text);
    }
    world
}

fn are_back(world: &World, err: &str) {
    for (name, text) in MINE.into_iter().take(3) {
        assert_eq!(world.read(name), text, "{name}: {err}");
    }
}

#[test]
fn what_an_agent_wrote_over_is_put_back_or_named() {
    let act = format!("{OVERWRITE}; echo w > w.txt");
    let world = world(&format!("[default]\nsteps = [{{ run = '''{act}''' }}, \"complete\"]\n"));
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    are_back(&world, &said.err);
    let told = "restored private files that the agent changed: .env, tls/own.key, prod.env · \
                the agent's version: .git/ralph/changed/";
    assert!(said.err.contains(told), "{}", said.err);
    let told = "the agent changed ignored files of yours: notes.md · earlier versions are in \
                .git/ralph/ignored";
    assert!(said.err.contains(told), "{}", said.err);
    assert_eq!(world.read("notes.md"), "evil\n", "it may have been asked to");
    for name in ["report.json", "run.log", "dev.sqlite3"] {
        assert!(!said.err.contains(name), "{name}: {}", said.err);
    }
    let kept = fs::read_dir(world.path(".git/ralph/changed")).unwrap().flatten();
    let kept: Vec<_> = kept.filter_map(|run| fs::read(run.path().join(".env")).ok()).collect();
    assert_eq!(kept, [b"evil\n"]);
}

#[test]
fn it_is_put_back_after_a_kill() {
    let act = format!("{OVERWRITE}; echo y > ../here");
    let world = world(&format!("[default]\nsteps = [{{ run = '''{act}''' }}, \"hang\"]\n"));
    kill_when_here(&world);
    assert_eq!(world.read(".env"), "evil\n");
    fs::remove_file(world.script()).unwrap();
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    are_back(&world, &said.err);
    assert!(said.err.contains("restored private files"), "{}", said.err);
}

#[test]
fn gates_change_no_private_file() {
    let world = world("[default]\nsteps = [{ write = \"w.txt\", text = \"w\" }, \"complete\"]\n");
    world.write("ralph.toml", &format!("verify = [\"test -e w.txt && {{ {OVERWRITE}; }}\"]\n"));
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    are_back(&world, &said.err);
    assert!(said.err.contains("restored private files that the gates changed"), "{}", said.err);
    assert!(!said.err.contains("ignored files of yours"), "{}", said.err);
}
