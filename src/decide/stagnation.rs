//! The question about a story without progress.

use crate::model::{Escalation, EscalationKind, Policy, Story, shorten, visible_line};
use crate::state::{ALIKE_IN_A_ROW, FailedAttempt, ONLY_TESTS_WARNING, StoryState, UNCHANGED};

/// The second prompt was already shortened.
const TOO_LONG: u32 = 2;

const MOST_TRIED: usize = 10;

const LONGEST_ERROR: usize = 300;

/// The question about a story without progress.
pub fn question(story: &Story, known: &StoryState, policy: &Policy) -> Option<Escalation> {
    let summary = summary(story, known, policy)?;
    let options = [
        "Try a different approach; do not repeat what did not work",
        "Find the cause first and fix that, then continue the story",
        "Do the part of the story that is possible, and say what is missing",
    ];
    Some(Escalation {
        kind: EscalationKind::NoProgress,
        summary,
        context: context(known),
        options: options.map(str::to_owned).to_vec(),
        question: format!("How should {} continue?", story.id),
        unread: None,
    })
}

fn summary(story: &Story, known: &StoryState, policy: &Policy) -> Option<String> {
    let signs = &known.stagnation;
    let error = known.last_error.as_deref().unwrap_or_default();
    let often = policy.stuck_threshold.get();
    let (in_a_row, in_all) = signs.repeated();
    let most = story.max_attempts.unwrap_or(policy.max_attempts).get();
    Some(if in_a_row >= often {
        format!("the same error {in_a_row} times in a row: {error}")
    } else if in_all >= often {
        format!("the same error {in_all} times: {error}")
    } else if signs.alternates(often) {
        format!("two errors alternate; the latest: {error}")
    } else if signs.unchanged >= UNCHANGED {
        format!("{} iterations in a row changed nothing", signs.unchanged)
    } else if signs.alike >= ALIKE_IN_A_ROW {
        "the agents keep ending with the same text, without a commit".to_owned()
    } else if signs.only_tests > ONLY_TESTS_WARNING {
        format!("{} iterations in a row touched only tests", signs.only_tests)
    } else if known.too_long >= TOO_LONG {
        format!("the prompt is too long for the agent: {error}")
    } else if known.tries >= most {
        format!("not complete after {} attempts", known.tries)
    } else {
        return None;
    })
}

/// What was tried, with the error in full.
fn context(known: &StoryState) -> String {
    let error = known.last_error.clone().unwrap_or_default();
    let all: Vec<&FailedAttempt> = known.failed_before.iter().chain(&known.failed).collect();
    if all.len() < 2 {
        return error;
    }
    let shown = all.iter().skip(all.len().saturating_sub(MOST_TRIED));
    let lines: Vec<String> = shown.map(|tried| line(tried)).collect();
    format!("{}\n\nWhat was tried:\n{}", error.trim_end(), lines.join("\n")).trim().to_owned()
}

fn line(tried: &FailedAttempt) -> String {
    let error = shorten(&visible_line(&tried.error), LONGEST_ERROR);
    match (&tried.reference, &tried.changes) {
        (Some(reference), Some(changes)) => format!("- {error} ({reference}, {changes})"),
        (Some(reference), None) => format!("- {error} ({reference})"),
        (None, _) => format!("- {error} (nothing changed)"),
    }
}

#[cfg(test)]
mod tests;
