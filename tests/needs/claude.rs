//! The real Claude Code, on a Messages API of the test's own.
//!
//! `RALPH_TEST_CLAUDE` names its program (CONTRIBUTING.md says how to get it). Nothing leaves the
//! machine: the API is on the loopback, and whatever else the program asks for goes to the same
//! place.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use libtest_mimic::Trial;
use ralph::model::{Event, Recorded};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::Need;
use crate::api::{Api, Reply};
use crate::support::world::{Ends, RALPH, Runs, Said, signal, until};
use crate::support::{Prd, World};

pub fn tests() -> Vec<Trial> {
    trials![
        Need::Claude;
        claude::is_set_up,
        claude::a_story_is_done_with_tools_and_becomes_one_commit,
        claude::a_word_reaches_it_in_the_middle_of_its_work,
        claude::every_story_gets_a_fresh_process_and_the_last_may_promise,
        claude::a_question_is_shown_and_ends_the_run_with_4,
        claude::the_completion_line_in_the_prompt_closes_nothing,
        claude::a_service_that_recovers_costs_no_attempt,
        claude::a_rate_limit_that_stays_is_an_overload,
        claude::a_key_that_is_wrong_is_not_tried_for_minutes,
        claude::a_login_that_is_refused_once_may_be_renewed,
        claude::an_empty_account_is_named,
        claude::a_prompt_that_is_too_long_is_named,
        claude::the_five_hour_limit_of_a_subscription_is_named,
        claude::the_limit_of_turns_is_named,
        claude::a_service_that_stalls_is_silence,
        claude::without_a_terminal_it_may_look_edit_and_run_the_gates_and_no_more,
        claude::the_strictest_mode_can_still_do_a_story,
        claude::a_signal_during_a_command_leaves_no_process,
        claude::no_command_runs_in_the_background,
        claude::work_in_the_background_may_come_to_its_end_when_it_is_allowed,
        claude::work_in_the_background_that_does_not_end_is_ended_and_the_result_counts,
        claude::what_a_command_leaves_running_is_ended,
    ]
}

const VARIABLE: &str = "RALPH_TEST_CLAUDE";
const DONE: &str = "I did what story 1 asks for.\n\nTask US-001 complete";
/// Tools run unasked.
const FREE: &str = "[agent]\npermission_mode = \"bypassPermissions\"";

/// A world, the API in it, and how the agent comes to it.
struct Scene {
    world: World,
    api: Api,
    login: (&'static str, &'static str),
    retries: Option<u32>,
}

/// Its program, or why there is none.
pub fn program() -> Result<PathBuf, String> {
    let named = std::env::var_os(VARIABLE).filter(|value| !value.is_empty());
    let named = named.ok_or_else(|| format!("{VARIABLE} does not name Claude Code's program"))?;
    Ok(std::path::absolute(named).unwrap())
}

/// `settings` is the head of ralph.toml, up to `[agent]`.
fn scene(prd: &Prd, settings: &str, api: impl FnOnce(&World) -> Api) -> Scene {
    let program = program().unwrap();
    let world = World::with(prd);
    world.write(
        "ralph.toml",
        &format!("{settings}\nprogram = {:?}\n", program.to_str().expect("a name in UTF-8")),
    );
    world.git(&["add", "."]);
    world.git(&["commit", "-qm", "settings"]);
    let api = api(&world);
    Scene { world, api, login: ("ANTHROPIC_API_KEY", "sk-ant-dummy"), retries: Some(2) }
}

