//! Between an agent's result and its exit: a short grace, and a longer one for work that is known
//! to go on in the background.

use crate::support::world::Said;
use crate::support::{Prd, World};

const INIT: &str = r#"{"type":"system","subtype":"init","model":"m","claude_code_version":"v"}"#;
const STARTED: &str = r#"{"type":"system","subtype":"task_started","task_id":"b1","is_backgrounded":true,"task_type":"local_bash"}"#;
/// Older versions do not say where it runs.
const STARTED_SOMEWHERE: &str =
    r#"{"type":"system","subtype":"task_started","task_id":"b1","task_type":"local_bash"}"#;
const SUBAGENT: &str = r#"{"type":"system","subtype":"task_started","task_id":"a1","is_backgrounded":false,"task_type":"local_agent"}"#;
const ENDED: &str =
    r#"{"type":"system","subtype":"task_notification","task_id":"b1","status":"completed"}"#;
const ONE_RUNS: &str =
    r#"{"type":"system","subtype":"background_tasks_changed","tasks":[{"task_id":"b1"}]}"#;
const NONE_RUNS: &str = r#"{"type":"system","subtype":"background_tasks_changed","tasks":[]}"#;
const RESULT: &str = r#"{"type":"result","subtype":"success","is_error":false,"result":"Task US-001 complete","total_cost_usd":0.5}"#;

/// These events, a claim, a result, these events; then, after a while, a late file and the end.
fn late(background_grace: &str, before: &[&str], after: &[&str], a_while: &str) -> (World, Said) {
    let raw = |events: &[&str]| -> String {
        events.iter().map(|event| format!("{{ raw = '''{event}''' }},\n")).collect()
    };
    let script = format!(
        "[default]\nsteps = [{{ write = \"work.txt\", text = \"work\" }},\n{}\"complete\",\n{}{}{{ sleep = \"{a_while}\" }},\n\
         {{ write = \"late.txt\", text = \"late\" }}]\n",
        raw(before),
        raw(&[RESULT]),
        raw(after)
    );
    let world = World::scripted(&Prd::stories(1), &script);
    let settings = format!("result_grace = \"100ms\"\nbackground_grace = \"{background_grace}\"\n");
    world.write("ralph.toml", &settings);
    let said = world.run(&["--once"]);
    assert_eq!(said.code, 0, "the result counts in any case: {}", said.err);
    assert_eq!(world.passing(), ["US-001"]);
    assert!(world.processes().is_empty(), "{:?}", world.processes());
    (world, said)
}

#[test]
fn work_in_the_background_may_come_to_its_end() {
    for (before, after) in [
        (&[STARTED][..], &[][..]),
        (&[STARTED_SOMEWHERE], &[]),
        (&[ONE_RUNS, STARTED], &[]),
        (&[ONE_RUNS], &[]),
        // The turn that begins when the work has ended.
        (&[STARTED], &[ENDED, INIT]),
    ] {
        let (world, said) = late("1m", before, after, "1s");
        assert!(world.path("late.txt").exists(), "{before:?} {after:?}\n{}", said.err);
    }
}

#[test]
fn without_it_the_grace_is_short() {
    for (before, after) in [
        (&[][..], &[][..]),
        (&[SUBAGENT], &[]),
        (&[STARTED, ENDED], &[]),
        (&[STARTED, NONE_RUNS], &[]),
        (&[STARTED], &[ENDED]),
        (&[STARTED], &[ENDED, INIT, RESULT]),
    ] {
        let (world, said) = late("1m", before, after, "10s");
        assert!(!world.path("late.txt").exists(), "{before:?} {after:?}\n{}", said.err);
    }
}

#[test]
fn it_may_not_take_longer_than_its_own_grace() {
    for after in [&[][..], &[ENDED, INIT], &[RESULT]] {
        let (world, said) = late("300ms", &[STARTED], after, "10s");
        assert!(!world.path("late.txt").exists(), "{after:?}\n{}", said.err);
        assert_eq!(world.state()["stories"][0]["cost_usd"], 0.5, "{after:?}");
    }
}
