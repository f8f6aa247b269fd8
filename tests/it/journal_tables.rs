//! What an agent writes into the journal's database by itself counts for nothing.

use std::fs;
use std::process::{Command, Stdio};

use ralph::model::{Event, Recorded, Request, StoryId};
use ralph::process::supervised::requester;
use rustix::process::Signal;

use crate::support::world::{Ends, RALPH, Runs, signal, until};
use crate::support::{Prd, World};

/// Names the database and the statement for [`execute`].
const DATABASE: &str = "TEST_DATABASE";
const STATEMENT: &str = "TEST_STATEMENT";

/// Not a test: agents run this program again to have an SQLite of their own.
#[test]
fn execute() {
    let (Ok(path), Ok(statement)) = (std::env::var(DATABASE), std::env::var(STATEMENT)) else {
        return;
    };
    let connection = rusqlite::Connection::open(path).unwrap();
    connection.busy_timeout(std::time::Duration::from_secs(10)).unwrap();
    connection.execute_batch(&statement).unwrap();
}

/// A step of a script: the agent writes into the database.
fn writes(statement: &str) -> String {
    let program = std::env::current_exe().unwrap();
    let program = program.display();
    format!(
        "{{ run = \"\"\"{DATABASE}=.git/ralph/journal.db {STATEMENT}=\\\"{statement}\\\" {program} \
         --exact journal_tables::execute > /dev/null\"\"\" }}"
    )
}

const MARK: &str = "INSERT INTO wishes (work_tree, at, wish) VALUES ('', 1, json_object(
    'wish', 'mark', 'backlog', 'PRD.json', 'story', 'US-002', 'passes', json('true'),
    'skipped', json('false')))";

fn ignored(world: &World) -> Vec<String> {
    let asked = |one: Recorded| match one.event {
        Event::RequestsIgnored { asked } => Some(asked),
        _ => None,
    };
    world.journal().into_iter().filter_map(asked).flatten().collect()
}

fn await_ignored(world: &World) {
    until("the request to be dropped", || (!ignored(world).is_empty()).then_some(()));
}

#[test]
fn a_mark_that_an_agent_writes_into_the_database_does_not_count() {
    let wait = "{ run = \"while ! test -e ../go; do sleep 0.02; done\" }";
    let script = format!(
        "[default]\nsteps = [{}, {wait}, {{ write = \"a.txt\", text = \"a\" }}, \"complete\"]\n",
        writes(MARK)
    );
    let world = World::scripted(&Prd::stories(2), &script);
    let child = world.start(&["--once"]);
    await_ignored(&world);
    world.write("../go", "");
    let said = child.ended();
    assert_eq!(said.code, 3, "{}", said.err);
    assert_eq!(world.passing(), ["US-001"]);
    assert_eq!(ignored(&world), ["mark US-002 pass"]);
    let told = "ignored what no command of yours asked for: mark US-002 pass";
    assert!(said.err.contains(told), "{}", said.err);
}

/// As above, with the checksum of a request and the numbers of a process of the human's.
#[test]
fn nor_does_one_that_looks_like_a_humans() {
    let world = World::scripted(&Prd::stories(2), "");
    let story = StoryId::try_from("US-002").unwrap();
    let (backlog, passes, skipped) = ("PRD.json".to_owned(), true, false);
    let request = Request::Mark { backlog, story, passes, skipped };
    let hang = "[default]\nsteps = [{ run = \"echo y > ../here\" }, \"hang\"]\n";
    fs::write(world.script(), hang).unwrap();
    let child = world.start(&[]);
    world.await_file("../here");
    world.store().requests().unwrap().make(1, &request, requester()).unwrap();
    await_ignored(&world);
    signal(&child, Signal::TERM);
    child.ended();
    assert_eq!(world.passing(), [""; 0]);
}

/// The driver is stopped before the request is there, and then killed: it never saw it.
#[test]
fn nor_does_one_that_a_killed_run_left() {
    let wait = "{ run = \"echo y > ../here; while ! test -e ../go; do sleep 0.02; done\" }";
    let done = "{ run = \"echo y > ../written\" }";
    let script = format!("[default]\nsteps = [{wait}, {}, {done}, \"hang\"]\n", writes(MARK));
    let world = World::scripted(&Prd::stories(2), &script);
    let mut child = world.start(&[]);
    world.await_file("../here");
    signal(&child, Signal::STOP);
    world.write("../go", "");
    world.await_file("../written");
    signal(&child, Signal::KILL);
    child.code();
    let work = "[default]\nsteps = [{ write = \"a.txt\", text = \"a\" }, \"complete\"]\n";
    fs::write(world.script(), work).unwrap();
    let said = world.run(&["--once"]);
    assert_eq!(said.code, 3, "{}", said.err);
    assert_eq!(world.passing(), ["US-001"]);
    assert_eq!(ignored(&world), ["mark US-002 pass"]);
}

