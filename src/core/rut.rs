//! A story that gets nowhere: what shows it, what the next agent is told, what the human is asked.
//!
//! A rut belongs to a story. It ends the work on this one, with a question; the others go on.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::backlog::Story;
use super::event::AttemptEnded;
use super::likeness::ALIKE;
use super::policy::Policy;
use super::signal::{Escalation, EscalationKind};
use super::state::{StoryState, Tried};
use super::text::{shorten, visible_line};
use super::verdict::Verdict;

/// Iterations in a row that change nothing: so many are told, so many are a question.
const UNCHANGED_IS_TOLD: u32 = 2;
const UNCHANGED: u32 = 3;
/// Final texts in a row that were said before: the first is told.
const ALIKE_IN_A_ROW: u32 = 2;
/// Iterations in a row that touch tests only: so many are told, the next is a question.
const ONLY_TESTS_IS_TOLD: u32 = 3;
/// The second time it was already shortened.
const TOO_LONG: u32 = 2;
/// Two errors in turn: A-B-A-B.
const SHORTEST_ALTERNATION: usize = 4;
/// How many final texts of a story are remembered, and how many errors.
const TEXTS: usize = 5;
const ERRORS: usize = 32;
/// A text of fewer characters is like many others.
const TELLING: usize = 80;
const MOST_TRIED: usize = 10;
const LONGEST_ERROR: usize = 300;

/// What an attempt left that tells a rut from progress.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Traces {
    /// Tree, branch or story differ from before it. None: nobody looked.
    #[serde(default)]
    pub changed: Option<bool>,
    /// The branch has new commits.
    #[serde(default)]
    pub committed: bool,
    /// What it changed is tests, all of it.
    #[serde(default)]
    pub only_tests: bool,
    /// The end of its final text as `likeness` compares it.
    #[serde(default)]
    pub said: String,
    /// How much that is like the most similar of the story's last five, from 0 to 1.
    #[serde(default)]
    pub likeness: f64,
}

/// What speaks for a rut so far, since the human last had a say.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Signs {
    /// Fingerprints of the errors since an attempt got on, oldest first.
    errors: Vec<String>,
    unchanged: u32,
    alike: u32,
    only_tests: u32,
    /// The final texts of the last attempts.
    pub said: VecDeque<String>,
}

impl Signs {
    pub fn ended(&mut self, end: &AttemptEnded) {
        if matches!(
            end.verdict,
            Verdict::Interrupted | Verdict::NotTheStory { .. } | Verdict::PromptTooLong { .. }
        ) {
            return;
        }
        let traces = &end.traces;
        match traces.changed {
            Some(true) => self.unchanged = 0,
            Some(false) => self.unchanged += 1,
            // Of a claim, what becomes of it tells.
            None if end.verdict == Verdict::Done => {}
            None => self.unchanged = 0,
        }
        match (traces.changed, traces.only_tests) {
            (Some(true), true) => self.only_tests += 1,
            (Some(true), false) => self.only_tests = 0,
            _ => {}
        }
        self.hear(traces);
        if matches!(end.verdict, Verdict::Progress | Verdict::Escalated { .. }) {
            self.errors.clear();
        }
    }

    /// Whoever commits gets on, however much alike the summaries are; and a few words say little
    /// where files changed.
    fn hear(&mut self, traces: &Traces) {
        if traces.said.is_empty() {
            return;
        }
        let tells = traces.changed == Some(false) || traces.said.chars().count() >= TELLING;
        let is_loop = traces.likeness >= ALIKE && !traces.committed && tells;
        self.alike = if is_loop { self.alike + 1 } else { 0 };
        self.said.push_back(traces.said.clone());
        if self.said.len() > TEXTS {
            self.said.pop_front();
        }
    }

    pub fn failed(&mut self, fingerprint: &str) {
        self.errors.push(fingerprint.to_owned());
        if self.errors.len() > ERRORS {
            self.errors.remove(0);
        }
    }

    /// A claim of an attempt that nobody had looked at turned out to have nothing to show.
    pub fn had_nothing_to_show(&mut self) {
        self.unchanged += 1;
    }

    /// How often the last error came, in a row and in all.
    fn repeated(&self) -> (u32, u32) {
        let Some(last) = self.errors.last() else { return (0, 0) };
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let in_a_row = self.errors.iter().rev().take_while(|error| *error == last).count();
        (count(in_a_row), count(self.errors.iter().filter(|error| *error == last).count()))
    }

