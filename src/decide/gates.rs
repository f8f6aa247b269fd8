//! Which gates a claim must pass.

use std::collections::BTreeMap;

use crate::model::{Backlog, Gate, Recheck, StoryId};

/// The gates of a run, as of its start.
#[derive(Clone, Debug, Default)]
pub struct Gates {
    /// For every story.
    pub all: Vec<Gate>,
    pub of: BTreeMap<StoryId, Vec<Gate>>,
    pub recheck: Recheck,
    /// Do not run them: a dry run has no code to check.
    pub dry: bool,
}

/// A gate that a claim must pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Due<'a> {
    pub gate: &'a Gate,
    /// The closed story that it is run again for.
    pub guards: Option<&'a StoryId>,
}

impl Gates {
    pub fn is_empty(&self) -> bool {
        self.all.is_empty() && self.of.values().all(Vec::is_empty)
    }

    pub fn of_story(&self, story: &StoryId) -> &[Gate] {
        self.of.get(story).map_or(&[], Vec::as_slice)
    }

    /// The gates for a story's claim: its own first, each once.
    pub fn due(&self, story: &StoryId, backlog: &Backlog) -> Vec<Due<'_>> {
        if self.dry {
            return Vec::new();
        }
        let own = self.all.iter().chain(self.of_story(story));
        let mut due: Vec<Due<'_>> = Vec::new();
        let mut add = |gate, guards| {
            if !due.iter().any(|other| other.gate == gate) {
                due.push(Due { gate, guards });
            }
        };
        own.for_each(|gate| add(gate, None));
        let closed = backlog.stories.iter().filter(|other| other.passes && other.id != *story);
        for other in closed.filter(|_| self.recheck == Recheck::All) {
            let Some((id, gates)) = self.of.get_key_value(&other.id) else { continue };
            gates.iter().for_each(|gate| add(gate, Some(id)));
        }
        due
    }
}
