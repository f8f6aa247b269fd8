//! One run per work tree.

use std::process::Child;

use rustix::process::Signal;

use crate::support::pty::Terminal;
use crate::support::world::{Ends, signal, until};
use crate::support::{Prd, World};

const HANGS: &str = "[default]\nsteps = [{ run = \"touch ../runs\" }, \"hang\"]\n";

#[test]
fn of_fifty_at_once_exactly_one_runs() {
    let world = World::scripted(&Prd::stories(1), HANGS);
    let mut drivers: Vec<Child> = (0..50).map(|_| world.start(&[])).collect();
    let mut first = until("all but one to give up", || {
        for ended in drivers.extract_if(.., |driver| driver.try_wait().unwrap().is_some()) {
            let said = ended.ended();
            assert_eq!(said.code, 1, "{}", said.err);
            assert!(said.err.contains("another `ralph run`"), "{}", said.err);
        }
        (drivers.len() == 1).then(|| drivers.remove(0))
    });
    until("the one agent", || world.path("../runs").exists().then_some(()));
    signal(&first, Signal::TERM);
    assert_eq!(first.code(), 143);
    assert_eq!(world.processes(), [""; 0]);
}

#[test]
fn the_error_names_the_other_run_its_terminal_and_its_start() {
    let world = World::scripted(&Prd::stories(1), HANGS);
    let mut terminal = Terminal::start(world.run_command(&[]));
    until("the agent", || world.path("../runs").exists().then_some(()));
    let said = world.run(&[]);
    assert_eq!(said.code, 1);
    for part in ["another `ralph run`", "(pid ", ", since 20", ", in /dev/pts/"] {
        assert!(said.err.contains(part), "{part} is not in {}", said.err);
    }
    terminal.press("\x03");
    assert_eq!(terminal.finish().0, 130);
}

#[test]
fn a_holder_that_was_killed_holds_nothing() {
    let world = World::scripted(&Prd::stories(1), HANGS);
    let mut first = world.start(&[]);
    until("the agent", || world.path("../runs").exists().then_some(()));
    signal(&first, Signal::KILL);
    first.code();
    std::fs::write(
        world.script(),
        "[default]\nsteps = [{ write = \"a\", text = \"a\" }, \"complete\"]\n",
    )
    .unwrap();
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
}

/// The first one is stopped, so that it cannot notice what happened to its journal.
#[test]
fn a_second_run_cannot_start_beside_one_whose_journal_was_deleted() {
    let world = World::scripted(&Prd::stories(1), HANGS);
    let first = world.start(&[]);
    until("the agent", || world.path("../runs").exists().then_some(()));
    signal(&first, Signal::STOP);
    std::fs::remove_dir_all(world.path(".git/ralph")).unwrap();
    let second = world.run(&[]);
    assert_eq!(second.code, 1, "{}", second.err);
    let refused = "another `ralph run` is active in this work tree (its lock file was deleted)";
    assert!(second.err.contains(refused), "{}", second.err);
    signal(&first, Signal::CONT);
    let first = first.ended();
    assert_eq!(first.code, 1, "{}", first.err);
    assert!(first.err.contains("the journal is lost"), "{}", first.err);
    assert_eq!(world.read("../runs"), "");
    let script = "[default]\nsteps = [{ write = \"a\", text = \"a\" }, \"complete\"]\n";
    std::fs::write(world.script(), script).unwrap();
    assert_eq!(world.run(&[]).code, 0);
}
