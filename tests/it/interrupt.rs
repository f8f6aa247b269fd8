//! Ctrl-C and its relatives, at several moments.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use ralph::model::Event;
use rustix::process::Signal;

use crate::support::world::{Ends, RALPH, signal, until};
use crate::support::{Prd, World};

/// Says when it runs, leaves a child of its own in another session, and hangs.
const HANGS: &str = r#"
    [[story.US-001.attempts]]
    steps = [
      { write = "half.txt", text = "half\n" },
      { grandchild = "setsid", command = "sleep 1000" },
      { run = "echo yes > started.txt" },
      "hang",
    ]
    [[story.US-001.attempts]]
    steps = [{ delete = "started.txt" }, "complete"]
"#;

const ANSWERS: &str = r#"
say() { printf '{"type":"assistant","message":{"content":[{"type":"text","text":"%s"}]}}\n' "$1"; }
answer() {
  say "Task US-001 complete"
  echo '{"type":"result","subtype":"success","is_error":false,"result":"all done"}'
  exit 0
}
trap answer TERM
echo '{"type":"system","subtype":"init"}'
echo work > work.txt
echo y > ../started
while :; do say "still at it"; sleep 0.05; done
"#;

fn end(child: Child) -> (i32, String) {
    let said = child.ended();
    (said.code, said.err)
}

