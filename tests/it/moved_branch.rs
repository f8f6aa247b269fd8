//! The human commits and edits while a story's work is in the tree.

use std::os::unix::fs::PermissionsExt;

use crate::service::script;
use crate::support::pty::Terminal;
use crate::support::world::{Ends, until};
use crate::support::{Prd, World};

const HINT: &str = "press Enter to skip the wait";

/// An agent leaves half of the work, committed and not, and meets a limit. Then the run waits.
fn waiting(prd: &Prd) -> (World, Terminal) {
    let half =
        "{ run = \"echo a > own.txt; git add own.txt; git commit -qm own; echo b > half.txt\" }";
    let limit = "{ fail = \"usage-limit\", resets_in = \"1s\" }";
    let world = World::scripted(prd, &script(&format!("{half}, {limit}")));
    let terminal = Terminal::start(world.run_command(&[]));
    terminal.await_text(HINT);
    (world, terminal)
}

/// Returns the new commit.
fn commit_by_hand(world: &World) -> String {
    world.write("mine.txt", "mine\n");
    world.git(&["add", "mine.txt"]);
    world.git(&["commit", "-qm", "mine"]);
    world.git(&["rev-parse", "HEAD"])
}

fn skip(world: &World) {
    let text = world.read("PRD.json");
    let skipped = text.replacen("\"passes\": false", "\"passes\": false, \"skipped\": true", 1);
    world.write("PRD.json", &skipped);
}

#[test]
fn a_commit_during_a_wait_is_no_part_of_the_story() {
    let (world, mut terminal) = waiting(&Prd::stories(1));
    commit_by_hand(&world);
    terminal.press("\r");
    let (code, screen) = terminal.finish();
    assert_eq!(code, 0, "{screen}");
    assert_eq!(world.subjects(), ["US-001: Story 1", "mine", "own", "backlog", "first"]);
    let undone = world.ralph(&["undo", "US-001"]);
    assert_eq!(undone.code, 0, "{}", undone.err);
    assert_eq!(world.read("mine.txt"), "mine\n");
    assert!(!world.path("half.txt").exists());
}

#[test]
fn a_commit_during_a_wait_survives_the_shelving_of_the_story() {
    let (world, mut terminal) = waiting(&Prd::stories(2));
    let mine = commit_by_hand(&world);
    skip(&world);
    terminal.await_text("work on US-001 kept at");
    terminal.await_text(HINT);
    terminal.press("\r");
    let (code, screen) = terminal.finish();
    assert_eq!(code, 0, "{screen}");
    world.git(&["merge-base", "--is-ancestor", mine.trim(), "HEAD"]);
    assert_eq!(world.read("mine.txt"), "mine\n");
    assert!(!world.path("half.txt").exists());
    let kept = |file: &str| world.git(&["show", &format!("refs/ralph/attempts/US-001/1:{file}")]);
    assert_eq!((kept("half.txt"), kept("own.txt")), ("b\n".into(), "a\n".into()));
}

#[test]
fn a_commit_while_the_human_is_asked_is_no_part_of_the_accepted_story() {
    let steps = "{ run = \"touch done; sed -i 's/it is done/x/' PRD.json\" }, \"complete\"";
    let gate = "\"verify\": [\"test -e done\"]";
    let script = format!("[default]\nsteps = [{steps}]\n");
    let world = World::scripted(&Prd::stories(0).story(gate), &script);
    let mut terminal = Terminal::start(world.run_command(&[]));
    terminal.await_text("[y] accept the change");
    commit_by_hand(&world);
    terminal.press("y");
    let (code, screen) = terminal.finish();
    assert_eq!(code, 0, "{screen}");
    assert_eq!(world.subjects(), ["US-001: Story 1", "mine", "backlog", "first"]);
    assert_eq!(world.ralph(&["undo", "US-001"]).code, 0);
    assert_eq!((world.read("mine.txt"), world.path("done").exists()), ("mine\n".into(), false));
}

