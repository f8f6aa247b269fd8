//! The session in a real terminal, menu included.

use std::process::{Child, Stdio};

use ralph::model::{Answer, Event, Recorded};
use rustix::process::Signal;

use crate::escalation::ASKS;
use crate::support::pty::Terminal;
use crate::support::world::{signal, until};
use crate::support::{Prd, World};

fn asked(world: &World, args: &[&str]) -> Terminal {
    let terminal = Terminal::start(world.run_command(args));
    terminal.await_text("[a]");
    terminal
}

/// The other story is done while the menu is open, and scrolls by above it.
#[test]
fn the_whole_session_with_a_question_in_the_middle() {
    let world = World::scripted(&Prd::stories(2), ASKS);
    let mut terminal = asked(&world, &[]);
    let screen = terminal.screen();
    for text in [
        "ralph · demo · 2 stories",
        "Iteration 1 · US-001 Story 1",
        "Which database?",
        "[2]",
        "[c]",
        "[s]",
        "[r]",
    ] {
        assert!(screen.contains(text), "{text} is not in\n{screen}");
    }
    let screen = terminal.await_text("✓ Task US-002 complete");
    assert!(stands_above(&screen, "✓ Task US-002 complete", "┌─ US-001 Story 1"), "{screen}");
    assert!(screen.contains("[a]"), "{screen}");
    assert_eq!(world.passing(), ["US-002"]);
    terminal.press("1");
    let (code, screen) = terminal.finish();
    assert_eq!(code, 0, "{screen}");
    for text in [
        "US-001 (with guidance)",
        "✓ Task US-001 complete",
        "All tasks complete",
        "Final: 2/2 complete (0 remaining)",
    ] {
        assert!(screen.contains(text), "{text} is not in\n{screen}");
    }
    let prompt = world.prompt(3);
    assert!(prompt.contains("Proceed with option 1: Use SQLite"), "{prompt}");
    // What was in the tree when the question came is still the story's work, and no other's.
    assert_eq!(world.git(&["show", "HEAD:broken.txt"]), "half a thought");
    assert!(!world.git(&["ls-tree", "--name-only", "HEAD~1"]).contains("broken.txt"));
}

