//! What agents do behind the driver's back, and what is left after a crash.

use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};

use ralph::model::{Event, Recorded, StoryId};
use ralph::store::Journal;

use crate::support::world::{Ends, Runs, Said, signal, until};
use crate::support::{Prd, World};

const COMPLETE: &str =
    "[default]\nsteps = [{ run = \"echo work >> $RALPH_STORY.txt\" }, \"complete\"]\n";
const ALL_TRUE: &str = r#"sed -i 's/\"passes\": false/\"passes\": true/' PRD.json"#;

/// Runs until the agent says that it is where the test wants it, then kills the driver.
fn killed(world: &World, steps: &str) {
    let script =
        format!("[default]\nsteps = [{steps}, {{ run = \"echo y > ../here\" }}, \"hang\"]\n");
    std::fs::write(world.script(), script).unwrap();
    let mut child = world.start(&[]);
    world.await_file("../here");
    child.kill().unwrap();
    child.code();
    until("every process to be gone", || world.processes().is_empty().then_some(()));
}

/// The story's claim is accepted; a lock that this process has open keeps the driver from closing it
/// until it is killed.
fn killed_before_its_commit(world: &World) {
    let waits = "echo y > ../here; until [ -e .git/index.lock ]; do sleep 0.01; done";
    let script = format!(
        "[default]\nsteps = [{{ write = \"a.txt\", text = \"a\" }}, {{ run = \"{waits}\" }}, \"complete\"]\n"
    );
    std::fs::write(world.script(), script).unwrap();
    let lock = world.path(".git/index.lock");
    let _held = std::thread::scope(|scope| {
        let held = scope.spawn(|| {
            world.await_file("../here");
            std::fs::File::create(&lock).unwrap()
        });
        world.kill_run_at(|event| matches!(event, Event::ClosePlanned { .. }));
        held.join().unwrap()
    });
    std::fs::remove_file(lock).unwrap();
}

fn continued(world: &World, script: &str) -> Said {
    std::fs::write(world.script(), script).unwrap();
    world.run(&[])
}

#[test]
fn marks_of_an_agent_whose_driver_was_killed_do_not_count() {
    let world = World::with(&Prd::stories(2));
    killed(&world, &format!("{{ run = '''{ALL_TRUE}''' }}").replace("\\\"", "\""));
    assert_eq!(world.passing(), ["US-001", "US-002"]);
    let said = continued(&world, COMPLETE);
    assert_eq!(said.code, 0, "{}", said.err);
    for found in [
        "the last process died in iteration 1 (US-001)",
        "unfinished work on US-001 is in the work tree: its next attempt continues it",
    ] {
        assert!(said.err.contains(found), "`{found}` is not in {}", said.err);
    }
    assert_eq!(world.subjects(), ["US-002: Story 2", "US-001: Story 1", "backlog", "first"]);
}

#[test]
fn a_lock_that_a_killed_ralph_left_is_removed_and_named() {
    let world = World::with(&Prd::stories(1));
    let lock = world.path(".git").canonicalize().unwrap().join("index.lock");
    // Of a process before the system was started the last time.
    world.write(".git/ralph/writing-7-1-before", lock.to_str().unwrap());
    world.write(".git/index.lock", "");
    let said = continued(&world, COMPLETE);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.err.contains("index.lock`, left behind by a killed process"), "{}", said.err);
    assert!(!lock.exists() && !world.path(".git/ralph/writing-7-1-before").exists());
}

#[test]
fn a_lock_of_the_agents_git_that_was_ended_with_it_is_removed() {
    let world = World::with(&Prd::stories(1));
    killed(&world, "{ run = \"touch .git/index.lock\" }");
    let said = continued(&world, COMPLETE);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.err.contains("index.lock`, left behind by a killed process"), "{}", said.err);

    let world = World::scripted(
        &Prd::stories(1),
        "[default]\nsteps = [{ run = \"touch .git/index.lock; echo y > ../here\" }, \"hang\"]\n",
    );
    let mut child = world.start(&[]);
    world.await_file("../here");
    signal(&child, rustix::process::Signal::TERM);
    assert_eq!(child.code(), 143);
    assert!(!world.path(".git/index.lock").exists());
}

