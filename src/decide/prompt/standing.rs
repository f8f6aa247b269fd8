//! The state of the run, and why this attempt is made.

use crate::model::{AttemptReason, shorten, visible, visible_line};
use crate::state::{FailedAttempt, StoryState};

use super::Briefing;

/// Below this many iterations left, the prompt says that the run ends soon.
const FEW: u32 = 3;
/// Failed attempts in a prompt, the newest.
const MOST_TRIED: usize = 6;
const LONGEST_ERROR: usize = 300;

/// `is_whole`: with all that ralph has to add.
pub(super) fn text(briefing: &Briefing<'_>, known: &StoryState, is_whole: bool) -> String {
    let (backlog, most) = (briefing.backlog, briefing.max_iterations);
    let iteration = briefing.state.attempts.next_iteration();
    let of = most.map(|most| format!(" of at most {most}")).unwrap_or_default();
    let (done, all) = (backlog.done(), backlog.stories.len());
    let mut items = vec![
        format!("Iteration {iteration}{of}, attempt {} at this story.", known.totals.attempts + 1),
        format!("{done} of {all} stories are complete. Work on this one only."),
        format!("Why you run: {}", reason(known.why)),
    ];
    items.extend(limit_near(iteration, most));
    if known.base().is_some() {
        items.push("The work of earlier attempts is in the work tree: review it first.".to_owned());
    }
    if is_whole {
        items.extend(known.work.conflicting().map(|reference| conflict(reference)));
        items.extend(tried(&known.failed_before));
    }
    let reminder = known.reminder.as_ref();
    let missed = |text| format!("A message that the last agent did not receive: {text}");
    items.extend(reminder.map(missed));
    if is_whole {
        items.extend(known.stagnation.remark());
        items.extend(known.last_error.as_deref().map(failure));
    }
    format!("# State of the run\n\n- {}", items.join("\n- ")).trim_end().to_owned()
}

fn reason(why: AttemptReason) -> &'static str {
    match why {
        AttemptReason::FirstTry => "this is the first try at this story.",
        AttemptReason::Incomplete => {
            "the previous agent made progress and did not finish. Continue where it left off."
        }
        AttemptReason::GateFailed => {
            "the previous agent claimed the story, but a gate failed. Fix the work, not the gate."
        }
        AttemptReason::ClaimRejected => {
            "the previous agent claimed the story, but the claim was rejected, for the reason below."
        }
        AttemptReason::SecondLook => {
            "the previous agent claimed the story. Check every criterion again, fix what is missing, \
             and claim the story if all of them are met."
        }
        AttemptReason::HumanGuidance => "the human answered. Follow the guidance below.",
        AttemptReason::HumanRetry => "the human asked for another try.",
        AttemptReason::Recovery => {
            "the previous agent was interrupted. Review its unchecked work before you continue."
        }
        AttemptReason::AfterError => {
            "the previous agent failed. Find out why before you try again."
        }
        AttemptReason::AfterServiceTrouble => {
            "the previous agent was ended by a limit or an outage, not by the story. Continue."
        }
        AttemptReason::PromptTooLong => "the last prompt was too long; this one has less in it.",
        AttemptReason::FreshStart => {
            "earlier attempts failed, so the story starts over. Try a different approach."
        }
    }
}

/// The last iterations should leave work that can be continued.
fn limit_near(iteration: u32, max: Option<u32>) -> Option<String> {
    let last =
        "This is the last iteration of this run: leave a work tree that builds, and a hand-off.";
    match max?.saturating_sub(iteration) {
        0 => Some(last.to_owned()),
        1 => Some("The run ends soon: one more iteration after this one.".to_owned()),
        left if left < FEW => {
            Some(format!("The run ends soon: {left} more iterations after this one."))
        }
        _ => None,
    }
}

fn conflict(reference: &str) -> String {
    format!(
        "Earlier work on this story conflicts with the branch. It is kept at `{reference}`; `git diff \
         HEAD...{reference}` shows it."
    )
}

/// What was tried before the last fresh start.
fn tried(attempts: &[FailedAttempt]) -> Option<String> {
    let newest = attempts.iter().skip(attempts.len().saturating_sub(MOST_TRIED));
    let lines = newest.map(|attempt| {
        let error = shorten(&visible_line(&attempt.error), LONGEST_ERROR);
        match (&attempt.reference, &attempt.changes) {
            (Some(reference), Some(changes)) => format!("\n  - `{reference}` ({changes}): {error}"),
            (Some(reference), None) => format!("\n  - `{reference}`: {error}"),
            (None, _) => format!("\n  - nothing changed: {error}"),
        }
    });
    let lines: String = lines.collect();
    (!lines.is_empty()).then(|| {
        format!(
            "Earlier attempts failed, and the work tree was reset to the story's base. Do not repeat \
             them. `git diff HEAD...REF` shows their work:{lines}"
        )
    })
}

/// Its output is indented, to mark it as output and not as instructions.
fn failure(error: &str) -> String {
    let error = visible(error.trim());
    format!("The last attempt failed: {}", error.replace('\n', "\n      "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_mentioned_when_it_is_near() {
        assert!(limit_near(50, Some(50)).unwrap().contains("last iteration"));
        assert!(limit_near(48, Some(50)).unwrap().contains(": 2 more"));
        assert_eq!(limit_near(47, Some(50)), None);
        assert_eq!(limit_near(1, None), None);
        assert!(limit_near(60, Some(50)).unwrap().contains("last iteration"));
    }

    #[test]
    fn every_reason_has_its_own_text() {
        let all = [
            AttemptReason::FirstTry,
            AttemptReason::Incomplete,
            AttemptReason::GateFailed,
            AttemptReason::ClaimRejected,
            AttemptReason::SecondLook,
            AttemptReason::HumanGuidance,
            AttemptReason::HumanRetry,
            AttemptReason::Recovery,
            AttemptReason::AfterError,
            AttemptReason::AfterServiceTrouble,
            AttemptReason::PromptTooLong,
            AttemptReason::FreshStart,
        ];
        for (at, why) in all.iter().enumerate() {
            let alike = all.iter().take(at).filter(|other| reason(**other) == reason(*why));
            assert_eq!(alike.count(), 0, "{why:?}");
        }
    }
}
