//! What Claude Code may do: asked once, remembered, and what the answers turn into.
//!
//! A script in place of Claude Code writes its arguments down.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use rustix::process::{Signal, getuid};
use serde_json::Value;

use crate::support::pty::Terminal;
use crate::support::world::{RALPH, Runs, Said, until};
use crate::support::{Prd, World};

/// Finishes the story it is asked for, and ends when its input does.
const CLAUDE: &str = r#"#!/bin/sh
printf '%s\n' "$@" > "$HOME/args"
head -n 1 > "$RALPH_STORY.txt"
echo '{"type":"system","subtype":"init"}'
printf '{"type":"assistant","message":{"content":[{"type":"text","text":"Task %s complete"}]}}\n' "$RALPH_STORY"
echo '{"type":"result","subtype":"success","is_error":false,"result":"done"}'
cat > "$HOME/said-after-the-prompt"
echo closed > "$HOME/input"
"#;
const ASKED: &str = "What may Claude Code do in this repository?";
const SAFE: [&str; 9] = [
    "Edit(./**)",
    "Bash(git status:*)",
    "Bash(ls:*)",
    "Bash(cat:*)",
    "Bash(head:*)",
    "Bash(tail:*)",
    "Bash(wc:*)",
    "Bash(grep:*)",
    "Bash(mkdir:*)",
];

struct Scene {
    world: World,
}

impl Scene {
    /// Two stories, so that two runs of one iteration have something to do.
    fn new() -> Self {
        Self::with(&Prd::stories(2))
    }

    fn with(prd: &Prd) -> Self {
        let world = World::with(prd);
        let folder = world.home().join("bin");
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("claude"), CLAUDE).unwrap();
        fs::set_permissions(folder.join("claude"), fs::Permissions::from_mode(0o755)).unwrap();
        Self { world }
    }

    /// `ralph run` of one iteration, with the script on the path.
    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.world.command(RALPH);
        let path = std::env::var("PATH").unwrap();
        command.env("PATH", format!("{}:{path}", self.world.home().join("bin").display()));
        command.env("IS_SANDBOX", "1").args(["run", "--once", "--trust"]).args(args);
        command
    }

    fn run(&self, args: &[&str]) -> Said {
        self.command(args).said()
    }

    /// In a terminal, up to the question.
    fn asked(&self, args: &[&str]) -> Terminal {
        let terminal = Terminal::start(self.command(args));
        terminal.await_text("[4] bypassPermissions (only in a sandbox)");
        assert!(terminal.screen().contains(ASKED), "{}", terminal.screen());
        terminal
    }

    /// In a terminal, without a question.
    fn runs_unasked(&self, args: &[&str]) -> String {
        let (code, screen) = Terminal::start(self.command(args)).finish();
        assert!(code == 0 || code == 3, "{screen}");
        assert!(!screen.contains(ASKED), "{screen}");
        screen
    }

    /// The mode and the allowed tools that Claude Code was last started with.
    fn given(&self) -> (String, Vec<String>) {
        let path = self.world.home().join("args");
        let text = fs::read_to_string(&path).unwrap();
        fs::remove_file(path).unwrap();
        let is_mode = |line: &&str| line.starts_with("--permission-mode");
        let mode: Vec<&str> = text.lines().filter(is_mode).collect();
        let tools = text.lines().skip_while(|line| *line != "--allowedTools").skip(1);
        let tools = tools.take_while(|line| !line.starts_with("--")).map(str::to_owned);
        (mode.join(" "), tools.collect())
    }

    fn was_not_started(&self) -> bool {
        !self.world.home().join("args").exists()
    }

    fn settings(&self, text: &str) {
        self.world.write("ralph.toml", text);
    }
}

fn mode(name: &str) -> String {
    format!("--permission-mode={name}")
}

