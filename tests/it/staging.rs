//! What may become a part of a story's commit.

use std::fs;

use serde_json::json;

use crate::support::pty::Terminal;
use crate::support::{Prd, World};

/// One story whose attempts run these commands, one after the other.
fn agent(commands: &[&str]) -> World {
    let attempt = |command: &&str| {
        format!("[[story.US-001.attempts]]\nsteps = [{{ run = '''{command}''' }}, \"complete\"]\n")
    };
    let script: String = commands.iter().map(attempt).collect();
    World::scripted(&Prd::stories(1), &script)
}

fn committed(world: &World) -> String {
    world.git(&["show", "--name-only", "--format=", "HEAD"])
}

#[test]
fn files_left_out_by_name_are_reported_once_and_the_story_closes() {
    let litter = "mkdir -p web/node_modules/x target; echo A=1 > .env; echo k > server.pem; \
                  echo j > web/node_modules/x/i.js; echo t > target/t; echo s > .a.swp; \
                  echo x > $RALPH_STORY.txt; date >> target/u";
    let script = format!("[default]\nsteps = [{{ run = '''{litter}''' }}, \"complete\"]\n");
    let world = World::scripted(&Prd::stories(2), &script);
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(committed(&world), "PRD.json\nUS-002.txt\n");
    assert_eq!(world.git(&["ls-files", ".env", "target", "web"]), "");
    for path in [".env", "server.pem", "target", "web/node_modules", ".a.swp"] {
        let line = format!("] {path} was not committed");
        assert_eq!(said.err.matches(&line).count(), 1, "{path}: {}", said.err);
    }
    assert_eq!(world.read(".env"), "A=1\n", "it stays where it is");
    let told = world.notices();
    assert_eq!(told[0]["kind"], "files_left_out");
    let folder = json!({ "path": "target", "files": 2, "why": "name" });
    assert!(told[0]["files"].as_array().unwrap().contains(&folder), "{told:?}");
}

#[test]
fn what_is_tracked_or_an_example_stays_committable() {
    let world = agent(&["echo B= >> .env.example; echo B=2 >> .env"]);
    world.write(".env", "A=1\n");
    world.write(".env.example", "A=\n");
    world.git(&["add", "-f", "."]);
    world.git(&["commit", "-qm", "known"]);
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(committed(&world), ".env\n.env.example\nPRD.json\n");
    assert!(!said.err.contains("was not committed"), "{}", said.err);
}

#[test]
fn names_can_be_added_and_taken_out() {
    let world = agent(&["mkdir target; echo t > target/t; echo l > a.log; echo x > x"]);
    world.write("ralph.toml", "never_commit = [\"*.log\", \"!target/\"]\n");
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(committed(&world), "PRD.json\ntarget/t\nx\n");
    assert!(said.err.contains("a.log was not committed"), "{}", said.err);
}

#[test]
fn a_large_file_is_refused_once_and_the_next_attempt_removes_it() {
    let world = agent(&["head -c 10000001 /dev/zero > big; echo x > x", "rm big"]);
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    let why = "it cannot be committed: `big` is too large: 10.1 MB (limit 10 MB)";
    assert!(said.err.contains(why), "{}", said.err);
    assert!(world.prompt(2).contains(why), "{}", world.prompt(2));
    assert_eq!(committed(&world), "PRD.json\nx\n");
}

#[test]
fn a_file_of_almost_the_limit_is_fine_and_the_limit_is_settable() {
    let world = agent(&["head -c 9900000 /dev/zero > big"]);
    let said = world.run(&[]);
    assert_eq!((said.code, world.iteration_files("prompt.md").len()), (0, 1), "{}", said.err);
    assert_eq!(committed(&world), "PRD.json\nbig\n");
    let world = agent(&["head -c 1001 /dev/zero > big", "truncate -s 1000 big"]);
    world.write("ralph.toml", "max_file_size = \"1KB\"\n");
    let said = world.run(&[]);
    assert_eq!((said.code, world.iteration_files("prompt.md").len()), (0, 2), "{}", said.err);
}

