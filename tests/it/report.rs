//! `.ralph/status.json` and `.ralph/report.json`, as other programs read them.

use std::os::unix::fs::PermissionsExt;
use std::{fs, io};

use ralph::model::Event;
use rustix::process::Signal;
use serde_json::Value;

use crate::support::world::{Ends, signal, until};
use crate::support::{Prd, World};

/// Waits for the test's word.
const WAIT: &str = "while [ ! -e ../go ]; do sleep 0.01; done";

fn read(world: &World, name: &str) -> Option<Value> {
    match fs::read(world.path(".ralph").join(name)) {
        Ok(text) => Some(serde_json::from_slice(&text).expect("it is whole")),
        Err(error) => {
            assert_eq!(error.kind(), io::ErrorKind::NotFound);
            None
        }
    }
}

fn report(world: &World) -> Value {
    read(world, "report.json").expect("a report")
}

/// Polls the status, which is whole each time, until it is as wanted.
fn await_status(world: &World, what: &str, is_it: impl Fn(&Value) -> bool) -> Value {
    until(what, || read(world, "status.json").filter(&is_it))
}

fn last(status: &Value) -> &Value {
    status["iterations"].as_array().and_then(|all| all.last()).unwrap_or(&Value::Null)
}

/// One field of every iteration.
fn column(value: &Value, field: &str) -> Vec<Value> {
    value["iterations"].as_array().unwrap().iter().map(|one| one[field].clone()).collect()
}

