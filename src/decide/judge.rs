//! Judges an attempt: what it amounts to, and whether a fresh agent should continue.

use std::time::Duration;

use crate::model::{
    AgentSignals, BranchLoss, ContextUsage, HandoffTrigger, Outcome, ServiceFault, Verdict, shorten,
};

const MAX_FINGERPRINT: usize = 200;
/// A fresh agent should continue when the context is above this percentage of the model's window.
const FULL: u64 = 70;
/// A fresh agent should continue when more than this share of a budget is spent.
const SPENT: f64 = 0.8;
/// A fresh agent should continue after this many failed attempts in a row.
const ERRORS: u32 = 3;
/// A fresh agent should continue after this percentage of an iteration's time.
const LATE: u128 = 80;

/// What the driver found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// Tree or branch differ from before the attempt.
    pub changed: bool,
    /// Stories left in the backlog, this one included; counted if all were promised.
    pub remaining: usize,
    /// The attempt lost the run's branch.
    pub branch_loss: Option<BranchLoss>,
}

/// Outcome + signals + evidence → verdict. An escalation overrides a claim in the same text.
pub fn judge(outcome: &Outcome, signals: &AgentSignals, evidence: Evidence) -> Verdict {
    match outcome {
        Outcome::EndedByUs => return Verdict::Interrupted,
        Outcome::Completed => {}
        Outcome::PromptTooLong { .. } => {
            return Verdict::PromptTooLong { error: outcome.describe() };
        }
        _ if let Some(fault) = ServiceFault::of(outcome) => {
            return Verdict::NotTheStory { fault, error: outcome.describe() };
        }
        _ => return failed(&outcome.class(), outcome.describe()),
    }
    if let Some(escalation) = &signals.escalation {
        return Verdict::Escalated { escalation: escalation.clone() };
    }
    if let Some(loss) = evidence.branch_loss {
        return failed("strayed", lost_branch(loss).to_owned());
    }
    // With one story left, promising the whole backlog claims that story.
    let claims_last = signals.promises_all && evidence.remaining == 1 && !signals.stages_left;
    if signals.claims_story || claims_last {
        return Verdict::Done;
    }
    if evidence.changed || !signals.stages.is_empty() {
        return Verdict::Progress;
    }
    let error = "the agent claimed nothing and changed nothing";
    failed("nothing_done", error.to_owned())
}

fn lost_branch(loss: BranchLoss) -> &'static str {
    match loss {
        BranchLoss::Elsewhere => {
            "the attempt ended on a branch or commit that does not contain the run's branch; \
             branch and files were rolled back"
        }
        BranchLoss::Rewritten => {
            "the attempt rewrote commits from before the story; branch and files were rolled back"
        }
    }
}

fn failed(class: &str, error: String) -> Verdict {
    let fingerprint = fingerprint(class, &error);
    Verdict::Failed { error, fingerprint }
}

/// Equal for errors of one class that differ only in numbers.
pub fn fingerprint(class: &str, error: &str) -> String {
    shorten(&format!("{class}: {}", masked(error)), MAX_FINGERPRINT)
}

/// The error's first line without numbers, ids and times.
fn masked(error: &str) -> String {
    let line = error.lines().next().unwrap_or_default().to_lowercase();
    let has_digit = |word: &str| word.chars().any(|c| c.is_ascii_digit());
    let words = line.split_whitespace().map(|word| if has_digit(word) { "#" } else { word });
    words.collect::<Vec<_>>().join(" ")
}

/// What a hand-off depends on, during an attempt or at its end.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct HandoffFacts {
    pub context: Option<ContextUsage>,
    /// Failed attempts in a row, this one included.
    pub errors: u32,
    /// The spent share of its tightest budget, 0 to 1; None without one.
    pub spent: Option<f64>,
    pub stage_reached: bool,
    pub asked: bool,
    pub elapsed: Duration,
    /// None: no limit.
    pub time: Option<Duration>,
}

