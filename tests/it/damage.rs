//! Files of a run whose bytes are not what was written.

use std::fs;

use crate::support::world::Ends;
use crate::support::world::until;
use crate::support::{Prd, World};

/// Stories with a gate each.
fn gated(count: usize) -> Prd {
    (0..count).fold(Prd::default(), |prd, _| prd.story(r#""verify": ["true"]"#))
}

/// Two of three stories are closed, and there is kept work of the third.
fn two_of_three() -> World {
    let script = "[story.US-003]\nsteps = [{ write = \"half.txt\", text = \"x\" }, { escalate = { type = \"stuck\", summary = \"s\", question = \"q\" } }]\n";
    let world = World::scripted(&gated(3), script);
    let said = world.run(&[]);
    assert_eq!(said.code, 4, "{}", said.err);
    assert_eq!(world.passing(), ["US-001", "US-002"]);
    fs::remove_file(world.script()).unwrap();
    world
}

fn spoil_journal(world: &World) {
    let path = world.path(".git/ralph/journal.db");
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, vec![b'x'; bytes.len()]).unwrap();
}

fn kept_journals(world: &World) -> usize {
    let names = fs::read_dir(world.path(".git/ralph")).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let times = names.filter_map(|name| name.strip_prefix("journal.db.corrupt-")?.parse().ok());
    times.filter(|at: &u64| *at > 0).count()
}

#[test]
fn a_damaged_journal_is_renamed_and_committed_stories_stay_closed() {
    let world = two_of_three();
    spoil_journal(&world);
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.err.contains("the journal was damaged and is kept as"), "{}", said.err);
    let kept = "earlier work on US-003 is at `refs/ralph/attempts/US-003/1` and will be restored";
    assert!(said.err.contains(kept), "{}", said.err);
    assert_eq!(world.git(&["show", "HEAD:half.txt"]), "x");
    assert_eq!(kept_journals(&world), 1);
    for told in ["US-001 is to be confirmed", "US-002 is to be confirmed"] {
        assert!(said.err.contains(told), "{told} is not in {}", said.err);
    }
    let subjects = ["US-003: Story 3", "US-002: Story 2", "US-001: Story 1", "backlog", "first"];
    assert_eq!(world.subjects(), subjects);
}

#[test]
fn a_mark_without_a_commit_is_not_believed_when_the_journal_is_lost() {
    let world = two_of_three();
    world.write(
        "PRD.json",
        &world.read("PRD.json").replace("\"passes\": false", "\"passes\": true"),
    );
    spoil_journal(&world);
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.err.contains("reverted the marks of US-003"), "{}", said.err);
    assert_eq!(world.subjects()[0], "US-003: Story 3", "it was done, not believed");
}

#[test]
fn other_commands_say_what_to_do_about_a_damaged_journal() {
    let world = two_of_three();
    spoil_journal(&world);
    let said = world.ralph(&["status"]);
    assert_eq!(said.code, 1, "{}", said.err);
    assert!(said.err.contains("`ralph run` renames it and rebuilds"), "{}", said.err);
    assert_eq!(kept_journals(&world), 0);
}

/// US-001 is closed; the agent of US-002 marked everything as passing, and the driver was killed.
fn marked_by_the_agent() -> World {
    let world = World::with(&gated(2));
    assert_eq!(world.run(&["--once"]).code, 3);
    let marks = r#"sed -i 's/"passes": false/"passes": true/' PRD.json; echo y > ../here"#;
    let script = format!("[default]\nsteps = [{{ run = '''{marks}''' }}, \"hang\"]\n");
    fs::write(world.script(), script).unwrap();
    let mut child = world.start(&[]);
    world.await_file("../here");
    child.kill().unwrap();
    child.code();
    until("every process to be gone", || world.processes().is_empty().then_some(()));
    assert_eq!(world.passing(), ["US-001", "US-002"]);
    fs::remove_file(world.script()).unwrap();
    world
}

/// At a few places all over the file, a bit of it flipped, and what is before it alone.
fn spoilt(whole: &[u8], places: usize) -> impl Iterator<Item = Vec<u8>> {
    (0..places).map(move |place| place * whole.len() / places).flat_map(|at| {
        let mut flipped = whole.to_vec();
        flipped[at] ^= 1 << (at % 8);
        [flipped, whole[..at].to_vec()]
    })
}

