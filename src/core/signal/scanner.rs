//! Reads a text as it arrives, line by line, and collects its signals.

use super::bounded::{Bounded, LIMIT};
use super::claim::{self, Claim};
use super::find::{find_tag_start, starts_with_tag};
use super::place::{Place, Standing};
use super::promise::is_promise;
use super::retraction::takes_back;
use super::{Signals, escalation};
use crate::core::id::StoryId;

/// The most ids of other stories that are told to the human.
const MAX_OTHERS: usize = 16;

/// Finds the signals in a stream of messages, in bounded memory.
///
/// How the text is cut into pushes makes no difference; where a message ends
/// does, since nothing left open in one reaches into the next.
#[derive(Debug)]
pub struct Scanner {
    story: StoryId,
    pending: Bounded,
    /// The last line ended in a carriage return, which may be half of an ending.
    after_return: bool,
    place: Place,
    block: Option<Bounded>,
    signals: Signals,
}

impl Scanner {
    pub fn new(story: &StoryId) -> Self {
        Self {
            story: story.clone(),
            pending: Bounded::default(),
            after_return: false,
            place: Place::default(),
            block: None,
            signals: Signals::default(),
        }
    }

    pub fn push(&mut self, text: &str) {
        let mut rest = text;
        while !rest.is_empty() {
            if std::mem::take(&mut self.after_return) {
                rest = rest.strip_prefix('\n').unwrap_or(rest);
            }
            let end = rest.bytes().position(|b| matches!(b, b'\n' | b'\r'));
            let Some((line, ending)) = end.and_then(|end| rest.split_at_checked(end)) else {
                self.pending.push(rest);
                return;
            };
            self.after_return = ending.starts_with('\r');
            self.complete_line(line);
            rest = ending.get(1..).unwrap_or_default();
        }
    }

    /// The pending line is complete, and nothing stays open.
    pub fn end_message(&mut self) {
        if !self.pending.is_empty() {
            self.complete_line("");
        }
        self.after_return = false;
        self.place = Place::default();
        self.close_block();
    }

    pub fn finish(mut self) -> Signals {
        self.end_message();
        self.signals
    }

    fn complete_line(&mut self, tail: &str) {
        if self.pending.is_empty() && tail.len() <= LIMIT {
            return self.read(tail, true);
        }
        let mut line = std::mem::take(&mut self.pending);
        line.push(tail);
        self.read(line.text(), line.is_whole());
        line.clear();
        self.pending = line;
    }

    fn read(&mut self, line: &str, whole: bool) {
        if self.block.is_some() {
            self.read_in_block(line);
        } else if whole && self.place.is_prose() && opens_block(line) {
            self.block = Some(Bounded::default());
            self.read_in_block(line.trim_start());
        } else {
            match self.place.enter(line) {
                Standing::Prose if whole => self.read_prose(line),
                Standing::BesideComment(visible) if whole => self.read_retraction(&visible),
                _ => {}
            }
        }
    }

    fn read_in_block(&mut self, line: &str) {
        let close = find_tag_start(line, "</escalate");
        let inside = close.and_then(|at| line.get(..at)).unwrap_or(line);
        if let Some(block) = &mut self.block {
            block.push(inside);
            block.push("\n");
        }
        if close.is_some() {
            self.close_block();
        }
    }

    /// The first block counts: later ones were written before it was answered.
    fn close_block(&mut self) {
        if let Some(block) = self.block.take() {
            self.signals.escalation.get_or_insert_with(|| escalation::parse(block.text()));
        }
    }

    fn read_prose(&mut self, line: &str) {
        if let Some(claim) = claim::read(line) {
            self.take_claim(&claim);
        } else if is_promise(line) {
            self.signals.promises_all = true;
        } else {
            self.read_retraction(line);
        }
    }

    fn take_claim(&mut self, claim: &Claim<'_>) {
        let others = &mut self.signals.claims_others;
        if claim.id.eq_ignore_ascii_case(self.story.as_str()) {
            self.signals.claims_story = true;
        } else if claim.surely_names_a_story()
            && others.len() < MAX_OTHERS
            && !others.iter().any(|known| known.eq_ignore_ascii_case(claim.id))
            && StoryId::try_from(claim.id).is_ok()
        {
            others.push(claim.id.to_owned());
        }
    }

    fn read_retraction(&mut self, line: &str) {
        if self.signals.claims_story && takes_back(line, self.story.as_str()) {
            self.signals.claims_story = false;
        }
    }

    #[cfg(test)]
    pub(super) fn buffered(&self) -> usize {
        self.pending.capacity() + self.block.as_ref().map_or(0, Bounded::capacity)
    }
}

/// `<escalate` at the start of a line, indented by less than a code block.
fn opens_block(line: &str) -> bool {
    let tag = line.trim_start_matches(' ');
    line.len() - tag.len() < 4 && starts_with_tag(tag, "<escalate")
}