/// The human's word is about the change, not about the work.
#[test]
fn an_accepted_story_passes_its_gates_on_top_of_what_was_closed_since() {
    let claims = "{ run = \"touch a; sed -i '0,/ -e a/s|| -e ./a|' PRD.json\" }, \"complete\"";
    let other = "{ run = \"touch b\" }, \"complete\"";
    let script = format!("[story.US-001]\nsteps = [{claims}]\n[story.US-002]\nsteps = [{other}]\n");
    for (together, code) in [("false", 3), ("true", 0)] {
        let gate = format!("\"verify\": [\"test ! -e a || test ! -e b || {together}\"]");
        let prd = Prd::stories(0).story(&gate).story(&gate);
        let world = World::scripted(&prd, &script);
        let mut terminal = Terminal::start(world.run_command(&["--max-iterations", "2"]));
        terminal.await_text("[y] accept the change");
        terminal.await_text("✓ Task US-002 complete");
        terminal.press("y");
        let (ended, screen) = terminal.finish();
        assert_eq!(ended, code, "{screen}");
        assert_eq!(world.passing().contains(&"US-001".to_owned()), code == 0, "{screen}");
    }
}

#[test]
fn a_run_does_not_follow_the_human_to_another_branch() {
    for switch in [&["switch", "-qc", "mine"][..], &["switch", "-q", "--detach", "HEAD~2"]] {
        let (world, mut terminal) = waiting(&Prd::stories(1));
        let before = world.git(&["rev-parse", "work"]);
        world.git(switch);
        let there = world.git(&["rev-parse", "HEAD"]);
        terminal.press("\r");
        let (code, screen) = terminal.finish();
        assert_eq!(code, 1, "{screen}");
        assert!(screen.contains("git switch work"), "{screen}");
        let now = |name: &str| world.git(&["rev-parse", name]);
        assert_eq!((now("work"), now("HEAD")), (before, there), "{switch:?}");
        world.git(&["switch", "-q", "work"]);
        let said = world.run(&[]);
        assert_eq!(said.code, 0, "{}", said.err);
    }
}

/// Neither by the process after the crash nor by one after that.
#[test]
fn what_an_agent_committed_before_a_crash_stays_the_agents() {
    let world = World::with(&Prd::stories(1));
    let steps = "{ run = \"echo a > a.txt; git add a.txt; git commit -qm own; echo y > ../here\" }";
    std::fs::write(world.script(), format!("[default]\nsteps = [{steps}, \"hang\"]\n")).unwrap();
    let mut child = world.start(&[]);
    world.await_file("../here");
    child.kill().unwrap();
    child.code();
    until("every process to be gone", || world.processes().is_empty().then_some(()));
    let limit = "[default]\nsteps = [{ fail = \"usage-limit\", resets_in = \"1h\" }]\n";
    std::fs::write(world.script(), limit).unwrap();
    for _ in 0..2 {
        let terminal = Terminal::start(world.run_command(&[]));
        terminal.await_text(HINT);
        terminal.signal(rustix::process::Signal::TERM);
        assert_eq!(terminal.finish().0, 143);
    }
    skip(&world);
    assert_eq!(world.run(&[]).code, 0);
    assert!(!world.subjects().contains(&"own".to_owned()), "{:?}", world.subjects());
    assert_eq!(world.git(&["show", "refs/ralph/attempts/US-001/1:a.txt"]), "a\n");
}

/// The gates of a claim run until `../go` is there.
fn with_gates() -> World {
    let world = World::scripted(
        &Prd::stories(1),
        "[default]\nsteps = [{ write = \"work.txt\", text = \"work\\n\" }, \"complete\"]\n",
    );
    // Not in the baseline.
    let gate = "test -e work.txt && echo y >> ../gates && until [ -e ../go ]; do sleep 0.01; done";
    world.write("ralph.toml", &format!("verify = [\"{gate}\"]\n"));
    world.git(&["add", "."]);
    world.git(&["commit", "-qm", "settings"]);
    world
}

