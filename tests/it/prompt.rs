//! What the agent is given.

use crate::support::{Prd, World};

fn prompt_of(world: &World, args: &[&str]) -> String {
    let mut words = vec![
        "run",
        "--agent-command",
        "sh -c 'cat > ../prompt.txt; env > ../env.txt; date +%N > work.txt; echo Task US-001 complete'",
        "--once",
    ];
    words.extend(args);
    let said = world.ralph(&words);
    assert!([0, 3].contains(&said.code), "{}", said.err);
    world.read("../prompt.txt")
}

#[test]
fn it_holds_the_instructions_the_story_the_standing_and_the_contract() {
    let world = World::with(&Prd::stories(2));
    let prompt = prompt_of(&world, &[]);
    for text in [
        include_str!("../../PROMPT.md.example").trim_end(),
        "# Your story: US-001",
        "Story 1",
        "What story 1 is about.",
        "- it is done",
        "Iteration 1 of at most 50, attempt 1 at this story",
        "0 of 2 stories are complete",
        "\n    Task US-001 complete\n",
        "<escalate type=\"stuck|deviation\">",
        "Do not print `<promise>DONE</promise>`",
        "2 stories are open",
    ] {
        assert!(prompt.contains(text), "{text} is not in\n{prompt}");
    }
    assert!(!prompt.contains("Guidance"));
}

#[test]
fn it_goes_where_the_command_has_a_word_for_it() {
    let script = r#"cat > ../in; printf %s "$1" > ../as-text; cat "$2" > ../as-file; touch new; echo Task US-001 complete"#;
    for (words, text, file) in [
        ("{prompt} {prompt_file}", true, true),
        ("{prompt} /dev/null", true, false),
        ("none {prompt_file}", false, true),
        // A part of a word could be a part of a shell command.
        ("x{prompt} /dev/null", false, false),
    ] {
        let world = World::with(&Prd::stories(1));
        let agent = format!("sh -c '{script}' sh {words}");
        let said = world.ralph(&["run", "--agent-command", &agent]);
        assert_eq!(said.code, 0, "{}", said.err);
        let has_prompt = ["as-text", "as-file", "in"]
            .map(|name| world.read(&format!("../{name}")) == world.prompt(1));
        assert_eq!(has_prompt, [text, file, !text && !file], "{words}");
        assert_eq!(world.read("../in").is_empty(), text || file, "{words}");
    }
}

#[test]
fn the_last_story_may_promise() {
    let world = World::with(&Prd::stories(1));
    assert!(prompt_of(&world, &[]).contains("you may add\n`<promise>DONE</promise>`"));
}

#[test]
fn the_instructions_come_from_the_nearest_file() {
    let world = World::new();
    world.write("plans/PRD.json", &Prd::stories(5).text());
    world.write("PROMPT.md", "from the root\n");
    world.write("mine.md", "from the flag\n");
    assert!(prompt_of(&world, &["plans/PRD.json"]).starts_with("from the root\n"));
    world.write("plans/PROMPT.md", "from beside\n");
    assert!(prompt_of(&world, &["plans/PRD.json"]).starts_with("from beside\n"));
    assert!(
        prompt_of(&world, &["plans/PRD.json", "--prompt", "mine.md"])
            .starts_with("from the flag\n")
    );
    let said = world.ralph(&["run", "plans/PRD.json", "--agent", "mock", "--prompt", "none.md"]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("none.md"), "{}", said.err);
}

#[test]
fn the_environment_names_run_story_and_iteration() {
    let world = World::with(&Prd::stories(1));
    prompt_of(&world, &[]);
    let env = world.read("../env.txt");
    let value = |key: &str| {
        let line = env.lines().find_map(|line| line.strip_prefix(&format!("{key}="))).unwrap();
        line.to_owned()
    };
    assert_eq!(value("RALPH_STORY"), "US-001");
    assert_eq!(value("RALPH_ITERATION"), "1");
    let run = world.git(&["log", "-1", "--format=%(trailers:key=Ralph-Run,valueonly)"]);
    assert_eq!(value("RALPH_RUN_ID"), run.trim());
}
