//! What agents and gates do while they run to pass for done, and how it is taken back.

use ralph::model::{LaneId, StoryId};
use ralph::runner::RunnerError;
use ralph::runner::effects::GatesOf;
use ralph::runner::log::RunLog;
use ralph::state::Marks;

use super::branch::Origin;
use super::dice::Dice;
use super::world::{Planned, World, seen, set_marks};

/// Who attacks, and how often; apart from everything else that is drawn, so that a night is the same
/// without them.
pub struct Malice {
    dice: Dice,
    /// Of a hundred attempts and gates.
    share: u32,
    /// Attacks may cost the run more than what they touch.
    is_costly: bool,
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
    Mark {
        story: StoryId,
        passes: bool,
        skipped: bool,
    },
    MarkAll,
    Break,
    /// Of the branch, maybe with a mark.
    Commit {
        marks: Option<StoryId>,
    },
    /// The story's work is another one.
    Rewrite,
    /// The story's gate passes from now on.
    Weaken,
    Remove {
        story: StoryId,
    },
}

impl Malice {
    pub fn draw(seed: u64, is_costly: bool) -> Self {
        let mut dice = Dice::new(!seed);
        let share = if dice.percent(50) { dice.count(1, 60) } else { 0 };
        Self { dice, share, is_costly, count: 0 }
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
        let costly = u32::from(self.malice.is_costly);
        let by_gates = matches!(by, Attacker::Gates(_));
        let weaken = if by_gates { 3 } else { 2 * costly };
        let rates = [3, 2, 1, 2, 2, 2, 1, 2 * u32::from(by_gates), weaken, costly];
        let what = match dice.weighted(&rates) {
            0 => Attack::Mark { story, passes: true, skipped: false },
            1 => Attack::Mark { story, passes: false, skipped: true },
            2 => Attack::Mark { story, passes: false, skipped: false },
            3 => Attack::MarkAll,
            4 => Attack::Break,
            5 => Attack::Commit { marks: Some(story) },
            6 => Attack::Commit { marks: None },
            7 => Attack::Rewrite,
            8 => Attack::Weaken,
            _ => Attack::Remove { story },
        };
        let time = u64::try_from(ends - self.now()).unwrap();
        let at = self.now() + i64::try_from(self.malice.dice.between(0, time)).unwrap();
        self.plan(at, Planned::Attack(by, what));
    }

    pub fn attack(&mut self, by: &Attacker, what: Attack) {
        let (runs, of) = match by {
            Attacker::Attempt(attempt) => {
                let running = self.running.get(attempt);
                (running.is_some(), running.map(|running| running.story.clone()))
            }
            Attacker::Gates(of) => {
                let runs = self.gates.iter().any(|gates| gates.of == *of);
                let story = self.before_gates.as_ref().map(|(story, _)| story.clone());
                (runs, story)
            }
        };
        if !runs || self.broken || self.is_writing_marks() {
            return;
        }
        self.malice.count += 1;
        // Some end ralph as well, before it can put anything back.
        if self.malice.is_costly && self.malice.dice.percent(15) {
            self.plan(self.now(), Planned::Crash);
        }
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
            Attack::Commit { marks } => {
                // An agent in another lane has a HEAD of its own.
                if of.is_some_and(|story| self.is_at_home(&story)) {
                    self.commit(marks, Origin::Attack);
                }
            }
            Attack::Rewrite => of.iter().for_each(|story| self.change_work(story)),
            Attack::Weaken => {
                of.into_iter().for_each(|story| self.work.entry(story).or_default().is_weak = true);
            }
            Attack::Remove { story } => {
                let place = stories.iter().position(|known| known.id == story);
                if let Some(place) = place.filter(|_| stories.len() > 1) {
                    self.taken_out.push((place, stories[place].clone()));
                    self.edit(|backlog| drop(backlog.stories.remove(place)));
                }
            }
        }
    }

    /// An attempt or gates are over: what is in the file is not taken for the human's.
    pub fn release_backlog(
        &mut self,
        log: &mut RunLog,
        story: Option<&StoryId>,
    ) -> Result<(), RunnerError> {
        self.marks_are_suspect = true;
        if std::mem::take(&mut self.broken_by_attack) {
            self.broken = false;
        }
        self.hold_removal(log, story)
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