#[test]
fn marks_in_a_file_that_was_broken_meanwhile_do_not_count() {
    let script = r#"
        [[story.US-001.attempts]]
        steps = [{ run = '''sed -i 's/"passes": false/"passes": true/; $d' PRD.json; echo x > x''' }]
        [[story.US-001.attempts]]
        steps = [{ run = "echo '}' >> PRD.json" }, "complete"]
    "#;
    let world = World::scripted(&Prd::stories(2), script);
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(world.subjects(), ["US-002: Story 2", "US-001: Story 1", "backlog", "first"]);
}

#[test]
fn marks_of_a_human_between_runs_count() {
    let world = World::with(&Prd::stories(3));
    assert_eq!(world.run(&["--once"]).code, 3);
    let text = world.read("PRD.json").replacen("\"passes\": false", "\"passes\": true", 1);
    world.write("PRD.json", &text);
    assert_eq!(world.run(&[]).code, 0);
    assert_eq!(world.subjects()[0], "US-003: Story 3");
    assert_eq!(world.subjects()[1], "US-001: Story 1");
}

#[test]
fn a_story_that_vanishes_during_an_attempt_is_reported() {
    let world = World::with(&Prd::stories(2));
    world.write("../less.json", &Prd::stories(1).text());
    let script = "[default]\nsteps = [{ run = \"cp ../less.json PRD.json\" }, { run = \"echo work >> $RALPH_STORY.txt\" }, \"complete\"]\n";
    let said = continued(&world, script);
    assert!(said.err.contains("US-002 disappeared from the backlog"), "{}", said.err);
    let held = |one: &Recorded| matches!(&one.event, Event::ChangesHeld { story, .. } if story.as_str() == "US-001");
    assert!(world.journal().iter().any(held));
    // Fewer stories make a backlog look done: the claim waits for the human.
    assert_eq!(said.code, 4, "{}", said.err);
    assert_eq!(world.passing(), [""; 0]);
    assert_eq!(world.subjects(), ["backlog", "first"]);
}

#[test]
fn an_accepted_claim_is_not_given_to_another_story_of_the_same_id() {
    let world = World::with(&Prd::stories(1));
    killed_before_its_commit(&world);
    let other = Prd::stories(1).text().replace("\"demo\"", "\"other\"").replace("Story 1", "New");
    world.write("PRD.json", &other);
    let said = continued(
        &world,
        "[default]\nsteps = [{ write = \"b.txt\", text = \"b\" }, \"complete\"]\n",
    );
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(
        world.git(&["show", "--name-only", "--format=%s", "HEAD"]),
        "US-001: New\n\nPRD.json\nb.txt\n"
    );
    assert_eq!(world.git(&["show", "refs/ralph/attempts/US-001/1:a.txt"]), "a");
}

#[test]
fn a_close_that_was_cut_off_is_finished_once() {
    let world = World::with(&Prd::stories(1));
    killed_before_its_commit(&world);
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(world.subjects(), ["US-001: Story 1", "backlog", "first"]);
    assert_eq!(world.git(&["show", "HEAD:a.txt"]), "a");
    assert_eq!(world.status(), "");
}

/// As a driver leaves it that is killed right after its commit; returns the commit.
fn killed_after_its_commit(world: &World) -> String {
    killed_before_its_commit(world);
    let marked = world.read("PRD.json").replacen("\"passes\": false", "\"passes\": true", 1);
    world.write("PRD.json", &marked);
    world.git(&["add", "."]);
    let message = "US-001: Story 1\n\nRalph-Story: US-001\nRalph-Backlog: PRD.json\n";
    world.git(&["commit", "-qm", message]);
    let commit = world.git(&["rev-parse", "HEAD"]).trim().to_owned();
    let run = world.state()["run"].as_str().unwrap().to_owned();
    let mut journal = world.store().journal("PRD.json").unwrap();
    let story = StoryId::try_from("US-001").unwrap();
    let prepared = Event::CommitPrepared { story, commit: commit.clone() };
    journal.append(&run, 0, &[prepared]).unwrap();
    commit
}