impl Scene {
    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.world.command(RALPH);
        command.args(["run", "--trust"]).args(args);
        command.envs([
            self.login,
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
            ("DISABLE_TELEMETRY", "1"),
            ("DISABLE_ERROR_REPORTING", "1"),
            // Root may let tools run unasked only where it is said to be no harm.
            ("IS_SANDBOX", "1"),
            ("NO_PROXY", "127.0.0.1"),
        ]);
        command.env("ANTHROPIC_BASE_URL", self.api.url());
        command.env("HTTPS_PROXY", self.api.url()).env("HTTP_PROXY", self.api.url());
        command.env("CLAUDE_CODE_TMPDIR", self.world.home());
        if let Some(retries) = self.retries {
            command.env("CLAUDE_CODE_MAX_RETRIES", retries.to_string());
        }
        command
    }

    fn start(&self, args: &[&str]) -> Child {
        let mut command = self.command(args);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    fn run(&self, args: &[&str]) -> Said {
        let said = self.start(args).ended();
        assert_eq!(self.api.others(), [""; 0], "nobody else is asked anything");
        self.nothing_is_left();
        said
    }

    fn nothing_is_left(&self) {
        let left = self.world.processes();
        assert!(left.is_empty(), "{left:?}");
    }

    /// The one iteration came to nothing, and the output says why.
    fn fails_with(&self, args: &[&str], words: &[&str]) {
        let said = self.run(args);
        assert_ne!(said.code, 0, "{}", said.err);
        for word in words {
            assert!(said.err.contains(word), "{word} is not in\n{}", said.err);
        }
        self.nothing_is_closed();
    }

    fn nothing_is_closed(&self) {
        assert_eq!(self.world.passing(), [""; 0]);
        assert_eq!(self.world.subjects(), ["settings", "backlog", "first"]);
    }

    fn is_closed_in_one_commit(&self, files: &str) {
        assert_eq!(self.world.passing(), ["US-001"]);
        assert_eq!(self.world.subjects(), ["US-001: Story 1", "settings", "backlog", "first"]);
        assert_eq!(self.world.git(&["show", "--name-only", "--format=", "HEAD"]), files);
    }
}

/// With a gate that fails before any work only, so that a claim needs no change to hold.
fn gated() -> String {
    format!("verify = [\"! mkdir ../before\"]\n{FREE}")
}

fn bash(command: &str) -> Reply {
    Reply::uses("Bash", json!({"command": command, "description": "A command of the test"}))
}

fn write(path: &Path, text: &str) -> Reply {
    let input: Value = json!({"file_path": path.to_str().unwrap(), "content": text});
    Reply::says("I write the file.").and_uses("Write", input)
}

fn is_set_up() {
    let world = World::without_repository();
    let version = world.command(program().unwrap().to_str().unwrap()).arg("--version").said().out;
    assert!(version.contains("Claude Code"), "{VARIABLE} names something else: {version}");
}

fn a_story_is_done_with_tools_and_becomes_one_commit() {
    let scene = scene(&Prd::stories(1), FREE, |world| {
        Api::replying([
            write(&world.path("hello.txt"), "hello\n"),
            bash("cat hello.txt hello.txt > twice.txt"),
            Reply::says(DONE),
        ])
    });
    let said = scene.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    scene.is_closed_in_one_commit("PRD.json\nhello.txt\ntwice.txt\n");
    assert_eq!(scene.world.read("twice.txt"), "hello\nhello\n");
    assert_eq!(scene.world.status(), "");
    let state = scene.world.state();
    let version = state["agent_version"].as_str().expect("its version is in the journal");
    assert!(version.starts_with(|first: char| first.is_ascii_digit()), "{version}");
    assert!(state["model"].as_str().is_some_and(|model| model.starts_with("claude-")), "{state}");
    let shows_cost = said.err.contains('$') && !said.err.contains("$0.00");
    assert!(shows_cost, "{}", said.err);
    let asked = scene.api.asked();
    assert_eq!(asked.len(), 3);
    assert!(asked.iter().all(|body| body.contains("What story 1 is about.")), "{asked:?}");
}

