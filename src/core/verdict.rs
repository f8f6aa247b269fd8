//! Outcome + signals + evidence → what the attempt amounts to.

use serde::{Deserialize, Serialize};

use super::event::Stray;
use super::outcome::Outcome;
use super::signal::{Escalation, Signals};
use super::text::shorten;
use super::weather::Trouble;

const MAX_FINGERPRINT: usize = 200;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Verdict {
    /// It claims the story; the evidence decides.
    Done,
    /// The agent needs the human.
    Escalated { escalation: Escalation },
    /// Something changed, no claim yet: go on with the same story.
    Progress,
    /// It went wrong. Equal fingerprints are the same error.
    Failed { error: String, fingerprint: String },
    /// The service had a bad day; it says nothing about the story.
    NotTheStory { trouble: Trouble, error: String },
    /// The agent could not take what it was given.
    PromptTooLong { error: String },
    /// The human stopped it; it says nothing about the story.
    Interrupted,
}

/// What the driver found out itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// Tree or branch differ from before the attempt.
    pub changed: bool,
    /// Stories left in the backlog, this one included.
    pub remaining: usize,
    /// The branch is not where the work must be.
    pub stray: Option<Stray>,
}

/// An escalation beats any claim in the same text, whatever the order.
pub fn judge(outcome: &Outcome, signals: &Signals, evidence: Evidence) -> Verdict {
    match outcome {
        Outcome::EndedByUs => return Verdict::Interrupted,
        Outcome::Completed => {}
        Outcome::PromptTooLong { .. } => {
            return Verdict::PromptTooLong { error: outcome.describe() };
        }
        _ if let Some(trouble) = Trouble::of(outcome) => {
            return Verdict::NotTheStory { trouble, error: outcome.describe() };
        }
        _ => return failed(outcome.class(), outcome.describe()),
    }
    if let Some(escalation) = &signals.escalation {
        return Verdict::Escalated { escalation: escalation.clone() };
    }
    if let Some(stray) = evidence.stray {
        return failed("strayed", strayed(stray).to_owned());
    }
    if signals.claims_story || is_claim_for_the_last(signals, evidence) {
        return Verdict::Done;
    }
    if evidence.changed || !signals.stages.is_empty() {
        return Verdict::Progress;
    }
    let error = "the agent ended without claiming the story and without changing anything";
    failed("nothing_done", error.to_owned())
}

fn strayed(stray: Stray) -> &'static str {
    match stray {
        Stray::Elsewhere => {
            "the attempt ended on a branch or commit that does not build on the branch it was \
             started on; branch and files are back where they were before it"
        }
        Stray::Rewritten => {
            "the attempt rewrote commits from before the story; branch and files are back where \
             they were before it"
        }
    }
}

/// With one story left, the promise of the whole backlog is a claim for that story.
fn is_claim_for_the_last(signals: &Signals, evidence: Evidence) -> bool {
    signals.promises_all && evidence.remaining == 1 && !signals.stages_left
}

/// A promise of the whole backlog that cannot be true.
pub fn is_false_promise(signals: &Signals, evidence: Evidence) -> bool {
    signals.promises_all && evidence.remaining > 1
}

fn failed(class: &str, error: String) -> Verdict {
    let fingerprint = fingerprint(class, &error);
    Verdict::Failed { error, fingerprint }
}

/// Equal for errors of one class that differ in numbers only.
pub fn fingerprint(class: &str, error: &str) -> String {
    shorten(&format!("{class}: {}", masked(error)), MAX_FINGERPRINT)
}

/// The error without what differs from one time to the next: numbers, ids, times.
fn masked(error: &str) -> String {
    let line = error.lines().next().unwrap_or_default().to_lowercase();
    let words = line
        .split_whitespace()
        .map(|word| if word.chars().any(|c| c.is_ascii_digit()) { "#" } else { word });
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::signal::EscalationKind;

    const CHANGED: Evidence = Evidence { changed: true, remaining: 3, stray: None };
    const UNCHANGED: Evidence = Evidence { changed: false, remaining: 3, stray: None };

    fn claim() -> Signals {
        Signals { claims_story: true, ..Signals::default() }
    }

    fn escalation() -> Escalation {
        Escalation {
            kind: EscalationKind::Stuck,
            summary: "s".into(),
            context: String::new(),
            options: vec![],
            question: "q".into(),
            unread: None,
        }
    }

    #[test]
    fn a_claim_counts_only_when_the_agent_finished() {
        assert_eq!(judge(&Outcome::Completed, &claim(), CHANGED), Verdict::Done);
        let ended = Outcome::NoResult { detail: "x".into() };
        assert!(matches!(judge(&ended, &claim(), CHANGED), Verdict::Failed { .. }));
        assert_eq!(judge(&Outcome::EndedByUs, &claim(), CHANGED), Verdict::Interrupted);
    }

    #[test]
    fn an_escalation_beats_a_claim_and_a_promise() {
        let mut signals = claim();
        signals.promises_all = true;
        signals.escalation = Some(escalation());
        assert_eq!(
            judge(&Outcome::Completed, &signals, CHANGED),
            Verdict::Escalated { escalation: escalation() }
        );
    }

    #[test]
    fn a_promise_is_a_claim_for_the_last_story_only() {
        let promise = Signals { promises_all: true, ..Signals::default() };
        let last = Evidence { changed: true, remaining: 1, stray: None };
        assert_eq!(judge(&Outcome::Completed, &promise, last), Verdict::Done);
        assert!(!is_false_promise(&promise, last));
        assert_eq!(judge(&Outcome::Completed, &promise, CHANGED), Verdict::Progress);
        assert!(is_false_promise(&promise, CHANGED));
        let staged = Signals { stages_left: true, ..promise };
        assert_eq!(judge(&Outcome::Completed, &staged, last), Verdict::Progress);
    }

    #[test]
    fn a_stage_is_progress_though_nothing_changed() {
        let staged = Signals { stages: vec!["TESTS_PASS".into()], ..Signals::default() };
        assert_eq!(judge(&Outcome::Completed, &staged, UNCHANGED), Verdict::Progress);
    }

    #[test]
    fn without_claim_a_change_is_progress_and_none_is_a_failure() {
        let silent = Signals::default();
        assert_eq!(judge(&Outcome::Completed, &silent, CHANGED), Verdict::Progress);
        assert!(matches!(judge(&Outcome::Completed, &silent, UNCHANGED), Verdict::Failed { .. }));
    }

    #[test]
    fn no_claim_counts_off_the_branch_and_a_question_still_does() {
        for stray in [Stray::Elsewhere, Stray::Rewritten] {
            let evidence = Evidence { stray: Some(stray), ..CHANGED };
            let verdict = judge(&Outcome::Completed, &claim(), evidence);
            assert!(matches!(verdict, Verdict::Failed { .. }), "{verdict:?}");
            let asks = Signals { escalation: Some(escalation()), ..claim() };
            let verdict = judge(&Outcome::Completed, &asks, evidence);
            assert!(matches!(verdict, Verdict::Escalated { .. }), "{verdict:?}");
        }
    }

    #[test]
    fn errors_that_differ_in_numbers_only_are_the_same() {
        let error = |detail: &str| {
            let outcome = Outcome::AgentError { detail: detail.into() };
            match judge(&outcome, &Signals::default(), UNCHANGED) {
                Verdict::Failed { fingerprint, .. } => fingerprint,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(error("request 1f2 failed after 3s"), error("request 77a failed after 9s"));
        assert_ne!(error("request 1 failed"), error("reply 1 failed"));
    }
}
