//! docs/files.md documents every field and every word, and nothing else.

use std::collections::BTreeSet;

use serde_json::Value;

use super::example;

const DOCS: &str = include_str!("../../../docs/files.md");

/// `totals.tokens.input`, `iterations[].errors[]`.
fn paths(value: &Value, path: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let dot = if path.is_empty() { "" } else { "." };
                paths(value, &format!("{path}{dot}{name}"), found);
            }
        }
        Value::Array(items) => {
            found.insert(path.to_owned());
            items.iter().for_each(|item| paths(item, &format!("{path}[]"), found));
        }
        _ => {
            found.insert(path.to_owned());
        }
    }
}

/// The first column of the tables of fields.
fn documented() -> BTreeSet<String> {
    let rows = DOCS.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    rows.filter(|path| !path.contains(' ')).map(str::to_owned).collect()
}

#[test]
fn exactly_the_written_fields_are_documented() {
    let value: Value = serde_json::from_str(&example::text()).unwrap();
    let mut written = BTreeSet::new();
    paths(&value, "", &mut written);
    // Lists of texts and of objects are described where they stand.
    let written: BTreeSet<String> =
        written.into_iter().filter(|path| !path.ends_with("[]")).collect();
    let documented = documented();
    let missing: Vec<_> = written.difference(&documented).collect();
    let surplus: Vec<_> = documented.difference(&written).collect();
    assert!(missing.is_empty() && surplus.is_empty(), "missing {missing:?}, surplus {surplus:?}");
}

#[test]
fn the_example_is_what_the_program_writes() {
    let block = DOCS.split("```json\n").nth(1).and_then(|rest| rest.split("```").next());
    let text = example::text();
    assert!(block == Some(text.as_str()), "docs/files.md needs this example:\n{text}");
}

#[test]
fn every_word_is_documented() {
    let words = "initializing running paused handoff completing completed failed terminated \
        planning implementing testing reviewing complete \
        claimed closed rejected progress escalated prompt_too_long service_trouble interrupted \
        cut_off first_try incomplete gate_failed claim_rejected second_look human_guidance human_retry \
        recovery after_error after_service_trouble fresh_start healthy degraded stuck failing \
        failing all_done story_done once max_iterations usage_limit service_down account_trouble \
        agent_unusable disk_low nothing_to_select aborted signal error";
    for word in words.split_whitespace() {
        assert!(DOCS.contains(&format!("`{word}`")), "`{word}` is missing");
    }
}
