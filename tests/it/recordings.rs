//! Real agents' output, replayed through the reader and the classification.

mod table;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use ralph::agent::{AgentEvent, AgentReport, StreamReader, any_decoder};
use ralph::model::{AgentSignals, CostCertainty, EndedBy, Exit, Outcome, StoryId, Usd};
use ralph::text::signals::Scanner;
use table::Row;

/// Chunks of one byte take their time: only for files up to this size.
const SMALL: usize = 32 * 1024;
/// Each with the retry at which it is given up: a login can be renewed after the first.
const HOPELESS: [(&str, usize); 3] =
    [("g_401_invalid_key.jsonl", 1), ("g_401_max_retries_1.jsonl", 1), ("o_401_oauth.jsonl", 2)];

struct Recording {
    output: Vec<u8>,
    errors: Vec<u8>,
    exit: Exit,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/recordings")
}

fn recording(file: &str) -> Recording {
    let stem = folder().join(file.rsplit_once('.').expect("an extension").0);
    let beside = |ending: &str| PathBuf::from(format!("{}.{ending}", stem.display()));
    Recording {
        output: fs::read(folder().join(file)).expect(file),
        errors: fs::read(beside("stderr")).unwrap_or_default(),
        exit: fs::read_to_string(beside("meta.json")).map_or(Exit::Code(0), |meta| exit(&meta)),
    }
}

/// A negative exit code is a signal.
fn exit(meta: &str) -> Exit {
    let meta: serde_json::Value = serde_json::from_str(meta).expect("JSON");
    let code = i32::try_from(meta["exit_code"].as_i64().expect("an exit code")).expect("an i32");
    if code < 0 { Exit::Signal(-code) } else { Exit::Code(code) }
}

fn reading() -> StreamReader {
    let story = StoryId::try_from("US-001").expect("an id");
    StreamReader::new(
        any_decoder(),
        || Scanner::new(&story, ralph::model::CompletionMarkers::default(), 0),
        "",
    )
}

fn read(recording: &Recording, chunk: usize) -> AgentReport {
    let mut reading = reading();
    for part in recording.output.chunks(chunk) {
        reading.push(part, &mut |_| {});
    }
    reading.push_stderr(&recording.errors, &mut |_| {});
    reading.finish(&recording.exit, &mut |_| {})
}

fn rows() -> impl Iterator<Item = &'static Row> {
    [table::STREAM_JSON, table::OTHER_FORMATS, table::OTHER_AGENTS].into_iter().flatten()
}

fn class(outcome: &Outcome) -> String {
    match outcome {
        Outcome::UsageLimit { resets_at: Some(at), .. } => {
            format!("{} until {at}", outcome.class())
        }
        Outcome::KilledBySomeoneElse { signal } => format!("{} by {signal}", outcome.class()),
        _ => outcome.class().to_owned(),
    }
}

fn signals(signals: &AgentSignals) -> String {
    let mut heard = Vec::new();
    heard.extend(signals.claims_story.then(|| "claim".to_owned()));
    heard.extend(signals.claims_others.iter().map(|id| format!("claim of {id}")));
    heard.extend(signals.promises_all.then(|| "promise".to_owned()));
    heard.extend(signals.escalation.as_ref().map(|_| "escalation".to_owned()));
    heard.join(", ")
}

/// Sums of prices are not exact.
fn dollars(cost: Option<f64>) -> Option<String> {
    cost.map(|cost| format!("{cost:.6}"))
}

#[test]
fn every_recording_is_what_it_was() {
    for &(file, expected, said, cost, tokens) in rows() {
        let recording = recording(file);
        let read = read(&recording, recording.output.len().max(1));
        let usage = &read.usage;
        let used = [
            usage.input_tokens,
            usage.output_tokens,
            usage.cache_read_tokens,
            usage.cache_write_tokens,
        ];
        let outcome = class(&read.outcome);
        let found = (outcome.as_str(), &*signals(&read.signals), dollars(usage.cost_usd), used);
        assert_eq!(found, (expected, said, dollars(cost), tokens), "{file}");
    }
}