fn a_word_reaches_it_in_the_middle_of_its_work() {
    let wait = "echo y > ../here; while ! test -e ../go; do sleep 0.05; done";
    let scene = scene(&Prd::stories(1), &gated(), |_| {
        Api::replying([bash(wait), bash("true"), Reply::says(DONE)])
    });
    let child = scene.start(&[]);
    scene.world.await_file("../here");
    assert_eq!(scene.world.ralph(&["nudge", "mind the xylophone"]).code, 0);
    until("the word to be taken up", || {
        let nudged = |one: &Recorded| matches!(one.event, Event::Nudged { delivered: true, .. });
        scene.world.journal().iter().any(nudged).then_some(())
    });
    scene.world.write("../go", "");
    let said = child.ended();
    assert_eq!(said.code, 0, "{}", said.err);
    let heard: Vec<bool> =
        scene.api.asked().iter().map(|body| body.contains("mind the xylophone")).collect();
    assert_eq!(heard.iter().position(|heard| *heard), Some(1), "{heard:?}");
}

fn every_story_gets_a_fresh_process_and_the_last_may_promise() {
    let scene = scene(&Prd::stories(2), FREE, |world| {
        Api::replying([
            write(&world.path("one.txt"), "one\n"),
            Reply::says("The word of the first is xylophone.\n\nTask US-001 complete"),
            write(&world.path("two.txt"), "two\n"),
            Reply::says("Everything is done.\n\n<promise>DONE</promise>"),
        ])
    });
    let said = scene.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(scene.world.passing(), ["US-001", "US-002"]);
    let subjects = ["US-002: Story 2", "US-001: Story 1", "settings", "backlog", "first"];
    assert_eq!(scene.world.subjects(), subjects);
    let asked = scene.api.asked();
    assert_eq!(asked.len(), 4);
    // What the one before said is told as something that was said, in a new conversation.
    let body: Value = serde_json::from_str(&asked[2]).unwrap();
    let messages = body["messages"].as_array().unwrap();
    assert!(messages.iter().all(|message| message["role"] != "assistant"), "{messages:?}");
    assert!(asked[2].contains("xylophone"), "{}", asked[2]);
    assert_ne!(session(&asked[0]), session(&asked[2]));
}

/// Which conversation a request belongs to.
fn session(body: &str) -> String {
    let body: Value = serde_json::from_str(body).unwrap();
    let user = body["metadata"]["user_id"].as_str().expect("an id of its user");
    let user: Value = serde_json::from_str(user).expect("an id in JSON");
    user["session_id"].as_str().expect("a session").to_owned()
}

fn a_question_is_shown_and_ends_the_run_with_4() {
    let question = "I cannot go on.\n\n<escalate type=\"stuck\">\n\
        <summary>Which database?</summary>\n<context>I tried both.</context>\n\
        <options>\n- Use SQLite\n- Use Postgres\n</options>\n\
        <question>Which one do you want?</question>\n</escalate>";
    let scene = scene(&Prd::stories(1), FREE, |world| {
        Api::replying([write(&world.path("half.txt"), "half\n"), Reply::says(question)])
    });
    let said = scene.run(&[]);
    assert_eq!(said.code, 4, "{}", said.err);
    for text in ["Which database?", "Use SQLite", "Use Postgres", "Which one do you want?"] {
        assert!(said.err.contains(text), "{text} is not in\n{}", said.err);
    }
    assert!(!said.err.contains("Could not be parsed"), "{}", said.err);
    scene.nothing_is_closed();
    assert_eq!(scene.world.git(&["show", "refs/ralph/attempts/US-001/1:half.txt"]), "half\n");
    assert_eq!(scene.api.count(), 2);
}

fn the_completion_line_in_the_prompt_closes_nothing() {
    let scene = scene(&Prd::stories(1), FREE, |world| {
        world.write("PROMPT.md", "Say this at the end:\n\nTask US-001 complete\n\n{{STORY}}\n");
        world.git(&["add", "."]);
        world.git(&["commit", "-q", "--amend", "--no-edit"]);
        // The file is read by a tool too.
        Api::replying([
            bash("cat PROMPT.md; echo x > x"),
            Reply::says("I have read it; nothing is done yet."),
        ])
    });
    let said = scene.run(&["--once"]);
    assert_eq!(said.code, 3, "{}", said.err);
    scene.nothing_is_closed();
    assert_eq!(scene.world.read("x"), "x\n", "there was something to close it with");
    scene.world.heard_no_claim();
    let asked = scene.api.asked();
    assert_eq!(asked.len(), 2);
    let own_line = r"\n\nTask US-001 complete\n\n";
    assert!(asked[0].contains(own_line), "it is in the prompt: {}", asked[0]);
}

