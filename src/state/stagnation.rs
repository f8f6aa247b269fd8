//! A story without progress: the counters, and the warning for the next agent.
//!
//! Stagnation belongs to one story. It becomes a question; other stories continue.

use std::collections::VecDeque;

use crate::model::{AttemptEnded, Footprint, Verdict};
use crate::text::similarity::ALIKE;

/// Iterations in a row that change nothing: the next agent is warned, then the human is asked.
const UNCHANGED_WARNING: u32 = 2;
pub const UNCHANGED: u32 = 3;
/// Repeated final texts in a row; the first is a warning.
pub const ALIKE_IN_A_ROW: u32 = 2;
/// Iterations in a row that touch only tests: a warning; the next is a question.
pub const ONLY_TESTS_WARNING: u32 = 3;
/// Two alternating errors: A-B-A-B.
const SHORTEST_ALTERNATION: usize = 4;
/// Final texts and errors kept per story.
const TEXTS: usize = 5;
const ERRORS: usize = 32;
/// Shorter texts are too similar by chance.
const SIGNIFICANT: usize = 80;

/// Counters since the human's last action.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stagnation {
    /// Fingerprints of the errors since the last progress, oldest first.
    errors: Vec<String>,
    pub unchanged: u32,
    pub alike: u32,
    pub only_tests: u32,
    /// The final texts of the last attempts.
    pub said: VecDeque<String>,
}

impl Stagnation {
    pub fn ended(&mut self, end: &AttemptEnded) {
        if !end.verdict.is_about_the_work() {
            return;
        }
        let footprint = &end.footprint;
        match footprint.changed {
            Some(true) => self.unchanged = 0,
            Some(false) => self.unchanged += 1,
            // A claim counts when it is decided.
            None if end.verdict == Verdict::Done => {}
            None => self.unchanged = 0,
        }
        if footprint.changed == Some(true) {
            self.only_tests = if footprint.only_tests { self.only_tests + 1 } else { 0 };
        }
        self.compare_text(footprint);
        if matches!(end.verdict, Verdict::Progress | Verdict::Escalated { .. }) {
            self.errors.clear();
        }
    }

    /// A commit is progress, however similar the texts are; and short texts count only if nothing
    /// changed.
    fn compare_text(&mut self, new: &Footprint) {
        if new.said.is_empty() {
            return;
        }
        let counts = new.changed == Some(false) || new.said.chars().count() >= SIGNIFICANT;
        let is_loop = new.likeness >= ALIKE && !new.committed && counts;
        self.alike = if is_loop { self.alike + 1 } else { 0 };
        self.said.push_back(new.said.clone());
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

    /// How often the last error occurred, in a row and in total.
    pub fn repeated(&self) -> (u32, u32) {
        let Some(last) = self.errors.last() else { return (0, 0) };
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let in_a_row = self.errors.iter().rev().take_while(|error| *error == last).count();
        (count(in_a_row), count(self.errors.iter().filter(|error| *error == last).count()))
    }

    /// The last errors alternate between two, `often` times.
    pub fn alternates(&self, often: u32) -> bool {
        let often = usize::try_from(often.saturating_sub(1)).unwrap_or(usize::MAX);
        let length = often.saturating_mul(2).max(SHORTEST_ALTERNATION);
        let tail: Vec<&String> = self.errors.iter().rev().take(length).collect();
        let (Some(a), Some(b)) = (tail.first(), tail.get(1)) else { return false };
        let mut pairs = tail.iter().zip([a, b].into_iter().cycle());
        tail.len() == length && a != b && pairs.all(|(error, in_turn)| error == in_turn)
    }

    /// A warning for the next agent.
    pub fn remark(&self) -> Option<String> {
        if self.unchanged >= UNCHANGED_WARNING {
            let times = self.unchanged;
            return Some(format!(
                "The last {times} iterations changed nothing: no file, no commit. Make a change \
                 that advances the story, or escalate. If it happens again, ralph asks the human."
            ));
        }
        if self.alike > 0 {
            return Some(
                "The last attempt ended with the same text as an earlier one: that is a loop. Do \
                 something else this time, or escalate. If it happens again, ralph asks the human."
                    .to_owned(),
            );
        }
        (self.only_tests >= ONLY_TESTS_WARNING).then(|| {
            let times = self.only_tests;
            format!(
                "The last {times} iterations touched only tests. Work on the code that they test, \
                 or escalate. If it happens again, ralph asks the human."
            )
        })
    }
}
