//! A claim is a request: the gates decide.

use ralph::model::{Event, EvidenceItem, Recorded};

use crate::support::pty::Terminal;
use crate::support::world::{Ends, Runs, Said, until};
use crate::support::{Prd, World};

const WORK: &str = "{ run = \"echo work >> $RALPH_STORY.txt\" }";

/// Lies once, then does what the gate asks for.
fn liar() -> String {
    format!(
        "[[story.US-001.attempts]]\nsteps = [{WORK}, \"complete\"]\n\
         [[story.US-001.attempts]]\nsteps = [{{ run = \"echo true > ok\" }}, \"complete\"]\n"
    )
}

fn world(prd: &Prd, script: &str, settings: &str) -> World {
    let world = World::scripted(prd, script);
    world.write("ralph.toml", settings);
    world.git(&["add", "."]);
    world.git(&["commit", "-qm", "settings"]);
    world
}

fn run(world: &World) -> Said {
    world.run(&[])
}

#[test]
fn a_failed_gate_rejects_the_claim_and_the_next_attempt_knows_why() {
    let gate = "echo looking for it; test -e ok || { echo 'error: no ok' >&2; exit 9; }";
    let world = world(&Prd::stories(1), &liar(), &format!("verify = [\"\"\"{gate}\"\"\"]\n"));
    let said = run(&world);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.err.contains("US-001 is not done: "), "{}", said.err);
    assert_eq!(world.subjects().len(), 4, "one closing commit: {:?}", world.subjects());
    let prompts = world.iteration_files("prompt.md");
    assert_eq!(prompts.len(), 2);
    for told in ["failed with exit code 9", "      looking for it\n", "      error: no ok\n"] {
        assert!(prompts[1].contains(told), "{told} is not in\n{}", prompts[1]);
    }
    let message = world.git(&["log", "-1", "--format=%B"]);
    assert!(message.contains("\nRalph-Gate: echo looking for it; test"), "{message}");
    assert!(world.iteration_files("gates.log").concat().contains("error: no ok"));
}

