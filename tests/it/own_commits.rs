//! An agent that commits by itself.

use ralph::model::Event;

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
