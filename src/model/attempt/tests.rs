use crate::decide::samples::{History, escalation, failed, guidance, id};
use crate::model::event::Event;
use crate::model::gate::{GateEnd, GateReport};
use crate::model::outcome::ServiceFault;

use super::*;

fn gate(end: GateEnd) -> EvidenceItem {
    let gate = "cargo test".to_owned();
    EvidenceItem::Gate(GateReport { gate, guards: None, end, elapsed_ms: 1, tail: String::new() })
}

fn rejected(items: Vec<EvidenceItem>) -> History {
    let (story, attempt) = (id("A"), "attempt 1".to_owned());
    let checked = Event::ClaimChecked {
        attempt,
        story: story.clone(),
        items,
        counted: None,
        checked: None,
        turned_green: None,
    };
    let (error, fingerprint, unfounded) = ("e".to_owned(), "f".to_owned(), false);
    let rejected = Event::ClaimRejected { story, error, fingerprint, unfounded };
    History::new().tried("A", Verdict::Done).then(checked).then(rejected)
}

fn refused() -> History {
    let refused = Event::CloseRefused { story: id("A"), error: "e".into(), unfit: false };
    History::new().tried("A", Verdict::Done).planned("A").then(refused)
}

fn does_not_fit(history: History) -> History {
    let (reference, conflicts) = ("r/1".to_owned(), vec!["a.rs".to_owned()]);
    let brought = Event::WorkBroughtBack { story: id("A"), reference, conflicts };
    history.shelved("A", Some("r/1")).then(brought)
}

#[test]
fn the_history_gives_the_reason_for_the_next_attempt() {
    let tried = |verdict| History::new().tried("A", verdict);
    let error = || "e".to_owned();
    let option = Answer::Option { number: 1, text: "left".into() };
    let escalated = || tried(Verdict::Escalated { escalation: escalation("s") }).raised("A");
    let outage = Verdict::NotTheStory { fault: ServiceFault::Outage, error: error() };
    let not_started = GateEnd::NotStarted { error: error() };
    for (case, history, why) in [
        ("no attempt yet", History::new(), AttemptReason::FirstTry),
        (
            "another story's failure",
            History::new().tried("B", failed("x")),
            AttemptReason::FirstTry,
        ),
        ("progress", tried(Verdict::Progress), AttemptReason::Incomplete),
        ("a failure", tried(failed("x")), AttemptReason::AfterError),
        ("an outage", tried(outage), AttemptReason::AfterServiceTrouble),
        (
            "a prompt that was too long",
            tried(Verdict::PromptTooLong { error: error() }),
            AttemptReason::PromptTooLong,
        ),
        ("an interrupt", tried(Verdict::Interrupted), AttemptReason::Recovery),
        ("a crash", History::new().started("A").then(Event::RunContinued), AttemptReason::Recovery),
        (
            "a crash, then a new run",
            History::new().started("A").run(&["A"]),
            AttemptReason::Recovery,
        ),
        (
            "a crash between attempts",
            tried(failed("x")).then(Event::RunContinued),
            AttemptReason::AfterError,
        ),
        (
            "a failed gate",
            rejected(vec![gate(GateEnd::Failed { code: 1 })]),
            AttemptReason::GateFailed,
        ),
        ("a gate that did not start", rejected(vec![gate(not_started)]), AttemptReason::GateFailed),
        ("no gates", rejected(vec![]), AttemptReason::ClaimRejected),
        ("passing gates", rejected(vec![gate(GateEnd::Passed)]), AttemptReason::ClaimRejected),
        ("a refused commit", refused(), AttemptReason::ClaimRejected),
        ("guidance", escalated().answered("A", guidance("do")), AttemptReason::HumanGuidance),
        ("an option", escalated().answered("A", option), AttemptReason::HumanGuidance),
        ("retry", escalated().answered("A", Answer::Retry), AttemptReason::HumanRetry),
        (
            "abort",
            tried(failed("x")).raised("A").answered("A", Answer::Abort),
            AttemptReason::AfterError,
        ),
        ("lost work", does_not_fit(tried(failed("x"))), AttemptReason::FreshStart),
        (
            "lost work after guidance",
            does_not_fit(escalated().answered("A", guidance("do"))),
            AttemptReason::HumanGuidance,
        ),
    ] {
        assert_eq!(history.of("A").why, why, "{case}");
    }
}

#[test]
fn an_event_without_a_reason_reads_as_a_first_try() {
    let old = r#"{"attempt":"a","iteration":1,"role":"implement","story":"A","title":"t",
        "agent":"mock","base":{"commit":null,"tree":"t"},"guided":false}"#;
    let started: AttemptStarted = serde_json::from_str(old).unwrap();
    assert_eq!(started.why, AttemptReason::FirstTry);
}