/// Three stories ask, one waits for `../go`, and one depends on the first.
fn three_questions() -> World {
    let asks = |number: u32| {
        format!(
            r#"
            [[story.US-00{number}.attempts]]
            steps = [{{ escalate = {{ type = "stuck", summary = "Question {number}?", context = "c", options = ["Yes"], question = "q" }} }}]
            [[story.US-00{number}.attempts]]
            steps = [{{ write = "{number}.txt" }}, "complete"]
            "#
        )
    };
    let script = format!("{}{}{}{WAITS}", asks(1), asks(2), asks(3));
    World::scripted(&Prd::stories(4).story(r#""depends_on": ["US-001"]"#), &script)
}

const WAITS: &str = r#"
    [story.US-004]
    steps = [
      { run = "touch ../begun done; until [ -e ../go ]; do sleep 0.01; done" },
      "complete",
    ]
"#;

#[test]
fn questions_queue_while_the_work_continues() {
    let world = three_questions();
    let mut terminal = asked(&world, &[]);
    let screen = terminal.await_text("1 of 3");
    assert!(screen.contains("Stuck: Question 1?"), "{screen}");
    assert!(!screen.contains("Stuck: Question 2?"), "{screen}");
    until("the fourth story", || world.path("../begun").exists().then_some(()));
    world.write("../go", "");
    let screen = terminal.await_text("✓ Task US-004 complete");
    assert!(stands_above(&screen, "✓ Task US-004 complete", "1 of 3"), "{screen}");
    // Nothing else is ready: the story that depends on the answer starts when that comes.
    terminal.press("1");
    terminal.await_text("✓ Task US-005 complete");
    let screen = terminal.await_text("1 of 2");
    assert!(screen.contains("Stuck: Question 2?"), "{screen}");
    terminal.await_text("❯ [1]");
    terminal.press("1");
    terminal.await_text("Stuck: Question 3?");
    terminal.await_text("❯ [1]");
    terminal.press("s");
    let (code, screen) = terminal.finish();
    assert_eq!(code, 0, "{screen}");
    assert_eq!(world.passing(), ["US-001", "US-002", "US-004", "US-005"]);
    assert!(world.read("PRD.json").contains("\"skipped\": true"));
}

/// A key that bounces, or one too many for the first question, must not answer the second.
#[test]
fn a_menu_that_follows_an_answered_one_ignores_keys_at_first() {
    let world = three_questions();
    let mut terminal = asked(&world, &[]);
    terminal.await_text("1 of 3");
    terminal.press("s");
    terminal.await_text("Your keys are ignored");
    terminal.press("s");
    terminal.await_text("❯ [1]");
    let screen = terminal.await_text("Stuck: Question 2?");
    assert!(screen.contains("1 of 2"), "{screen}");
    terminal.press("a");
    assert_eq!(terminal.finish().0, 5);
}

/// A key that was meant for the first question must not answer the second.
#[test]
fn a_menu_that_replaces_a_withdrawn_one_ignores_keys_at_first() {
    let world = three_questions();
    let mut terminal = asked(&world, &[]);
    terminal.await_text("1 of 3");
    assert_eq!(world.ralph(&["mark", "US-001", "pass"]).code, 0);
    terminal.await_text("Stuck: Question 2?");
    terminal.await_text("[a]");
    assert!(terminal.raw().contains("Your keys are ignored"), "{}", terminal.raw());
    terminal.press("a");
    let (code, screen) = terminal.finish();
    assert_eq!(code, 5, "{screen}");
}

#[test]
fn a_text_that_is_being_written_does_not_answer_the_next_question() {
    let world = three_questions();
    let mut terminal = asked(&world, &[]);
    terminal.await_text("1 of 3");
    terminal.press("c");
    terminal.await_text("empty line");
    terminal.press("Please keep ");
    terminal.await_text("> Please keep");
    assert_eq!(world.ralph(&["mark", "US-001", "pass"]).code, 0);
    terminal.await_text("The question was withdrawn.");
    terminal.press("tests as they are\r\r");
    terminal.await_text("Stuck: Question 2?");
    terminal.await_text("[a]");
    terminal.press("a");
    let (code, screen) = terminal.finish();
    assert_eq!(code, 5, "{screen}");
    assert!(!world.read("PRD.json").contains("\"skipped\": true"));
}

#[test]
fn custom_guidance_of_several_lines_reaches_the_next_prompt() {
    let world = World::scripted(&Prd::stories(1), ASKS);
    let mut terminal = asked(&world, &[]);
    terminal.press("c");
    terminal.await_text("empty line");
    terminal.press("Use what\r");
    terminal.press("is there: ü 漢字\r");
    terminal.press("\r");
    let (code, screen) = terminal.finish();
    assert_eq!(code, 0, "{screen}");
    let prompt = world.prompt(2);
    assert!(prompt.contains("Use what\nis there: ü 漢字"), "{prompt}");
}

/// Of two lines, which stands higher on the screen.
fn stands_above(screen: &str, upper: &str, lower: &str) -> bool {
    let row = |text| screen.lines().position(|line| line.contains(text));
    row(upper).zip(row(lower)).is_some_and(|(upper, lower)| upper < lower)
}

#[test]
fn what_happens_meanwhile_scrolls_by_above_an_open_question() {
    let world = World::scripted(&Prd::stories(1), ASKS);
    let mut terminal = asked(&world, &[]);
    terminal.press("c");
    terminal.await_text("empty line");
    terminal.press("Use what is");
    terminal.await_text("> Use what is");
    let backlog = world.read("PRD.json");
    world.write("PRD.json", "{");
    terminal.await_text("the backlog is invalid");
    let screen = terminal.screen();
    assert!(stands_above(&screen, "the backlog is invalid", "┌─ US-001 Story 1"), "{screen}");
    assert!(screen.trim_end().ends_with("> Use what is"), "{screen}");
    world.write("PRD.json", &backlog);
    terminal.await_text("the backlog is valid again");
    terminal.press(" there\r\r");
    let (code, screen) = terminal.finish();
    assert_eq!(code, 0, "{screen}");
    assert!(world.prompt(2).contains("Use what is there"), "{}", world.prompt(2));
}

/// A program that serves as the editor.
fn editor(world: &World, script: &str) -> Terminal {
    world.write("../editor.sh", &format!("#!/bin/sh\n{script}\n"));
    let editor = world.path("../editor.sh");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&editor, mode).unwrap();
    let mut command = world.run_command(&[]);
    command.env("EDITOR", &editor);
    let mut terminal = Terminal::start(command);
    terminal.await_text("[a]");
    terminal.press("c");
    terminal.await_text("empty line");
    terminal.press("e\r");
    terminal
}

#[test]
fn guidance_can_be_written_in_an_editor() {
    let world = World::scripted(&Prd::stories(1), ASKS);
    let terminal = editor(&world, "printf 'from the editor\\nsecond line\\n' > \"$1\"");
    let (code, screen) = terminal.finish();
    assert_eq!(code, 0, "{screen}");
    assert!(world.prompt(2).contains("from the editor\nsecond line"), "{}", world.prompt(2));
}

/// Otherwise the editor would fight with the shell for the keyboard, and its text would be lost.
#[test]
fn a_signal_waits_for_the_editor_and_its_text_counts() {
    let world = World::scripted(&Prd::stories(1), ASKS);
    let slow = "touch ../editing; sleep 2; echo 'from the editor' > \"$1\"";
    let terminal = editor(&world, slow);
    until("the editor", || world.path("../editing").exists().then_some(()));
    terminal.signal(Signal::TERM);
    let (code, screen) = terminal.finish();
    assert_eq!(code, 143, "{screen}");
    assert_eq!(world.processes(), [""; 0]);
    let is_text = |one: &Recorded| match &one.event {
        Event::QuestionAnswered { answer: Answer::Guidance { text }, .. } => {
            text == "from the editor"
        }
        _ => false,
    };
    assert!(world.journal().iter().any(is_text), "{screen}");
}

#[test]
fn an_editor_that_fails_sends_nothing() {
    let world = World::scripted(&Prd::stories(1), ASKS);
    let mut terminal = editor(&world, "echo 'not meant' > \"$1\"; exit 1");
    terminal.await_text("the editor failed; nothing was sent");
    terminal.await_text("❯ [1]");
    terminal.press("2");
    let (code, screen) = terminal.finish();
    assert_eq!(code, 0, "{screen}");
    let prompt = world.prompt(2);
    assert!(prompt.contains("Proceed with option 2") && !prompt.contains("not meant"), "{prompt}");
}

#[test]
fn what_was_written_when_the_patience_ran_out_is_the_answer() {
    let world = World::scripted(&Prd::stories(1), ASKS);
    let mut terminal = asked(&world, &["--answer-timeout", "2s"]);
    terminal.press("c");
    terminal.await_text("empty line");
    terminal.press("first line\runfinis");
    let (code, screen) = terminal.finish();
    assert_eq!(code, 0, "{screen}");
    assert!(screen.contains("using your text so far"), "{screen}");
    assert!(world.prompt(2).contains("first line\nunfinis"), "{}", world.prompt(2));
}

#[test]
fn however_a_run_ends_the_terminal_is_as_it_was() {
    let supervisor = "$(cut -d' ' -f4 /proc/$PPID/stat)";
    let waits = "touch ../begun; until [ -e ../go ]; do sleep 0.01; done";
    let agent = format!(
        "[story.US-002]\nsteps = [{{ run = \"{waits}; kill -KILL {supervisor}\" }}, {{ hang = \"ignore-term\" }}]\n"
    );
    for (signals, code) in [(0, 1), (3, 143)] {
        let world = World::scripted(&Prd::stories(2), &format!("{ASKS}{agent}"));
        let terminal = Terminal::start(world.run_command(&[]));
        let modes = terminal.modes();
        terminal.await_text("[a]");
        until("the other agent", || world.path("../begun").exists().then_some(()));
        // Its supervisor's death is an error, and a third signal ends the run at once.
        if signals == 0 {
            world.write("../go", "");
        }
        (0..signals).for_each(|_| terminal.signal(Signal::TERM));
        until("the terminal as it was", || {
            (terminal.modes() == modes && !terminal.cursor_is_hidden()).then_some(())
        });
        let (ended, screen) = terminal.finish();
        assert_eq!(ended, code, "{screen}");
        assert!(!screen.contains("[a]"), "{screen}");
        assert_eq!(screen.lines().any(|line| line.starts_with("error: ")), code == 1, "{screen}");
        until("every process to be gone", || world.processes().is_empty().then_some(()));
    }
}

#[test]
fn skip_retry_and_abort() {
    let world = World::scripted(&Prd::stories(2), ASKS);
    let mut terminal = asked(&world, &[]);
    terminal.await_text("✓ Task US-002 complete");
    terminal.press("s");
    assert_eq!(terminal.finish().0, 0);
    assert_eq!(world.subjects(), ["US-001: skipped", "US-002: Story 2", "backlog", "first"]);

    let world = World::scripted(&Prd::stories(1), ASKS);
    let mut terminal = asked(&world, &[]);
    terminal.press("r");
    assert_eq!(terminal.finish().0, 0);
    assert!(!world.prompt(2).contains("Guidance from the human"));

    let world = World::scripted(&Prd::stories(1), ASKS);
    let mut terminal = asked(&world, &[]);
    terminal.press("a");
    assert_eq!(terminal.finish().0, 5);
    assert_eq!(world.passing(), [""; 0]);
}

#[test]
fn what_the_human_writes_while_nothing_runs_is_not_the_next_agents() {
    let world = World::scripted(&Prd::stories(2), ASKS);
    let mut terminal = asked(&world, &[]);
    until("the other story", || (world.passing() == ["US-002"]).then_some(()));
    terminal.await_text("✓ Task US-002 complete");
    world.write("notes.txt", "mine\n");
    terminal.press("1");
    let (code, screen) = terminal.finish();
    assert_eq!(code, 0, "{screen}");
    assert_eq!(world.status(), "?? notes.txt\n", "{screen}");
    let files = world.git(&["show", "--name-only", "--format=", "HEAD"]);
    assert!(!files.contains("notes.txt"), "{files}");
}

/// The commit of a skip is no work of the story whose turn it is.
#[test]
fn a_skip_while_another_agent_works_is_not_taken_for_its_change() {
    let script = format!(
        "{ASKS}
        [[story.US-002.attempts]]
        steps = [{{ run = \"touch ../begun; until [ -e ../go ]; do sleep 0.01; done\" }}]
        [[story.US-002.attempts]]
        steps = [\"claim\"]"
    );
    let world = World::scripted(&Prd::stories(2), &script);
    let mut terminal = asked(&world, &["--max-iterations", "3"]);
    until("the other agent", || world.path("../begun").exists().then_some(()));
    terminal.press("s");
    terminal.await_text("skipping US-001");
    world.write("../go", "");
    let (code, screen) = terminal.finish();
    assert_eq!(code, 3, "{screen}");
    assert!(screen.contains("the claim has no changes, and there is no gate"), "{screen}");
    assert_eq!(world.subjects(), ["US-001: skipped", "backlog", "first"]);
}

#[test]
fn a_skip_before_another_agent_starts_is_not_taken_for_its_change() {
    let waits = WAITS.replace("US-004", "US-002");
    let script = format!("{ASKS}{waits}[story.US-003]\nsteps = [\"claim\"]");
    let world = World::scripted(&Prd::stories(3), &script);
    let mut terminal = asked(&world, &["--max-iterations", "3"]);
    until("the other agent", || world.path("../begun").exists().then_some(()));
    terminal.press("s");
    terminal.await_text("skipping US-001");
    world.write("../go", "");
    let (code, screen) = terminal.finish();
    assert_eq!(code, 3, "{screen}");
    assert!(screen.contains("the claim has no changes, and there is no gate"), "{screen}");
    let subjects = ["US-001: skipped", "US-002: Story 2", "backlog", "first"];
    assert_eq!(world.subjects(), subjects);
}

#[test]
fn arrows_and_enter_choose_too() {
    let world = World::scripted(&Prd::stories(1), ASKS);
    let mut terminal = asked(&world, &[]);
    terminal.press("\x1b[B\r");
    assert_eq!(terminal.finish().0, 0);
    assert!(world.prompt(2).contains("Proceed with option 2: Use Postgres"));
}

/// The time limit ends the question and nothing else.
#[test]
fn when_no_key_is_pressed_the_story_is_parked() {
    let script = format!("{ASKS}{}", WAITS.replace("US-004", "US-002"));
    let world = World::scripted(&Prd::stories(2), &script);
    let terminal = asked(&world, &["--answer-timeout", "1s"]);
    let is_parked = |one: &Recorded| matches!(one.event, Event::StoryParked { .. });
    until("the time limit", || world.journal().iter().any(is_parked).then_some(()));
    until("no menu", || (!terminal.screen().contains("[a]")).then_some(()));
    assert_eq!(world.passing(), [""; 0], "the other story is worked on");
    world.write("../go", "");
    let (code, screen) = terminal.finish();
    assert_eq!(code, 4, "{screen}");
    assert_eq!(world.passing(), ["US-002"]);
}

#[test]
fn a_parked_question_is_asked_by_the_next_run_and_its_work_comes_back() {
    let world = World::scripted(&Prd::stories(2), ASKS);
    assert_eq!(world.run(&[]).code, 4);
    assert_eq!(world.status(), "");
    std::fs::write(world.script(), "[default]\nsteps = [\"complete\"]\n").unwrap();
    let mut terminal = asked(&world, &[]);
    assert!(terminal.screen().contains("Which database?"));
    terminal.press("2");
    let (code, screen) = terminal.finish();
    assert_eq!(code, 0, "{screen}");
    assert!(world.prompt(1).contains("Proceed with option 2: Use Postgres"));
    assert_eq!(world.subjects()[0], "US-001: Story 1");
    assert_eq!(world.git(&["show", "HEAD:broken.txt"]), "half a thought");
    assert_eq!(world.git(&["show", "HEAD:README.md"]), "hello\nchanged\n");
}

#[test]
fn ctrl_c_in_the_menu_leaves_the_run_resumable_and_the_terminal_usable() {
    let world = World::scripted(&Prd::stories(1), ASKS);
    let mut terminal = asked(&world, &[]);
    terminal.press("\x03");
    let hidden = |terminal: &Terminal| terminal.cursor_is_hidden();
    until("the cursor to come back", || (!hidden(&terminal)).then_some(()));
    let (code, screen) = terminal.finish();
    assert_eq!(code, 130, "{screen}");
    let mut terminal = asked(&world, &[]);
    terminal.press("1");
    assert_eq!(terminal.finish().0, 0);
}

#[test]
fn the_menu_survives_a_window_that_changes_its_size() {
    let world = World::scripted(&Prd::stories(1), ASKS);
    let mut terminal = asked(&world, &[]);
    for (rows, columns) in [(30, 60), (20, 40), (50, 120)] {
        terminal.resize(rows, columns);
        terminal.press("\x1b[B");
    }
    terminal.press("2");
    let (code, screen) = terminal.finish();
    assert_eq!(code, 0, "{screen}");
    assert!(world.prompt(2).contains("Proceed with option 2: Use Postgres"));
}

#[test]
fn no_color_when_it_is_not_wanted() {
    let world = World::with(&Prd::stories(1));
    let mut command = world.run_command(&[]);
    command.env("NO_COLOR", "1");
    let terminal = Terminal::start(command);
    terminal.await_text("Final: 1/1");
    assert!(!terminal.raw().contains("\x1b[3"), "{}", terminal.raw());
    let world = World::with(&Prd::stories(1));
    let said = world.run(&["--color", "always"]);
    assert!(said.err.contains("\x1b[3"), "{}", said.err);
}

#[test]
fn nothing_an_agent_or_a_backlog_says_acts_on_the_terminal() {
    let hostile = r#"\u001b]52;c;aGk=\u0007\u001b[2J\u202e"#;
    let script = format!(
        r#"
        [story.US-001]
        steps = [
          {{ say = "{hostile}" }},
          {{ escalate = {{ type = "stuck", summary = "{hostile}", context = "{hostile}", options = ["{hostile}"], question = "{hostile}" }} }},
        ]"#
    );
    let world = World::scripted(&Prd::stories(1), &script);
    let text = world
        .read("PRD.json")
        .replace("Story 1", hostile)
        .replace("\"demo\"", &format!("\"{hostile}\""));
    world.write("PRD.json", &text);
    let mut terminal = asked(&world, &["--verbose"]);
    terminal.press("a");
    let raw = terminal.raw();
    assert!(raw.contains("\\x1b]52"), "{raw:?}");
    assert!(!raw.contains("\x1b]52"), "{raw:?}");
    assert!(!raw.contains("\x1b[2J"), "{raw:?}");
    assert!(!raw.contains('\u{202e}'), "{raw:?}");
    assert_eq!(terminal.finish().0, 5);
}

/// Says more than a pipe holds, then hangs.
fn talks_and_hangs() -> World {
    let says = format!("{{ say = \"{}\" }},\n", "much to say ".repeat(1_000)).repeat(40);
    let script = format!(
        "[default]\nsteps = [\n{says}{{ run = \"echo yes > started.txt\" }},\n\"hang\",\n]\n"
    );
    World::scripted(&Prd::stories(1), &script)
}

/// Nobody reads what it says: the pipe is open and stays full.
fn start_unread(world: &World, args: &[&str]) -> Child {
    world.run_command(args).stderr(Stdio::piped()).spawn().unwrap()
}

fn ends(child: &mut Child) -> Option<i32> {
    until("the run to end", || child.try_wait().unwrap()).code()
}

#[test]
fn an_interrupt_works_when_nobody_reads_the_output() {
    let world = talks_and_hangs();
    let mut child = start_unread(&world, &["--verbose"]);
    world.await_file("started.txt");
    signal(&child, Signal::INT);
    assert_eq!(ends(&mut child), Some(130));
    assert_eq!(world.processes(), [""; 0]);
}

#[test]
fn a_timeout_works_when_nobody_reads_the_output() {
    let world = talks_and_hangs();
    world.write("ralph.toml", "iteration_timeout = \"3s\"\n");
    let mut child = start_unread(&world, &["--verbose", "--once"]);
    world.await_file("started.txt");
    assert_eq!(ends(&mut child), Some(3));
    assert_eq!(world.processes(), [""; 0]);
}

#[test]
fn the_moving_line_leaves_nothing_behind_when_keys_are_pressed() {
    let world = World::scripted(&Prd::stories(1), "[default]\nsteps = [\"hang\"]\n");
    let mut terminal = Terminal::start(world.run_command(&[]));
    let line = |screen: &str| {
        let line = screen.lines().rfind(|line| line.contains("Running mock · "))?;
        Some(line.to_owned())
    };
    let before = line(&terminal.await_text("Running mock · "));
    terminal.press("typed");
    until("the line to move", || {
        line(&terminal.screen()).filter(|now| Some(now) != before.as_ref())
    });
    terminal.press("\x03");
    let (code, screen) = terminal.finish();
    assert_eq!(code, 130, "{screen}");
    assert!(screen.contains("Interrupted."), "{screen}");
    assert!(!screen.contains("Running mock"), "{screen}");
}

#[test]
fn an_enter_leaves_no_copy_of_the_moving_line() {
    let world = World::scripted(&Prd::stories(1), "[default]\nsteps = [\"hang\"]\n");
    let mut terminal = Terminal::start(world.run_command(&[]));
    terminal.await_text("Running mock · ");
    for keys in ["\r", "ls\r", "\r"] {
        let before = terminal.raw().matches("\r\n").count();
        terminal.press(keys);
        let drawn_after_echo = || {
            let raw = terminal.raw();
            let after = raw.split("\r\n").nth(before + 1)?;
            after.contains("Running mock · ").then_some(())
        };
        until("the line to be drawn after the echo", drawn_after_echo);
    }
    terminal.press("\x03");
    let (code, screen) = terminal.finish();
    assert_eq!(code, 130, "{screen}");
    assert!(!screen.contains("Running mock"), "{screen}");
    assert!(screen.contains("Iteration 1"), "{screen}");
}

#[test]
fn a_long_question_is_broken_between_words() {
    let script = ASKS.replace("Which database?", &"someword ".repeat(20));
    let world = World::scripted(&Prd::stories(1), &script);
    let mut terminal = asked(&world, &[]);
    let screen = terminal.screen();
    let mut asks = screen.lines().skip_while(|line| !line.contains("US-001 asks:"));
    assert!(asks.next().unwrap().ends_with("someword"), "{screen}");
    assert!(asks.next().unwrap().starts_with("           someword"), "{screen}");
    terminal.press("a");
    assert_eq!(terminal.finish().0, 5);
}