fn closed(world: &World) -> Option<String> {
    world.journal().into_iter().find_map(|recorded| match recorded.event {
        Event::StoryClosed(closed) => Some(closed.commit),
        _ => None,
    })
}

#[test]
fn a_commit_that_was_not_confirmed_is_found_and_not_made_again() {
    let world = World::with(&Prd::stories(1));
    let commit = killed_after_its_commit(&world);
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(world.subjects(), ["US-001: Story 1", "backlog", "first"]);
    assert_eq!(world.git(&["rev-parse", "HEAD"]).trim(), commit);
    assert_eq!(closed(&world), Some(commit));
    assert_eq!(world.passing(), ["US-001"]);
}

/// Another project is another run, and the story goes on in it.
#[test]
fn a_commit_that_was_not_confirmed_is_found_by_another_run_too() {
    let world = World::with(&Prd::stories(1));
    let commit = killed_after_its_commit(&world);
    world.write("PRD.json", &Prd::stories(1).text().replace("\"demo\"", "\"other\""));
    let said = world.run(&["--allow-dirty"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(world.subjects(), ["US-001: Story 1", "backlog", "first"]);
    assert_eq!(closed(&world), Some(commit));
}

#[test]
fn a_commit_is_not_made_again_if_the_backlog_is_edited_while_it_is_confirmed() {
    let world = World::with(&Prd::stories(2));
    killed_after_its_commit(&world);
    // A mark may get lost between these edits. Then the story is open again, and nobody works on it.
    let script = "[default]\nsteps = [{ say = \"no\" }]\n";
    std::fs::write(world.script(), script).unwrap();
    let (path, next) = (world.path("PRD.json"), world.path("../next.json"));
    let text = world.read("PRD.json").replace("\"passes\": true", "\"passes\": false");
    let is_over = AtomicBool::new(false);
    let mut child = world.start(&["--allow-dirty", "--max-iterations", "1"]);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for edit in 0.. {
                let edited = text.replace("Story 2", &format!("Story 2, {edit}"));
                std::fs::write(&next, edited).unwrap();
                std::fs::rename(&next, &path).unwrap();
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
            }
        });
        until("the run to try it", || {
            let continued = |one: &Recorded| one.event == Event::RunContinued;
            world.journal().iter().any(continued).then_some(())
        });
        // It tries again and again, and gets its way when the edits are over.
        is_over.store(true, Ordering::Relaxed);
    });
    child.code();
    assert_eq!(
        world.git(&["log", "--format=%s", "--grep", "Ralph-Story: US-001"]),
        "US-001: Story 1\n"
    );
}

