//! From what is known to what an agent is told: the one way to a prompt.

use super::backlog::{Backlog, Story};
use super::handoff::Changes;
use super::memory::{Bounds, Memory};
use super::prompt::{Continuation, Contract, Layer, Prompt, Standing};
use super::signal::Signs;
use super::state::{RunState, StoryState};

/// Everything that a prompt is made of.
pub struct Briefing<'a> {
    pub state: &'a RunState,
    pub backlog: &'a Backlog,
    pub story: &'a Story,
    /// PROMPT.md.
    pub instructions: &'a str,
    pub max_iterations: Option<u32>,
    /// The story's, or the run's.
    pub signs: &'a Signs,
    pub limits: &'a Bounds,
    /// The end of the agents' own notes.
    pub notes: Option<&'a str>,
    /// What the story changed so far.
    pub changes: &'a Changes,
}

impl Briefing<'_> {
    pub fn layers(&self) -> Vec<Layer> {
        let none = StoryState::default();
        let known = self.state.story(&self.story.id).unwrap_or(&none);
        // What ralph adds is what can be left out when it was too much.
        let whole = known.too_long == 0;
        let forgotten = Memory::default();
        let remark = known.signs.remark().filter(|_| whole);
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
            iteration: self.state.iterations + 1,
            max_iterations: self.max_iterations,
            attempt: known.attempts + 1,
            stories_done: self.backlog.done(),
            stories: self.backlog.stories.len(),
            remaining: self.backlog.remaining(),
            why: known.why,
            last_error: known.last_error.as_deref().filter(|_| whole),
            work_in_tree: known.base.is_some(),
            kept_at: known.does_not_fit.as_deref().filter(|_| whole),
            remark: None,
            reminder: known.reminder.as_deref(),
            tried: if whole { &known.tried } else { &[] },
        }
    }

    /// None when nobody was there before.
    fn continuation<'a>(&'a self, known: &'a StoryState) -> Option<Continuation<'a>> {
        let begun = known.attempts > 0 || known.base.is_some() || known.handoff.is_some();
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
