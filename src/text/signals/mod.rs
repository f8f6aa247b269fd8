//! Signals in an agent's text: claim, promise, escalation, hand-off.
//!
//! Defines their grammar and where in a text they are valid. Reads only the agent's prose, no tool
//! output and no files, and decides nothing. An unclear claim or promise is ignored; an unclear
//! escalation or hand-off counts.

mod block;
mod claim;
mod markdown;
mod retraction;
#[cfg(test)]
mod tests;

use crate::model::{AgentSignals, CompletionMarkers, StoryId};

use block::{find_tag_start, parse_escalation, parse_handoff, starts_with_tag};
pub use claim::ticks_task_complete;
use claim::{ClaimLine, is_claimed_by, is_marker, promises_all, read_claim};
use markdown::{LineRole, MarkdownState, without_leading};
use retraction::{retracts_marker, retracts_story};

/// The most that is kept of one line, and of one block.
const LIMIT: usize = 64 * 1024;
/// The longest marker, in characters.
const LONGEST_MARKER: usize = 200;
/// The most other stories' ids to report.
const MAX_OTHERS: usize = 16;

/// Finds the signals in a stream of messages, in bounded memory.
///
/// Chunking makes no difference; the end of a message does, because it closes whatever is
/// open.
pub struct Scanner {
    story: StoryId,
    markers: CompletionMarkers,
    /// How many of the stages were reached before.
    reached: usize,
    pending: Bounded,
    /// The last line ended in a carriage return, which may be half of an ending.
    after_return: bool,
    markdown: MarkdownState,
    /// A block that is open, and its text.
    block: Option<(BlockKind, Bounded)>,
    signals: AgentSignals,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BlockKind {
    Escalation,
    Handoff,
}

impl BlockKind {
    /// The starts of its opening and closing tags.
    fn tags(self) -> (&'static str, &'static str) {
        match self {
            Self::Escalation => ("<escalate", "</escalate"),
            Self::Handoff => ("<handoff", "</handoff"),
        }
    }

