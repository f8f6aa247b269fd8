//! Stories that get nowhere, and runs that do.

use rustix::process::Signal;

use crate::support::pty::Terminal;
use crate::support::world::{Ends, Runs, signal, until};
use crate::support::{Prd, World};

/// US-001 does this for ever, the others are done.
fn one(steps: &str) -> World {
    World::scripted(&Prd::stories(2), &format!("[story.US-001]\nsteps = [{steps}]\n"))
}

fn iterations(world: &World) -> i64 {
    world.state()["iterations"].as_i64().unwrap()
}

fn question(world: &World) -> String {
    world.state()["stories"][0]["question"]["summary"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn three_iterations_that_change_nothing_park_their_story_and_no_other() {
    let world = one(r#"{ say = "I shall think about it, in iteration ${ITERATION}." }"#);
    let said = world.run(&[]);
    assert_eq!(said.code, 4, "{}", said.err);
    assert_eq!(world.passing(), ["US-002"]);
    assert_eq!(question(&world), "3 iterations in a row changed nothing");
    let told = "- The last 2 iterations changed nothing";
    assert!(!world.prompt(2).contains(told) && world.prompt(3).contains(told));
}

#[test]
fn marks_are_no_work() {
    let flips = r#"sed -i 's/"passes": false/"passes": true/' PRD.json"#;
    let world = one(&format!(
        "{{ run = '''{flips}''' }}, {{ say = \"That was it, in iteration ${{ITERATION}}.\" }}"
    ));
    let said = world.run(&[]);
    assert_eq!(said.code, 4, "{}", said.err);
    assert_eq!(world.passing(), ["US-002"]);
    assert_eq!(question(&world), "3 iterations in a row changed nothing");
}

#[test]
fn a_repeated_text_is_mentioned_and_then_becomes_a_question() {
    let text = "I went through the whole of the login and changed what looked wrong to me, but the \
                page still does not come up after iteration";
    let world = one(&format!(
        r#"{{ write = "n.txt", text = "${{ITERATION}}" }}, {{ say = "{text} ${{ITERATION}}." }}"#
    ));
    let said = world.run(&[]);
    assert_eq!(said.code, 4, "{}", said.err);
    assert_eq!((world.passing(), iterations(&world)), (vec!["US-002".to_owned()], 4));
    assert!(question(&world).contains("the same text"), "{}", question(&world));
    let told = "that is a loop";
    assert!(!world.prompt(2).contains(told) && world.prompt(3).contains(told));
}

#[test]
fn whoever_commits_every_time_is_not_in_a_loop() {
    let text = "One more part of the login is done and committed; the rest of it follows in the \
                iterations after this one.";
    let world = one(&format!(
        r#"{{ run = "echo ${{ITERATION}} > n.txt; git add n.txt; git commit -qm part" }}, {{ say = "{text}" }}"#
    ));
    let said = world.run(&["--max-iterations", "6"]);
    assert_eq!(said.code, 3, "{}", said.err);
    assert_eq!((question(&world), world.read("n.txt")), (String::new(), "6\n".to_owned()));
    assert!(!world.prompt(6).contains("that is a loop"));
}

#[test]
fn work_on_tests_alone_is_mentioned_and_then_becomes_a_question() {
    let world = one(
        r#"{ write = "tests/login_test.py", text = "${ITERATION}" }, { say = "Tests, ${ITERATION}." }"#,
    );
    assert_eq!(world.run(&[]).code, 4);
    assert_eq!((world.passing(), iterations(&world)), (vec!["US-002".to_owned()], 5));
    assert_eq!(question(&world), "4 iterations in a row touched only tests");
    let told = "touched only tests";
    assert!(!world.prompt(3).contains(told) && world.prompt(4).contains(told));
}

#[test]
fn a_story_can_have_fewer_attempts_than_the_others() {
    let prd = Prd::stories(0).story(r#""maxAttempts": 2"#).story("");
    let script = "[story.US-001]\nsteps = [{ write = \"n.txt\", text = \"${ITERATION}\" }]\n";
    let world = World::scripted(&prd, script);
    assert_eq!(world.run(&[]).code, 4);
    assert_eq!(question(&world), "not complete after 2 attempts");
    assert_eq!(world.passing(), ["US-002"]);
}

const FAILS: &str = "[default]\nsteps = [{ fail = \"error\" }]\n";

#[test]
fn errors_in_a_row_over_all_stories_stop_the_run() {
    let world = World::scripted(&Prd::stories(3), FAILS);
    let said = world.run(&[]);
    assert_eq!((said.code, iterations(&world)), (3, 5), "{}", said.err);
    assert!(said.err.contains("5 errors in a row"), "{}", said.err);
    assert!(said.err.contains("--max-consecutive-errors"), "{}", said.err);
    let said = world.run(&["--max-consecutive-errors", "1"]);
    assert_eq!((said.code, iterations(&world)), (3, 1), "{}", said.err);
    let mut command = world.run_command(&[]);
    let output = command.env("RALPH_MAX_CONSECUTIVE_ERRORS", "2").said();
    assert_eq!((output.code, iterations(&world)), (3, 2));
    world.write("ralph.toml", "max_consecutive_errors = \"none\"\ncool_down = \"none\"\n");
    // The question about US-001 waits.
    let said = world.run(&[]);
    assert_eq!((said.code, iterations(&world)), (4, 6), "{}", said.err);
    let said = world.run(&["--max-consecutive-errors", "0"]);
    assert_eq!(said.code, 2);
    assert!(said.err.contains("invalid value `0` for --max-consecutive-errors"), "{}", said.err);
}

#[test]
fn an_agent_that_breaks_down_at_once_is_not_started_again_and_again() {
    let world = World::with(&Prd::stories(3));
    let said = world.ralph(&["run", "--trust", "--agent-command", "sh -c 'echo no >&2; exit 7'"]);
    assert_eq!((said.code, iterations(&world)), (3, 3), "{}", said.err);
    assert!(
        said.err.contains("3 agents in a row failed within 10 seconds of their start"),
        "{}",
        said.err
    );
    assert_eq!(world.state()["stories"][0]["question"], serde_json::Value::Null);
}

#[test]
fn an_agent_is_ended_when_the_runs_time_is_over_and_its_work_stays() {
    let steps = r#"{ write = "half.txt", text = "half\n" }, { run = "sleep 1000" }"#;
    let world = one(steps);
    let said = world.run(&["--max-run-time", "3s"]);
    assert_eq!(said.code, 3, "{}", said.err);
    assert!(said.err.contains("the run reached its time limit"), "{}", said.err);
    assert!(said.err.contains("--max-run-time"), "{}", said.err);
    assert_eq!(world.status(), "?? half.txt\n");
    assert!(world.processes().is_empty());
    assert!(world.state()["worked_ms"].as_u64().unwrap() >= 3000);
}

#[test]
fn what_was_claimed_in_time_is_checked_after_it() {
    // The result comes in time, the exit does not: the agent is ended, and its claim counts.
    let steps = r#"{ write = "x.txt", text = "x\n" }, "complete", "hang_after_result""#;
    let world = World::scripted(&Prd::stories(1), &format!("[default]\nsteps = [{steps}]\n"));
    world.write("ralph.toml", "verify = [\"test -e x.txt\"]\nresult_grace = \"50s\"\n");
    let said = world.run(&["--max-run-time", "3s"]);
    assert_eq!((said.code, world.passing()), (0, vec!["US-001".to_owned()]), "{}", said.err);
}

#[test]
fn a_run_whose_iterations_take_too_long_can_be_stopped() {
    let steps = r#"{ write = "n.txt", text = "${ITERATION}" }, { run = "sleep 0.05" }"#;
    let world = one(steps);
    let said = world.run(&["--max-average-iteration", "10ms"]);
    assert_eq!((said.code, iterations(&world)), (3, 3), "{}", said.err);
    assert!(said.err.contains("--max-average-iteration"), "{}", said.err);
}

const DONE: &str = r#"{ write = "done.txt", text = "done\n" }, "complete""#;

/// Two stories get nowhere, a third could.
fn two_ruts(third: &str) -> World {
    let script = format!(
        "[default]\nsteps = [{{ say = \"Hm, ${{ITERATION}}.\" }}]\n[story.US-003]\nsteps = [{third}]\n"
    );
    World::scripted(&Prd::stories(3), &script)
}

fn breaker(world: &World) -> String {
    world.state()["breaker"]["state"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn after_the_pause_one_iteration_decides() {
    for (third, code, passing) in [(DONE, 4, &["US-003"][..]), (r#"{ fail = "error" }"#, 3, &[])] {
        let world = two_ruts(third);
        let output = world.run_command(&[]).env("RALPH_COOL_DOWN", "1s").said();
        let err = output.err;
        assert_eq!(output.code, code, "{err}");
        assert_eq!(world.passing(), passing);
        assert_eq!(iterations(&world), 7);
        assert!(err.contains("two stories in a row made no progress (US-001, US-002)"), "{err}");
    }
}

#[test]
fn a_pause_outlives_a_restart_and_enter_ends_it() {
    let world = two_ruts(DONE);
    let mut child = world.start(&[]);
    until("the breaker to open", || (breaker(&world) == "open").then_some(()));
    let status = world.ralph(&["status"]).out;
    assert!(status.contains("waiting until"), "{status}");
    assert!(status.contains("two stories in a row made no progress"), "{status}");
    signal(&child, Signal::INT);
    assert_eq!(child.code(), 130);
    let report: serde_json::Value =
        serde_json::from_str(&world.read(".ralph/report.json")).unwrap();
    assert_eq!(
        (&report["breaker"]["state"], &report["metrics"]["ruts"]),
        (&"open".into(), &2.into())
    );
    // Without a word of the human's the questions stay parked.
    let mut terminal = Terminal::start(world.run_command(&["--on-escalation", "park"]));
    terminal.await_text("Cooling down");
    terminal.await_text("press Enter to skip the wait");
    terminal.press("\r");
    let (code, screen) = terminal.finish();
    assert_eq!(code, 4, "{screen}");
    assert_eq!(world.passing(), ["US-003"]);
}

#[test]
fn the_rest_after_a_failure_counts_down_and_enter_ends_it() {
    let script = format!(
        "[[story.US-001.attempts]]\nsteps = [{{ fail = \"error\" }}]\n\
         [[story.US-001.attempts]]\nsteps = [{DONE}]\n"
    );
    let world = World::scripted(&Prd::stories(1), &script);
    let mut command = world.run_command(&[]);
    command.env("RALPH_BACKOFF", "1m");
    let mut terminal = Terminal::start(command);
    terminal.await_text("Waiting to retry:");
    terminal.await_text("press Enter to skip the wait");
    terminal.press("\r");
    let (code, screen) = terminal.finish();
    assert_eq!(code, 0, "{screen}");
}
