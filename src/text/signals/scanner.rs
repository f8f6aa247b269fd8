//! Reads a text as it arrives, line by line, and collects its signals.

use crate::model::{AgentSignals, CompletionMarkers, StoryId};

use super::bounded::{Bounded, LIMIT};
use super::claim::Claim;
use super::find::{find_tag_start, starts_with_tag};
use super::place::{Place, Standing};
use super::promise::is_promise;
use super::retraction::{takes_back, takes_back_sign};
use super::signs::{is_claimed_by, is_sign};
use super::{claim, escalation, handoff};

/// The most other stories' ids to report.
const MAX_OTHERS: usize = 16;

/// Finds the signals in a stream of messages, in bounded memory.
///
/// Chunking makes no difference; the end of a message does, because it closes whatever is
/// open.
#[derive(Debug)]
pub struct Scanner {
    story: StoryId,
    signs: CompletionMarkers,
    /// How many of the stages were reached before.
    reached: usize,
    pending: Bounded,
    /// The last line ended in a carriage return, which may be half of an ending.
    after_return: bool,
    place: Place,
    block: Option<Block>,
    signals: AgentSignals,
}

/// A block that is open.
#[derive(Debug)]
struct Block {
    kind: Kind,
    text: Bounded,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Escalation,
    Handoff,
}

impl Kind {
    fn tag(self) -> &'static str {
        match self {
            Self::Escalation => "<escalate",
            Self::Handoff => "<handoff",
        }
    }

    fn closing_tag(self) -> &'static str {
        match self {
            Self::Escalation => "</escalate",
            Self::Handoff => "</handoff",
        }
    }

    /// Its tag at the start of a line, indented by less than a code block.
    fn opened_by(line: &str) -> Option<Self> {
        let tag = line.trim_start_matches(' ');
        let opens = |kind: &Self| starts_with_tag(tag, kind.tag());
        [Self::Escalation, Self::Handoff]
            .into_iter()
            .find(|kind| line.len() - tag.len() < 4 && opens(kind))
    }
}

impl Scanner {
    pub fn new(story: &StoryId) -> Self {
        Self::listening(story, CompletionMarkers::default(), 0)
    }

    /// With completion markers, after `reached` of their stages.
    pub fn listening(story: &StoryId, signs: CompletionMarkers, reached: usize) -> Self {
        Self {
            story: story.clone(),
            signs,
            reached,
            pending: Bounded::default(),
            after_return: false,
            place: Place::default(),
            block: None,
            signals: AgentSignals::default(),
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

    pub fn finish(mut self) -> AgentSignals {
        self.end_message();
        let stages = self.signs.stages.len();
        if stages > 0 {
            self.signals.stages_left = self.reached + self.signals.stages.len() < stages;
        }
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
        if let Some(kind) = self.block.as_ref().map(|block| block.kind) {
            // An unclosed hand-off must not hide a question.
            let asks = Kind::opened_by(line) == Some(Kind::Escalation);
            if kind == Kind::Escalation || !asks {
                return self.read_in_block(kind, line);
            }
            self.close_block();
        }
        let opened = Kind::opened_by(line).filter(|_| whole && self.place.is_prose());
        if let Some(kind) = opened {
            self.block = Some(Block { kind, text: Bounded::default() });
            self.read_in_block(kind, line.trim_start());
        } else {
            match self.place.enter(line) {
                Standing::Prose if whole => self.read_prose(line),
                Standing::BesideComment(visible) if whole => self.read_retraction(&visible),
                _ => {}
            }
        }
    }

    fn read_in_block(&mut self, kind: Kind, line: &str) {
        let close = find_tag_start(line, kind.closing_tag());
        let inside = close.and_then(|at| line.get(..at)).unwrap_or(line);
        if let Some(block) = &mut self.block {
            block.text.push(inside);
            block.text.push("\n");
        }
        if close.is_some() {
            self.close_block();
        }
    }

    /// The first question counts, because later ones were written before its answer. Of hand-offs
    /// the last counts.
    fn close_block(&mut self) {
        let Some(block) = self.block.take() else { return };
        let text = block.text.text();
        match block.kind {
            Kind::Escalation => {
                self.signals.escalation.get_or_insert_with(|| escalation::parse(text));
            }
            Kind::Handoff => self.signals.handoff = Some(handoff::parse(text)),
        }
    }

    fn read_prose(&mut self, line: &str) {
        if self.reaches_stage(line) {
            return;
        }
        if self.signs.stages.is_empty() && is_claimed_by(&self.signs, line) {
            self.signals.claims_story = true;
        } else if let Some(claim) = claim::read(line) {
            self.take_claim(&claim);
        } else if is_promise(line) {
            self.signals.promises_all = true;
        } else {
            self.read_retraction(line);
        }
    }

    /// In order.
    fn reaches_stage(&mut self, line: &str) -> bool {
        let stages = &self.signs.stages;
        let next = self.reached + self.signals.stages.len();
        let Some(stage) = stages.get(next).filter(|stage| is_sign(line, stage)) else {
            return false;
        };
        self.signals.stages.push(stage.clone());
        self.signals.claims_story = next + 1 == stages.len();
        true
    }

    fn take_claim(&mut self, claim: &Claim<'_>) {
        let others = &mut self.signals.claims_others;
        if claim.id.eq_ignore_ascii_case(self.story.as_str()) {
            self.signals.claims_story |= self.signs.stages.is_empty();
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
            // The last stage is the claim.
            self.signals.stages.pop();
        }
        let signals = &self.signs.signals;
        if self.signals.claims_story && signals.iter().any(|sign| takes_back_sign(line, sign)) {
            self.signals.claims_story = false;
        }
        let is_taken_back = |stage: &String| takes_back_sign(line, stage);
        if let Some(at) = self.signals.stages.iter().position(is_taken_back) {
            self.signals.stages.truncate(at);
            self.signals.claims_story = false;
        }
    }

    #[cfg(test)]
    pub(super) fn buffered(&self) -> usize {
        self.pending.capacity() + self.block.as_ref().map_or(0, |block| block.text.capacity())
    }
}