    /// Its tag at the start of a line, indented by less than a code block.
    fn opened_by(line: &str) -> Option<Self> {
        let tag = line.trim_start_matches(' ');
        let is_opened = |kind: &Self| starts_with_tag(tag, kind.tags().0);
        let opened = [Self::Escalation, Self::Handoff].into_iter().find(is_opened);
        opened.filter(|_| line.len() - tag.len() < 4)
    }
}

impl Scanner {
    /// Also finds these markers, after `reached` of their stages.
    pub fn new(story: &StoryId, markers: CompletionMarkers, reached: usize) -> Self {
        Self {
            story: story.clone(),
            markers,
            reached,
            pending: Bounded::default(),
            after_return: false,
            markdown: MarkdownState::default(),
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
        if !self.pending.text.is_empty() {
            self.complete_line("");
        }
        self.after_return = false;
        self.markdown = MarkdownState::default();
        self.close_block();
    }

    pub fn finish(mut self) -> AgentSignals {
        self.end_message();
        let stages = self.markers.stages.len();
        if stages > 0 {
            self.signals.stages_left = self.reached + self.signals.stages.len() < stages;
        }
        self.signals
    }

    fn complete_line(&mut self, tail: &str) {
        if self.pending.text.is_empty() && tail.len() <= LIMIT {
            return self.read(tail, true);
        }
        let mut line = std::mem::take(&mut self.pending);
        line.push(tail);
        self.read(&line.text, !line.overflowed);
        // The buffer is used again.
        line.text.clear();
        self.pending = Bounded { text: line.text, overflowed: false };
    }

    fn read(&mut self, line: &str, whole: bool) {
        if let Some(kind) = self.block.as_ref().map(|(kind, _)| *kind) {
            // An unclosed hand-off must not hide a question.
            let asks = BlockKind::opened_by(line) == Some(BlockKind::Escalation);
            if kind == BlockKind::Escalation || !asks {
                return self.read_in_block(kind, line);
            }
            self.close_block();
        }
        let is_prose = matches!(self.markdown, MarkdownState::Prose);
        let opened = BlockKind::opened_by(line).filter(|_| whole && is_prose);
        if let Some(kind) = opened {
            self.block = Some((kind, Bounded::default()));
            self.read_in_block(kind, line.trim_start());
        } else {
            match self.markdown.enter(line) {
                LineRole::Prose if whole => self.read_prose(line),
                LineRole::WithComment(visible) if whole => self.read_retraction(&visible),
                _ => {}
            }
        }
    }

    fn read_in_block(&mut self, kind: BlockKind, line: &str) {
        let close = find_tag_start(line, kind.tags().1);
        let inside = close.and_then(|at| line.get(..at)).unwrap_or(line);
        if let Some((_, text)) = &mut self.block {
            text.push(inside);
            text.push("\n");
        }
        if close.is_some() {
            self.close_block();
        }
    }

    /// The first question counts, because later ones were written before its answer. Of hand-offs
    /// the last counts.
    fn close_block(&mut self) {
        let Some((kind, Bounded { text, .. })) = self.block.take() else { return };
        match kind {
            BlockKind::Escalation => {
                self.signals.escalation.get_or_insert_with(|| parse_escalation(&text));
            }
            BlockKind::Handoff => self.signals.handoff = Some(parse_handoff(&text)),
        }
    }

    fn read_prose(&mut self, line: &str) {
        if self.reaches_stage(line) {
            return;
        }
        if self.markers.stages.is_empty() && is_claimed_by(&self.markers, line) {
            self.signals.claims_story = true;
        } else if let Some(claim) = read_claim(line) {
            self.take_claim(&claim);
        } else if promises_all(line) {
            self.signals.promises_all = true;
        } else {
            self.read_retraction(line);
        }
    }

    /// In order.
    fn reaches_stage(&mut self, line: &str) -> bool {
        let stages = &self.markers.stages;
        let next = self.reached + self.signals.stages.len();
        let Some(stage) = stages.get(next).filter(|stage| is_marker(line, stage)) else {
            return false;
        };
        self.signals.stages.push(stage.clone());
        self.signals.claims_story = next + 1 == stages.len();
        true
    }

    fn take_claim(&mut self, claim: &ClaimLine<'_>) {
        let others = &mut self.signals.claims_others;
        // `Task list complete` names no story, `Task [list] complete` does.
        let is_word = claim.id.bytes().all(|b| b.is_ascii_alphabetic());
        if claim.id.eq_ignore_ascii_case(self.story.as_str()) {
            self.signals.claims_story |= self.markers.stages.is_empty();
        } else if (claim.wrapped || !is_word)
            && others.len() < MAX_OTHERS
            && !others.iter().any(|known| known.eq_ignore_ascii_case(claim.id))
            && StoryId::try_from(claim.id).is_ok()
        {
            others.push(claim.id.to_owned());
        }
    }

    fn read_retraction(&mut self, line: &str) {
        if self.signals.claims_story && retracts_story(line, self.story.as_str()) {
            self.signals.claims_story = false;
            // The last stage is the claim.
            self.signals.stages.pop();
        }
        let signals = &self.markers.signals;
        if self.signals.claims_story && signals.iter().any(|signal| retracts_marker(line, signal)) {
            self.signals.claims_story = false;
        }
        let is_retracted = |stage: &String| retracts_marker(line, stage);
        if let Some(at) = self.signals.stages.iter().position(is_retracted) {
            self.signals.stages.truncate(at);
            self.signals.claims_story = false;
        }
    }

    #[cfg(test)]
    pub(super) fn buffered(&self) -> usize {
        self.pending.text.capacity()
            + self.block.as_ref().map_or(0, |(_, block)| block.text.capacity())
    }
}

/// A text that is cut at `LIMIT`.
#[derive(Debug, Default)]
struct Bounded {
    text: String,
    overflowed: bool,
}

impl Bounded {
    fn push(&mut self, more: &str) {
        // After a cut nothing may follow, or the result would depend on chunking.
        if self.overflowed {
            return;
        }
        let room = LIMIT - self.text.len();
        let fits = more.get(..more.floor_char_boundary(room)).unwrap_or_default();
        self.overflowed = fits.len() < more.len();
        let needed = self.text.len() + fits.len();
        if needed > self.text.capacity() {
            // Doubling past the limit would waste half the buffer.
            let grown = (self.text.capacity() * 2).clamp(needed, LIMIT);
            self.text.reserve_exact(grown - self.text.len());
        }
        self.text.push_str(fits);
    }
}

/// A line that the scanner would find as a marker.
pub fn can_be_a_line(line: &str) -> bool {
    let signals = vec![line.to_owned()];
    let markers = CompletionMarkers { signals, ..CompletionMarkers::default() };
    can_be_a_marker(line, without_leading(line)) && claims(markers, line)
}

/// A text that the scanner would find in a `<promise>`.
pub fn can_be_promised(word: &str) -> bool {
    let promise = Some(word.to_owned());
    let markers = CompletionMarkers { promise, ..CompletionMarkers::default() };
    can_be_a_marker(word, word) && claims(markers, &format!("<promise>{word}</promise>"))
}

/// It is one line, not too long, and `content` has letters or digits.
fn can_be_a_marker(marker: &str, content: &str) -> bool {
    marker.chars().count() <= LONGEST_MARKER
        && !marker.contains(['\n', '\r'])
        && content.contains(char::is_alphanumeric)
}

fn claims(markers: CompletionMarkers, line: &str) -> bool {
    // Not a story's id, so that only the marker itself can match.
    let Ok(no_story) = StoryId::try_from("0") else { return false };
    let mut scanner = Scanner::new(&no_story, markers, 0);
    scanner.push(line);
    scanner.finish().claims_story
}
