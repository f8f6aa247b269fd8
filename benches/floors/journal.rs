//! A journal as it grows: opened, checked, read and folded at a start, appended to in between.

use std::hint::black_box;

use ralph::model::Event;
use ralph::state::RunState;
use ralph::store::{Journal, Store, StorePlace};

use crate::measure::{Times, tell};
use crate::report::iteration;

const ROUNDS: usize = 7;
const PRD: &str = "PRD.json";

pub fn bench() {
    let fresh = Times::of(ROUNDS, || {
        let folder = tempfile::tempdir().unwrap();
        drop(store(folder.path()).journal(PRD).unwrap());
    });
    tell("made", &fresh);
    for events in [1_000_u32, 4_000, 12_000] {
        println!("  {events} events");
        let folder = tempfile::tempdir().unwrap();
        fill(folder.path(), events / 4);
        let opened = Times::of(ROUNDS, || drop(store(folder.path()).journal(PRD).unwrap()));
        tell("opened", &opened);
        let store = store(folder.path());
        tell(
            "every page checked",
            &Times::of(ROUNDS, || store.start_check().unwrap().finish().unwrap()),
        );
        let mut journal = store.journal(PRD).unwrap();
        let read = Times::of(ROUNDS, || drop(black_box(journal.read(0).unwrap())));
        tell("read", &read);
        let (all, _) = journal.read(0).unwrap();
        let folded = Times::of(ROUNDS, || {
            let mut state = RunState::default();
            all.iter().for_each(|recorded| state.apply(recorded));
            black_box(state);
        });
        tell("folded", &folded);
        let more = events_of(events / 4 + 1);
        let appended = Times::of(ROUNDS * 5, || journal.append("run", 1, &more).unwrap());
        tell("an iteration appended", &appended);
        let synced = Times::of(ROUNDS * 5, || {
            journal.append("run", 1, &more).unwrap();
            journal.sync_point().wait().unwrap();
        });
        tell("an iteration appended and synced", &synced);
    }
}

/// In one folder, as of a main work tree.
pub fn store(folder: &std::path::Path) -> Store {
    let [shared, own, anchor] = [(); 3].map(|()| folder.to_owned());
    Store::new(StorePlace { shared, own, work_tree: String::new(), anchor })
}

fn fill(folder: &std::path::Path, iterations: u32) {
    let mut journal = store(folder).journal(PRD).unwrap();
    let events: Vec<Event> = (1..=iterations).flat_map(events_of).collect();
    journal.append("run", 1, &events).unwrap();
}

fn events_of(number: u32) -> Vec<Event> {
    iteration(number).into_iter().map(|recorded| recorded.event).collect()
}