#[test]
fn two_backlogs_of_the_same_name_outside_are_two() {
    let world = World::new();
    world.write("../one/PRD.json", &Prd::stories(1).text());
    world.write("../two/PRD.json", &Prd::stories(1).text());
    std::fs::write(world.script(), "[default]\nsteps = [{ write = \"half.txt\", text = \"x\" }]\n")
        .unwrap();
    assert_eq!(world.run(&["../one/PRD.json", "--once"]).code, 3);
    std::fs::remove_file(world.script()).unwrap();
    std::fs::remove_file(world.path("half.txt")).unwrap();
    let said = world.run(&["../two/PRD.json"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(world.read("../one/PRD.json").contains("\"passes\": false"));
    assert_eq!(world.git(&["show", "--name-only", "--format=", "HEAD"]), "mock/US-001.md\n");
}

#[test]
fn a_corrected_title_keeps_the_storys_work() {
    let world = World::scripted(
        &Prd::stories(1),
        "[default]\nsteps = [{ write = \"half.txt\", text = \"x\" }]\n",
    );
    assert_eq!(world.run(&["--once"]).code, 3);
    world.write("PRD.json", &world.read("PRD.json").replace("Story 1", "Better 1"));
    assert_eq!(continued(&world, "[default]\nsteps = [\"complete\"]\n").code, 0);
    assert_eq!(
        world.git(&["show", "--name-only", "--format=%s", "HEAD"]),
        "US-001: Better 1\n\nPRD.json\nhalf.txt\n"
    );
}

#[test]
fn an_agents_commit_stays_the_agents_after_a_crash() {
    let world = World::with(&Prd::stories(1));
    killed(&world, "{ run = \"echo a > a.txt; git add a.txt; git commit -qm wip\" }");
    let asks = "[default]\nsteps = [{ escalate = { type = \"stuck\", summary = \"s\", question = \"q\" } }]\n";
    assert_eq!(continued(&world, asks).code, 4);
    assert_eq!(world.subjects(), ["backlog", "first"]);
    assert_eq!(world.git(&["show", "refs/ralph/attempts/US-001/1:a.txt"]), "a\n");
}

#[test]
fn a_run_belongs_to_its_branch() {
    let world = World::with(&Prd::stories(1));
    killed(&world, "{ run = \"echo a > a.txt\" }");
    world.git(&["checkout", "-qb", "elsewhere"]);
    let said = continued(&world, COMPLETE);
    assert_eq!(said.code, 1, "{}", said.err);
    assert!(said.err.contains("git switch work"), "{}", said.err);
    world.git(&["switch", "-q", "work"]);
    assert_eq!(world.run(&[]).code, 0);
    assert_eq!(world.subjects()[0], "US-001: Story 1");
}

#[test]
fn a_branch_without_the_backlog_is_refused_before_the_work() {
    let world = World::with(&Prd::stories(1));
    world.git(&["checkout", "-qb", "bare"]);
    world.git(&["rm", "-q", "PRD.json"]);
    world.git(&["commit", "-qm", "no backlog"]);
    world.git(&["checkout", "-q", "work"]);
    let said = world.run(&["--branch", "bare"]);
    assert_eq!(said.code, 1, "{}", said.err);
    assert!(said.err.contains("no file `PRD.json`"), "{}", said.err);
}

#[test]
fn a_second_run_does_not_switch_the_branch_under_the_first() {
    let world = World::with(&Prd::stories(1));
    let script = "[default]\nsteps = [{ run = \"echo y > ../here\" }, \"hang\"]\n";
    std::fs::write(world.script(), script).unwrap();
    let child = world.start(&[]);
    world.await_file("../here");
    let said = world.run(&["--branch", "other"]);
    assert_eq!(said.code, 1, "{}", said.err);
    assert!(said.err.contains("another `ralph run`"), "{}", said.err);
    assert_eq!(world.git(&["branch", "--show-current"]), "work\n");
    signal(&child, rustix::process::Signal::INT);
    assert_eq!(child.ended().code, 130);
}

#[test]
fn what_cannot_be_committed_is_the_next_attempts_business() {
    let world = World::with(&Prd::stories(2));
    let script = r#"
        [[story.US-001.attempts]]
        steps = [
          { run = "git checkout -qb side; echo side > README.md; git commit -qam side; git checkout -q work; echo main > README.md; git commit -qam main; git merge side || true" },
          "complete",
        ]
        [[story.US-001.attempts]]
        steps = [{ run = "echo both > README.md; git add README.md; git commit -qm merged" }, "complete"]
    "#;
    let said = continued(&world, script);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.err.contains("US-001 cannot be closed: a merge is in progress"), "{}", said.err);
    assert!(world.prompt(2).contains("a merge is in progress"), "{}", world.prompt(2));
}

#[test]
fn a_nested_repository_is_left_out_and_reported() {
    let script = "[default]\nsteps = [{ run = \"mkdir app; cd app; git init -q; echo x > x\" }, { run = \"echo work >> $RALPH_STORY.txt\" }, \"complete\"]\n";
    let world = World::scripted(&Prd::stories(1), script);
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.err.contains("app/ was not committed: it is a nested repository"), "{}", said.err);
}

