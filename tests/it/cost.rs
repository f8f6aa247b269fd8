//! `ralph cost`: what was spent, as people and programs read it.

use std::fs;

use ralph::model::Event;
use serde_json::{Value, json};

use crate::support::world::Ends;
use crate::support::{Prd, World};

const SCRIPT: &str = r#"
    [[story.US-001.attempts]]
    steps = [{ fail = "error" }]
    [[story.US-001.attempts]]
    steps = [
      { write = "a.txt", text = "a" }, { run = "true" }, { cost = 0.5 }, { turns = 7 },
      { tokens = { input = 100, output = 50, cache_read = 800, cache_write = 100 } },
      { model = "large" }, "complete",
    ]
    [story.US-002]
    steps = [
      { write = "b.txt", text = "b" }, { cost = 1.25 },
      { tokens = { input = 10, output = 20, cache_read = 30, cache_write = 40 } },
      { model = "small" }, "complete",
    ]
"#;

fn json(world: &World, args: &[&str]) -> Value {
    let said = world.ralph(&[&["cost", "--json"], args].concat());
    assert_eq!(said.code, 0, "{}", said.err);
    serde_json::from_str(&said.out).unwrap()
}

fn done() -> World {
    let world = World::scripted(&Prd::stories(2), SCRIPT);
    assert_eq!(world.run(&[]).code, 0);
    world
}

#[test]
fn an_attempt_records_all_its_figures() {
    let world = done();
    let mut ended = world.journal().into_iter().filter_map(|recorded| match recorded.event {
        Event::AttemptEnded(ended) => Some(ended),
        _ => None,
    });
    let ended = ended.next_back().unwrap();
    let usage = &ended.usage;
    let tokens = [
        usage.input_tokens,
        usage.output_tokens,
        usage.cache_read_tokens,
        usage.cache_write_tokens,
    ];
    assert_eq!((tokens, usage.cost_usd, usage.tool_calls), ([10, 20, 30, 40], Some(1.25), 1));
    assert_eq!(ended.cost.models[0].model, "small");
    assert_eq!(serde_json::to_value(ended.cost.counted).unwrap(), 1.25);
}

#[test]
fn the_latest_run_is_summed_up() {
    let world = done();
    let cost = json(&world, &[]);
    assert_eq!(cost["run"], world.state()["run"]);
    let total = &cost["total"];
    for (field, value) in [
        ("iterations", json!(3)),
        ("cost_usd", json!(1.75)),
        ("input_tokens", json!(110)),
        ("output_tokens", json!(70)),
        ("cache_read_tokens", json!(830)),
        ("cache_write_tokens", json!(140)),
        ("tool_calls", json!(3)),
        ("closed", json!(2)),
    ] {
        assert_eq!(total[field], value, "{field} in {total:#}");
    }
    assert_eq!(cost["efficiency"]["cost_per_story_usd"], 0.875);
    assert_eq!(cost["stories"][0]["cost_usd"], 0.5);
    assert_eq!(cost["stories"][0]["turns"], 8, "one of the attempt that failed");
    assert_eq!((&cost["today_usd"], &cost["repository_usd"]), (&json!(1.75), &json!(1.75)));
    let text = world.ralph(&["cost"]).out;
    for part in ["$1.75 spent", "per story", "tool call", "cache read", "US-002", "small"] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    assert!(!text.contains('\x1b'), "{text}");
}

