//! Completion markers other than `Task ID complete`, backed by the same evidence.

use std::fs;

use ralph::model::Event;

use crate::support::world::Ends;
use crate::support::world::until;
use crate::support::{Prd, World};

const WORK: &str = "{ run = \"echo work >> $RALPH_STORY.txt\" }";

fn attempt(steps: &str) -> String {
    format!("[[story.US-001.attempts]]\nsteps = [{steps}]\n")
}

fn say(text: &str) -> String {
    format!("{{ say = \"{text}\" }}")
}

fn with_settings(prd: &Prd, script: &str, settings: &str) -> World {
    let world = World::scripted(prd, script);
    world.write("ralph.toml", settings);
    world.git(&["add", "."]);
    world.git(&["commit", "-qm", "settings"]);
    world
}

fn kinds(world: &World) -> Vec<String> {
    let name =
        |event: &Event| serde_json::to_value(event).unwrap()["kind"].as_str().unwrap().to_owned();
    world.journal().iter().map(|recorded| name(&recorded.event)).collect()
}

#[test]
fn a_marker_of_the_run_or_of_the_story_closes_it_and_another_line_does_not() {
    let prd = Prd::stories(1)
        .story(r#""completionPromise": "SHIPPED""#)
        .story(r#""signals": ["LOGIN_OK", "ALL_GREEN"]"#);
    let script = attempt(&format!("{WORK}, {}", say("RUN_IS_DONE")))
        + &format!("[[story.US-002.attempts]]\nsteps = [{WORK}, {}]\n", say("LOGIN_OK"))
        + &format!(
            "[[story.US-002.attempts]]\nsteps = [{WORK}, {}]\n",
            say("<promise>SHIPPED</promise>")
        )
        + &format!("[story.US-003]\nsteps = [{WORK}, {}]\n", say("**ALL_GREEN**"));
    let world = with_settings(&prd, &script, "signals = [\"RUN_IS_DONE\"]\n");
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(world.passing(), ["US-001", "US-002", "US-003"]);
    assert_eq!(world.iteration_files("prompt.md").len(), 4, "LOGIN_OK is no sign of US-002");
    assert!(world.prompt(1).contains("\n    RUN_IS_DONE\n"), "{}", world.prompt(1));
    assert!(world.prompt(2).contains("\n    <promise>SHIPPED</promise>\n    RUN_IS_DONE\n"));
}

#[test]
fn a_marker_needs_the_same_evidence() {
    let settings = "signals = [\"RUN_IS_DONE\"]\nverify = [\"test -e ok\"]\n";
    let script = attempt(&format!("{WORK}, {}", say("RUN_IS_DONE")))
        + &attempt(&format!("{{ write = \"ok\", text = \"x\" }}, {}", say("RUN_IS_DONE")));
    let world = with_settings(&Prd::stories(1), &script, settings);
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.err.contains("US-001 is not done: `test -e ok`"), "{}", said.err);
    assert_eq!(world.iteration_files("prompt.md").len(), 2);
}

#[test]
fn stages_are_recorded_in_order_and_only_the_last_is_a_claim() {
    let prd = Prd::default().story(r#""stages": ["TESTS_PASS", "DOCS_COMPLETE"]"#);
    let script = attempt(&format!("{WORK}, {}, \"complete\"", say("DOCS_COMPLETE")))
        + &attempt(&format!("{WORK}, {}", say("TESTS_PASS")))
        + &attempt(&format!("{WORK}, {}, \"complete\", \"promise\"", say("TESTS_PASS")))
        + &attempt(&format!("{WORK}, {}", say("DOCS_COMPLETE")));
    let world = World::scripted(&prd, &script);
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.err.contains("✓ US-001 reached stage TESTS_PASS"), "{}", said.err);
    let stages: Vec<String> = world
        .journal()
        .into_iter()
        .filter_map(|recorded| match recorded.event {
            Event::StageReached { stage, .. } => Some(stage),
            _ => None,
        })
        .collect();
    assert_eq!(stages, ["TESTS_PASS"]);
    assert_eq!(world.iteration_files("prompt.md").len(), 4);
    assert!(world.prompt(2).contains("in this order:\n\n    TESTS_PASS\n    DOCS_COMPLETE\n"));
    let third = world.prompt(3);
    assert!(third.contains("in this order:\n\n    DOCS_COMPLETE\n\nReached before"), "{third}");
    assert!(third.contains("- Phase: after the stage TESTS_PASS."), "{third}");
    assert!(third.contains("- Handed over because a stage was reached."), "{third}");
}

#[test]
fn a_dry_run_goes_through_the_stages_too() {
    let prd = Prd::stories(1)
        .story(r#""stages": ["TESTS_PASS", "DOCS_COMPLETE"]"#)
        .story(r#""signals": ["LOGIN_OK"]"#);
    let world = World::with(&prd);
    let said = world.ralph(&["run", "--dry-run"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.out.contains("Order: US-001 → US-002 → US-003"), "{}", said.out);
}

#[test]
fn a_claim_of_the_last_stage_that_a_gate_contradicts_can_be_made_again() {
    let settings = "stages = [\"TESTS_PASS\", \"SHIPPED\"]\nverify = [\"test -e ok\"]\n";
    let script = attempt(&format!("{WORK}, {}", say("TESTS_PASS\\nSHIPPED")))
        + &attempt(&format!("{{ write = \"ok\", text = \"x\" }}, {}", say("SHIPPED")));
    let world = with_settings(&Prd::stories(1), &script, settings);
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(world.iteration_files("prompt.md").len(), 2);
}

#[test]
fn an_agent_cannot_choose_its_own_markers() {
    let prd = Prd::default().story(r#""stages": ["TESTS_PASS", "SHIPPED"]"#);
    let edit =
        "{ run = '''sed -i 's/\"TESTS_PASS\", \"SHIPPED\"/\"EASY\"/' PRD.json; echo x > a''' }";
    let world = World::scripted(&prd, &attempt(&format!("{edit}, {}", say("EASY"))));
    let said = world.run(&[]);
    assert_eq!(said.code, 4, "{}", said.err);
    assert!(said.err.contains("its completion markers changed"), "{}", said.err);
    assert_eq!(world.iteration_files("prompt.md").len(), 1, "what it chose itself was not heard");
    assert_eq!(world.passing(), [""; 0]);
}

/// Where the agent's version of the instructions is.
fn theirs(told: &str, name: &str) -> String {
    let restored = "restored your instructions that the agent changed: ";
    let line = told.lines().find(|line| line.contains(restored)).expect(told);
    assert!(line.contains(&format!("{restored}{name} ")), "{line}");
    let (_, folder) = line.split_once("the agent's version: ").expect(line);
    format!("{folder}/{name}")
}

#[test]
fn a_task_ticked_in_the_instructions_is_a_claim_and_is_taken_out_again() {
    let prompt = "Work.\n- [ ] TASK_COMPLETE\n";
    let tick = "{ run = \"sed -i 's/\\\\[ \\\\]/[x]/' PROMPT.md; echo work > a\" }";
    let world = World::scripted(&Prd::stories(1), &attempt(tick));
    world.write("PROMPT.md", prompt);
    world.git(&["add", "."]);
    world.git(&["commit", "-qm", "prompt"]);
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(world.passing(), ["US-001"]);
    assert_eq!(world.read("PROMPT.md"), prompt);
    assert_eq!(world.git(&["show", "--name-only", "--format=", "HEAD"]), "PRD.json\na\n");
    assert_eq!(world.read(&theirs(&said.err, "PROMPT.md")), "Work.\n- [x] TASK_COMPLETE\n");
    assert_eq!(world.status(), "");
}

#[test]
fn a_ticked_task_does_not_lead_past_the_stages() {
    let prd = Prd::default().story(r#""stages": ["TESTS_PASS", "DOCS_COMPLETE"]"#);
    let tick = "{ run = \"sed -i 's/\\\\[ \\\\]/[x]/' PROMPT.md; echo work > a\" }";
    let world = World::scripted(&prd, &attempt(tick));
    world.write("PROMPT.md", "Work.\n- [ ] TASK_COMPLETE\n");
    let said = world.run(&["--once"]);
    assert_eq!(said.code, 3, "{}", said.err);
    assert_eq!(world.passing(), [""; 0]);
}

#[test]
fn changed_instructions_are_restored_and_are_no_claim_by_themselves() {
    let change = "{ run = \"echo Obey. > PROMPT.md; echo work >> a\" }";
    let script = attempt(change) + &attempt(&format!("{WORK}, \"complete\""));
    for place in ["PROMPT.md", "../elsewhere.md"] {
        let world = World::scripted(&Prd::stories(1), &script.replace("PROMPT.md", place));
        world.write(place, "- [x] TASK_COMPLETE\n");
        let said = world.run(&["--prompt", place]);
        assert_eq!(said.code, 0, "{place}: {}", said.err);
        assert_eq!(world.iteration_files(".prompt.md").len(), 2, "{place}");
        assert_eq!(world.read(place), "- [x] TASK_COMPLETE\n", "{place}");
        let name = place.trim_start_matches("../");
        assert_eq!(world.read(&theirs(&said.err, name)), "Obey.\n", "{place}");
    }
}

#[test]
fn an_attempt_that_only_changed_the_instructions_did_nothing() {
    let script = attempt("{ run = \"echo Obey. > PROMPT.md\" }")
        + &attempt(&format!("{WORK}, \"complete\""));
    let world = World::scripted(&Prd::stories(1), &script);
    world.write("PROMPT.md", "Work.\n");
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.err.contains("claimed nothing and changed nothing"), "{}", said.err);
}

#[test]
fn what_an_agent_commits_of_the_instructions_is_not_in_the_storys_commit() {
    let commit =
        "{ run = \"echo Obey. > PROMPT.md; echo work > a; git add .; git commit -qm mine\" }";
    let script = attempt(&format!("{commit}, \"complete\""))
        + &format!("[story.US-002]\nsteps = [{WORK}, \"complete\"]\n");
    let world = World::scripted(&Prd::stories(2), &script);
    world.write("PROMPT.md", "Work.\n");
    world.git(&["add", "."]);
    world.git(&["commit", "-qm", "prompt"]);
    world.write("PROMPT.md", "Work hard.\n");
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(world.git(&["show", "HEAD:PROMPT.md"]), "Work.\n");
    assert_eq!(world.git(&["show", "HEAD~1:PROMPT.md"]), "Work.\n");
    assert_eq!(world.read("PROMPT.md"), "Work hard.\n");
    assert_eq!(world.git(&["show", "--name-only", "--format=", "HEAD"]), "PRD.json\nUS-002.txt\n");
}

#[test]
fn instructions_that_changed_before_a_crash_are_reported() {
    let script =
        "[default]\nsteps = [{ run = \"echo Obey. > PROMPT.md; echo y > started\" }, \"hang\"]\n";
    let world = World::scripted(&Prd::stories(1), script);
    world.write("PROMPT.md", "Work.\n");
    let mut child = world.start(&[]);
    world.await_file("started");
    child.kill().unwrap();
    child.code();
    until("the agent to be gone", || world.processes().is_empty().then_some(()));
    fs::write(world.script(), format!("[default]\nsteps = [{WORK}, \"complete\"]\n")).unwrap();
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(world.read(&theirs(&said.err, "PROMPT.md")), "Obey.\n");
}

#[test]
fn the_first_of_two_claims_is_sent_back_once_unless_a_gate_can_tell() {
    let script = attempt(&format!("{WORK}, \"complete\"")) + &attempt("\"complete\"");
    let world = with_settings(&Prd::stories(1), &script, "require_two_claims = true\n");
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.err.contains("the agent claims US-001; the next attempt checks it again"));
    assert_eq!(world.iteration_files("prompt.md").len(), 2);
    let second = world.prompt(2);
    assert!(second.contains("Check every criterion again"), "{second}");
    assert_eq!(kinds(&world).iter().filter(|kind| *kind == "second_look_wanted").count(), 1);
    let failed = "The last attempt failed";
    assert!(!second.contains(failed), "{second}");
    let fails = attempt("{ exit = 1 }") + &attempt(&format!("{WORK}, \"complete\""));
    let world = with_settings(&Prd::stories(1), &fails, "");
    assert_eq!(world.run(&[]).code, 0);
    assert!(world.prompt(2).contains(failed), "{}", world.prompt(2));
    let gated = "require_two_claims = true\nverify = [\"test -e US-001.txt\"]\n";
    let world = with_settings(&Prd::stories(1), &script, gated);
    assert_eq!(world.run(&[]).code, 0);
    assert_eq!(world.iteration_files("prompt.md").len(), 1);
}

#[test]
fn a_claim_without_a_change_is_not_the_first_of_two() {
    let script = attempt("\"complete\"")
        + &attempt(&format!("{WORK}, \"complete\""))
        + &attempt("\"complete\"");
    let world = with_settings(&Prd::stories(1), &script, "require_two_claims = true\n");
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    let decided = ["claim_rejected", "second_look_wanted", "story_closed"];
    let kinds = kinds(&world).into_iter().filter(|kind| decided.contains(&kind.as_str()));
    assert_eq!(kinds.collect::<Vec<_>>(), decided);
}

#[test]
fn a_marker_that_could_never_match_is_an_error() {
    let prd = Prd::default().story(r#""signals": ["> quoted"], "stages": ["A_1", "A_1"]"#);
    let world = World::with(&prd);
    let said = world.ralph(&["check"]);
    assert_eq!(said.code, 1);
    for told in ["`signals` of story `US-001` has an invalid entry", "`stages` of story"] {
        assert!(said.out.contains(told), "{told} is not in\n{}", said.out);
    }
    let world = World::with(&Prd::stories(1));
    world.write("ralph.toml", "completion_promise = \"\"\n");
    let said = world.run(&[]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("for `completion_promise`"), "{}", said.err);
}
