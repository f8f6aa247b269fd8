//! Builds every prompt from the state.

use crate::decide::prompt::{Continuation, Contract, Layer, Prompt, Standing};
use crate::model::{Backlog, Changes, CompletionMarkers, MemoryLimits, Story};
use crate::state::{Memory, RunState, StoryState};

/// The input of a prompt.
pub struct Briefing<'a> {
    pub state: &'a RunState,
    pub backlog: &'a Backlog,
    pub story: &'a Story,
    /// PROMPT.md.
    pub instructions: &'a str,
    pub max_iterations: Option<u32>,
    /// The story's or the run's.
    pub signs: &'a CompletionMarkers,
    pub limits: &'a MemoryLimits,
    /// The end of the agents' own notes.
    pub notes: Option<&'a str>,
    /// What the story changed so far.
    pub changes: &'a Changes,
}

impl Briefing<'_> {
    pub fn layers(&self) -> Vec<Layer> {
        let none = StoryState::default();
        let known = self.state.story(&self.story.id).unwrap_or(&none);
        // If the last prompt was too long, ralph's additions are left out.
        let whole = known.too_long == 0;
        let forgotten = Memory::default();
        let remark = known.stagnation.remark().filter(|_| whole);
        Prompt {
            instructions: self.instructions,
            story: self.story,
            standing: Standing { remark: remark.as_deref(), ..self.standing(known, whole) },
            continuation: self.continuation(known).filter(|_| whole),
            memory: if whole { &self.state.memory } else { &forgotten },
            limits: self.limits,
            notes: self.notes.filter(|_| whole),
            guidance: &known.guidance,
            contract: Contract { signs: self.signs, reached: self.signs.reached(&known.stages) },
        }
        .layers()
    }

    fn standing<'a>(&'a self, known: &'a StoryState, whole: bool) -> Standing<'a> {
        Standing {
            iteration: self.state.attempts.next_iteration(),
            max_iterations: self.max_iterations,
            attempt: known.totals.attempts + 1,
            stories_done: self.backlog.done(),
            stories: self.backlog.stories.len(),
            remaining: self.backlog.remaining(),
            why: known.why,
            last_error: known.last_error.as_deref().filter(|_| whole),
            work_in_tree: known.base().is_some(),
            kept_at: known.work.conflicting().map(String::as_str).filter(|_| whole),
            remark: None,
            reminder: known.reminder.as_deref(),
            tried: if whole { &known.failed_before } else { &[] },
        }
    }

    /// None before the first attempt.
    fn continuation<'a>(&'a self, known: &'a StoryState) -> Option<Continuation<'a>> {
        let begun = known.totals.attempts > 0 || known.base().is_some() || known.handoff.is_some();
        let reached = self.signs.reached(&known.stages);
        let (stages_reached, stages_left) = self.signs.stages.split_at_checked(reached)?;
        begun.then_some(Continuation {
            why: known.why,
            handoff: known.handoff.as_ref(),
            triggers: &known.triggers,
            context: known.context,
            stages_reached,
            stages_left,
            changes: self.changes,
        })
    }
}