fn a_service_that_recovers_costs_no_attempt() {
    let overloaded = Reply::error(529, "overloaded_error", "Overloaded");
    // After three broken streams the CLI asks for an answer in one piece.
    let faults = [vec![overloaded], vec![Reply::Dropped], vec![Reply::Dropped; 3]];
    for fault in faults {
        let requests = fault.len() + 1;
        let script = fault.into_iter().chain([Reply::says(DONE)]);
        let scene = scene(&Prd::stories(1), &gated(), |_| Api::replying(script));
        let said = scene.run(&["--once"]);
        assert_eq!(said.code, 0, "{}", said.err);
        scene.is_closed_in_one_commit("PRD.json\n");
        assert_eq!(scene.api.count(), requests);
    }
}

fn a_rate_limit_that_stays_is_an_overload() {
    let limit = Reply::error(429, "rate_limit_error", "50 requests per minute are too many.");
    let mut scene =
        scene(&Prd::stories(1), FREE, |_| Api::always(limit.with_header("retry-after", 1)));
    scene.retries = Some(0);
    scene.fails_with(&["--once"], &["overloaded", "429"]);
    assert_eq!(scene.api.count(), 1);
}

fn a_key_that_is_wrong_is_not_tried_for_minutes() {
    let wrong = Reply::error(401, "authentication_error", "invalid x-api-key");
    let mut scene = scene(&Prd::stories(1), FREE, |_| Api::always(wrong));
    // As the CLI does by itself: eleven requests in three minutes.
    scene.retries = None;
    scene.fails_with(&["--once"], &["not logged in"]);
    assert!(scene.api.count() < 11, "it was ended before: {}", scene.api.count());
}

fn a_login_that_is_refused_once_may_be_renewed() {
    let expired = Reply::error(401, "authentication_error", "OAuth token has expired");
    for (refusals, code) in [(1, 0), (10, 4)] {
        let refused = vec![expired.clone(); refusals];
        let mut scene = scene(&Prd::stories(1), FREE, |world| {
            let work = [write(&world.path("hello.txt"), "hello\n"), Reply::says(DONE)];
            Api::replying(refused.into_iter().chain(work))
        });
        scene.login = ("CLAUDE_CODE_OAUTH_TOKEN", "dummy-oauth-token");
        scene.retries = None;
        let said = scene.run(&["--once"]);
        assert_eq!(said.code, code, "{}", said.err);
        assert!(scene.api.count() <= 4, "{}", scene.api.count());
    }
}

fn an_empty_account_is_named() {
    let empty = Reply::error(
        400,
        "invalid_request_error",
        "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing \
         to upgrade or purchase credits.",
    );
    let scene = scene(&Prd::stories(1), FREE, |_| Api::always(empty));
    scene.fails_with(&["--once"], &["billing", "Credit balance is too low"]);
    assert_eq!(scene.api.count(), 1);
}

fn a_prompt_that_is_too_long_is_named() {
    let message = "prompt is too long: 1234567 tokens > 1000000 maximum";
    let long = Reply::error(400, "invalid_request_error", message);
    let scene = scene(&Prd::stories(1), FREE, |_| Api::always(long));
    scene.fails_with(&["--once"], &["the prompt is too long"]);
}

