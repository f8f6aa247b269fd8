//! A disk that runs full.

use ralph::model::{Event, StopReason};

use crate::support::{Prd, World};

#[test]
fn without_disk_space_no_agent_is_started_and_the_next_run_continues() {
    let world = World::with(&Prd::stories(1));
    world.write("ralph.toml", "min_free_disk = \"900TB\"\n");
    let said = world.run(&[]);
    assert_eq!(said.code, 4, "{}", said.err);
    for words in ["Disk nearly full", "(minimum 900 TB)", "lower `min_free_disk`"] {
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
