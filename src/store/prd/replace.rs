//! Another text for PRD.json as a whole: the version before a change, or a change that is accepted.

use crate::model::{Backlog, Story, StoryId};

use super::edit::{EditResult, Mark, StorySpans, apply};
use super::tracked::marks_of;
use super::{MarkedText, TrackedPrd, WrittenText};

/// A valid text of these stories with the wanted `passes` and `skipped`.
pub fn text_with_marks(
    text: &str,
    stories: &[Story],
    wanted: impl Fn(&StoryId) -> (bool, bool),
) -> EditResult<String> {
    let spans = StorySpans::of(text)?;
    let mut edits = Vec::new();
    for (place, story) in stories.iter().enumerate() {
        let (passes, skipped) = wanted(&story.id);
        if (story.passes, story.skipped) != (passes, skipped) {
            let marks = [Mark::Passes(passes), Mark::Skipped(skipped)];
            edits.extend(spans.edits(text, (place, &story.id), &marks)?);
        }
    }
    Ok(apply(text, &edits))
}

impl TrackedPrd {
    pub fn text(&self) -> &str {
        &self.text
    }

    /// To be written instead of the known text.
    pub fn other_text(&self, text: &str) -> MarkedText {
        let mut other = self.with(Vec::new(), Vec::new());
        other.text = text.into();
        other
    }

    /// The file has this other text now, which says this.
    pub fn take_replaced(&mut self, written: WrittenText, backlog: &Backlog) {
        self.take_written(written);
        self.forget_spans();
        self.marks = marks_of(backlog);
    }
}
