//! Why an attempt is made, in words for the agent.

use crate::core::why::Why;

/// From so few iterations on, the agent is told that the run ends soon.
const FEW: u32 = 3;

pub fn told(why: Why) -> &'static str {
    match why {
        Why::FirstTry => "this is the first try at this story.",
        Why::Incomplete => "the one before you got on and did not finish. Go on where it left off.",
        Why::GateFailed => {
            "the one before you claimed to be done, and a check failed. Make it pass for real."
        }
        Why::ClaimRejected => {
            "the one before you claimed to be done, and it could not be accepted, for the reason below."
        }
        Why::SecondLook => {
            "the one before you says that it is done. Look at it again with fresh eyes, criterion by \
             criterion; mend what is missing; if all of it is true, say so."
        }
        Why::HumanGuidance => "the human answered. Follow the guidance below.",
        Why::HumanRetry => "the human wants it tried again.",
        Why::Recovery => {
            "the one before you was cut off. Look at what it left before you go on; nobody checked it."
        }
        Why::AfterError => "the one before you failed. Find out why before you try again.",
        Why::AfterServiceTrouble => {
            "the one before you was ended by a limit or an outage, not by the story. Go on."
        }
        Why::PromptTooLong => "the last prompt was too long; this one has less in it.",
        Why::FreshStart => {
            "earlier attempts did not work out, and you start over. Try something else."
        }
    }
}

/// The last iterations should leave something that can be gone on from.
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
            Why::FirstTry,
            Why::Incomplete,
            Why::GateFailed,
            Why::ClaimRejected,
            Why::SecondLook,
            Why::HumanGuidance,
            Why::HumanRetry,
            Why::Recovery,
            Why::AfterError,
            Why::AfterServiceTrouble,
            Why::PromptTooLong,
            Why::FreshStart,
        ];
        for (at, why) in all.iter().enumerate() {
            let alike = all.iter().take(at).filter(|other| told(**other) == told(*why));
            assert_eq!(alike.count(), 0, "{why:?}");
        }
    }
}
