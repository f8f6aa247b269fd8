use crate::decide::samples::{History, escalation, failed, id};
use crate::model::{AgentSignals, Recorded, ServiceFault, StoryClosed};

use super::*;

fn whats(list: &[Entry]) -> Vec<(u32, &str)> {
    list.iter().map(|entry| (entry.iteration, entry.what.as_str())).collect()
}

fn rejected(error: &str) -> Event {
    let (error, fingerprint) = (error.to_owned(), "f".to_owned());
    Event::ClaimRejected { story: id("A"), error, fingerprint, unfounded: false }
}

#[test]
fn a_night_is_remembered_as_what_came_of_it() {
    let outage = Verdict::NotTheStory { fault: ServiceFault::Outage, error: "503".into() };
    let history = History::new()
        .tried("A", failed("no such file\nat line 3"))
        .tried("A", outage)
        .tried("A", Verdict::Interrupted)
        .tried("A", Verdict::Progress)
        .tried("B", Verdict::Escalated { escalation: escalation("which one?") })
        .said("A", Verdict::Done, "All good.")
        .then(rejected("`cargo test` failed"))
        .said("A", Verdict::Done, "Now it is.")
        .planned("A")
        .closed("A");
    let memory = &history.state.memory;
    let outcomes: Vec<&str> = memory.outcomes.iter().map(|entry| entry.what.as_str()).collect();
    assert_eq!(
        outcomes,
        [
            "it failed: no such file",
            "not complete yet",
            "it asked: which one?",
            "it claimed the story, but the claim was rejected",
            "complete",
        ]
    );
    let errors: Vec<&str> = memory.errors.iter().map(|entry| entry.what.as_str()).collect();
    assert_eq!(errors, ["no such file\nat line 3", "`cargo test` failed"]);
    assert_eq!(memory.worked.len(), 1);
    assert_eq!(memory.worked[0].said, "Now it is.");
}

#[test]
fn an_error_that_comes_again_is_one_entry_and_the_newest() {
    let history =
        History::new().tried("A", failed("x")).tried("A", failed("y")).tried("A", failed("x"));
    assert_eq!(whats(&history.state.memory.errors), [(2, "y"), (3, "x")]);
}

#[test]
fn only_so_much_is_kept() {
    let mut memory = Memory::default();
    for number in 0..50 {
        let error = format!("error {number} {}", "é".repeat(5000));
        memory.apply(&rejected(&error), number);
    }
    assert_eq!(memory.errors.len(), MOST_KEPT);
    assert_eq!(memory.errors[0].iteration, 30);
    assert!(memory.errors.iter().all(|entry| entry.what.chars().count() <= LONGEST_KEPT));
}

#[test]
fn the_next_run_of_the_same_backlog_remembers_and_another_one_does_not() {
    let history = History::new().tried("A", failed("x"));
    assert_eq!(history.clone().run(&[]).state.memory, history.state.memory);
    let mut other = history.state.clone();
    let mut run = history.state.run.clone().unwrap();
    run.project = "another".into();
    other.apply(&Recorded { at: 9, event: Event::RunStarted(run) });
    assert_eq!(other.memory, Memory::default());
}

#[test]
fn a_story_that_was_closed_without_words_is_remembered_too() {
    let mut memory = Memory::default();
    let closed =
        StoryClosed { attempt: "a".into(), story: id("A"), commit: "c".into(), change: None };
    memory.apply(&Event::StoryClosed(closed), 4);
    assert_eq!(whats(&memory.worked), [(4, "complete, and committed")]);
    assert_eq!(AgentSignals::default().stages, [""; 0]);
}
