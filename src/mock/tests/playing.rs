use std::path::Path;
use std::process::Command;

use serde_json::json;

use super::super::MockEnd;
use super::super::script::Scene;
use super::stage;

#[test]
fn without_a_script_a_file_is_written_and_the_story_claimed() {
    let mut stage = stage();
    stage.attempt = 2;
    let played = stage.play("");
    assert_eq!(
        played.kinds(),
        ["system/init", "assistant", "assistant", "user", "assistant", "result/success"]
    );
    assert_eq!(
        stage.file("mock/US-001.md"),
        "# US-001\n\nWritten by ralph's mock agent, attempt 2.\n"
    );
    assert_eq!(played.texts().last().unwrap(), "Wrote mock/US-001.md.\n\nTask US-001 complete");
    assert_eq!(played.ending, MockEnd::Exit(0));
}

#[test]
fn the_result_has_what_a_driver_reads() {
    let result = stage().play("").result();
    assert_eq!(result["is_error"], false);
    assert_eq!(result["terminal_reason"], "completed");
    assert_eq!(result["result"], "Wrote mock/US-001.md.\n\nTask US-001 complete");
    assert_eq!((&result["total_cost_usd"], &result["num_turns"]), (&json!(0.0), &json!(3)));
    assert_eq!(result["modelUsage"]["mock"]["inputTokens"], 3600);
    assert_eq!(result["usage"]["output_tokens"], 126);
    assert!(result["session_id"].is_string() && result["duration_ms"].is_u64());
}

#[test]
fn the_init_event_names_the_mock() {
    let init = &stage().play("").events()[0];
    assert_eq!((&init["model"], &init["claude_code_version"]), (&json!("mock"), &json!("mock")));
    assert!(stage().play("[default]\ninit = false\nsteps = []").kinds() == ["result/success"]);
}

#[test]
fn placeholders_are_replaced_everywhere() {
    let stage = stage();
    let played = stage.steps(
        r#"{ write = "${STORY}.txt", text = "${ATTEMPT}" }, { say = "${STORY} ${ATTEMPT} ${ITERATION} $STORY" }"#,
    );
    assert_eq!(played.texts(), ["US-001 1 7 $STORY"]);
    assert_eq!(stage.file("US-001.txt"), "1");
}

#[test]
fn files_are_written_extended_and_deleted() {
    let stage = stage();
    let played = stage.steps(
        r#"{ write = "a/b.txt", text = "1" }, { write = "a/b.txt", text = "2", append = true },
           { write = "c", text = "long" }, { write = "c", text = "x" }, { write = "d" }, { delete = "d" },
           { delete = "nowhere" }"#,
    );
    assert_eq!((stage.file("a/b.txt"), stage.file("c")), ("12".to_owned(), "x".to_owned()));
    assert!(!stage.path("d").exists());
    let events = played.events();
    let failed = events.iter().filter(|e| e["message"]["content"][0]["is_error"] == true);
    assert_eq!(failed.count(), 1, "only the last deletion fails");
    assert_eq!(played.ending, MockEnd::Exit(0));
}