/// Every byte has its turn in the journal's own tests; here a whole run looks at some of them.
#[test]
fn however_the_journal_is_damaged_an_agents_mark_is_not_believed() {
    let template = marked_by_the_agent();
    for name in ["journal.db", "journal.db-wal", "journal.db-newest"] {
        let name = format!(".git/ralph/{name}");
        let whole = fs::read(template.path(&name)).unwrap();
        for bytes in spoilt(&whole, 4) {
            let world = template.copy();
            fs::write(world.path(&name), &bytes).unwrap();
            let said = world.run(&[]);
            let label = format!("{name}, {} of {} bytes: {}", bytes.len(), whole.len(), said.err);
            assert!(!said.err.contains("panicked"), "{label}");
            assert_eq!(said.code, 0, "{label}");
            assert_eq!(world.subjects()[..2], ["US-002: Story 2", "US-001: Story 1"], "{label}");
        }
    }
}

#[test]
fn a_newer_journal_is_refused_and_stays_as_it_is() {
    let world = two_of_three();
    let path = world.path(".git/ralph/journal.db");
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.pragma_update(None, "user_version", 1000).unwrap();
    drop(connection);
    let before = fs::read(&path).unwrap();
    let said = world.run(&[]);
    assert_eq!(said.code, 1, "{}", said.err);
    assert!(said.err.contains("newer"), "{}", said.err);
    assert_eq!((fs::read(&path).unwrap(), kept_journals(&world)), (before, 0));
}

/// Nobody can tell whose they are without the journal: they stay, and the human is asked.
#[test]
fn work_in_the_tree_is_not_touched_when_the_journal_is_lost() {
    let world = World::scripted(
        &Prd::stories(1),
        "[default]\nsteps = [{ run = \"echo half > half.txt; echo more >> README.md\" }]\n",
    );
    assert_eq!(world.run(&["--once"]).code, 3);
    let edited = world.read("README.md");
    spoil_journal(&world);
    let said = world.run(&[]);
    assert_eq!(said.code, 1, "{}", said.err);
    assert!(said.err.contains("README.md"), "{}", said.err);
    assert_eq!((world.read("README.md"), world.read("half.txt")), (edited, "half\n".to_owned()));
}

#[test]
fn a_damaged_status_file_changes_nothing() {
    let world = two_of_three();
    let expected = world.ralph(&["status", "--json"]).out;
    let whole = fs::read(world.path(".ralph/status.json")).unwrap();
    for bytes in spoilt(&whole, 20) {
        fs::write(world.path(".ralph/status.json"), &bytes).unwrap();
        let said = world.ralph(&["status", "--json"]);
        assert_eq!((said.code, said.out), (0, expected.clone()), "{}", said.err);
    }
    let said = world.run(&[]);
    assert_eq!(said.code, 4, "{}", said.err);
    assert_eq!(world.passing(), ["US-001", "US-002"]);
    let written = world.read(".ralph/status.json");
    serde_json::from_str::<serde_json::Value>(&written).expect("written anew");
}

#[test]
fn a_run_whose_journal_is_deleted_stops_at_once_and_the_next_believes_no_mark() {
    let world = World::with(&gated(2));
    assert_eq!(world.run(&["--once"]).code, 3);
    let act = r#"sed -i 's/"passes": false/"passes": true/' PRD.json; rm -rf .git/ralph"#;
    let script = format!("[default]\nsteps = [{{ run = '''{act}''' }}, \"hang\"]\n");
    fs::write(world.script(), script).unwrap();
    let said = world.run(&[]);
    assert_eq!(said.code, 1, "{}", said.err);
    let reason =
        "the journal is lost (its files were deleted or replaced) while the run was active";
    assert!(said.err.contains(reason), "{}", said.err);
    assert_eq!(world.processes(), [""; 0]);
    fs::remove_file(world.script()).unwrap();
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    for told in ["its journal was deleted; rebuilding it", "reverted the marks of US-002"] {
        assert!(said.err.contains(told), "{told} is not in {}", said.err);
    }
    let subjects = ["US-002: Story 2", "US-001: Story 1", "backlog", "first"];
    assert_eq!(world.subjects(), subjects, "it was done, not believed");
}
