//! A disk that runs full.

use std::path::Path;

use ralph::core::event::Event;
use ralph::core::policy::StopReason;

use crate::support::{Prd, World};

/// A disk of its own that nearly nobody else writes to, so that its room is known.
const MEMORY_DISK: &str = "/dev/shm";

#[test]
fn without_room_no_agent_is_started_and_the_next_run_goes_on() {
    let world = World::with(&Prd::stories(1));
    world.write("ralph.toml", "min_free_disk = \"900TB\"\n");
    let said = world.run(&[]);
    assert_eq!(said.code, 4, "{}", said.err);
    for words in ["The disk is nearly full", "and 900 TB is the least", "lower `min_free_disk`"] {
        assert!(said.err.contains(words), "{words}: {}", said.err);
    }
    let events: Vec<Event> = world.journal().into_iter().map(|recorded| recorded.event).collect();
    assert!(!events.iter().any(|event| matches!(event, Event::AttemptStarted(_))), "{events:?}");
    let Some(Event::RunEnded { reason: StopReason::DiskLow { floor, .. } }) = events.last() else {
        panic!("{events:?}")
    };
    assert_eq!(*floor, 900_000_000_000_000);

    world.write("ralph.toml", "min_free_disk = \"none\"\n");
    assert_eq!(world.run(&[]).code, 0);
}

#[test]
fn an_agent_that_fills_the_disk_is_ended_and_its_work_stays() {
    if !Path::new(MEMORY_DISK).is_dir() {
        eprintln!("skipped: there is no {MEMORY_DISK} to fill");
        return;
    }
    let world = World::with_in(Path::new(MEMORY_DISK), &Prd::stories(1));
    let fill = "for i in $(seq 40); do head -c 1000000 /dev/zero >> ../fill; sleep 0.1; done";
    let script = format!(
        "[default]\nsteps = [{{ write = \"half.txt\", text = \"half\" }}, {{ run = \"{fill}\" }}, \"complete\"]\n"
    );
    std::fs::write(world.script(), script).unwrap();
    let room = rustix::fs::statvfs(MEMORY_DISK).unwrap();
    let floor = room.f_bavail * room.f_frsize - 8_000_000;
    world.write("ralph.toml", &format!("min_free_disk = {floor}\n"));
    let said = world.run(&[]);
    assert_eq!(said.code, 4, "{}", said.err);
    assert!(said.err.contains("the agent is ended, and its work stays"), "{}", said.err);
    assert!(said.err.contains("The disk is nearly full"), "{}", said.err);
    assert_eq!(world.processes(), [""; 0]);
    assert_eq!(world.read("half.txt"), "half");
    assert_eq!(world.subjects(), ["backlog", "first"]);

    std::fs::remove_file(world.path("../fill")).unwrap();
    std::fs::write(world.script(), "[default]\nsteps = [\"complete\"]\n").unwrap();
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(world.git(&["show", "HEAD:half.txt"]), "half");
}
