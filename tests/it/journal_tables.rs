//! What an agent writes into the journal's database by itself counts for nothing.

use std::fs;

use ralph::model::{Event, Recorded, Request, StoryId};
use ralph::process::supervised::requester;
use rustix::process::Signal;

use crate::support::world::{Ends, signal, until};
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