/// Why a fresh agent should continue: all that apply, in a fixed order.
pub fn triggers(facts: &HandoffFacts) -> Vec<HandoffTrigger> {
    let late = |time: Duration| facts.elapsed.as_millis() * 100 > time.as_millis() * LATE;
    [
        (HandoffTrigger::Context, facts.context.is_some_and(|context| context.share() > FULL)),
        (HandoffTrigger::Errors, facts.errors >= ERRORS),
        (HandoffTrigger::Budget, facts.spent.is_some_and(|spent| spent > SPENT)),
        (HandoffTrigger::PhaseComplete, facts.stage_reached),
        (HandoffTrigger::AskedFor, facts.asked),
        (HandoffTrigger::Time, facts.time.is_some_and(late)),
    ]
    .into_iter()
    .filter_map(|(trigger, holds)| holds.then_some(trigger))
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Escalation, EscalationKind};

    const CHANGED: Evidence = Evidence { changed: true, remaining: 3, branch_loss: None };
    const UNCHANGED: Evidence = Evidence { changed: false, remaining: 3, branch_loss: None };

    fn claim() -> AgentSignals {
        AgentSignals { claims_story: true, ..AgentSignals::default() }
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
        let promise = AgentSignals { promises_all: true, ..AgentSignals::default() };
        let last = Evidence { changed: true, remaining: 1, branch_loss: None };
        assert_eq!(judge(&Outcome::Completed, &promise, last), Verdict::Done);
        assert_eq!(judge(&Outcome::Completed, &promise, CHANGED), Verdict::Progress);
        let staged = AgentSignals { stages_left: true, ..promise };
        assert_eq!(judge(&Outcome::Completed, &staged, last), Verdict::Progress);
    }

    #[test]
    fn a_stage_is_progress_though_nothing_changed() {
        let staged = AgentSignals { stages: vec!["TESTS_PASS".into()], ..AgentSignals::default() };
        assert_eq!(judge(&Outcome::Completed, &staged, UNCHANGED), Verdict::Progress);
    }

    #[test]
    fn without_claim_a_change_is_progress_and_none_is_a_failure() {
        let silent = AgentSignals::default();
        assert_eq!(judge(&Outcome::Completed, &silent, CHANGED), Verdict::Progress);
        assert!(matches!(judge(&Outcome::Completed, &silent, UNCHANGED), Verdict::Failed { .. }));
    }

    #[test]
    fn no_claim_counts_off_the_branch_and_a_question_still_does() {
        for loss in [BranchLoss::Elsewhere, BranchLoss::Rewritten] {
            let evidence = Evidence { branch_loss: Some(loss), ..CHANGED };
            let verdict = judge(&Outcome::Completed, &claim(), evidence);
            assert!(matches!(verdict, Verdict::Failed { .. }), "{verdict:?}");
            let asks = AgentSignals { escalation: Some(escalation()), ..claim() };
            let verdict = judge(&Outcome::Completed, &asks, evidence);
            assert!(matches!(verdict, Verdict::Escalated { .. }), "{verdict:?}");
        }
    }

    #[test]
    fn errors_that_differ_in_numbers_only_are_the_same() {
        let error = |detail: &str| {
            let outcome = Outcome::AgentError { detail: detail.into() };
            match judge(&outcome, &AgentSignals::default(), UNCHANGED) {
                Verdict::Failed { fingerprint, .. } => fingerprint,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(error("request 1f2 failed after 3s"), error("request 77a failed after 9s"));
        assert_ne!(error("request 1 failed"), error("reply 1 failed"));
    }

    #[test]
    fn each_trigger_fires_by_itself_and_not_just_before() {
        let context = |used| HandoffFacts {
            context: Some(ContextUsage { used, window: 1000 }),
            ..HandoffFacts::default()
        };
        let spent = |spent| HandoffFacts { spent: Some(spent), ..HandoffFacts::default() };
        let errors = |errors| HandoffFacts { errors, ..HandoffFacts::default() };
        let late = |secs| HandoffFacts {
            elapsed: Duration::from_secs(secs),
            time: Some(Duration::from_secs(100)),
            ..HandoffFacts::default()
        };
        let hours =
            HandoffFacts { elapsed: Duration::from_secs(36_000), ..HandoffFacts::default() };
        let unknown = HandoffFacts {
            context: Some(ContextUsage { used: 900, window: 0 }),
            ..HandoffFacts::default()
        };
        for (case, facts, fired) in [
            ("nothing", HandoffFacts::default(), &[][..]),
            ("context 71%", context(710), &[HandoffTrigger::Context]),
            ("context 70%", context(709), &[]),
            ("an unknown window", unknown, &[]),
            ("three errors", errors(3), &[HandoffTrigger::Errors]),
            ("two errors", errors(2), &[]),
            ("81% spent", spent(0.81), &[HandoffTrigger::Budget]),
            ("80% spent", spent(0.8), &[]),
            (
                "a stage",
                HandoffFacts { stage_reached: true, ..HandoffFacts::default() },
                &[HandoffTrigger::PhaseComplete],
            ),
            (
                "asked for",
                HandoffFacts { asked: true, ..HandoffFacts::default() },
                &[HandoffTrigger::AskedFor],
            ),
            ("81% of the time", late(81), &[HandoffTrigger::Time]),
            ("80% of the time", late(80), &[]),
            ("long, without a limit", hours, &[]),
            (
                "two at once",
                HandoffFacts { asked: true, ..context(999) },
                &[HandoffTrigger::Context, HandoffTrigger::AskedFor],
            ),
        ] {
            assert_eq!(triggers(&facts), fired, "{case}");
        }
    }
}