/// Put together here, so that this file has none.
fn a_key() -> String {
    ["AKIA", "Q7RTWXKP4ZSLD2VF"].concat()
}

#[test]
fn what_looks_like_a_secret_is_neither_committed_nor_shown() {
    let key = a_key();
    let world = agent(&[&format!("echo 'id = {key}' > aws.txt"), "echo 'id = from env' > aws.txt"]);
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    let why = "it cannot be committed: `aws.txt` seems to contain a secret (";
    assert!(world.prompt(2).contains(why), "{}", world.prompt(2));
    assert!(!said.err.contains(&key) && !world.prompt(2).contains(&key));
    assert_eq!(world.git(&["show", "HEAD:aws.txt"]), "id = from env\n");
}

#[test]
fn a_secret_that_was_committed_before_is_no_reason_to_refuse() {
    let world = agent(&["echo more >> aws.txt"]);
    world.write("aws.txt", &format!("id = {}\n", a_key()));
    world.git(&["add", "."]);
    world.git(&["commit", "-qm", "known"]);
    let said = world.run(&[]);
    assert_eq!((said.code, world.iteration_files("prompt.md").len()), (0, 1), "{}", said.err);
}

#[test]
fn too_many_new_files_are_asked_about_the_second_time_and_can_be_accepted() {
    let world = agent(&["for i in $(seq 2001); do echo $i > f$i; done", "true"]);
    let said = world.run(&[]);
    assert_eq!(said.code, 4, "{}", said.err);
    assert_eq!(world.iteration_files("prompt.md").len(), 2);
    assert!(world.prompt(2).contains("2001 new files are too many (limit 2000)"));
    assert!(said.err.contains("Is US-001 done?"), "{}", said.err);
    assert!(!world.path("f1").exists(), "its work is kept out of the way");
    let mut terminal = Terminal::start(world.run_command(&[]));
    terminal.await_text("[y] accept it as done");
    terminal.press("y");
    let (code, screen) = terminal.finish();
    assert_eq!(code, 0, "{screen}");
    assert_eq!(committed(&world).lines().count(), 2002);
    assert_eq!(world.passing(), ["US-001"]);
}

#[test]
fn a_few_less_are_fine() {
    let world = agent(&["for i in $(seq 1999); do echo $i > f$i; done"]);
    let said = world.run(&[]);
    assert_eq!((said.code, world.iteration_files("prompt.md").len()), (0, 1), "{}", said.err);
    assert_eq!(committed(&world).lines().count(), 2000);
}

#[test]
fn a_file_that_goes_through_a_filter_is_asked_about_the_second_time() {
    let world = agent(&["echo raw > a.bin; echo x > x", "true"]);
    world.write(".gitattributes", "*.bin filter=lfs\n");
    world.git(&["config", "filter.lfs.clean", "cat"]);
    world.git(&["add", "."]);
    world.git(&["commit", "-qm", "attributes"]);
    let mut terminal = Terminal::start(world.run_command(&[]));
    terminal.await_text("[y] accept it as done");
    assert!(world.prompt(2).contains("`a.bin` needs the git filter `lfs`"));
    terminal.press("y");
    let (code, screen) = terminal.finish();
    assert_eq!(code, 0, "{screen}");
    assert_eq!(committed(&world), "PRD.json\nx\n", "the raw bytes are not committed");
    assert_eq!(fs::read(world.path("a.bin")).unwrap(), b"raw\n");
}

#[test]
fn an_agents_own_commit_does_not_get_past_the_rules() {
    let commit = "git -c user.name=a -c user.email=a@a commit -qm own";
    let first = format!("echo A=1 > .env; git add -f .env; {commit}; echo x > x");
    let second = "git reset -q --soft HEAD^; git rm -q --cached .env";
    let world = agent(&[&first, second]);
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(world.prompt(2).contains("`.env` must not be committed"), "{}", world.prompt(2));
    assert_eq!(committed(&world), "PRD.json\nx\n");
    assert_eq!(world.git(&["log", "--format=%s", "--", ".env"]), "");
}