#[test]
fn commands_run_in_the_folder_and_may_fail() {
    let stage = stage();
    let played =
        stage.steps(r#"{ run = "pwd; echo oops >&2; touch made; exit 3" }, { run = "true" }"#);
    let events = played.events();
    let content = |i: usize| events[i]["message"]["content"][0].clone();
    assert_eq!(content(1)["name"], "Bash");
    let folder = stage.folder.path().canonicalize().unwrap();
    assert_eq!(content(2)["content"], format!("Exit code 3\n{}\noops", folder.display()));
    assert_eq!(
        (&content(2)["is_error"], &content(2)["tool_use_id"]),
        (&json!(true), &content(1)["id"])
    );
    assert_eq!(content(4)["content"], "(Bash completed with no output)");
    assert!(stage.path("made").exists());
}

#[test]
fn claims_and_promises_are_the_lines_that_count() {
    let steps = r#""complete", "claim", "false_claim", { claim = "US-009" }, "promise""#;
    let own = "Task US-001 complete";
    assert_eq!(
        stage().steps(steps).texts(),
        [own, own, own, "Task US-009 complete", "<promise>DONE</promise>"]
    );
}

#[test]
fn an_escalation_is_the_agreed_block() {
    let step = r#"{ escalate = { type = "deviation", summary = "s", context = "c", options = ["a", "b"], question = "q?" } }"#;
    assert_eq!(
        stage().steps(step).texts(),
        ["<escalate type=\"deviation\">\n<summary>s</summary>\n<context>c</context>\n<options>\n\
          1. a\n2. b\n</options>\n<question>q?</question>\n</escalate>"]
    );
}

#[test]
fn text_of_sub_agents_and_thoughts_is_marked() {
    let played = stage()
        .steps(r#"{ subagent = "Task US-001 complete" }, { thinking = "hm" }, { say = "mine" }"#);
    assert_eq!(played.texts(), ["mine"]);
    assert!(played.events()[1]["parent_tool_use_id"].is_string());
    assert_eq!(played.events()[2]["message"]["content"][0]["thinking"], "hm");
}

#[test]
fn a_denial_is_an_event_and_is_in_the_result() {
    let played = stage().steps(r#"{ denied = "Bash" }, "complete""#);
    let denied = &played.events()[2];
    assert_eq!(played.kinds()[2], "system/permission_denied");
    let listed = &played.result()["permission_denials"];
    assert_eq!(listed.as_array().unwrap().len(), 1);
    assert_eq!(
        (&listed[0]["tool_name"], &listed[0]["tool_use_id"]),
        (&json!("Bash"), &denied["tool_use_id"])
    );
    assert_eq!(played.result()["is_error"], false);
}

#[test]
fn each_ending_has_its_exit_code_and_result() {
    for (steps, ending, results) in [
        ("", MockEnd::Exit(0), 1),
        ("{ exit = 3 }", MockEnd::Exit(3), 0),
        ("{ exit = 3, result = true }", MockEnd::Exit(3), 1),
        ("\"no_result\"", MockEnd::Exit(0), 0),
        ("\"hang\"", MockEnd::Hang, 0),
        ("{ hang = \"ignore-term\" }", MockEnd::Hang, 0),
        ("\"hang_after_result\"", MockEnd::Hang, 1),
    ] {
        let played = stage().steps(steps);
        let found = played.events().iter().filter(|e| e["type"] == "result").count();
        assert_eq!((played.ending, found), (ending, results), "{steps}");
    }
}

#[test]
fn stated_numbers_are_in_the_result() {
    let played =
        stage().steps(r#"{ cost = 0.31 }, { turns = 12 }, { retry = "overloaded", times = 3 }"#);
    let result = played.result();
    assert_eq!((&result["total_cost_usd"], &result["num_turns"]), (&json!(0.31), &json!(12)));
    assert_eq!(played.kinds().iter().filter(|k| *k == "system/api_retry").count(), 3);
}

#[test]
fn plain_output_has_only_what_is_said() {
    let stage = stage();
    let played = stage.play(
        "[default]\nplain = true\nsteps = [{ say = \"hi\" }, { write = \"f\" }, { thinking = \"t\" }, \
         { raw = \"{\" }, { echo_prompt = true }, \"complete\"]",
    );
    assert_eq!(played.output, "hi\n{\nthe prompt\nTask US-001 complete\n");
    assert!(stage.path("f").exists());
}

#[test]
fn floods_have_the_requested_size_and_are_valid() {
    for (step, lines) in [("{ output = { mb = 2 } }", 42), ("{ output = { line_mb = 2 } }", 3)] {
        let played = stage().steps(step);
        let events = played.events();
        assert_eq!(events.len(), lines, "{step}");
        let sizes = events.iter().filter_map(|e| e["message"]["content"][0]["content"].as_str());
        assert_eq!(sizes.map(str::len).sum::<usize>(), 2_000_000, "{step}");
    }
}

#[test]
fn a_process_is_left_behind_in_the_chosen_session() {
    for (kinship, own_session) in [("plain", false), ("setsid", true), ("double-fork", true)] {
        let stage = stage();
        stage.steps(&format!(
            "{{ grandchild = \"{kinship}\", command = \"exec sleep 30\", pid_file = \"pid\" }}"
        ));
        let pid = stage.file("pid").trim().to_owned();
        let session = settled_session(&pid);
        Command::new("kill").args(["-9", &pid]).status().unwrap();
        assert_eq!(session == pid, own_session, "{kinship}: {pid} in {session}");
    }
}

/// The session of a process once its command runs; `setsid` needs a moment.
fn settled_session(pid: &str) -> String {
    for _ in 0..500 {
        let show = Command::new("ps").args(["-o", "sid=,comm=", "-p", pid]).output().unwrap();
        let shown = String::from_utf8(show.stdout).unwrap();
        if let Some((session, "sleep")) = shown.trim().split_once(' ').map(|(s, c)| (s, c.trim())) {
            return session.to_owned();
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("process {pid} never ran its command");
}

#[test]
fn invalid_numbers_in_the_environment_count_as_one() {
    let with = |name: &'static str, value: &'static str| {
        let variable = move |asked: &str| (asked == name).then(|| value.to_owned());
        Scene::new(variable, Path::new("/").to_owned())
    };
    let nothing = with("", "").unwrap();
    assert_eq!((nothing.story.as_str(), nothing.attempt, nothing.iteration), ("unnamed", 1, 1));
    for (text, attempt) in [("3", 3), ("0", 1), ("x", 1), ("", 1)] {
        assert_eq!(with("RALPH_ATTEMPT", text).unwrap().attempt, attempt, "{text:?}");
    }
    assert!(with("RALPH_STORY", "../x").is_err());
}