#[test]
fn the_size_of_the_chunks_makes_no_difference() {
    for (file, ..) in rows() {
        let recording = recording(file);
        let whole = format!("{:?}", read(&recording, recording.output.len().max(1)));
        let sizes: &[usize] =
            if recording.output.len() <= SMALL { &[1, 7, 64 * 1024] } else { &[7, 64 * 1024] };
        for size in sizes {
            assert_eq!(format!("{:?}", read(&recording, *size)), whole, "{file} by {size}");
        }
    }
}

#[test]
fn the_table_and_the_folder_have_the_same_recordings() {
    let names = fs::read_dir(folder()).expect("the folder").map(|entry| entry.expect("an entry"));
    let is_recording =
        |name: &String| ![".meta.json", ".stderr", ".md"].iter().any(|end| name.ends_with(end));
    let found: BTreeSet<String> = names
        .map(|entry| entry.file_name().into_string().expect("UTF-8"))
        .filter(is_recording)
        .collect();
    let listed: BTreeSet<String> = rows().map(|(file, ..)| (*file).to_owned()).collect();
    assert_eq!(listed, found);
}

#[test]
fn a_refused_login_that_is_tried_again_is_given_up_at_once() {
    for (file, ..) in rows() {
        let (mut reading, mut retries) = (reading(), 0);
        let lines = recording(file).output;
        let hopeless = lines.split_inclusive(|byte| *byte == b'\n').any(|line| {
            retries += usize::from(String::from_utf8_lossy(line).contains("\"api_retry\""));
            reading.push(line, &mut |_| {});
            reading.is_hopeless()
        });
        let expected = HOPELESS.iter().find(|(name, _)| name == file).map(|(_, at)| *at);
        assert_eq!(hopeless.then_some(retries), expected, "{file}");
        if hopeless {
            assert!(reading.end(EndedBy::HopelessRetry));
            let report = reading.finish(&Exit::Code(143), &mut |_| {});
            assert_eq!(report.outcome.class(), "login", "{file}");
        }
    }
}

#[test]
fn work_in_the_background_is_counted_until_it_ends() {
    for (file, at_results, at_the_end) in [
        ("a_plain_text.jsonl", &[0][..], 0),
        ("r_subagent.jsonl", &[0], 0),
        ("n_background_setsid.jsonl", &[0], 0),
        ("n_run_in_background.jsonl", &[1], 1),
        ("n_run_in_background_disabled.jsonl", &[0], 0),
        ("n_run_in_background_finishes.jsonl", &[1, 0], 0),
        ("n_run_in_background_default_ceiling.jsonl", &[1, 0], 0),
        ("n_run_in_background_sigterm_after_result.jsonl", &[1], 0),
        ("v2.1.197_n_run_in_background.jsonl", &[1], 0),
    ] {
        let (mut reading, mut found, mut running) = (reading(), Vec::new(), 0);
        for line in recording(file).output.split_inclusive(|byte| *byte == b'\n') {
            reading.push(line, &mut |event| {
                if let AgentEvent::Background(tasks) = event {
                    running = *tasks;
                }
            });
            let event: serde_json::Value = serde_json::from_slice(line).expect("JSON");
            if event["type"] == "result" {
                found.push(running);
                assert_eq!(reading.is_at_work(), running > 0, "{file}");
            }
        }
        assert_eq!((&*found, running), (at_results, at_the_end), "{file}");
        assert!(!reading.is_at_work() || at_the_end > 0, "{file}");
    }
}

#[test]
fn an_agent_says_which_it_is() {
    for (file, version) in
        [("a_plain_text.jsonl", "2.1.325"), ("v2.1.197_n_run_in_background.jsonl", "2.1.197")]
    {
        let recording = recording(file);
        let started = read(&recording, recording.output.len()).identity;
        assert_eq!(started.version.as_deref(), Some(version), "{file}");
        assert!(started.model.is_some_and(|model| model.starts_with("claude-")), "{file}");
    }
}