#[test]
fn what_a_human_finished_by_hand_stays_in_the_tree() {
    let world = World::scripted(
        &Prd::stories(2),
        "[default]\nsteps = [{ write = \"half.txt\", text = \"x\" }]\n",
    );
    assert_eq!(world.run(&["--once"]).code, 3);
    let text = world.read("PRD.json").replacen("\"passes\": false", "\"passes\": true", 1);
    world.write("PRD.json", &text);
    let said = continued(&world, COMPLETE);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.err.contains("you marked US-001 as passing"), "{}", said.err);
    assert_eq!(world.read("half.txt"), "x");
    assert!(!world.git(&["ls-files"]).contains("half.txt"));
}

#[test]
fn a_supervisor_that_must_end_ends_its_agent_too() {
    let world = World::with(&Prd::stories(1));
    let script = "[default]\nsteps = [{ run = \"cut -d' ' -f4 /proc/$PPID/stat > ../supervisor; echo y > ../here\" }, \"hang\"]\n";
    std::fs::write(world.script(), script).unwrap();
    let child = world.start(&["--once"]);
    world.await_file("../here");
    let pid: i32 = world.read("../supervisor").trim().parse().unwrap();
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let said = child.ended();
    assert_eq!(said.code, 3, "{}", said.err);
    assert!(world.processes().is_empty(), "{:?}", world.processes());
}

#[test]
fn a_stopped_or_killed_supervisor_does_not_hang_the_run() {
    for (how, code, told) in [("STOP", 3, ""), ("KILL", 1, "the agent's supervisor was killed")] {
        let world = World::with(&Prd::stories(1));
        world.write("ralph.toml", "iteration_timeout = \"1s\"\n");
        let script = format!(
            "[default]\nsteps = [{{ run = \"kill -{how} $(cut -d' ' -f4 /proc/$PPID/stat)\" }}, \"hang\"]\n"
        );
        std::fs::write(world.script(), script).unwrap();
        let said = world.run(&["--once"]);
        assert_eq!(said.code, code, "{how}: {}", said.err);
        assert!(said.err.contains(told), "{how}: {}", said.err);
        until("every process to be gone", || world.processes().is_empty().then_some(()));
    }
}

#[test]
fn an_echo_that_lost_its_indentation_is_no_claim() {
    let world = World::with(&Prd::stories(1));
    let agent = r#"sh -c 'sed "s/^[ \t]*//"; touch new'"#;
    let said = world.ralph(&["run", "--once", "--agent-command", agent]);
    assert_eq!(said.code, 3, "{}", said.err);
    let log = world.iteration_files(".log").concat();
    assert!(log.lines().any(|line| line == "Task US-001 complete"), "{log}");
    assert_eq!(world.passing(), [""; 0]);
    assert!(world.path("new").exists(), "there was something to close it with");
    world.heard_no_claim();
}

#[test]
fn a_dry_run_has_its_exit_code_even_when_nobody_reads() {
    let world = World::scripted(&Prd::stories(1), crate::escalation::ASKS);
    let script = world.script();
    let mut command = world.command(crate::support::world::RALPH);
    command.args(["run", "--dry-run", "--mock-script", script.to_str().unwrap()]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.code(), 4);
}

#[test]
fn a_dry_run_is_not_led_into_another_repository() {
    let world = World::with(&Prd::stories(1));
    let script = "[default]\nsteps = [{ run = \"git add -A; git commit -qm leaked\" }, { run = \"echo work >> $RALPH_STORY.txt\" }, \"complete\"]\n";
    std::fs::write(world.script(), script).unwrap();
    let mut command = world.command(crate::support::world::RALPH);
    command.args(["run", "--dry-run", "--mock-script", world.script().to_str().unwrap()]);
    let output = command.env("GIT_DIR", world.path(".git")).said();
    assert_eq!(output.code, 0);
    assert_eq!(world.subjects(), ["backlog", "first"]);
}

#[test]
fn a_temporary_file_of_a_killed_write_is_cleaned_up() {
    let world = World::with(&Prd::stories(1));
    world.write(".PRD.json.ralph-abc123.tmp", "half");
    assert_eq!(world.run(&[]).code, 0);
    assert!(!world.path(".PRD.json.ralph-abc123.tmp").exists());
    assert_eq!(world.status(), "");
}