#[test]
fn the_status_follows_the_agent_and_the_report_comes_at_the_end() {
    let script = format!(
        "[story.US-001]\nsteps = [{{ write = \"a.txt\", text = \"a\" }}, {{ run = \"{WAIT}\" }}, \
         {{ run = \"test -e a.txt; {}\" }}, \"complete\"]\n",
        WAIT.replace("go", "on")
    );
    let world = World::scripted(&Prd::stories(3), &script);
    let child = world.start(&[]);
    let status = await_status(&world, "an agent that writes", |status| {
        last(status)["phase"] == "implementing"
    });
    assert_eq!((&status["state"], &status["version"]), (&"running".into(), &1.into()));
    assert_eq!(
        (&last(&status)["story"], &last(&status)["outcome"]),
        (&"US-001".into(), &Value::Null)
    );
    assert_eq!((&status["stories"]["total"], &status["stop"]), (&3.into(), &Value::Null));
    assert_eq!(status["settings"]["agent"], "mock");
    assert_eq!(status["settings"]["branch"], "work");
    assert!(read(&world, "report.json").is_none(), "it is not over");
    fs::write(world.path("../go"), "").unwrap();
    await_status(&world, "an agent that tests", |status| last(status)["phase"] == "testing");
    fs::write(world.path("../on"), "").unwrap();
    let said = child.ended();
    assert_eq!(said.code, 0, "{}", said.err);
    let status = read(&world, "status.json").unwrap();
    assert_eq!(
        (&status["state"], &status["stop"]["reason"]),
        (&"completed".into(), &"all_done".into())
    );
    for name in ["status.json", "report.json"] {
        let mode = world.path(".ralph").join(name).metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    let names = fs::read_dir(world.path(".ralph")).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<_> = names.collect();
    names.sort();
    assert_eq!(names, [".gitignore", "report.json", "runs", "status.json"]);
}

#[test]
fn the_report_has_what_the_journal_has() {
    let script = r#"
        [[story.US-001.attempts]]
        steps = [{ write = "a.txt", text = "a" }, { cost = 0.25 }, { turns = 3 }, "complete"]
        [[story.US-001.attempts]]
        steps = [{ write = "ok", text = "ok" }, { cost = 0.5 }, { turns = 4 }, "complete"]
        [story.US-002]
        steps = [{ write = "b.txt", text = "b" }, { cost = 1.0 }, { escalate = { type = "stuck", summary = "s", question = "q" } }]
    "#;
    let world = World::scripted(&Prd::stories(2), script);
    world.write("ralph.toml", "verify = [\"test -e ok\"]\n");
    world.git(&["add", "."]);
    world.git(&["commit", "-qm", "settings"]);
    assert_eq!(world.run(&[]).code, 4);
    let report = report(&world);
    assert_eq!(
        (&report["state"], &report["stop"]["reason"]),
        (&"failed".into(), &"nothing_to_select".into())
    );
    assert_eq!(report["goal"]["project"], "demo");
    assert_eq!(report["settings"]["gates"][0]["run"], "test -e ok");
    assert_eq!(column(&report, "story"), ["US-001", "US-001", "US-002"]);
    assert_eq!(column(&report, "why"), ["first_try", "gate_failed", "first_try"]);
    assert_eq!(column(&report, "outcome"), ["rejected", "closed", "escalated"]);
    assert_eq!(column(&report, "phase"), ["handoff", "complete", "handoff"]);
    let error = report["iterations"][0]["errors"][0].as_str().unwrap();
    assert!(error.contains("`test -e ok` failed with exit code 1"), "{error}");
    let commit = world.git(&["rev-parse", "HEAD"]);
    let kept = ["refs/ralph/attempts/US-001/1", commit.trim(), "refs/ralph/attempts/US-002/1"];
    assert_eq!(column(&report, "checkpoint"), kept);

    let status: Value = serde_json::from_str(&world.ralph(&["status", "--json"]).out).unwrap();
    let sum = |field: &str| -> f64 {
        status["stories"].as_array().unwrap().iter().filter_map(|story| story[field].as_f64()).sum()
    };
    assert_eq!(report["run"], status["run"]);
    assert_eq!(report["totals"]["cost_usd"].as_f64(), Some(sum("cost_usd")));
    assert_eq!(report["totals"]["agent_ms"].as_f64(), Some(sum("elapsed_ms")));
    assert_eq!(report["metrics"]["attempts"].as_f64(), Some(sum("attempts")));
    assert_eq!(report["metrics"]["iterations"], status["iterations"]);
    assert_eq!(report["stories"]["passing"], status["complete"]);
    let metrics = &report["metrics"];
    let counts = ["successes", "failures", "checkpoints", "rollbacks"].map(|name| &metrics[name]);
    assert_eq!(counts, [1, 1, 3, 1].map(Value::from).each_ref());
}

#[test]
fn a_folder_that_the_agent_deletes_comes_back_during_the_run() {
    let script = format!(
        "[default]\nsteps = [{{ run = \"rm -rf .ralph; echo y > ../gone\" }}, \
         {{ write = \"a.txt\", text = \"a\" }}, {{ run = \"{WAIT}\" }}, \"complete\"]\n"
    );
    let world = World::scripted(&Prd::stories(1), &script);
    let child = world.start(&[]);
    world.await_file("../gone");
    await_status(&world, "the status to be written again", |status| status["state"] == "running");
    fs::write(world.path("../go"), "").unwrap();
    assert_eq!(child.ended().code, 0);
    assert_eq!(report(&world)["state"], "completed");
    assert_eq!(world.git(&["show", "--name-only", "--format=", "HEAD"]), "PRD.json\na.txt\n");
}

#[test]
fn an_interrupted_run_is_terminated_and_reported_as_a_whole_when_it_continues() {
    let script = r#"
        [[story.US-001.attempts]]
        steps = [{ run = "echo yes > started.txt" }, "hang"]
        [[story.US-001.attempts]]
        steps = [{ cost = 0.5 }, "complete"]
    "#;
    let world = World::scripted(&Prd::stories(1), script);
    let child = world.start(&[]);
    world.await_file("started.txt");
    signal(&child, Signal::TERM);
    assert_eq!(child.ended().code, 143);
    let first = report(&world);
    assert_eq!(
        (&first["state"], &first["stop"]["reason"]),
        (&"terminated".into(), &"signal".into())
    );
    assert_eq!(column(&first, "outcome"), ["interrupted"]);
    assert_eq!(world.run(&[]).code, 0);
    let second = report(&world);
    assert_eq!((&second["run"], &second["started_at"]), (&first["run"], &first["started_at"]));
    assert_eq!(second["state"], "completed");
    assert_eq!(column(&second, "outcome"), ["interrupted", "closed"]);
    assert_eq!(column(&second, "why"), ["first_try", "recovery"]);
    assert_eq!(second["totals"]["cost_usd"], 0.5);
}

#[test]
fn a_killed_run_leaves_its_last_status_and_what_ran_is_cut_off() {
    let script = "[default]\nsteps = [{ write = \"a.txt\", text = \"a\" }, \"hang\"]\n";
    let world = World::scripted(&Prd::stories(1), script);
    let mut child = world.start(&[]);
    await_status(&world, "an agent", |status| last(status)["phase"] == "implementing");
    child.kill().unwrap();
    child.code();
    until("every process to be gone", || world.processes().is_empty().then_some(()));
    assert_eq!(read(&world, "status.json").unwrap()["state"], "running");
    assert!(read(&world, "report.json").is_none());
    fs::write(world.script(), "[default]\nsteps = [\"complete\"]\n").unwrap();
    assert_eq!(world.run(&[]).code, 0);
    let report = report(&world);
    assert_eq!(column(&report, "outcome"), ["cut_off", "closed"]);
    assert_eq!(column(&report, "why"), ["first_try", "recovery"]);
}

#[test]
fn an_error_of_ralphs_own_is_in_the_report() {
    let script = "[default]\nsteps = [{ write = \"a.txt\", text = \"a\" }, { run = \"mkdir -p .git/index.lock/x\" }, \"complete\"]\n";
    let world = World::scripted(&Prd::stories(1), script);
    assert_eq!(world.run(&[]).code, 1);
    let first = report(&world);
    assert_eq!((&first["state"], &first["stop"]["reason"]), (&"failed".into(), &"error".into()));
    assert!(first["stop"]["detail"].as_str().unwrap().contains("index.lock"), "{first:#}");
    fs::remove_dir_all(world.path(".git/index.lock")).unwrap();
    assert_eq!(world.run(&[]).code, 0);
    assert_eq!(report(&world)["state"], "completed");
}

#[test]
fn files_that_cannot_be_written_cost_nothing_else() {
    let world = World::with(&Prd::stories(2));
    fs::create_dir_all(world.path(".ralph/status.json/x")).unwrap();
    fs::create_dir_all(world.path(".ralph/report.json/x")).unwrap();
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(world.passing(), ["US-001", "US-002"]);
}

#[test]
fn what_an_agent_was_denied_is_in_the_journal_and_the_report() {
    let script = "[default]\nsteps = [{ denied = \"WebFetch\" }, { denied = \"WebFetch\" }, \
                  { write = \"a.txt\", text = \"a\" }, \"complete\"]\n";
    let world = World::scripted(&Prd::stories(1), script);
    assert_eq!(world.run(&[]).code, 0);
    assert_eq!(column(&report(&world), "denied"), [Value::from(vec!["WebFetch"])]);
    let ended = world.journal().into_iter().find_map(|recorded| match recorded.event {
        Event::AttemptEnded(ended) => Some(ended),
        _ => None,
    });
    assert_eq!(ended.unwrap().denied, [("WebFetch".to_owned(), 2)].into());
}
