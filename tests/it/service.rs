//! Failures that are not the story's: waited out, or told with the remedy.

use ralph::model::{Event, Outcome};

use crate::support::{Prd, World};

/// The first attempt does this, the second one completes.
pub fn script(first: &str) -> String {
    format!(
        "[[story.US-001.attempts]]\nsteps = [{first}]\n[[story.US-001.attempts]]\nsteps = [{{ run = \"echo work >> $RALPH_STORY.txt\" }}, \"complete\"]\n"
    )
}

#[test]
fn login_billing_and_setup_stop_the_run_at_once_with_the_remedy() {
    for (class, code, told) in [
        ("login", 4, "Log in again with the agent"),
        ("billing", 4, "billing"),
        ("model-not-found", 1, "`[agent]` in ralph.toml"),
    ] {
        let world =
            World::scripted(&Prd::stories(2), &script(&format!("{{ fail = \"{class}\" }}")));
        let said = world.run(&[]);
        assert_eq!(said.code, code, "{class}: {}", said.err);
        assert!(said.err.contains(told), "{class}: {}", said.err);
        assert!(!said.err.contains("US-002"), "the next story would fail too: {}", said.err);
    }
}

#[test]
fn an_outage_is_waited_out_and_does_not_count() {
    for class in ["overloaded", "server", "connection"] {
        let world =
            World::scripted(&Prd::stories(1), &script(&format!("{{ fail = \"{class}\" }}")));
        let said = world.run(&["--max-iterations", "1"]);
        assert_eq!(said.code, 0, "{class}: {}", said.err);
        assert_eq!(said.err.matches("waiting until").count(), 1, "{class}: {}", said.err);
        // Nothing was spent, and a log has no countdown.
        assert!(!said.err.contains('$') && !said.err.contains("left"), "{class}: {}", said.err);
    }
}

#[test]
fn a_usage_limit_can_stop_the_run() {
    let world = World::scripted(
        &Prd::stories(1),
        &script("{ fail = \"usage-limit\", resets_in = \"5h\" }"),
    );
    let said = world.run(&["--on-limit", "stop"]);
    assert_eq!(said.code, 3, "{}", said.err);
    assert!(said.err.contains("usage limit"), "{}", said.err);
    assert!(!said.err.contains("waiting until"), "{}", said.err);
    let status = world.ralph(&["status"]).out;
    assert!(status.contains("ended") && !status.contains("waiting until"), "{status}");
}

#[test]
fn agents_that_say_nothing_stop_the_run_after_three() {
    let world = World::scripted(&Prd::stories(1), "[default]\ninit = false\nsteps = [\"hang\"]\n");
    world.write("ralph.toml", "first_event_timeout = \"100ms\"\n");
    let said = world.run(&[]);
    assert_eq!(said.code, 4, "{}", said.err);
    assert_eq!(said.err.matches("printed nothing").count(), 3 + 2 + 1, "{}", said.err);
}

#[test]
fn a_prompt_that_is_too_long_is_shortened_once_and_then_asked_about() {
    let world =
        World::scripted(&Prd::stories(1), "[default]\nsteps = [{ fail = \"prompt-too-long\" }]\n");
    let said = world.run(&["--max-iterations", "1"]);
    assert_eq!(said.code, 4, "{}", said.err);
    assert!(said.err.contains("the prompt is too long for the agent"), "{}", said.err);
    let runs: Vec<_> = std::fs::read_dir(world.path(".ralph/runs")).unwrap().collect();
    let run = runs[0].as_ref().unwrap().path();
    assert!(
        run.join("0001-US-001.prompt.md").exists() && run.join("0001-US-001-2.prompt.md").exists()
    );
}

#[test]
fn an_agent_that_only_talks_of_limits_has_finished() {
    let world = World::scripted(
        &Prd::stories(1),
        "[default]\nsteps = [{ say = \"You've hit your 5-hour limit · resets 5am (UTC)\" }, { run = \"echo Credit balance is too low\" }, { run = \"echo work >> $RALPH_STORY.txt\" }, \"complete\"]\n",
    );
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    let outcomes = world.journal().into_iter().filter_map(|one| match one.event {
        Event::AttemptEnded(ended) => Some(ended.outcome),
        _ => None,
    });
    assert_eq!(outcomes.collect::<Vec<_>>(), [Outcome::Completed], "{}", said.err);
    assert_eq!(world.iteration_files("prompt.md").len(), 1);
}

#[test]
fn a_login_is_given_up_at_its_second_refusal() {
    let works = "{ write = \"work.txt\", text = \"work\" }, \"complete\"";
    // It would try again for ever, so that only the driver can end it.
    for (times, then, code) in [(1, works, 0), (2, "\"hang\"", 4)] {
        let script =
            format!("[default]\nsteps = [{{ retry = \"login\", times = {times} }}, {then}]\n");
        let said = World::scripted(&Prd::stories(1), &script).run(&["--once"]);
        assert_eq!(said.code, code, "{times}: {}", said.err);
        let remedy = "run `/login` in `claude`";
        assert_eq!(said.err.contains(remedy), code == 4, "the backend's words: {}", said.err);
    }
}
