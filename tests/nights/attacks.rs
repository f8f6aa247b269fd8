//! What agents and gates do to the backlog while they run, and how it is taken back.

use ralph::model::{LaneId, StoryId};
use ralph::runner::RunnerError;
use ralph::runner::effects::GatesOf;
use ralph::runner::log::RunLog;
use ralph::state::Marks;

use super::dice::Dice;
use super::world::{Planned, World, seen, set_marks};

/// Who attacks, and how often; apart from everything else that is drawn, so that a night is the same
/// without them.
pub struct Malice {
    dice: Dice,
    /// Of a hundred attempts and gates.
    share: u32,
    pub count: u32,
}

/// Does nothing when it is over by then.
#[derive(Clone, Debug, PartialEq)]
pub enum Attacker {
    Attempt(String),
    Gates(GatesOf),
}

#[derive(Clone, Debug)]
pub enum Attack {
    Mark { story: StoryId, passes: bool, skipped: bool },
    MarkAll,
    Break,
}

impl Malice {
    pub fn draw(seed: u64) -> Self {
        let mut dice = Dice::new(!seed);
        let share = if dice.percent(50) { dice.count(1, 60) } else { 0 };
        Self { dice, share, count: 0 }
    }
}

impl World {
    /// At some moment of an attempt or of gates, perhaps.
    pub fn plan_attack(&mut self, by: Attacker, ends: i64) {
        let dice = &mut self.malice.dice;
        if !dice.percent(self.malice.share) {
            return;
        }
        let stories = &self.file.stories;
        let last = u64::try_from(stories.len()).unwrap() - 1;
        let story = stories[usize::try_from(dice.between(0, last)).unwrap()].id.clone();
        let what = match dice.weighted(&[3, 2, 1, 2, 2]) {
            0 => Attack::Mark { story, passes: true, skipped: false },
            1 => Attack::Mark { story, passes: false, skipped: true },
            2 => Attack::Mark { story, passes: false, skipped: false },
            3 => Attack::MarkAll,
            _ => Attack::Break,
        };
        let time = u64::try_from(ends - self.now()).unwrap();
        let at = self.now() + i64::try_from(self.malice.dice.between(0, time)).unwrap();
        self.plan(at, Planned::Attack(by, what));
    }

    pub fn attack(&mut self, by: &Attacker, what: Attack) {
        let runs = match by {
            Attacker::Attempt(attempt) => self.running.contains_key(attempt),
            Attacker::Gates(of) => self.gates.iter().any(|gates| gates.of == *of),
        };
        if !runs || self.broken || self.is_writing_marks() {
            return;
        }
        self.malice.count += 1;
        let stories = &mut self.file.stories;
        match what {
            Attack::Mark { story, passes, skipped } => {
                let found = stories.iter_mut().find(|known| known.id == story);
                if let Some(known) = found {
                    (known.passes, known.skipped) = (passes, skipped);
                }
            }
            Attack::MarkAll => stories.iter_mut().for_each(|story| story.passes = true),
            Attack::Break => (self.broken, self.broken_by_attack) = (true, true),
        }
    }

    /// An attempt or gates are over: what is in the file is not taken for the human's.
    pub fn release_backlog(&mut self) {
        self.marks_are_suspect = true;
        if std::mem::take(&mut self.broken_by_attack) {
            self.broken = false;
        }
    }

    /// As the real one does it.
    pub fn settle_marks(&mut self, log: &mut RunLog) -> Result<(), RunnerError> {
        let attempts = &log.state.attempts;
        let runs_here = !attempts.is_free(LaneId::HOME) || !self.gates.is_empty();
        let busy = runs_here || log.state.is_rolling_back();
        if busy || self.is_writing_marks() || self.problem.is_some() {
            return Ok(());
        }
        let suspect = std::mem::take(&mut self.marks_are_suspect) || !attempts.is_idle();
        let marks = self.marks_in_file();
        if self.are_same(&marks, &log.state.marks) {
            return Ok(());
        }
        if suspect {
            set_marks(&mut self.file, &log.state.marks);
            return Ok(());
        }
        self.show_marks(&marks);
        self.commits.retain(|story, _| marks.passing.contains(story));
        self.record(log, seen(&marks))
    }

    /// As far as the backlog's stories go.
    fn are_same(&self, a: &Marks, b: &Marks) -> bool {
        self.file.stories.iter().map(|story| &story.id).all(|id| {
            a.passing.contains(id) == b.passing.contains(id)
                && a.skipped.contains(id) == b.skipped.contains(id)
        })
    }
}