#[test]
fn tool_calls_are_counted_once_with_those_of_sub_agents() {
    for (file, calls) in [
        ("a_plain_text.jsonl", 0),
        ("b_tool_use.jsonl", 2),
        ("b2_parallel_tools_thinking.jsonl", 6),
        ("r_subagent.jsonl", 2),
        ("m_sigterm_during_bash.jsonl", 1),
    ] {
        assert_eq!(read(&recording(file), 1024).usage.tool_calls, calls, "{file}");
    }
}

#[test]
fn a_result_says_what_each_model_cost() {
    for (file, ..) in rows() {
        let read = read(&recording(file), 64 * 1024);
        let models: Usd = read.models.iter().map(|model| model.cost).sum();
        let stated = read.usage.cost_usd.map(Usd::of).unwrap_or_default();
        assert_eq!(models, stated, "{file}");
    }
    let read = read(&recording("a_plain_text.jsonl"), 1024);
    let model = &read.models[0];
    let tokens = (model.input_tokens, model.output_tokens, model.cache_read_tokens);
    assert_eq!((model.model.as_str(), tokens), ("claude-opus-5-5", (1200, 42, 800)));
}

#[test]
fn only_a_subscription_has_its_limits() {
    for (file, subscription) in [
        ("a_plain_text.jsonl", Some(false)),
        ("o_usage_limit_5h_apikey.jsonl", Some(false)),
        ("o_usage_allowed_oauth.jsonl", Some(true)),
        ("o_usage_warning_oauth.jsonl", Some(true)),
        ("o_usage_limit_7d_oauth.jsonl", Some(true)),
        ("o_401_oauth.jsonl", None),
        ("g_no_key.jsonl", None),
        ("codex_a_plain.jsonl", None),
    ] {
        assert_eq!(read(&recording(file), 1024).subscription, subscription, "{file}");
    }
}

#[test]
fn what_an_attempt_cost_is_known_when_its_last_turn_has_its_result() {
    for (file, known) in [
        ("a_plain_text.jsonl", CostCertainty::Whole),
        ("n_run_in_background_finishes.jsonl", CostCertainty::Whole),
        ("n_run_in_background_sigterm_after_result.jsonl", CostCertainty::Whole),
        ("m_sigterm_during_bash.jsonl", CostCertainty::Part),
        ("m_sigkill_during_bash.jsonl", CostCertainty::Part),
        ("l_no_prompt_devnull.jsonl", CostCertainty::Nothing),
        ("k_text_format.txt", CostCertainty::Nothing),
    ] {
        assert_eq!(read(&recording(file), 1024).certainty, known, "{file}");
    }
    // A turn that the background began after the result, and that somebody ended.
    let output = recording("n_run_in_background_finishes.jsonl").output;
    let is_result = |line: &&[u8]| String::from_utf8_lossy(line).contains("\"type\":\"result\"");
    let lines: Vec<&[u8]> = output.split_inclusive(|byte| *byte == b'\n').collect();
    let last = lines.iter().rposition(is_result).expect("a result");
    let cut = Recording { output: lines[..last].concat(), errors: vec![], exit: Exit::Signal(9) };
    let read = read(&cut, 1024);
    assert_eq!((read.certainty, read.usage.cost_usd.is_some()), (CostCertainty::Part, true));
}

#[test]
fn a_denied_call_is_reported_as_the_rule_that_would_allow_it() {
    let denied = read(&recording("j_permission_denied.jsonl"), 1024).denied;
    let denied: Vec<(&str, u32)> =
        denied.iter().map(|(rule, times)| (rule.as_str(), *times)).collect();
    assert_eq!(denied, [("Bash(touch y.txt)", 1), ("Write", 1)]);
}