fn no_process_is_left(world: &World) {
    let left = world.processes();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn an_interrupt_stops_the_agent_cleanly_and_the_run_continues_later() {
    for (which, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let world = World::scripted(&Prd::stories(2), HANGS);
        let child = world.start(&[]);
        world.await_file("started.txt");
        signal(&child, which);
        let (found, err) = end(child);
        assert_eq!(found, code, "{err}");
        assert!(err.contains("interrupted; ending everything that runs"), "{err}");
        assert!(err.contains("Run `ralph run` to continue"), "{err}");
        no_process_is_left(&world);
        assert_eq!(world.read("half.txt"), "half\n", "unfinished work stays in the tree");

        let said = world.run(&[]);
        assert_eq!(said.code, 0, "{}", said.err);
        assert!(said.err.contains("Continuing run"), "{}", said.err);
        assert_eq!(world.subjects(), ["US-002: Story 2", "US-001: Story 1", "backlog", "first"]);
        let trailers = world.git(&["log", "-2", "--format=%(trailers:key=Ralph-Run,valueonly)"]);
        let runs: std::collections::BTreeSet<&str> =
            trailers.lines().filter(|line| !line.is_empty()).collect();
        assert_eq!(runs.len(), 1, "it is the same run");
        assert_eq!(world.git(&["show", "HEAD~1:half.txt"]), "half\n");
    }
}

#[test]
fn marks_that_the_agent_set_before_the_signal_do_not_become_the_humans() {
    let script = r#"
        [[story.US-001.attempts]]
        steps = [
          { run = "sed -i 's/\"passes\": false/\"passes\": true/' PRD.json" },
          { run = "echo yes > started.txt" },
          "hang",
        ]
        [[story.US-001.attempts]]
        steps = [{ delete = "started.txt" }, { write = "a.txt", text = "a" }, "complete"]
    "#;
    let world = World::scripted(&Prd::stories(2), script);
    let child = world.start(&[]);
    world.await_file("started.txt");
    signal(&child, Signal::INT);
    let (code, err) = end(child);
    assert_eq!(code, 130, "{err}");
    assert!(err.contains("marks of US-001, US-002"), "{err}");
    assert_eq!(world.passing(), [""; 0]);

    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(world.subjects(), ["US-002: Story 2", "US-001: Story 1", "backlog", "first"]);
}

/// What an agent has to end in after the first signal.
const GRACE: Duration = Duration::from_secs(5);

/// Only a busy machine takes as long as the grace, so that there are three chances; without the
/// second signal none of them is enough.
#[test]
fn a_second_signal_ends_at_once_what_does_not_want_to_end() {
    let agent = "sh -c 'trap \"echo y > ../told\" TERM; echo y > ../started; \
                 while :; do sleep 0.05; done'";
    let took = || {
        let world = World::with(&Prd::stories(1));
        let mut command = world.command(RALPH);
        command.args(["run", "--trust", "--agent-command", agent]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        world.await_file("../started");
        let start = Instant::now();
        signal(&child, Signal::INT);
        world.await_file("../told");
        signal(&child, Signal::INT);
        let (code, err) = end(child);
        let took = start.elapsed();
        assert_eq!(code, 130, "{err}");
        no_process_is_left(&world);
        let events: Vec<Event> = world.journal().into_iter().map(|one| one.event).collect();
        let last = &events[events.len() - 3..];
        let interrupted = Event::RunInterrupted { signal: 2 };
        assert!(
            matches!(last, [Event::AttemptEnded(_), Event::TreeLeft { .. }, end] if *end == interrupted),
            "the driver saw its end: {last:?}"
        );
        took
    };
    assert!((0..3).any(|_| took() < GRACE), "it waited for the grace");
}

#[test]
fn an_agent_that_ignores_the_first_signal_is_killed_after_its_grace() {
    let script = r#"
        [default]
        steps = [{ run = "echo yes > started.txt" }, { hang = "ignore-term" }]
    "#;
    let world = World::scripted(&Prd::stories(1), script);
    let child = world.start(&[]);
    world.await_file("started.txt");
    signal(&child, Signal::TERM);
    assert_eq!(end(child).0, 143);
    no_process_is_left(&world);
}

#[test]
fn when_the_driver_is_killed_its_agents_are_gone_too() {
    let world = World::scripted(&Prd::stories(1), HANGS);
    let mut child = world.start(&[]);
    world.await_file("started.txt");
    child.kill().unwrap();
    child.code();
    until("every process to be gone", || world.processes().is_empty().then_some(()));
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(world.subjects(), ["US-001: Story 1", "backlog", "first"]);
}

#[test]
fn commits_made_while_interrupted_are_the_humans() {
    let world = World::scripted(&Prd::stories(1), HANGS);
    let child = world.start(&[]);
    world.await_file("started.txt");
    signal(&child, Signal::INT);
    end(child);
    world.write("mine.txt", "mine\n");
    world.git(&["add", "mine.txt"]);
    world.git(&["commit", "-qm", "by hand"]);
    let script = r#"
        [story.US-001]
        steps = [{ escalate = { type = "stuck", summary = "s", question = "q" } }]
    "#;
    std::fs::write(world.script(), script).unwrap();
    assert_eq!(world.run(&[]).code, 4);
    assert_eq!(world.subjects(), ["by hand", "backlog", "first"], "setting aside keeps it");
    assert_eq!(world.read("mine.txt"), "mine\n");
    assert!(!world.path("half.txt").exists());
    assert_eq!(world.git(&["show", "refs/ralph/attempts/US-001/1:half.txt"]), "half\n");
}

#[test]
fn a_second_run_in_the_same_work_tree_is_refused() {
    let world = World::scripted(&Prd::stories(1), HANGS);
    let child = world.start(&[]);
    world.await_file("started.txt");
    let second = world.run(&[]);
    assert_eq!(second.code, 1);
    assert!(second.err.contains(&format!("pid {}", child.id())), "{}", second.err);
    let status = world.ralph(&["status"]);
    assert!(status.out.contains(&format!("running (pid {}", child.id())), "{}", status.out);
    signal(&child, Signal::INT);
    assert_eq!(end(child).0, 130);
}

/// Answers the order to end with a claim, a result and exit code 0, as some real agents do.
#[test]
fn a_result_that_answers_the_order_to_end_is_not_a_result() {
    let agent = "sh agent.sh";
    for (settings, outcome) in [
        ("", "ended_by_us"),
        (
            "stuck_after = \"300ms\"\nstuck_question_after = \"300ms\"\nstuck_answer_timeout = \"300ms\"\n",
            "stuck",
        ),
        ("iteration_timeout = \"1s\"\n", "iteration_timeout"),
    ] {
        let world = World::with(&Prd::stories(1));
        world.write("agent.sh", ANSWERS);
        world.write("ralph.toml", settings);
        world.git(&["add", "."]);
        world.git(&["commit", "-qm", "agent"]);
        let mut command = world.command(RALPH);
        command.args(["run", "--once", "--trust", "--agent-command", agent]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        world.await_file("../started");
        if settings.is_empty() {
            signal(&child, Signal::INT);
        }
        let (_, err) = end(child);
        let log = world.iteration_files("log").concat();
        assert!(log.contains(r#""result":"all done""#), "it did not answer: {err}\n{log}");
        let class = world.journal().iter().find_map(|one| match &one.event {
            Event::AttemptEnded(ended) => Some(ended.outcome.class()),
            _ => None,
        });
        assert_eq!(class.as_deref(), Some(outcome), "{err}");
        assert_eq!(world.passing(), [""; 0], "{err}");
        assert_eq!(world.subjects(), ["agent", "backlog", "first"]);
        no_process_is_left(&world);
    }
}

/// Files whose hashing takes longer than anybody wants to wait.
#[test]
fn signals_are_heard_while_large_files_are_hashed() {
    const FILES: u32 = 8;
    let world = World::scripted(&Prd::stories(1), "");
    for number in 0..FILES {
        let file = std::fs::File::create(world.path(&format!("large{number}"))).unwrap();
        file.set_len(1 << 30).unwrap();
    }
    let mut child = world.start(&["--allow-dirty"]);
    let heard = BufReader::new(child.stderr.take().unwrap());
    let mut lines = heard.lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains("Progress: ")));
    let is_half = |name: &str| name.starts_with("tmp_object");
    until("an object that is being written", || {
        let mut objects = std::fs::read_dir(world.path(".git/objects")).unwrap().flatten();
        objects.find(|entry| entry.file_name().to_str().is_some_and(is_half)).map(drop)
    });
    let start = Instant::now();
    signal(&child, Signal::INT);
    assert!(lines.any(|line| line.contains("interrupted; ")));
    signal(&child, Signal::INT);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let took = start.elapsed();
    assert!(took < Duration::from_secs(10), "{took:?}");
    no_process_is_left(&world);
    for number in 0..FILES {
        std::fs::remove_file(world.path(&format!("large{number}"))).unwrap();
    }
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(world.passing(), ["US-001"]);
}

/// Which would take a minute.
#[test]
fn one_interrupt_is_enough_while_large_files_are_read() {
    let files = "for n in 1 2 3 4 5 6 7 8; do truncate -s 1G large$n; done";
    let script =
        format!("[default]\nsteps = [{{ run = '{files}; echo y > ../here' }}, \"complete\"]\n");
    let world = World::scripted(&Prd::stories(1), &script);
    let child = world.start(&[]);
    world.await_file("../here");
    signal(&child, Signal::INT);
    let start = Instant::now();
    let (code, err) = end(child);
    let took = start.elapsed();
    assert_eq!(code, 130, "{err}");
    assert!(took < Duration::from_secs(10), "{took:?}");
    let last = world.journal().pop().unwrap().event;
    assert_eq!(last, Event::RunInterrupted { signal: 2 });
    no_process_is_left(&world);
}
