use crate::decide::samples::{History, escalation, failed, guidance, id};
use crate::model::event::Event;
use crate::model::evidence::{GateEnd, GateReport};
use crate::model::service::ServiceFault;

use super::*;

fn gate(end: GateEnd) -> EvidenceItem {
    let gate = "cargo test".to_owned();
    EvidenceItem::Gate(GateReport { gate, guards: None, end, elapsed_ms: 1, tail: String::new() })
}

fn rejected(items: Vec<EvidenceItem>) -> History {
    let (story, attempt) = (id("A"), "attempt 1".to_owned());
    let checked = Event::ClaimChecked { attempt, story: story.clone(), items };
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
    history.set_aside("A", Some("r/1")).then(brought)
}

#[test]
fn each_history_has_its_reason_for_the_next_attempt() {
    let tried = |verdict| History::new().tried("A", verdict);
    let error = || "e".to_owned();
    let option = Answer::Option { number: 1, text: "left".into() };
    let escalated = || tried(Verdict::Escalated { escalation: escalation("s") }).raised("A");
    let outage = Verdict::NotTheStory { trouble: ServiceFault::Outage, error: error() };
    let not_started = GateEnd::NotStarted { error: error() };
    for (case, history, why) in [
        ("nothing yet", History::new(), AttemptReason::FirstTry),
        (
            "another story's failure",
            History::new().tried("B", failed("x")),
            AttemptReason::FirstTry,
        ),
        ("progress", tried(Verdict::Progress), AttemptReason::Incomplete),
        ("a failure", tried(failed("x")), AttemptReason::AfterError),
        ("an outage", tried(outage), AttemptReason::AfterServiceTrouble),
        (
            "too much",
            tried(Verdict::PromptTooLong { error: error() }),
            AttemptReason::PromptTooLong,
        ),
        ("Ctrl-C", tried(Verdict::Interrupted), AttemptReason::Recovery),
        ("a crash", History::new().started("A").then(Event::RunContinued), AttemptReason::Recovery),
        (
            "a crash, and another backlog",
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
        ("no gate to run", rejected(vec![gate(not_started)]), AttemptReason::GateFailed),
        ("nothing to show", rejected(vec![]), AttemptReason::ClaimRejected),
        (
            "good gates, and yet",
            rejected(vec![gate(GateEnd::Passed)]),
            AttemptReason::ClaimRejected,
        ),
        ("not to be committed", refused(), AttemptReason::ClaimRejected),
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
            "lost work, and guidance",
            does_not_fit(escalated().answered("A", guidance("do"))),
            AttemptReason::HumanGuidance,
        ),
    ] {
        assert_eq!(history.of("A").why, why, "{case}");
    }
}

#[test]
fn an_attempt_from_before_there_were_reasons_is_read_as_a_first_one() {
    let old = r#"{"attempt":"a","iteration":1,"role":"implement","story":"A","title":"t",
        "agent":"mock","base":{"commit":null,"tree":"t"},"guided":false}"#;
    let started: crate::model::event::AttemptStarted = serde_json::from_str(old).unwrap();
    assert_eq!(started.why, AttemptReason::FirstTry);
}
