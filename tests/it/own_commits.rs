//! An agent that commits by itself.

use ralph::model::Event;

use crate::support::pty::Terminal;
use crate::support::world::Runs;
use crate::support::{Prd, World};

/// One story whose attempts run these commands, one after the other.
fn agent(commands: &[&str]) -> World {
    let attempt = |command: &&str| {
        format!("[[story.US-001.attempts]]\nsteps = [{{ run = '''{command}''' }}, \"complete\"]\n")
    };
    let script: String = commands.iter().map(attempt).collect();
    World::scripted(&Prd::stories(1), &script)
}

#[test]
fn clean_commits_stay_as_they_are() {
    let world = agent(&["echo a > a; git add a; git commit -qm own-1; echo b > b; git add b; \
                         git commit -qm own-2"]);
    world.write("notes.txt", "mine\n");
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(world.subjects(), ["US-001: Story 1", "own-2", "own-1", "backlog", "first"]);
    assert_eq!(world.git(&["for-each-ref", "refs/ralph/attempts"]), "");
    assert!(!said.err.contains("replaced"), "{}", said.err);
}

#[test]
fn everything_added_at_once_takes_nothing_of_the_users_along() {
    let world = agent(&["echo a > a; git add -A; git commit -qm own; echo b > b"]);
    world.write("README.md", "hello\nmy edit\n");
    world.write("notes.txt", "mine\n");
    let before = world.status();
    let said = world.run(&["--allow-dirty"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(world.subjects(), ["US-001: Story 1", "backlog", "first"]);
    let files = world.git(&["show", "--name-only", "--format=", "HEAD"]);
    assert_eq!((files.as_str(), world.status()), ("PRD.json\na\nb\n", before));
    let line = "US-001: replaced 1 commit of the agent by one without your README.md and 1 more \
                · kept at refs/ralph/attempts/US-001/1";
    assert_eq!(said.err.matches(line).count(), 1, "{}", said.err);
    assert_eq!(world.git(&["log", "-1", "--format=%s", "refs/ralph/attempts/US-001/1^"]), "own\n");
    assert_eq!(world.notices()[0]["kind"], "commits_replaced");
    assert_eq!(world.ralph(&["undo", "US-001"]).code, 0);
    assert!(!world.path("a").exists() && world.path("notes.txt").exists());
}

#[test]
fn a_secret_that_a_later_attempt_removed_is_in_no_history() {
    // Put together here, so that this file has none.
    let key = ["AKIA", "Q7RTWXKP4ZSLD2VF"].concat();
    let first = format!("echo 'id = {key}' > aws.txt; git add aws.txt; git commit -qm own");
    let world = agent(&[&first, "echo 'id = from env' > aws.txt; git commit -qam own-2"]);
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(world.iteration_files("prompt.md").len(), 2);
    assert_eq!(world.subjects(), ["US-001: Story 1", "backlog", "first"]);
    assert!(said.err.contains("by one without a secret in aws.txt"), "{}", said.err);
    assert_eq!(world.git(&["show", "HEAD:aws.txt"]), "id = from env\n");
    no_ref_reaches(&world, &key);
}

/// Neither a commit nor an object.
fn no_ref_reaches(world: &World, text: &str) {
    assert!(!world.git(&["log", "--all", "-p", "-m"]).contains(text));
    for line in world.git(&["rev-list", "--all", "--objects"]).lines() {
        let id = line.split(' ').next().unwrap();
        let object = world.git(&["cat-file", "-p", id]);
        assert!(!object.contains(text), "{line} {}", world.git(&["for-each-ref"]));
    }
}

/// Uncommitted, at the ref of a failed attempt; the rest of it stays there.
#[test]
fn work_that_was_kept_with_a_secret_is_kept_without_it_from_the_close_on() {
    let key = ["AKIA", "Q7RTWXKP4ZSLD2VF"].concat();
    let first = format!("echo 'id = {key}' > aws.txt; echo o > other");
    let world = agent(&[&first, "echo 'id = from env' > aws.txt; echo p > other"]);
    world.write("mine.txt", &format!("id = {key}-of-mine\n"));
    let said = world.run(&["--allow-dirty"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(world.git(&["show", "refs/ralph/attempts/US-001/1:other"]), "o\n");
    let found = world.command("git").args(["show", "refs/ralph/attempts/US-001/1:aws.txt"]).said();
    assert_ne!(found.code, 0, "{}", found.out);
    assert!(world.git(&["rev-list", "--all", "--objects"]).contains("mine.txt"), "for restoring");
}

/// Restored, in a file or in the backlog: it is in no commit of the branch either.
#[test]
fn commits_with_a_change_that_was_not_accepted_are_replaced() {
    for (act, path) in [
        (
            "mkdir -p .claude; echo '{ \"env\": { \"X\": \"sly\" } }' > .claude/settings.json; git add -f .claude",
            ".claude/settings.json",
        ),
        ("echo 'true # sly' > check.sh; git add check.sh", "check.sh"),
        ("echo sly > guarded.txt; git add guarded.txt", "guarded.txt"),
        ("sed -i 's/it is done/sly/' PRD.json; git add PRD.json", "PRD.json"),
    ] {
        let world = agent(&[&format!("{act}; git commit -qm s; echo w > w"), "true"]);
        world.write("check.sh", "test -e w\n");
        world.write("guarded.txt", "mine\n");
        world.write("ralph.toml", "verify = [\"sh check.sh\"]\nprotect = [\"guarded.txt\"]\n");
        world.git(&["add", "."]);
        world.git(&["commit", "-qm", "settings"]);
        let mut terminal = Terminal::start(world.run_command(&[]));
        let screen = terminal.await_text("[r] restore the original");
        assert!(screen.contains("[a]"), "{act}: {screen}");
        terminal.press("\r");
        let (code, screen) = terminal.finish();
        assert_eq!(code, 0, "{act}: {screen}");
        assert_eq!(world.subjects()[0..2], ["US-001: Story 1", "settings"], "{act}: {screen}");
        let log = world.git(&["log", "-p", "--format="]);
        assert!(!log.contains("sly"), "{act}: {log}");
        let replaced = world.notices().into_iter().find(|one| one["kind"] == "commits_replaced");
        let unclean = &replaced.expect("a notice")["unclean"][0];
        assert_eq!((&unclean["why"], &unclean["path"]), (&"held".into(), &path.into()), "{act}");
        assert_eq!(world.status(), "", "{act}");
    }
}

/// It may be the human's, so it stays on the branch; but nothing is closed silently on top of it.
#[test]
fn a_commit_without_the_marker_that_has_the_users_files_is_asked_about() {
    let act = "echo w > w.txt; env -u GIT_REFLOG_ACTION git add -A; \
               env -u GIT_REFLOG_ACTION git commit -qm all; echo z > z.txt";
    let script = format!("[default]\nsteps = [{{ run = \"{act}\" }}, \"complete\"]\n");
    let world = World::scripted(&Prd::stories(1), &script);
    world.write("notes.txt", "mine\n");
    let said = world.run(&[]);
    assert_eq!(said.code, 4, "{}", said.err);
    assert_eq!(world.subjects()[0], "all");
    let asked = world.journal().into_iter().find_map(|one| match one.event {
        Event::QuestionRaised { question, .. } => Some(question),
        _ => None,
    });
    let context = asked.unwrap().context;
    assert!(context.contains("(all), made while it worked, has `notes.txt`"), "{context}");
}