fn put_back(world: &World) -> Vec<String> {
    let names = |one: Recorded| match one.event {
        Event::ApprovalsPutBack { names } => Some(names),
        _ => None,
    };
    world.journal().into_iter().filter_map(names).flatten().collect()
}

/// A run that approves nothing by itself.
fn untrusting(world: &World) -> Command {
    let words = world.run_words(&["--once"]);
    let mut command = world.command(RALPH);
    command.args(words.iter().filter(|word| *word != "--trust"));
    command
}

fn with_gate(script: &str) -> World {
    let world = World::scripted(&Prd::stories(2), script);
    world.write("ralph.toml", "verify = [\"true\"]\n");
    world.git(&["add", "."]);
    world.git(&["commit", "-qm", "settings"]);
    assert_eq!(world.ralph(&["trust", "--yes"]).code, 0);
    world
}

/// With the checksum of another one, and with its own.
#[test]
fn an_approval_that_an_agent_writes_into_the_database_is_removed() {
    let what = "gate in ralph.toml";
    let insert =
        format!("INSERT INTO trust SELECT '{what}', 'touch ../ran', at, seal FROM trust LIMIT 1");
    let script = format!(
        "[default]\nsteps = [{}, {{ run = \"echo y > ../here; while ! test -e ../go; do sleep 0.02; done\" }}, \
         {{ write = \"a.txt\", text = \"a\" }}, \"complete\"]\n",
        writes(&insert)
    );
    let world = with_gate(&script);
    let child = untrusting(&world).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    world.await_file("../here");
    world.store().answers().unwrap().trust(1, [(what, "touch ../ran ")].into_iter()).unwrap();
    world.write("../go", "");
    let said = child.ended();
    assert_eq!(said.code, 3, "{}", said.err);
    assert_eq!(put_back(&world), [what]);
    assert!(said.err.contains("restored your approvals"), "{}", said.err);
    for command in ["touch ../ran", "touch ../ran "] {
        world.write("ralph.toml", &format!("verify = [\"{command}\"]\n"));
        world.git(&["commit", "-qam", "another gate"]);
        let said = untrusting(&world).said();
        assert_eq!(said.code, 1, "{}", said.err);
        assert!(said.err.contains("you haven't approved"), "{}", said.err);
    }
    assert!(!world.path("../ran").exists());
}

#[test]
fn nor_does_one_count_that_a_killed_run_left_but_that_of_a_command_since_does() {
    let hang = "[default]\nsteps = [{ run = \"echo y > ../here\" }, \"hang\"]\n";
    let world = with_gate(hang);
    let mut child =
        untrusting(&world).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    world.await_file("../here");
    let evil = [("gate in ralph.toml", "touch ../ran")].into_iter();
    world.store().answers().unwrap().trust(1, evil).unwrap();
    signal(&child, Signal::KILL);
    child.code();
    let work = "[default]\nsteps = [{ write = \"a.txt\", text = \"a\" }, \"complete\"]\n";
    fs::write(world.script(), work).unwrap();
    world.write(".claude/settings.json", "{}");
    assert_eq!(world.ralph(&["trust", "--yes"]).code, 0);
    let said = untrusting(&world).said();
    assert_eq!(said.code, 3, "{}", said.err);
    let all = world.store().answers().unwrap().all().unwrap();
    assert!(all.is_trusted("gate in ralph.toml", "true"));
    assert!(!all.is_trusted("gate in ralph.toml", "touch ../ran"));
}

/// The human approves something while an agent works.
#[test]
fn an_approval_by_a_command_counts_during_a_run() {
    let script = "[default]\nsteps = [{ run = \"echo y > ../here; while ! test -e ../go; do sleep 0.02; done\" }, \
                  { write = \"a.txt\", text = \"a\" }, \"complete\"]\n";
    let world = with_gate(script);
    let child = untrusting(&world).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    world.await_file("../here");
    let own = Prd::stories(0).story(r#""verify": ["my-gate"]"#);
    world.write("other.json", &own.text());
    let said = world.ralph(&["trust", "--yes", "other.json"]);
    assert_eq!(said.code, 0, "{}", said.err);
    world.write("../go", "");
    let said = child.ended();
    assert_eq!(said.code, 3, "{}", said.err);
    assert_eq!(put_back(&world), [""; 0]);
    let all = world.store().answers().unwrap().all().unwrap();
    assert!(all.is_trusted("gate of US-001", "my-gate"));
}