#[test]
fn all_runs_are_summed_up_by_story_day_or_model() {
    let world = done();
    world.write(
        "PRD.json",
        &world.read("PRD.json").replace("\"passes\": true", "\"passes\": false"),
    );
    world.git(&["commit", "-qam", "again"]);
    fs::write(
        world.script(),
        SCRIPT
            .replace("1.25", "3.0")
            .replace("\"b\"", "\"another\"")
            .replace(r#"{ fail = "error" }"#, r#"{ write = "c.txt", text = "c" }, "complete""#),
    )
    .unwrap();
    assert_eq!(world.run(&[]).code, 0);
    let stories = json(&world, &["--by", "story"]);
    let costs: Vec<&Value> =
        stories.as_array().unwrap().iter().map(|story| &story["cost_usd"]).collect();
    assert_eq!(costs, [&json!(0.5), &json!(4.25)]);
    let days = json(&world, &["--by", "day"]);
    let day = &days.as_array().unwrap()[0];
    assert_eq!(day["day"].as_str().unwrap().len(), "2026-11-16".len());
    let models = json(&world, &["--by", "model"]);
    let names: Vec<(&Value, &Value)> =
        models.as_array().unwrap().iter().map(|row| (&row["model"], &row["cost_usd"])).collect();
    assert_eq!(names[0], (&json!("small"), &json!(4.25)));
    assert_eq!(names[1], (&json!("large"), &json!(0.5)));
    assert_eq!(json(&world, &[])["total"]["cost_usd"], 3.0, "the latest run only");
    assert_eq!(json(&world, &[])["repository_usd"], 4.75);
}

#[test]
fn csv_survives_hostile_titles() {
    let hostile = "=cmd|'/c calc'!A1, \\\"quoted\\\"";
    let prd = Prd::stories(1).text().replace("\"Story 1\"", &format!("\"{hostile}\""));
    let world = World::with(&Prd::stories(1));
    world.write("PRD.json", &prd);
    world.git(&["commit", "-qam", "hostile"]);
    assert_eq!(world.run(&[]).code, 0);
    for args in [&["cost", "--csv"][..], &["cost", "--csv", "--by", "story"]] {
        let csv = world.ralph(args).out;
        let mut lines = csv.lines();
        let heading = lines.next().unwrap();
        assert!(heading.starts_with("backlog,story,title,iterations,cost_usd,"), "{heading}");
        let row = lines.next().unwrap();
        let cell = "PRD.json,US-001,\"'=cmd|'/c calc'!A1, \"\"quoted\"\"\",1,";
        assert!(row.starts_with(cell), "{row}");
        assert_eq!(lines.next(), None);
    }
}

#[test]
fn before_the_first_run_nothing_was_spent_and_nothing_is_made() {
    let world = World::with(&Prd::stories(1));
    for args in [&["cost"][..], &["cost", "--by", "day"]] {
        let said = world.ralph(args);
        assert_eq!(said.code, 0, "{}", said.err);
        assert!(said.out.contains("no costs yet"), "{}", said.out);
    }
    assert_eq!(json(&world, &["--by", "model"]), json!([]));
    assert_eq!(json(&world, &[])["run"], Value::Null);
    assert_eq!(world.ralph(&["cost", "--csv"]).out, "");
    assert!(!world.path(".git/ralph").exists() && !world.state_home().exists());
    assert_eq!(world.ralph(&["cost", "--json", "--csv"]).code, 2);
    assert_eq!(world.ralph(&["cost", "--by", "week"]).code, 2);
}

#[test]
fn a_running_driver_is_not_disturbed() {
    let script = "[story.US-001]\nsteps = [{ write = \"a\", text = \"a\" }, { cost = 0.5 }, \"complete\"]\n\
                  [story.US-002]\nsteps = [{ run = \"echo y > ../here; until [ -e ../go ]; do sleep 0.02; done\" }, { cost = 0.25 }, { write = \"b\", text = \"b\" }, \"complete\"]\n";
    let world = World::scripted(&Prd::stories(2), script);
    let child = world.start(&[]);
    world.await_file("../here");
    let during = json(&world, &[]);
    assert_eq!(during["total"]["cost_usd"], 0.5);
    assert_eq!(
        (&during["total"]["iterations"], &during["total"]["assumed"]),
        (&json!(2), &json!(0))
    );
    fs::write(world.path("../go"), "").unwrap();
    let said = child.ended();
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(json(&world, &[])["total"]["cost_usd"], 0.75);
}

#[test]
fn from_the_second_finished_story_on_the_rest_is_foreseen() {
    let script = "[default]\nsteps = [{ write = \"${STORY}\", text = \"x\" }, { cost = 2.0 }, \"complete\"]\n";
    let world = World::scripted(&Prd::stories(4), script);
    let said = world.run(&["--max-iterations", "1"]);
    assert!(!said.err.contains("to go"), "{}", said.err);
    let said = world.run(&["--max-iterations", "2"]);
    assert!(said.err.contains("about $2.00 and "), "{}", said.err);
    assert!(said.err.contains("Final: 3/4 complete (1 remaining) · about $2.00"), "{}", said.err);
    let report: Value = serde_json::from_str(&world.read(".ralph/report.json")).unwrap();
    assert_eq!(report["forecast"]["cost_usd"], json!([2.0, 2.0]));
    assert_eq!(report["efficiency"]["cost_per_story_usd"], 2.0);
    assert_eq!(world.state()["forecast"]["cost_usd"], json!([2.0, 2.0]));
}