#[test]
fn a_storys_own_gate_is_for_that_story_and_guards_it_afterwards() {
    let prd = Prd::stories(1)
        .story(r#""verify": ["test -e keep"]"#)
        .story(r#""verify": [{ "run": ["test", "-e", "c"], "timeout": "1m" }]"#);
    let script = format!(
        "[story.US-001]\nsteps = [{WORK}, \"complete\"]\n\
         [story.US-002]\nsteps = [{{ write = \"keep\", text = \"k\" }}, \"complete\"]\n\
         [[story.US-003.attempts]]\nsteps = [{{ write = \"c\", text = \"c\" }}, {{ run = \"rm keep\" }}, \"complete\"]\n\
         [[story.US-003.attempts]]\nsteps = [{{ write = \"keep\", text = \"k\" }}, \"complete\"]\n"
    );
    let world = world(&prd, &script, "");
    let said = run(&world);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.err.contains("this work breaks the closed story US-002"), "{}", said.err);
    assert_eq!(world.passing(), ["US-001", "US-002", "US-003"]);
    let prompts = world.iteration_files("prompt.md").concat();
    assert!(prompts.contains("this work breaks the closed story US-002"), "{prompts}");
}

#[test]
fn recheck_can_be_switched_off() {
    let prd = Prd::stories(0).story(r#""verify": ["test -e keep"]"#).story("");
    let script = format!(
        "[story.US-001]\nsteps = [{{ write = \"keep\", text = \"k\" }}, \"complete\"]\n\
         [story.US-002]\nsteps = [{WORK}, {{ run = \"rm keep\" }}, \"complete\"]\n"
    );
    let world = world(&prd, &script, "recheck = \"none\"\n");
    let said = run(&world);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(!world.path("keep").exists());
}

#[test]
fn a_claim_without_a_change_is_rejected_once_and_then_becomes_a_question() {
    let world = world(&Prd::stories(1), "[default]\nsteps = [\"complete\"]\n", "");
    let said = run(&world);
    assert_eq!(said.code, 4, "{}", said.err);
    assert_eq!(world.passing(), [""; 0]);
    assert_eq!(world.iteration_files("prompt.md").len(), 2);
    assert!(said.err.contains("the agent claims US-001 again"), "{}", said.err);
    assert!(said.err.contains("Is US-001 done?"), "{}", said.err);
}

#[test]
fn an_empty_commit_is_nothing_to_show() {
    let empty = "{ run = \"git commit -q --allow-empty -m done\" }";
    let script = format!("[default]\nsteps = [{empty}, \"complete\"]\n");
    let world = world(&Prd::stories(1), &script, "");
    let said = run(&world);
    assert_eq!(said.code, 4, "{}", said.err);
    assert_eq!(world.passing(), [""; 0]);
}

#[test]
fn the_human_can_accept_a_change_in_a_later_run() {
    let gate = r#""verify": ["test -e done"]"#;
    let script = "[default]\nsteps = [{ run = \"touch done; sed -i 's/it is done/x/' PRD.json\" }, \"complete\"]\n";
    let world = world(&Prd::stories(0).story(gate), script, "");
    let parked = run(&world);
    assert_eq!(parked.code, 4, "{}", parked.err);
    assert!(!world.path("done").exists(), "its work is set aside");
    let mut terminal = Terminal::start(world.run_command(&[]));
    terminal.await_text("[y] accept the change");
    terminal.press("y");
    let (code, screen) = terminal.finish();
    assert_eq!(code, 0, "{screen}");
    assert_eq!(world.passing(), ["US-001"]);
    assert_eq!(world.git(&["show", "--name-only", "--format=", "HEAD"]), "PRD.json\ndone\n");
}

#[test]
fn a_gate_that_turned_green_is_evidence_without_a_change() {
    let world = world(
        &Prd::stories(1),
        "[default]\nsteps = [{ run = \"touch ../served\" }, \"complete\"]\n",
        "verify = [\"test -e ../served\"]\n",
    );
    let said = run(&world);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(world.git(&["show", "--name-only", "--format=", "HEAD"]), "PRD.json\n");
}

#[test]
fn gates_see_the_story_and_stop_at_the_first_failure() {
    let note = "echo $RALPH_STORY $RALPH_ITERATION";
    let once = "each_story = false";
    let settings = format!(
        "max_attempts = 1\nverify = [{{ run = \"{note} >> ../first\", {once} }}, \
         {{ run = \"{note} $A >> ../../second; exit 1\", dir = \"sub\", env = {{ A = \"b\" }}, {once} }}, \
         {{ run = \"{note} >> ../third\", {once} }}]\n"
    );
    let world = World::scripted(&Prd::stories(1), &liar());
    world.write("ralph.toml", &settings);
    world.write("sub/file", "x");
    world.git(&["add", "."]);
    world.git(&["commit", "-qm", "settings"]);
    let said = run(&world);
    assert_eq!(said.code, 4, "{}", said.err);
    // Before any work each of them runs, for no story and in no iteration.
    assert_eq!(world.read("../first"), "0\nUS-001 1\n");
    assert_eq!(world.read("../second"), "0 b\nUS-001 1 b\n");
    assert_eq!(world.read("../third"), "0\n", "not after a failure");
}

/// As in a hook of git, which says where its repository is.
#[test]
fn gates_and_agents_get_no_variables_of_another_repository() {
    let note = "echo \\\"[$GIT_DIR$GIT_INDEX_FILE$GIT_WORK_TREE]\\\"";
    let script = format!("[default]\nsteps = [{{ run = \"{note} > agent.txt\" }}, \"complete\"]\n");
    let world = World::scripted(&Prd::stories(1), &script);
    world.write("ralph.toml", &format!("verify = [\"{note} > ../gate\"]\n"));
    let mut command = world.run_command(&[]);
    let elsewhere = world.home();
    for name in ["GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE"] {
        command.env(name, &elsewhere);
    }
    let said = command.said();
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!((world.read("agent.txt"), world.read("../gate")), ("[]\n".into(), "[]\n".into()));
}

#[test]
fn the_baseline_is_reported_and_decides_nothing() {
    let settings = "verify = [\"test -e ok\", \"no-such-program-here\"]\nmax_attempts = 1\n";
    let world = world(&Prd::stories(1), &liar(), settings);
    let said = run(&world);
    assert!(said.err.contains("○ `test -e ok` failed with exit code 1, before any work"));
    let missing = "✗ `no-such-program-here` is not there yet (exit code 127)";
    assert!(said.err.contains(missing), "{}", said.err);
    assert!(!said.err.contains("no gates"));
    let without = crate::support::World::with(&Prd::stories(1));
    assert!(without.run(&[]).err.contains("no gates: ralph only checks"));
}

#[test]
fn a_gate_may_be_tried_again_and_has_its_time() {
    let flaky = "echo x >> ../tries; test $(wc -l < ../tries) -ge 3";
    let settings = format!(
        "verify = [{{ run = \"{flaky}\", retries = 3 }}, {{ run = \"sleep 1000\", timeout = \"200ms\" }}]\nmax_attempts = 1\n"
    );
    let world = world(&Prd::stories(1), &liar(), &settings);
    let said = run(&world);
    assert_eq!(said.code, 4, "{}", said.err);
    assert!(said.err.contains("`sleep 1000` timed out"), "{}", said.err);
    // Three times before any work, until it passes, and once for the claim.
    assert_eq!(world.read("../tries").lines().count(), 4, "{}", said.err);
    let passed = |event: Event| match event {
        Event::BaselineTaken { reports, .. } => Some(reports[0].passed()),
        Event::ClaimChecked { items, .. } => {
            let EvidenceItem::Gate(first) = &items[0];
            Some(first.passed())
        }
        _ => None,
    };
    let passed = world.journal().into_iter().filter_map(|one| passed(one.event));
    assert_eq!(passed.collect::<Vec<_>>(), [true, true], "{}", said.err);
    assert!(world.processes().is_empty(), "{:?}", world.processes());
}

#[test]
fn an_interrupt_during_a_gate_ends_it_and_the_next_run_checks_again() {
    let settings = "verify = [\"test -e go || { touch ../waits; sleep 1000; }\"]\n";
    let world = world(&Prd::stories(1), &liar(), settings);
    world.write("go", "");
    world.git(&["add", "."]);
    world.git(&["commit", "-qm", "go"]);
    let script = format!("[default]\nsteps = [{WORK}, {{ run = \"rm go\" }}, \"complete\"]\n");
    std::fs::write(world.script(), script).unwrap();
    let child = world.start(&[]);
    until("the gate runs", || world.path("../waits").exists().then_some(()));
    rustix::process::kill_process(
        rustix::process::Pid::from_child(&child),
        rustix::process::Signal::INT,
    )
    .unwrap();
    let ended = child.ended();
    assert_eq!(ended.code, 130);
    assert!(world.processes().is_empty(), "{:?}", world.processes());
    assert_eq!(world.passing(), [""; 0]);
    world.write("go", "");
    let said = run(&world);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(world.iteration_files("prompt.md").len(), 1, "no second attempt was needed");
}

/// What became of its processes is unknown then, and what they did too.
#[test]
fn a_gate_that_lost_its_supervisor_decides_nothing_and_ends_the_run() {
    let gate = "test ! -e US-001.txt || { kill -KILL $PPID; exec sleep 1000; }";
    let script = format!("[default]\nsteps = [{WORK}, \"complete\"]\n");
    let world = world(&Prd::stories(1), &script, &format!("verify = [\"{gate}\"]\n"));
    let said = run(&world);
    assert_eq!(said.code, 1, "{}", said.err);
    assert!(said.err.contains("the supervisor of a gate was killed"), "{}", said.err);
    let checked = |one: &Recorded| matches!(one.event, Event::ClaimChecked { .. });
    assert!(!world.journal().iter().any(checked), "{}", said.err);
    assert_eq!(world.passing(), [""; 0]);
    // Its supervisor may have died before it said what to end: the next run ends that.
    world.write("ralph.toml", "");
    assert_eq!(world.ralph(&["trust", "--yes"]).code, 0, "the change is the human's");
    assert_eq!(run(&world).code, 0);
    assert_eq!(world.processes(), [""; 0]);
}

#[test]
fn an_agent_cannot_change_what_it_is_measured_by() {
    let gate = "./check.sh";
    for (tamper, told) in [
        ("echo exit 0 > check.sh", "`check.sh` changed"),
        ("sed -i 's/it is done/nothing/' PRD.json", "its criteria changed"),
        ("sed -i 's/test -e done/true/' PRD.json", "its gates changed"),
        ("echo more >> tests/a.txt", "`tests/a.txt` changed"),
        ("rm tests/a.txt", "`tests/a.txt` changed"),
    ] {
        let prd = Prd::stories(0).story(r#""verify": ["test -e done"]"#);
        let script = format!(
            "[default]\nsteps = [{{ run = '''touch done ok; {tamper}''' }}, \"complete\"]\n"
        );
        let world = World::scripted(&prd, &script);
        world.write("ralph.toml", &format!("verify = [\"{gate}\"]\nprotect = [\"tests/**\"]\n"));
        world.write("check.sh", "test -e ok\n");
        world.write("tests/a.txt", "a\n");
        world.git(&["add", "."]);
        world.git(&["update-index", "--chmod=+x", "check.sh"]);
        world.git(&["commit", "-qm", "settings"]);
        world.git(&["checkout", "-q", "check.sh"]);
        std::fs::set_permissions(
            world.path("check.sh"),
            std::os::unix::fs::PermissionsExt::from_mode(0o755),
        )
        .unwrap();
        let said = run(&world);
        assert_eq!(said.code, 4, "{tamper}: {}", said.err);
        assert!(said.err.contains(told), "{tamper}: {}", said.err);
        assert_eq!(world.passing(), [""; 0], "{tamper}");
    }
}

#[test]
fn no_attempt_prepares_what_the_next_one_is_measured_by() {
    for (tamper, told, attempts) in [
        ("echo exit 0 > check.sh", "`check.sh` changed", 2),
        ("sed -i 's/it is done/nothing/' PRD.json", "its criteria changed", 1),
        ("echo exit 0 > check.sh; git commit -qam own", "`check.sh` changed", 2),
    ] {
        let script = format!(
            "[[story.US-001.attempts]]\nsteps = [{{ run = '''touch ok; {tamper}''' }}]\n\
             [[story.US-001.attempts]]\nsteps = [{WORK}, \"complete\"]\n"
        );
        let world = World::scripted(&Prd::stories(1), &script);
        world.write("ralph.toml", "verify = [\"sh check.sh\"]\nprotect = [\"check.sh\"]\n");
        world.write("check.sh", "test -e ok\n");
        world.git(&["add", "."]);
        world.git(&["commit", "-qm", "settings"]);
        let said = run(&world);
        assert_eq!(said.code, 4, "{tamper}: {}", said.err);
        assert!(said.err.contains(told), "{tamper}: {}", said.err);
        assert_eq!(world.iteration_files("prompt.md").len(), attempts, "{tamper}: {}", said.err);
        assert_eq!(world.passing(), [""; 0], "{tamper}");
    }
}

#[test]
fn a_dry_run_runs_no_gate() {
    let world = world(&Prd::stories(0).story(r#""verify": ["touch ../ran; false"]"#), "", "");
    let said = world.ralph(&["run", "--dry-run"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.err.contains("a dry run does not run gates"), "{}", said.err);
    assert!(!world.path("../ran").exists());
}

#[test]
fn a_gates_log_keeps_to_the_limit() {
    let gate = "echo begin; yes middle | head -n 700000; echo the end";
    let settings = format!("verify = [\"{gate}\"]\nlog_limit = \"1MB\"\n");
    let world =
        world(&Prd::stories(1), &format!("[default]\nsteps = [{WORK}, \"complete\"]\n"), &settings);
    let said = run(&world);
    assert_eq!(said.code, 0, "{}", said.err);
    let logs = world.iteration_files("gates.log");
    assert_eq!(logs.len(), 2, "the baseline, and the claim");
    for log in logs {
        assert!(log.len() <= 1_000_000, "{} bytes", log.len());
        assert!(log.starts_with(&format!("$ {gate}\nbegin\nmiddle\n")));
        assert!(log.contains(" bytes left out …") && log.ends_with("middle\nthe end\n"));
    }
}
