//! How a run begins and ends.

use super::*;
use crate::decide::situation::LaneJob;
use crate::model::{LaneId, Limits};

#[test]
fn the_baseline_comes_first() {
    let mut run = Run::new(Policy { baseline: true, ..lanes(2) });
    run.expect(&["baseline"]);
    assert!(run.tick().is_none());
    run.expect(&[]);
    let items = Some(vec![fake::passed()]);
    run.then(Happened::GatesEnded { of: GatesOf::Baseline, items, found: fake::changed() });
    run.expect(&["start A1 in 1", "start B2 in 2"]);
    assert!(run.dispatcher.log.state.has_baseline);
}

#[test]
fn a_baseline_that_was_stopped_is_not_taken() {
    let mut run = Run::new(floor(Policy { baseline: true, ..lanes(1) }));
    run.fake().disk_is_low = true;
    assert!(run.tick().is_none());
    run.expect(&["baseline", "Stop everything"]);
    let end = run.are_stopped(GatesOf::Baseline);
    assert!(matches!(stopped(end), StopReason::DiskLow { .. }));
    run.expect(&[]);
    assert!(!run.dispatcher.log.state.has_baseline);
}

#[test]
fn a_full_disk_ends_agents_and_gates_before_the_run() {
    let mut run = Run::of(floor(lanes(2)), &["A", "B"]);
    run.claims("A1");
    run.did();
    run.fake().disk_is_low = true;
    assert!(run.tick().is_none());
    run.expect(&["Stop everything"]);
    assert!(run.are_stopped(Run::gates_of("A", "A1")).is_none(), "B still runs");
    // What was too little is enough again: what was told to end ends first.
    run.fake().disk_is_low = false;
    assert!(run.tick().is_none());
    run.expect(&[]);
    run.fake().disk_is_low = true;
    let end = run.is_ended("B2");
    assert!(matches!(stopped(end), StopReason::DiskLow { .. }));
    run.expect(&[]);
}

#[test]
fn a_disk_that_fills_up_again_ends_agents_again() {
    let mut run = Run::of(floor(lanes(1)), &["A"]);
    for attempt in ["A1", "A2"] {
        run.did();
        run.fake().disk_is_low = true;
        assert!(run.tick().is_none());
        run.expect(&["Stop everything"]);
        run.fake().disk_is_low = false;
        assert!(run.is_ended(attempt).is_none());
    }
}

#[test]
fn a_disk_that_fills_up_again_ends_gates_again() {
    let baseline = Run::of(floor(Policy { baseline: true, ..lanes(1) }), &["A"]);
    let mut claimed = Run::of(floor(lanes(1)), &["A"]);
    claimed.claims("A1");
    for (mut run, of) in [(baseline, GatesOf::Baseline), (claimed, Run::gates_of("A", "A1"))] {
        for _ in 0..2 {
            run.did();
            run.fake().disk_is_low = true;
            assert!(run.tick().is_none());
            run.expect(&["Stop everything"]);
            run.fake().disk_is_low = false;
            assert!(run.are_stopped(of.clone()).is_none());
        }
    }
}

#[test]
fn time_that_is_over_ends_agents_and_not_gates() {
    let limits = Limits { max_run_time: Some(minutes(60)), ..Limits::default() };
    let mut run = Run::of(Policy { limits, ..lanes(2) }, &["A", "B"]);
    run.claims("A1");
    run.did();
    run.fake().busy = minutes(61);
    assert!(run.tick().is_none());
    run.expect(&["end B2: Human"]);
    run.is_ended("B2");
    run.expect(&[]);
    let end = run.passes("A", "A1");
    run.expect(&["integrate A"]);
    assert!(matches!(stopped(end), StopReason::MaxRunTime { .. }));
}

#[test]
fn every_lane_is_filled_and_a_free_one_is_filled_again() {
    let mut run = Run::new(lanes(2));
    run.expect(&["start A1 in 1", "start B2 in 2"]);
    // Its lane is free as soon as it claims; the claim is checked where it lands.
    run.claims("B2");
    run.expect(&["shelve B", "land B", "gates of B", "start C3 in 2"]);
    run.passes("B", "B2");
    run.expect(&["integrate B"]);
}

#[test]
fn the_run_ends_when_everything_is_settled() {
    let mut run = Run::of(lanes(2), &["A", "B"]);
    run.claims("A1");
    run.claims("B2");
    assert!(run.passes("A", "A1").is_none());
    let end = run.passes("B", "B2");
    assert_eq!(stopped(end), StopReason::AllDone);
    assert_eq!(run.last(), Event::RunEnded { reason: StopReason::AllDone });
}

#[test]
fn nothing_else_happens_in_a_lane_while_its_tree_is_in_use() {
    let mut run = Run::of(lanes(1), &["A", "B"]);
    run.fake().jobs_last = true;
    run.asks("A1");
    run.expect(&["start A1 in 0", "ask about A", "shelve A"]);
    // The answer counts at once, and what follows from it waits.
    assert!(run.answers("A", Answer::Retry).is_none());
    run.expect(&[]);
    run.fake().end_job();
    run.tick();
    assert_eq!(run.fake().jobs, [(LaneJob::Prepare, id("A"), LaneId::HOME)]);
    run.fake().end_job();
    run.tick();
    run.expect(&["start A2 in 0"]);
}

#[test]
fn what_was_decided_while_a_lane_was_made_ready_counts() {
    let ready = || {
        let mut run = Run::of(floor(lanes(1)), &["A", "B"]);
        run.fake().jobs_last = true;
        run.claims("A1");
        run.passes("A", "A1");
        run.fake().end_job();
        run.tick();
        assert_eq!(run.fake().jobs, [(LaneJob::Prepare, id("B"), LaneId::HOME)]);
        run.did();
        run
    };
    let mut run = ready();
    assert!(run.then(Happened::Interrupt(2)).is_none(), "the job is not over");
    run.fake().end_job();
    assert!(matches!(run.tick(), Some(Ok(Ending::Interrupted { .. }))));
    assert!(!run.did().iter().any(|one| one.starts_with("start")));
    let mut run = ready();
    run.fake().file.stories[1].skipped = true;
    run.tick();
    run.fake().end_job();
    let end = run.tick();
    assert_eq!(stopped(end), StopReason::AllDone);
    let mut run = ready();
    run.fake().disk_is_low = true;
    assert!(run.tick().is_none());
    run.fake().end_job();
    let end = run.tick();
    assert!(matches!(stopped(end), StopReason::DiskLow { .. }));
    run.expect(&["Stop everything"]);
}

/// The human may change the tree during a wait.
#[test]
fn a_lane_that_was_made_ready_before_a_wait_is_made_ready_again() {
    let limits = Limits { backoff: Some(minutes(1)), ..Limits::default() };
    let mut run = Run::of(Policy { limits, ..lanes(2) }, &["A", "B"]);
    run.fake().jobs_last = true;
    run.then(ended("A1", Outcome::Completed, AgentSignals::default()));
    run.then(ended("B2", Outcome::NoResult { detail: "gone".into() }, AgentSignals::default()));
    let prepare = (LaneJob::Prepare, id("A"), LaneId(1));
    assert_eq!(run.fake().jobs[0], prepare);
    run.did();
    run.fake().end_job();
    run.tick();
    assert!(run.fake().waits.is_some(), "after the failure");
    run.fake().end_job();
    run.later(2);
    assert_eq!(run.fake().jobs, [prepare]);
    run.expect(&[]);
}