    /// The last errors are two in turn, as often as `often` of one would be.
    fn alternates(&self, often: u32) -> bool {
        let often = usize::try_from(often.saturating_sub(1)).unwrap_or(usize::MAX);
        let length = often.saturating_mul(2).max(SHORTEST_ALTERNATION);
        let tail: Vec<&String> = self.errors.iter().rev().take(length).collect();
        let (Some(a), Some(b)) = (tail.first(), tail.get(1)) else { return false };
        let in_turn =
            |(place, error): (usize, &&String)| error == if place % 2 == 0 { a } else { b };
        tail.len() == length && a != b && tail.iter().enumerate().all(in_turn)
    }

    /// What the next agent should know before it does the same again.
    pub fn remark(&self) -> Option<String> {
        if self.unchanged >= UNCHANGED_IS_TOLD {
            let times = self.unchanged;
            return Some(format!(
                "The last {times} iterations changed nothing: no file, no commit. Change something \
                 that brings the story on, or escalate; another one like them, and a human is asked."
            ));
        }
        if self.alike > 0 {
            return Some(
                "The last attempt ended with the same text as one before it: that is a loop. Do \
                 something else this time, or escalate; once more, and a human is asked."
                    .to_owned(),
            );
        }
        (self.only_tests >= ONLY_TESTS_IS_TOLD).then(|| {
            let times = self.only_tests;
            format!(
                "The last {times} iterations touched tests only. Work on the code that they test, \
                 or escalate; once more, and a human is asked."
            )
        })
    }
}

/// The driver's own question about a story that gets nowhere.
pub fn question(story: &Story, known: &StoryState, policy: &Policy) -> Option<Escalation> {
    let summary = summary(story, known, policy)?;
    let options = [
        "Try a different approach; do not repeat what did not work",
        "Find the cause first and fix that, then go on with the story",
        "Do the part of the story that is possible, and say what is missing",
    ];
    Some(Escalation {
        kind: EscalationKind::Rut,
        summary,
        context: context(known),
        options: options.map(str::to_owned).to_vec(),
        question: format!("How should {} go on?", story.id),
        unread: None,
    })
}

fn summary(story: &Story, known: &StoryState, policy: &Policy) -> Option<String> {
    let signs = &known.signs;
    let error = known.last_error.as_deref().unwrap_or_default();
    let often = policy.stuck_threshold.get();
    let (in_a_row, in_all) = signs.repeated();
    let most = story.max_attempts.unwrap_or(policy.max_attempts).get();
    Some(if in_a_row >= often {
        format!("the same error {in_a_row} times in a row: {error}")
    } else if in_all >= often {
        format!("the same error {in_all} times: {error}")
    } else if signs.alternates(often) {
        format!("the same two errors in turn, now again: {error}")
    } else if signs.unchanged >= UNCHANGED {
        format!("{} iterations in a row changed nothing", signs.unchanged)
    } else if signs.alike >= ALIKE_IN_A_ROW {
        "the agents end with the same text again and again, without a commit".to_owned()
    } else if signs.only_tests > ONLY_TESTS_IS_TOLD {
        format!("{} iterations in a row touched tests only", signs.only_tests)
    } else if known.too_long >= TOO_LONG {
        format!("the prompt is too long for the agent: {error}")
    } else if known.tries >= most {
        format!("{} attempts, and it is not complete", known.tries)
    } else {
        return None;
    })
}

/// What was tried, with the error in full.
fn context(known: &StoryState) -> String {
    let error = known.last_error.clone().unwrap_or_default();
    let all: Vec<&Tried> = known.tried.iter().chain(&known.row).collect();
    if all.len() < 2 {
        return error;
    }
    let shown = all.iter().skip(all.len().saturating_sub(MOST_TRIED));
    let lines: Vec<String> = shown.map(|tried| line(tried)).collect();
    format!("{}\n\nWhat was tried:\n{}", error.trim_end(), lines.join("\n")).trim().to_owned()
}

fn line(tried: &Tried) -> String {
    let error = shorten(&visible_line(&tried.error), LONGEST_ERROR);
    match (&tried.reference, &tried.changes) {
        (Some(reference), Some(changes)) => format!("- {error} ({reference}, {changes})"),
        (Some(reference), None) => format!("- {error} ({reference})"),
        (None, _) => format!("- {error} (nothing was changed)"),
    }
}

#[cfg(test)]
mod tests;
