//! A backlog taken to done.

use crate::support::{Prd, World};

#[test]
fn every_story_becomes_one_commit_with_its_mark() {
    let world = World::with(&Prd::stories(3));
    let before = world.read("PRD.json");
    let said = world.run(&["PRD.json"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(
        world.subjects(),
        ["US-003: Story 3", "US-002: Story 2", "US-001: Story 1", "backlog", "first"]
    );
    assert_eq!(world.read("PRD.json"), before.replace("\"passes\": false", "\"passes\": true"));
    assert_eq!(world.status(), "");
    let files = world.git(&["show", "--name-only", "--format=", "HEAD~1"]);
    assert_eq!(files, "PRD.json\nmock/US-002.md\n");
    let prd = world.git(&["show", "HEAD~2:PRD.json"]);
    assert_eq!(prd.matches("\"passes\": true").count(), 1);
}

#[test]
fn the_commit_says_which_story_backlog_run_and_iteration() {
    let world = World::new();
    world.write("plans/a.json", &Prd::stories(2).text());
    assert_eq!(world.run(&["plans/a.json"]).code, 0);
    let trailers = world.git(&["log", "-2", "--format=%(trailers:only,unfold)"]);
    let lines: Vec<&str> = trailers.lines().filter(|line| !line.is_empty()).collect();
    let key_values: Vec<(&str, &str)> =
        lines.iter().map(|line| line.split_once(": ").unwrap()).collect();
    let keys: Vec<&str> = key_values.iter().map(|(key, _)| *key).collect();
    let expected = ["Ralph-Story", "Ralph-Backlog", "Ralph-Run", "Ralph-Iteration", "Ralph-Change"];
    assert_eq!(keys, [expected, expected].concat());
    let values: Vec<&str> = key_values.iter().map(|(_, value)| *value).collect();
    assert_eq!((values[0], values[1], values[3]), ("US-002", "plans/a.json", "2"));
    assert_eq!((values[5], values[6], values[8]), ("US-001", "plans/a.json", "1"));
    assert_eq!(values[2], values[7], "both stories belong to one run");
    assert_eq!(values[2].len(), 36);
}

#[test]
fn dependencies_and_priorities_decide_the_order() {
    let prd = Prd::default()
        .story(r#""dependsOn": ["US-003"]"#)
        .story(r#""priority": 2"#)
        .story(r#""priority": 1, "depends_on": ["US-002"]"#)
        .story(r#""skipped": true"#);
    let world = World::with(&prd);
    assert_eq!(world.run(&[]).code, 0);
    let subjects = world.subjects();
    let order: Vec<&str> = subjects.iter().rev().skip(2).map(String::as_str).collect();
    assert_eq!(order, ["US-002: Story 2", "US-003: Story 3", "US-001: Story 1"]);
}

#[test]
fn unfinished_work_stays_for_the_next_iteration_of_the_same_story() {
    let script = r#"
        [[story.US-001.attempts]]
        steps = [{ write = "half.txt", text = "half\n" }, { say = "More to do." }]
        [[story.US-001.attempts]]
        steps = [{ run = "cat half.txt > whole.txt" }, "complete"]
    "#;
    let world = World::scripted(&Prd::stories(1), script);
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(world.subjects(), ["US-001: Story 1", "backlog", "first"]);
    assert_eq!(world.git(&["show", "HEAD:whole.txt"]), "half\n");
    assert!(world.git(&["log", "-1", "--format=%(trailers)"]).contains("Ralph-Iteration: 2"));
}

#[test]
fn an_agents_own_commits_stay_below_the_closing_one() {
    let script = r#"
        [story.US-001]
        steps = [
          { run = "echo a > a.txt; git add a.txt; git commit -qm 'mine'" },
          { write = "b.txt", text = "b\n" },
          "complete",
        ]
    "#;
    let world = World::scripted(&Prd::stories(1), script);
    assert_eq!(world.run(&[]).code, 0);
    assert_eq!(world.subjects(), ["US-001: Story 1", "mine", "backlog", "first"]);
    let files = world.git(&["show", "--name-only", "--format=", "HEAD"]);
    assert_eq!(files, "PRD.json\nb.txt\n");
    assert_eq!(world.status(), "");
}

#[test]
fn a_promise_closes_the_last_story_and_is_false_before() {
    let script = r#"
        [[story.US-001.attempts]]
        steps = [{ write = "a.txt", text = "1" }, "promise"]
        [[story.US-001.attempts]]
        steps = ["complete"]
        [story.US-002]
        steps = [{ write = "b.txt", text = "2" }, "promise"]
    "#;
    let world = World::scripted(&Prd::stories(2), script);
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.err.contains("the agent claimed the whole backlog, but"), "{}", said.err);
    assert_eq!(world.subjects()[0], "US-002: Story 2");
    assert_eq!(
        world.git(&["log", "-1", "--format=%(trailers:key=Ralph-Iteration,valueonly)"]).trim(),
        "3"
    );
}

#[test]
fn words_of_others_are_no_claim() {
    let script = r#"
        [story.US-001]
        steps = [
          { subagent = "Task US-001 complete" },
          { thinking = "Task US-001 complete" },
          { run = "echo 'Task US-001 complete' | tee said.txt" },
          { say = "> Task US-001 complete\n\n```\nTask US-001 complete\n```" },
        ]
    "#;
    let world = World::scripted(&Prd::stories(1), script);
    let said = world.run(&["--max-iterations", "1"]);
    assert_eq!(said.code, 3, "{}", said.err);
    assert_eq!(world.passing(), [""; 0]);
}

#[test]
fn any_program_can_be_the_agent() {
    let world = World::with(&Prd::stories(1));
    let agent = "sh -c 'grep -q \"Your story: US-001\" && echo made > made.txt && echo \"Task US-001 complete\"'";
    let said = world.ralph(&["run", "--agent-command", agent]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(world.git(&["show", "HEAD:made.txt"]), "made\n");
}

#[test]
fn an_agent_that_echoes_its_prompt_has_claimed_nothing() {
    let world = World::with(&Prd::stories(1));
    world.write("PROMPT.md", "Do it.\nThen say\nTask US-001 complete\nor do not.\n");
    let said = world.ralph(&["run", "--agent-command", "sh -c 'cat; touch new'", "--once"]);
    assert_eq!(said.code, 3, "{}", said.err);
    assert_eq!(world.passing(), [""; 0]);
    assert!(world.path("new").exists(), "there was something to close it with");
    world.heard_no_claim();
}

#[test]
fn a_backlog_that_is_done_needs_no_agent_and_no_commit() {
    let mut text = Prd::stories(2).text();
    text = text.replace("\"passes\": false", "\"passes\": true");
    let world = World::new();
    world.write("PRD.json", &text);
    assert_eq!(world.run(&[]).code, 0);
    assert_eq!(world.subjects(), ["first"]);
}
