//! Why an attempt is made, in words for the agent.

use crate::model::AttemptReason;

/// Below this many iterations left, the prompt says that the run ends soon.
const FEW: u32 = 3;

pub fn told(why: AttemptReason) -> &'static str {
    match why {
        AttemptReason::FirstTry => "this is the first try at this story.",
        AttemptReason::Incomplete => {
            "the previous agent made progress and did not finish. Continue where it left off."
        }
        AttemptReason::GateFailed => {
            "the previous agent claimed to be done, but a check failed. Make it pass for real."
        }
        AttemptReason::ClaimRejected => {
            "the previous agent claimed to be done, but that was not accepted, for the reason below."
        }
        AttemptReason::SecondLook => {
            "the previous agent says that it is done. Check it again, criterion by criterion; fix what \
             is missing; if all of it is true, say so."
        }
        AttemptReason::HumanGuidance => "the human answered. Follow the guidance below.",
        AttemptReason::HumanRetry => "the human asked to retry it.",
        AttemptReason::Recovery => {
            "the previous agent was cut off. Review what it left before you continue; it is unchecked."
        }
        AttemptReason::AfterError => {
            "the previous agent failed. Find out why before you try again."
        }
        AttemptReason::AfterServiceTrouble => {
            "the previous agent was ended by a limit or an outage, not by the story. Continue."
        }
        AttemptReason::PromptTooLong => "the last prompt was too long; this one has less in it.",
        AttemptReason::FreshStart => {
            "earlier attempts failed, and you start over. Try something else."
        }
    }
}

/// The last iterations should leave work that can be continued.
pub fn limit_near(iteration: u32, max: Option<u32>) -> Option<String> {
    let left = max?.saturating_sub(iteration);
    match left {
        0 => Some(
            "This is the last iteration of this run: leave the work tree in order, and hand off."
                .to_owned(),
        ),
        left if left < FEW => {
            Some(format!("The run's limit is near: {left} more after this iteration."))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_told_when_it_is_near() {
        assert!(limit_near(50, Some(50)).unwrap().contains("last iteration"));
        assert!(limit_near(48, Some(50)).unwrap().contains(": 2 more"));
        assert_eq!(limit_near(47, Some(50)), None);
        assert_eq!(limit_near(1, None), None);
        assert!(limit_near(60, Some(50)).unwrap().contains("last iteration"));
    }

    #[test]
    fn every_reason_is_told_in_its_own_words() {
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
            let alike = all.iter().take(at).filter(|other| told(**other) == told(*why));
            assert_eq!(alike.count(), 0, "{why:?}");
        }
    }
}