fn the_five_hour_limit_of_a_subscription_is_named() {
    let hour = SystemTime::now() + Duration::from_hours(1);
    let reset = hour.duration_since(UNIX_EPOCH).unwrap().as_secs();
    let limit = Reply::error(429, "rate_limit_error", "This would exceed your account's limit.")
        .with_header("anthropic-ratelimit-unified-status", "rejected")
        .with_header("anthropic-ratelimit-unified-reset", reset)
        .with_header("anthropic-ratelimit-unified-representative-claim", "five_hour")
        .with_header("anthropic-ratelimit-unified-5h-status", "rejected")
        .with_header("anthropic-ratelimit-unified-5h-reset", reset)
        .with_header("anthropic-ratelimit-unified-5h-utilization", "1.0")
        .with_header("anthropic-ratelimit-unified-fallback", "available")
        .with_header("anthropic-ratelimit-unified-overage-status", "rejected")
        .with_header("anthropic-ratelimit-unified-overage-disabled-reason", "org_level_disabled")
        .with_header("retry-after", 10_548)
        .with_header("x-should-retry", "false");
    let mut scene = scene(&Prd::stories(1), FREE, |_| Api::always(limit));
    scene.login = ("CLAUDE_CODE_OAUTH_TOKEN", "dummy-oauth-token");
    scene.fails_with(&["--once"], &["usage limit", "5-hour limit"]);
    assert_eq!(scene.api.count(), 1);
}

fn the_limit_of_turns_is_named() {
    let scene = scene(&Prd::stories(1), &format!("{FREE}\nmax_turns = 1"), |_| {
        Api::replying([bash("true"), Reply::says(DONE)])
    });
    scene.fails_with(&["--once"], &["used all of its turns"]);
    assert_eq!(scene.api.count(), 1);
}

fn a_service_that_stalls_is_silence() {
    let settings = format!("idle_timeout = \"2s\"\n{FREE}");
    let scene = scene(&Prd::stories(1), &settings, |_| Api::always(Reply::Stalled));
    scene.fails_with(&["--once"], &["the agent stopped printing"]);
    assert!(scene.api.count() <= 1, "a slow machine may be silent before it asks");
}

fn without_a_terminal_it_may_look_edit_and_run_the_gates_and_no_more() {
    let settings = "verify = [\"sh ./check.sh\"]\n[agent]";
    let scene = scene(&Prd::stories(1), settings, |world| {
        // ralph itself runs it too.
        world.write("check.sh", "test -z \"$CLAUDECODE\" || echo yes >> ../checked\n");
        world.git(&["add", "."]);
        world.git(&["commit", "-q", "--amend", "--no-edit"]);
        Api::replying([
            bash("git status"),
            write(&world.path("hello.txt"), "hello\n"),
            bash("sh ./check.sh 2>&1 | tail -5"),
            bash("touch forbidden.txt && make everything"),
            bash("sh ./check.sh --more"),
            write(&world.path("../outside.txt"), "hello\n"),
            Reply::says("I was not allowed to do all of it; nothing is done."),
        ])
    });
    let said = scene.run(&["--once"]);
    assert_eq!(said.code, 3, "{}", said.err);
    let asked = scene.api.asked();
    assert!(asked[1].contains("On branch work"), "{}", asked[1]);
    assert_eq!(scene.world.read("hello.txt"), "hello\n");
    assert_eq!(scene.world.read("../checked"), "yes\n", "as it is, and not with more words");
    assert!(!scene.world.path("forbidden.txt").exists());
    assert!(!scene.world.path("../outside.txt").exists());
    assert!(said.err.contains("the default without an answer"), "{}", said.err);
    for told in [
        "denied `Bash(sh ./check.sh --more)` once;",
        "denied `Bash(touch forbidden.txt && make everything)` once;",
        "denied `Write` once;",
        "`allowed_tools` in ralph.toml",
    ] {
        assert!(said.err.contains(told), "{told} is not in\n{}", said.err);
    }
    scene.nothing_is_closed();
}