fn in_gates() -> (World, std::process::Child) {
    let world = with_gates();
    let child = world.start(&[]);
    world.await_file("../gates");
    (world, child)
}

/// The claim is checked, and cannot be closed while this process has a lock open.
fn checked() -> (World, std::process::Child, std::fs::File) {
    let (world, child) = in_gates();
    let lock = std::fs::File::create(world.path(".git/index.lock")).unwrap();
    world.write("../go", "");
    until("the claim to be accepted", || {
        let accepted = |one: &ralph::model::Recorded| {
            matches!(one.event, ralph::model::Event::ClosePlanned { .. })
        };
        world.journal().iter().any(accepted).then_some(())
    });
    (world, child, lock)
}

#[test]
fn a_commit_has_what_the_gates_saw_and_not_what_was_edited_since() {
    let (world, child, lock) = checked();
    world.write("work.txt", "edited\n");
    world.write("other.txt", "mine\n");
    drop(lock);
    std::fs::remove_file(world.path(".git/index.lock")).unwrap();
    let said = child.ended();
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(world.git(&["show", "HEAD:work.txt"]), "work\n");
    assert_eq!(world.status(), " M work.txt\n?? other.txt\n");
    assert_eq!(world.read("work.txt"), "edited\n");
}

/// A signature that waits, as for a passphrase.
const SIGNER: &str = r#"#!/bin/sh
cat > /dev/null
if [ -e HERE/../gates ]; then echo y > HERE/../signing; until [ -e HERE/../sign ]; do sleep 0.01; done; fi
echo '[GNUPG:] SIG_CREATED D 1 8 00 0 0' >&2
printf -- '-----BEGIN PGP SIGNATURE-----\n\nx\n-----END PGP SIGNATURE-----\n'
"#;

#[test]
fn gates_run_again_if_the_human_commits_after_them() {
    let world = with_gates();
    let signer = SIGNER.replace("HERE", world.path(".").to_str().unwrap());
    world.write("../signer", &signer);
    let signer = world.path("../signer");
    std::fs::set_permissions(&signer, std::fs::Permissions::from_mode(0o755)).unwrap();
    world.git(&["config", "gpg.program", signer.to_str().unwrap()]);
    world.git(&["config", "commit.gpgsign", "true"]);
    world.write("../go", "");
    let child = world.start(&[]);
    world.await_file("../signing");
    world.git(&["config", "commit.gpgsign", "false"]);
    commit_by_hand(&world);
    world.write("../sign", "");
    let said = child.ended();
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(world.read("../gates"), "y\ny\n", "{}", said.err);
    assert_eq!(world.subjects(), ["US-001: Story 1", "mine", "settings", "backlog", "first"]);
    assert!(said.err.contains("the gates saw an earlier state"), "{}", said.err);
    assert_eq!(world.git(&["show", "--name-only", "--format=", "HEAD"]), "PRD.json\nwork.txt\n");
}

#[test]
fn criteria_that_change_during_the_gates_are_for_the_human() {
    let (world, child) = in_gates();
    let edited = world.read("PRD.json").replace("it is done", "it is more than done");
    world.write("PRD.json", &edited);
    world.write("../go", "");
    let said = child.ended();
    assert_eq!(said.code, 4, "{}", said.err);
    assert_eq!(world.passing(), [""; 0], "{}", said.err);
    assert!(said.err.contains("criteria"), "{}", said.err);
}

/// The agent waits for `../go` between its steps.
fn at_work(before: &str, after: &str, end: &str) -> (World, std::process::Child) {
    let wait = "echo y > ../here; until [ -e ../go ]; do sleep 0.01; done";
    let steps = format!("{{ run = \"{before} {wait}; {after}\" }}, {end}");
    let world = World::scripted(&Prd::stories(1), &format!("[default]\nsteps = [{steps}]\n"));
    let child = world.start(&[]);
    world.await_file("../here");
    (world, child)
}

