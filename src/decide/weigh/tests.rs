use crate::model::{Concern, EvidenceItem, GateEnd, GateReport};

use super::*;

fn id(text: &str) -> StoryId {
    StoryId::try_from(text).unwrap()
}

fn gate(end: GateEnd, tail: &str) -> EvidenceItem {
    let gate = "cargo test".to_owned();
    EvidenceItem::Gate(GateReport { gate, guards: None, end, elapsed_ms: 5, tail: tail.to_owned() })
}

fn weighed(items: &[EvidenceItem], changed: bool, unfounded: u32, concerns: &[Concern]) -> Weighed {
    let story = id("US-002");
    let (turned_green, first_of_two) = (false, false);
    weigh(&Findings {
        story: &story,
        items,
        changed,
        turned_green,
        unfounded,
        concerns,
        first_of_two,
    })
}

fn concern() -> Concern {
    Concern { what: "its criteria changed".into(), diff: "- a\n+ b".into() }
}

#[test]
fn a_change_carries_a_claim_if_no_gate_fails() {
    for items in [&[gate(GateEnd::Passed, "")][..], &[]] {
        assert_eq!(weighed(items, true, 0, &[]), Weighed::Accepted);
    }
}

#[test]
fn without_a_change_a_gate_must_have_turned_green() {
    let story = id("US-002");
    let report = |gate: &str, passes: bool| {
        let end = if passes { GateEnd::Passed } else { GateEnd::Failed { code: 1 } };
        let (gate, tail) = (gate.to_owned(), String::new());
        GateReport { gate, guards: None, end, elapsed_ms: 5, tail }
    };
    let guards = |report| GateReport { guards: Some(id("US-001")), ..report };
    for (red, now, turned) in [
        (None, report("a", true), None),
        (Some("a"), report("a", true), Some("a")),
        (Some("a"), report("a", false), None),
        (Some("b"), report("a", true), None),
        (Some("a"), guards(report("a", true)), None),
    ] {
        let before: Vec<String> = red.into_iter().map(str::to_owned).collect();
        let items = [EvidenceItem::Gate(now.clone())];
        assert_eq!(turned_green(&items, &before), turned, "{before:?}, {now:?}");
        let (changed, concerns, first_of_two) = (false, &[][..], false);
        let decided = |unfounded| {
            let (story, items, turned_green) = (&story, &items[..], turned.is_some());
            weigh(&Findings {
                story,
                items,
                changed,
                turned_green,
                unfounded,
                concerns,
                first_of_two,
            })
        };
        match decided(0) {
            Weighed::Accepted => assert!(turned.is_some(), "{before:?}, {now:?}"),
            Weighed::Rejected { error, unfounded: true, .. } => {
                assert!(error.contains("nothing changed and nothing turned green"), "{error}");
                assert!(matches!(decided(1), Weighed::Doubtful { .. }));
            }
            Weighed::Rejected { .. } => assert!(!now.passed()),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn the_first_of_two_claims_is_looked_at_again_unless_there_is_more_to_say() {
    let story = id("US-002");
    let weighed = |items: &[EvidenceItem], changed, concerns: &[Concern], first_of_two| {
        let (story, turned_green, unfounded) = (&story, false, 0);
        weigh(&Findings { story, items, changed, turned_green, unfounded, concerns, first_of_two })
    };
    assert_eq!(weighed(&[], true, &[], true), Weighed::LookAgain);
    assert_eq!(weighed(&[], true, &[], false), Weighed::Accepted);
    assert_eq!(weighed(&[gate(GateEnd::Passed, "")], true, &[], true), Weighed::Accepted);
    assert!(matches!(weighed(&[], false, &[], true), Weighed::Rejected { unfounded: true, .. }));
    assert!(matches!(weighed(&[], true, &[concern()], true), Weighed::Doubtful { .. }));
}

#[test]
fn the_first_gate_that_fails_is_the_reason() {
    let items =
        [gate(GateEnd::Passed, "fine"), gate(GateEnd::Failed { code: 101 }, "x\nerror: y 7\n")];
    let Weighed::Rejected { error, fingerprint, unfounded } = weighed(&items, true, 0, &[]) else {
        panic!("accepted")
    };
    assert_eq!(
        error,
        "`cargo test` failed with exit code 101\nThe end of its output:\nx\nerror: y 7"
    );
    assert_eq!(fingerprint, "gate: cargo test error: y #");
    assert!(!unfounded);
}

#[test]
fn the_same_failure_has_the_same_fingerprint_and_another_has_another() {
    let print = |tail: &str| match weighed(&[gate(GateEnd::TimedOut, tail)], true, 0, &[]) {
        Weighed::Rejected { fingerprint, .. } => fingerprint,
        other => panic!("{other:?}"),
    };
    assert_eq!(print("took 3s\ntest a FAILED\n"), print("took 4s\ntest a FAILED\n"));
    assert_ne!(print("test a FAILED\n"), print("test b FAILED\n"));
}

#[test]
fn what_breaks_an_earlier_story_says_which() {
    let report = GateReport {
        gate: "./check-1".into(),
        guards: Some(id("US-001")),
        end: GateEnd::Failed { code: 1 },
        elapsed_ms: 1,
        tail: String::new(),
    };
    let Weighed::Rejected { error, .. } = weighed(&[EvidenceItem::Gate(report)], true, 0, &[])
    else {
        panic!("accepted")
    };
    assert_eq!(
        error,
        "this work breaks the closed story US-001: `./check-1` failed with exit code 1"
    );
}

#[test]
fn a_claim_without_a_change_is_rejected_once_and_then_becomes_a_question() {
    assert!(matches!(weighed(&[], false, 0, &[]), Weighed::Rejected { unfounded: true, .. }));
    let Weighed::Doubtful { question } = weighed(&[], false, 1, &[]) else { panic!("no question") };
    assert_eq!(question.kind, EscalationKind::Claim);
}

#[test]
fn a_concern_is_for_the_human_but_a_failed_gate_comes_first() {
    let passed = [gate(GateEnd::Passed, "")];
    let Weighed::Doubtful { question } = weighed(&passed, true, 0, &[concern()]) else {
        panic!("accepted")
    };
    assert!(question.context.contains("- a\n+ b"), "{}", question.context);
    let failed = [gate(GateEnd::Failed { code: 1 }, "")];
    assert!(matches!(weighed(&failed, true, 0, &[concern()]), Weighed::Rejected { .. }));
}

#[test]
fn a_missing_command_has_its_own_error() {
    for (end, cannot) in [
        (GateEnd::Failed { code: 127 }, true),
        (GateEnd::NotStarted { error: "no such file".into() }, true),
        (GateEnd::Failed { code: 1 }, false),
        (GateEnd::TimedOut, false),
    ] {
        let EvidenceItem::Gate(report) = gate(end, "");
        assert_eq!(report.cannot_run(), cannot, "{report:?}");
    }
}

#[test]
fn what_cannot_be_committed_is_reported_once_and_then_becomes_a_question() {
    let story = id("US-002");
    let weighed = |refusals, beyond_it| weigh_content(&story, "`x` is large", refusals, beyond_it);
    let error = "it cannot be committed: `x` is large".to_owned();
    assert_eq!(weighed(0, false), Unfit::Told { error });
    for (refusals, beyond_it) in [(1, false), (2, false), (0, true)] {
        let Unfit::Asked { question } = weighed(refusals, beyond_it) else { panic!("not asked") };
        assert_eq!(question.kind, EscalationKind::Commit);
        assert!(question.summary.contains("`x` is large"), "{}", question.summary);
    }
}