fn the_strictest_mode_can_still_do_a_story() {
    let scene = scene(&Prd::stories(1), "[agent]", |world| {
        Api::replying([
            bash("mkdir -p new && ls && grep hello README.md"),
            write(&world.path("new/hello.txt"), "hello\n"),
            bash("rm README.md"),
            write(&world.path("../outside.txt"), "hello\n"),
            Reply::says(DONE),
        ])
    });
    let said = scene.run(&["--once", "--permission-mode", "dontAsk"]);
    assert_eq!(said.code, 0, "{}", said.err);
    scene.is_closed_in_one_commit("PRD.json\nnew/hello.txt\n");
    assert!(scene.world.path("README.md").exists());
    assert!(!scene.world.path("../outside.txt").exists());
}

fn a_signal_during_a_command_leaves_no_process() {
    let scene = scene(&Prd::stories(1), FREE, |_| {
        Api::replying([bash("echo yes > started.txt; sleep 1000")])
    });
    let child = scene.start(&[]);
    scene.world.await_file("started.txt");
    let running = scene.world.processes();
    signal(&child, Signal::TERM);
    let said = child.ended();
    assert!(running.iter().any(|line| line.contains("sleep 1000")), "{running:?}");
    assert_eq!(said.code, 143, "{}", said.err);
    scene.nothing_is_left();
    scene.nothing_is_closed();
    assert_eq!(scene.world.read("started.txt"), "yes\n", "unfinished work stays in the tree");
}

fn no_command_runs_in_the_background() {
    let input = json!({"command": "echo late > late.txt", "description": "A server",
        "run_in_background": true});
    let scene = scene(&Prd::stories(1), FREE, |_| {
        Api::replying([Reply::uses("Bash", input), bash("echo now > now.txt"), Reply::says(DONE)])
    });
    let said = scene.run(&["--once"]);
    assert_eq!(said.code, 0, "{}", said.err);
    // The tool does not have it, so the agent is told off and its process ends with its result.
    scene.is_closed_in_one_commit("PRD.json\nnow.txt\n");
    let asked = scene.api.asked();
    assert_eq!(asked.len(), 3);
    assert!(asked[1].contains("unexpected parameter `run_in_background`"), "{}", asked[1]);
}

fn in_background(command: &str) -> Reply {
    let input = json!({"command": command, "description": "A task", "run_in_background": true});
    Reply::uses("Bash", input)
}

fn work_in_the_background_may_come_to_its_end_when_it_is_allowed() {
    let settings = format!("result_grace = \"100ms\"\n{FREE}\nbackground_tasks = true");
    let scene = scene(&Prd::stories(1), &settings, |_| {
        let task = in_background("sleep 3; echo late > late.txt");
        Api::replying([task, Reply::says(DONE), Reply::says("The task has ended.")])
    });
    let said = scene.run(&["--once"]);
    assert_eq!(said.code, 0, "{}", said.err);
    scene.is_closed_in_one_commit("PRD.json\nlate.txt\n");
}

fn work_in_the_background_that_does_not_end_is_ended_and_the_result_counts() {
    let graces = "result_grace = \"100ms\"\nbackground_grace = \"1s\"";
    let settings = format!("{graces}\n{FREE}\nbackground_tasks = true");
    let scene = scene(&Prd::stories(1), &settings, |_| {
        Api::replying([in_background("echo up > up.txt; sleep 1000"), Reply::says(DONE)])
    });
    let said = scene.run(&["--once"]);
    assert_eq!(said.code, 0, "{}", said.err);
    scene.is_closed_in_one_commit("PRD.json\nup.txt\n");
}

fn what_a_command_leaves_running_is_ended() {
    let leave = "setsid sleep 1000 > left.txt 2>&1 & nohup sleep 1000 > /dev/null 2>&1 & \
        until [ -e left.txt ]; do sleep 0.05; done";
    let scene = scene(&Prd::stories(1), FREE, |_| Api::replying([bash(leave), Reply::says(DONE)]));
    let said = scene.run(&["--once"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.err.contains("ended processes that the agent left running"), "{}", said.err);
    scene.is_closed_in_one_commit("PRD.json\nleft.txt\n");
}