const OWN: &str = "echo a > own.txt; git add own.txt; git commit -qm own;";

#[test]
fn a_commit_during_an_attempt_is_no_part_of_the_story() {
    let (world, child) = at_work(OWN, "echo b > rest.txt", "\"complete\"");
    commit_by_hand(&world);
    world.write("../go", "");
    let said = child.ended();
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(world.subjects(), ["US-001: Story 1", "mine", "own", "backlog", "first"]);
    assert!(said.err.contains("`mine` stays, and is no part of US-001"), "{}", said.err);
    assert_eq!(world.ralph(&["undo", "US-001"]).code, 0);
    assert_eq!((world.read("mine.txt"), world.path("rest.txt").exists()), ("mine\n".into(), false));
}

#[test]
fn a_commit_during_an_attempt_survives_the_shelving_of_the_story() {
    // The agent commits after the human, before, and not at all.
    for (before, after, left) in [
        ("", OWN, &["mine", "backlog", "first"][..]),
        (OWN, "", &["mine", "own", "backlog", "first"]),
        ("", "echo a > own.txt", &["mine", "backlog", "first"]),
    ] {
        let (world, child) = at_work(before, after, "{ fail = \"error\" }");
        let mine = commit_by_hand(&world);
        assert_eq!(world.ralph(&["mark", "US-001", "skip"]).code, 0);
        world.write("../go", "");
        let said = child.ended();
        assert_eq!(said.code, 0, "{}", said.err);
        assert_eq!(world.subjects(), left, "{}", said.err);
        world.git(&["merge-base", "--is-ancestor", mine.trim(), "HEAD"]);
        assert_eq!(world.read("mine.txt") + &world.status(), "mine\n M PRD.json\n");
        let stays = said.err.contains("`own` of US-001 stays below it on the branch");
        assert_eq!(stays, !before.is_empty(), "{}", said.err);
        assert_eq!(world.git(&["show", "refs/ralph/attempts/US-001/1:own.txt"]), "a\n");
    }
}

#[test]
fn a_commit_that_the_agent_takes_off_the_branch_comes_back() {
    let (world, child) = at_work("", "git reset -q --hard HEAD~1", "{ fail = \"error\" }");
    let mine = commit_by_hand(&world);
    assert_eq!(world.ralph(&["mark", "US-001", "skip"]).code, 0);
    world.write("../go", "");
    let said = child.ended();
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(world.git(&["rev-parse", "HEAD"]), mine, "{}", said.err);
    assert_eq!(world.read("mine.txt") + &world.status(), "mine\n M PRD.json\n");
}

#[test]
fn gates_run_again_if_the_human_commits_during_them() {
    let (world, child) = in_gates();
    commit_by_hand(&world);
    world.write("../go", "");
    let said = child.ended();
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(world.read("../gates"), "y\ny\n", "{}", said.err);
    assert_eq!(world.subjects(), ["US-001: Story 1", "mine", "settings", "backlog", "first"]);
    assert_eq!(world.git(&["show", "--name-only", "--format=", "HEAD"]), "PRD.json\nwork.txt\n");
}

/// It commits each time that it runs, as nobody the run started.
#[test]
fn a_gate_that_always_commits_does_not_run_for_ever() {
    let world = World::with(&Prd::stories(1));
    let gate = "env -u GIT_REFLOG_ACTION git commit -q --allow-empty -m gate";
    world.write("ralph.toml", &format!("verify = [\"{gate}\"]\n"));
    world.git(&["add", "."]);
    world.git(&["commit", "-qm", "settings"]);
    let said = world.run(&[]);
    assert_eq!(said.code, 4, "{}", said.err);
    assert_eq!(said.err.matches("the gates saw an earlier state").count(), 3, "{}", said.err);
    assert!(said.err.contains("? US-001 asks: the branch moved each of 4 times"), "{}", said.err);
}