#[test]
fn each_answer_becomes_arguments_and_is_remembered() {
    for (keys, name, tools) in [
        ("1", "acceptEdits", &SAFE[..]),
        ("\r", "acceptEdits", &SAFE),
        ("2", "auto", &[]),
        ("3", "dontAsk", &SAFE),
        ("\x1b[A\r", "bypassPermissions", &[]),
    ] {
        let scene = Scene::new();
        let mut terminal = scene.asked(&[]);
        terminal.press(keys);
        let (code, screen) = terminal.finish();
        assert_eq!(code, 3, "{screen}");
        let given = scene.given();
        assert_eq!(
            (given.0.as_str(), given.1.as_slice()),
            (mode(name).as_str(), &owned(tools)[..])
        );
        // Out of the reach of `git clean`, and in no commit.
        scene.world.git(&["clean", "-fdxq"]);
        assert_eq!(scene.world.status(), "");
        let screen = scene.runs_unasked(&[]);
        assert!(screen.contains(&format!("{name}, your earlier choice")), "{screen}");
        assert_eq!(scene.given().0, mode(name));
    }
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

#[test]
fn what_is_chosen_holds_in_every_work_tree_of_the_repository() {
    let scene = Scene::new();
    scene.world.git(&["worktree", "add", "-q", "../second"]);
    let mut terminal = scene.asked(&[]);
    terminal.press("3");
    assert_eq!(terminal.finish().0, 3);
    let mut command = scene.command(&[]);
    command.current_dir(scene.world.path("../second"));
    let said = command.said();
    assert!(said.err.contains("dontAsk, your earlier choice"), "{}", said.err);
}

#[test]
fn without_a_terminal_it_is_the_careful_choice_and_the_banner_says_so() {
    let scene = Scene::new();
    for _ in 0..2 {
        let said = scene.run(&[]);
        let banner = said.err.split("━━━").next().unwrap();
        for text in ["acceptEdits", "`allowed_tools`", "`permission_mode` in ralph.toml"] {
            assert!(banner.contains(text), "{text} is not in\n{}", said.err);
        }
        let (given, tools) = scene.given();
        assert_eq!((given, tools), (mode("acceptEdits"), owned(&SAFE)));
    }
    // Nobody chose it, so it is still to be asked.
    scene.world.write("PRD.json", &Prd::stories(1).text());
    let mut terminal = scene.asked(&[]);
    terminal.press("\x03");
    assert_eq!(terminal.finish().0, 130);
}

#[test]
fn without_an_answer_in_time_it_is_as_without_a_terminal() {
    let scene = Scene::new();
    let (code, screen) = Terminal::start(scene.command(&["--answer-timeout", "300ms"])).finish();
    assert_eq!(code, 3, "{screen}");
    assert!(screen.contains("the default without an answer"), "{screen}");
    assert_eq!(scene.given(), (mode("acceptEdits"), owned(&SAFE)));
    let mut terminal = scene.asked(&[]);
    terminal.press("\x03");
    assert_eq!(terminal.finish().0, 130);
}

#[test]
fn leaving_the_question_remembers_nothing_and_gives_the_terminal_back() {
    let scene = Scene::new();
    let mut terminal = scene.asked(&["--branch", "other"]);
    terminal.press("\x03");
    until("the cursor to come back", || (!terminal.cursor_is_hidden()).then_some(()));
    assert_eq!(terminal.finish().0, 130);
    let terminal = scene.asked(&["--branch", "other"]);
    terminal.signal(Signal::TERM);
    until("the cursor to come back", || (!terminal.cursor_is_hidden()).then_some(()));
    assert_eq!(terminal.finish().0, 143);
    assert!(scene.was_not_started());
    assert_eq!(scene.world.git(&["branch", "--list", "other"]), "", "nothing is changed either");
    let mut terminal = scene.asked(&[]);
    terminal.press("2");
    assert_eq!(terminal.finish().0, 3);
}

#[test]
fn the_file_goes_before_what_was_chosen_and_the_flag_before_the_file() {
    let scene = Scene::new();
    let mut terminal = scene.asked(&[]);
    terminal.press("2");
    assert_eq!(terminal.finish().0, 3);
    assert_eq!(scene.given().0, mode("auto"));
    scene.settings(
        "[agent]\npermission_mode = \"dontAsk\"\nallowed_tools = [\"Bash(cargo test:*)\"]\n",
    );
    let screen = scene.runs_unasked(&[]);
    assert!(!screen.contains("your earlier choice"), "{screen}");
    let tools = [&SAFE[..], &["Bash(cargo test:*)"]].concat();
    assert_eq!(scene.given(), (mode("dontAsk"), owned(&tools)));
    scene.world.write("PRD.json", &Prd::stories(2).text());
    scene.runs_unasked(&["--permission-mode", "bypassPermissions"]);
    assert_eq!(scene.given(), (mode("bypassPermissions"), owned(&["Bash(cargo test:*)"])));
}

#[test]
fn what_the_work_has_to_pass_may_be_run() {
    let prd =
        Prd::stories(0).story(r#""verify": ["sh ./one.sh"]"#).story(r#""verify": ["sh ./two.sh"]"#);
    let scene = Scene::with(&prd);
    scene.settings("verify = [{ run = [\"test\", \"-e\", \"PRD.json\"] }]\n");
    scene.run(&[]);
    let tools = [&SAFE[..], &["Bash(test -e PRD.json)", "Bash(sh ./one.sh)"]].concat();
    assert_eq!(scene.given().1, owned(&tools));
}

#[test]
fn a_setting_replaces_the_question() {
    let scene = Scene::new();
    scene.settings("[agent]\npermission_mode = \"auto\"\n");
    scene.runs_unasked(&[]);
    assert_eq!(scene.given().0, mode("auto"));
    scene.settings("[agent]\nargs = [\"--permission-mode=plan\"]\n");
    scene.runs_unasked(&[]);
    assert_eq!(scene.given(), (mode("plan"), vec![]));
    let said = scene.run(&["--permission-mode", "auto"]);
    assert_eq!(said.code, 2, "{}", said.err);
    assert!(said.err.contains("`agent.args` in ralph.toml"), "{}", said.err);
    scene.settings("[agent]\npermission_mode = \"acceptedits\"\n");
    let said = scene.run(&[]);
    assert_eq!(said.code, 1, "{}", said.err);
    assert!(
        said.err.contains("ralph.toml:2:19") && said.err.contains("`acceptEdits`"),
        "{}",
        said.err
    );
}

#[test]
fn another_agent_needs_no_question() {
    let world = World::with(&Prd::stories(1));
    // Of no concern to it, also where Claude Code would refuse it.
    world.write("ralph.toml", "[agent]\npermission_mode = \"bypassPermissions\"\n");
    let (code, screen) = Terminal::start(world.run_command(&[])).finish();
    assert_eq!(code, 0, "{screen}");
    assert!(!screen.contains(ASKED), "{screen}");
    assert_eq!(world.run(&["--permission-mode", "auto"]).code, 2);

    let scene = Scene::new();
    let script = scene.world.home().join("bin/claude");
    let screen = scene.runs_unasked(&["--agent-command", script.to_str().unwrap()]);
    assert!(screen.contains("Task US-001 complete"), "{screen}");
    assert_eq!(scene.given(), (String::new(), vec![]));
    scene.runs_unasked(&["--dry-run", "--permission-mode", "auto"]);
    assert!(scene.was_not_started());
}

#[test]
fn a_missing_agent_is_reported_before_any_question() {
    let scene = Scene::new();
    scene.settings("[agent]\nprogram = \"no-such-claude\"\n");
    let (code, screen) = Terminal::start(scene.command(&[])).finish();
    assert_eq!(code, 1, "{screen}");
    assert!(screen.contains("`no-such-claude` was not found"), "{screen}");
    assert!(!screen.contains(ASKED), "{screen}");
}

#[test]
fn everything_is_allowed_with_a_warning_and_not_to_root_outside_a_sandbox() {
    let scene = Scene::new();
    let mut terminal = {
        let mut command = scene.command(&[]);
        command.env_remove("IS_SANDBOX");
        let terminal = Terminal::start(command);
        terminal.await_text("[4] bypassPermissions (only in a sandbox)");
        terminal
    };
    terminal.press("4");
    let (code, screen) = terminal.finish();
    if getuid().is_root() {
        assert_eq!(code, 1, "{screen}");
        assert!(screen.contains("IS_SANDBOX=1"), "{screen}");
        assert!(scene.was_not_started());
        let mut terminal = scene.asked(&[]);
        terminal.press("\x03");
        assert_eq!(terminal.finish().0, 130, "it was not remembered");
    } else {
        assert_eq!(code, 3, "{screen}");
        assert!(screen.contains("use this only in a sandbox"), "{screen}");
        assert_eq!(scene.given().0, mode("bypassPermissions"));
    }
}

#[test]
fn its_input_is_closed_when_its_result_is_there() {
    let scene = Scene::new();
    let said = scene.run(&["--permission-mode", "auto"]);
    assert_eq!(said.code, 3, "{}", said.err);
    let left = |name: &str| fs::read_to_string(scene.world.home().join(name)).unwrap_or_default();
    assert_eq!((left("input"), left("said-after-the-prompt")), ("closed\n".into(), String::new()));
}

#[test]
fn a_permission_that_the_agent_asks_for_is_denied_at_once() {
    let scene = Scene::new();
    let asks = r#"#!/bin/sh
read -r prompt
echo '{"type":"system","subtype":"init"}'
echo '{"type":"control_request","request_id":"r-7","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{}}}'
read -r answer
echo "$answer" > "$HOME/answer"
touch new
printf '{"type":"assistant","message":{"content":[{"type":"text","text":"Task %s complete"}]}}\n' "$RALPH_STORY"
echo '{"type":"result","subtype":"success","is_error":false,"result":"done"}'
cat > "$HOME/rest"
"#;
    fs::write(scene.world.home().join("bin/claude"), asks).unwrap();
    // It waits for the answer.
    scene.settings("idle_timeout = \"10s\"\n");
    let said = scene.run(&[]);
    assert_eq!(scene.world.passing(), ["US-001"], "{}", said.err);
    let answer: Value =
        serde_json::from_str(&fs::read_to_string(scene.world.home().join("answer")).unwrap())
            .unwrap();
    assert_eq!(answer["type"], "control_response");
    assert_eq!(answer["response"]["request_id"], "r-7");
    assert_eq!(answer["response"]["response"]["behavior"], "deny");
    assert_eq!(fs::read_to_string(scene.world.home().join("rest")).unwrap(), "");
}
