//! What is taken up on every turn, whatever the run waits for.

use super::*;
use crate::decide::situation::StuckDue;
use crate::decide::stuck::StuckStep;
use crate::model::{BranchLoss, GateEnd, Limits, Request};

/// A run with one lane, and what it waits for.
fn waiting_for(what: &str, policy: Policy) -> Run {
    let mut run = Run::of(policy, &["A", "B"]);
    let down = Outcome::Overloaded { detail: "529".into() };
    match what {
        "gates" => run.claims("A1"),
        // Both stories ask, so that nothing runs.
        "a question" => {
            run.asks("A1");
            run.asks("B2")
        }
        "one question" => run.asks("A1"),
        "a wait" => run.then(ended("A1", down, AgentSignals::default())),
        "a stuck question" => {
            run.fake().stuck = vec![StuckDue { attempt: "A1".into(), step: StuckStep::Ask }];
            run.tick()
        }
        other => panic!("{other}"),
    };
    run.did();
    run
}

const EACH: [&str; 4] = ["gates", "a question", "a wait", "a stuck question"];

fn mark(story: &str) -> Request {
    let backlog = "PRD.json".to_owned();
    Request::Mark { backlog, story: id(story), passes: true, skipped: false }
}

#[test]
fn a_mark_is_taken_up_at_once() {
    for what in EACH {
        let mut run = waiting_for(what, lanes(1));
        run.fake().requests = vec![(7, Some(mark("B")))];
        assert!(run.tick().is_none(), "{what}");
        assert_eq!(run.did()[0], "mark B", "{what}");
        assert_eq!(run.fake().requests, [], "{what}");
    }
}

#[test]
fn a_mark_during_gates_stands_whatever_they_find() {
    for end in [GateEnd::Passed, GateEnd::Failed { code: 1 }] {
        let mut run = waiting_for("gates", lanes(1));
        run.fake().requests = vec![(7, Some(mark("A")))];
        run.tick();
        run.expect(&["mark A"]);
        let of = Run::gates_of("A", "A1");
        let items = Some(vec![fake::gate(end)]);
        let before = run.kept.events.borrow().len();
        run.then(Happened::GatesEnded { of, items, found: fake::changed() });
        run.expect(&["disown A", "start B2 in 0"]);
        let follows = run.kept.events.borrow()[before].event.clone();
        assert_eq!(follows, Event::WorkLetGo { story: id("A") }, "nothing is decided any more");
    }
}

#[test]
fn a_mark_waits_for_a_run_of_its_backlog() {
    let mut run = waiting_for("gates", lanes(1));
    let Request::Mark { story, passes, skipped, .. } = mark("B") else { unreachable!() };
    let other = Request::Mark { backlog: "other.json".into(), story, passes, skipped };
    run.fake().requests = vec![(7, Some(other))];
    run.tick();
    run.expect(&[]);
    assert_eq!(run.fake().requests.len(), 1);
}

/// Until then the file may be that of another branch.
#[test]
fn a_mark_waits_for_the_end_of_a_roll_back() {
    let mut run = Run::of(lanes(1), &["A", "B"]);
    run.fake().jobs_last = true;
    let mut lost = ended("A1", Outcome::Completed, AgentSignals::default());
    if let Happened::AttemptEnded(ended) = &mut lost {
        ended.inspection.branch_loss = Some(BranchLoss::Elsewhere);
    }
    run.then(lost);
    run.did();
    run.fake().requests = vec![(7, Some(mark("B")))];
    run.tick();
    run.expect(&[]);
    run.fake().end_job();
    run.tick();
    assert_eq!((run.did()[0].as_str(), run.fake().requests.len()), ("mark B", 0));
}

/// The marks are as before, but the claim is not.
#[test]
fn a_story_that_is_marked_as_failed_during_its_gates_is_not_closed() {
    let mut run = waiting_for("gates", lanes(1));
    let Request::Mark { backlog, story, .. } = mark("A") else { unreachable!() };
    let failed = Request::Mark { backlog, story, passes: false, skipped: false };
    run.fake().requests = vec![(7, Some(failed))];
    run.tick();
    run.did();
    run.passes("A", "A1");
    let did = run.did();
    assert!(!did.contains(&"integrate A".to_owned()), "{did:?}");
    let last = run.dispatcher.log.state.story(&id("A")).unwrap().last_error.clone();
    assert!(last.unwrap().contains("the human"), "the next agent is told");
}

#[test]
fn a_message_reaches_the_agent_that_runs_or_waits_for_one() {
    for what in EACH {
        let mut run = waiting_for(what, lanes(1));
        run.fake().requests = vec![(7, Some(Request::Nudge { text: "hurry".into() }))];
        assert!(run.tick().is_none(), "{what}");
        let said = ["say to A1: hurry", "A1 gets more time"];
        if what == "a stuck question" {
            run.expect(&said);
            continue;
        }
        run.expect(&[]);
        assert_eq!(run.fake().requests, [], "{what}");
        assert_eq!(run.dispatcher.log.state.messages, ["hurry"], "{what}: no agent runs yet");
        match what {
            "gates" => run.passes("A", "A1"),
            "a question" => run.answers("B", Answer::Retry),
            _ => run.later(1),
        };
        let state = &run.dispatcher.log.state;
        let flight = state.attempts.iter().next().unwrap();
        let story = state.story(&flight.start.story).unwrap();
        assert_eq!((&state.messages[..], &story.guidance[..]), (&[][..], &["hurry".into()][..]));
    }
}

