//! `ralph mark`: the human's own marks.

use ralph::model::{Request, Requester, StoryId};

use crate::backlog_edits::MARKS_REVERTED;
use crate::support::world::{Ends, Runs};
use crate::support::{Prd, World};

#[test]
fn marks_change_their_bytes_only_and_the_next_run_believes_them() {
    let world = World::with(&Prd::stories(2));
    let before = world.read("PRD.json");
    for (mark, passes, skipped) in [
        ("pass", true, None),
        ("fail", false, None),
        ("skip", false, Some(true)),
        ("fail", false, Some(true)),
        ("reopen", false, Some(false)),
    ] {
        let said = world.ralph(&["mark", "US-001", mark]);
        assert_eq!(said.code, 0, "{mark}: {}", said.err);
        let prd: serde_json::Value = serde_json::from_str(&world.read("PRD.json")).unwrap();
        let story = &prd["userStories"][0];
        let marks = (story["passes"] == true, story.get("skipped").map(|value| value == true));
        assert_eq!(marks, (passes, skipped), "{mark}");
    }
    let with =
        before.replacen("\"passes\": false", "\"passes\": false,\n      \"skipped\": false", 1);
    assert_eq!(world.read("PRD.json"), with);
    assert_eq!(world.ralph(&["mark", "US-001", "pass"]).code, 0);
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(world.passing(), ["US-001", "US-002"]);
    assert!(!said.err.contains(MARKS_REVERTED), "{}", said.err);
}

#[test]
fn ralph_mark_names_what_it_cannot_mark() {
    let world = World::with(&Prd::stories(1));
    let before = world.read("PRD.json");
    let said = world.ralph(&["mark", "US-010", "pass"]);
    assert_eq!(said.code, 2);
    assert!(said.err.contains("did you mean `US-001`?"), "{}", said.err);
    let mut agent = world.command(crate::support::world::RALPH);
    let output = agent.args(["mark", "US-001", "pass"]).env("RALPH_RUN_ID", "x").said();
    assert_eq!(output.code, 1);
    assert!(output.err.contains("not available to agents"));
    assert_eq!(world.read("PRD.json"), before);
}

#[test]
fn ralph_mark_is_refused_during_a_run_of_another_backlog() {
    let script = "[default]\nsteps = [{ run = \"touch ../runs\" }, \"hang\"]\n";
    let world = World::scripted(&Prd::stories(1), script);
    world.write("other.json", &Prd::stories(1).text());
    let mut run = world.start(&[]);
    crate::support::world::until("the agent", || world.path("../runs").exists().then_some(()));
    let said = world.ralph(&["mark", "US-001", "pass", "other.json"]);
    assert_eq!(said.code, 1, "{}", said.err);
    assert!(said.err.contains("another `ralph run` is active in this work tree"), "{}", said.err);
    crate::support::world::signal(&run, rustix::process::Signal::TERM);
    run.code();
}

/// As a `ralph mark` leaves it that was killed while it waited for a run.
fn leave_request(world: &World, backlog: &str) {
    let story = StoryId::try_from("US-002").unwrap();
    let backlog = backlog.to_owned();
    let request = Request::Mark { backlog, story, passes: false, skipped: true };
    world.store().requests().unwrap().make(0, &request, Requester::default()).unwrap();
}

#[test]
fn a_mark_that_no_run_has_taken_yet_waits_for_the_next_run_of_its_backlog() {
    for (case, backlog, newer, passing) in [
        ("its backlog", "PRD.json", None, &["US-001"][..]),
        ("another backlog", "plans/PRD.json", None, &["US-001", "US-002"]),
        ("a newer mark", "PRD.json", Some("pass"), &["US-001", "US-002"]),
    ] {
        let world = World::with(&Prd::stories(2));
        leave_request(&world, backlog);
        if let Some(mark) = newer {
            assert_eq!(world.ralph(&["mark", "US-002", mark]).code, 0, "{case}");
        }
        let said = world.run(&[]);
        assert_eq!(said.code, 0, "{case}: {}", said.err);
        assert_eq!(world.passing(), passing, "{case}: {}", said.err);
    }
}