#[test]
fn a_request_of_a_newer_ralph_is_not_kept_for_ever() {
    let mut run = Run::new(lanes(1));
    run.fake().requests = vec![(7, None)];
    run.tick();
    assert_eq!(run.fake().requests, []);
}

#[test]
fn an_edit_of_the_backlog_is_taken_up_at_once() {
    for what in EACH {
        let mut run = waiting_for(what, lanes(3));
        let mut stories = run.fake().file.stories.clone();
        stories.push(story("C"));
        run.fake().file = backlog(stories);
        run.tick();
        assert!(run.dispatcher.backlog().story(&id("C")).is_some(), "{what}");
        let starts = run.did().iter().any(|one| one.starts_with("start C"));
        // Nothing starts before the service is back.
        assert_eq!(starts, what != "a wait", "{what}");
    }
    let mut run = waiting_for("a wait", lanes(1));
    run.fake().file.stories.iter_mut().for_each(|story| story.skipped = true);
    assert_eq!(stopped(run.tick()), StopReason::AllDone, "nothing is left to wait for");
}

#[test]
fn a_full_disk_is_seen_at_once() {
    for (what, did) in [
        ("gates", &["Stop everything"][..]),
        ("a stuck question", &["Stop everything"]),
        ("a question", &["close A", "close B"]),
        ("a wait", &[]),
    ] {
        let mut run = waiting_for(what, floor(lanes(1)));
        run.fake().disk_is_low = true;
        let end = run.tick();
        run.expect(did);
        let end = match what {
            "a wait" => end,
            "a question" => {
                assert!(end.is_none() && run.is_silent("A").is_none(), "a menu is still there");
                run.is_silent("B")
            }
            _ => {
                assert!(end.is_none(), "{what}");
                continue;
            }
        };
        assert!(matches!(stopped(end), StopReason::DiskLow { .. }), "{what}");
    }
}

#[test]
fn time_that_is_over_is_seen_at_once() {
    let limits = Limits { max_run_time: Some(minutes(60)), ..Limits::default() };
    // Of the stories in two lanes one is checked, asked about or stuck, and one is worked on.
    for (what, ends) in [
        ("gates", &["end B2: Human"][..]),
        ("one question", &["end B2: Human"]),
        ("a stuck question", &["end A1: Human", "end B2: Human"]),
    ] {
        let mut run = waiting_for(what, Policy { limits, ..lanes(2) });
        run.fake().busy = minutes(61);
        assert!(run.tick().is_none(), "{what}");
        run.expect(ends);
    }
    // Waits are no work: what was worked before them counts when they are over.
    let mut run = waiting_for("a wait", Policy { limits, ..lanes(1) });
    run.fake().busy = minutes(61);
    assert!(matches!(stopped(run.tick()), StopReason::MaxRunTime { .. }));
}

#[test]
fn a_wait_ends_when_it_is_over_or_skipped() {
    let mut run = waiting_for("a wait", lanes(1));
    assert_eq!(run.fake().waits, Some(Duration::from_secs(2)));
    run.expect(&[]);
    run.later(1);
    run.expect(&["start A2 in 0"]);
    let mut run = waiting_for("a wait", lanes(1));
    run.then(Happened::WaitSkipped);
    run.expect(&["start A2 in 0"]);
}

#[test]
fn a_broken_backlog_holds_back_a_close() {
    let mut run = waiting_for("gates", lanes(1));
    run.fake().problem = Some("a comma is missing".into());
    assert!(run.passes("A", "A1").is_none());
    assert!(run.seconds_later(59).is_none());
    run.expect(&[]);
    run.fake().problem = None;
    assert!(run.tick().is_none());
    run.expect(&["integrate A", "start B2 in 0"]);
}

#[test]
fn a_backlog_that_stays_broken_is_restored_for_a_claim_and_the_run_goes_on() {
    let mut run = waiting_for("gates", lanes(1));
    run.fake().problem = Some("a comma is missing".into());
    assert!(run.passes("A", "A1").is_none());
    assert!(run.seconds_later(59).is_none());
    run.expect(&[]);
    assert!(run.seconds_later(1).is_none());
    run.expect(&["restore the backlog", "integrate A", "start B2 in 0"]);
}

#[test]
fn a_corrected_backlog_has_its_full_patience_again() {
    let mut run = waiting_for("gates", lanes(1));
    run.fake().problem = Some("a comma is missing".into());
    // Nothing waits for it yet.
    assert!(run.seconds_later(59).is_none());
    assert!(run.passes("A", "A1").is_none());
    assert!(run.seconds_later(59).is_none());
    run.fake().problem = None;
    assert!(run.tick().is_none());
    run.expect(&["integrate A", "start B2 in 0"]);
    run.claims("B2");
    run.fake().problem = Some("a comma is missing".into());
    assert!(run.passes("B", "B2").is_none());
    assert!(run.seconds_later(59).is_none());
    run.did();
    run.seconds_later(1);
    assert_eq!(run.did().first().map(String::as_str), Some("restore the backlog"));
}
