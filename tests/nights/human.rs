//! What the human does: answers, and what nobody asked for.

use ralph::model::{Answer, Backlog, Escalation, Request, Story, StoryId};
use ralph::ports::Asked;
use ralph::runner::effects::{About, Happened};
use ralph::state::Marks;

use super::scene;
use super::world::{MINUTE, Planned, SECOND, World};

/// Something that the human does by himself.
pub enum Deed {
    Signal,
    Nudge,
    /// `ralph mark`.
    Mark {
        story: StoryId,
        passes: bool,
        skipped: bool,
    },
    /// Marks it in the file.
    Edit {
        story: StoryId,
        passes: bool,
        skipped: bool,
    },
    Rename(StoryId),
    Add,
    Remove(StoryId),
    Break,
    Mend,
    FillDisk,
}

pub fn with_stories(backlog: &Backlog, stories: Vec<Story>) -> Backlog {
    Backlog::new(backlog.project.clone(), backlog.description.clone(), stories)
}

impl World {
    /// What will be done in this night, whatever the run does.
    pub fn plan_deeds(&mut self) {
        for _ in 0..self.scene.interferences {
            let at = self.now() + i64::try_from(self.dice.between(0, 300)).unwrap() * MINUTE;
            let deed = self.draw_deed();
            if matches!(deed, Deed::Break) {
                let rest = i64::try_from(self.dice.between(1, 12)).unwrap() * MINUTE;
                self.plan(at + rest, Planned::Deed(Deed::Mend));
            }
            self.plan(at, Planned::Deed(deed));
        }
        for _ in 0..self.scene.crashes {
            let at = self.now() + i64::try_from(self.dice.between(0, 300)).unwrap() * MINUTE;
            self.plan(at, Planned::Crash);
        }
    }

    fn draw_deed(&mut self) -> Deed {
        let count = u64::try_from(self.file.stories.len()).unwrap();
        let story = scene::id(self.dice.between(0, count));
        let (passes, skipped) =
            [(true, false), (false, true), (false, false)][self.dice.weighted(&[2, 1, 2])];
        match self.dice.weighted(&[3, 3, 3, 2, 1, 1, 1, 2, 1]) {
            0 => Deed::Signal,
            1 => Deed::Nudge,
            2 => Deed::Mark { story, passes, skipped },
            3 => Deed::Edit { story, passes, skipped },
            4 => Deed::Rename(story),
            5 => Deed::Add,
            6 => Deed::Remove(story),
            7 => Deed::Break,
            _ => Deed::FillDisk,
        }
    }

    pub fn act(&mut self, deed: Deed) -> Happened {
        match deed {
            Deed::Signal => {
                self.is_interrupted = true;
                return Happened::Interrupt(2);
            }
            Deed::Nudge => self.ask_for(Request::Nudge { text: "hurry".into() }),
            Deed::Mark { story, passes, skipped } => {
                let backlog = self.config.backlog_key.clone();
                self.ask_for(Request::Mark { backlog, story, passes, skipped });
            }
            Deed::Edit { story, passes, skipped } => {
                self.settled.insert(story.clone());
                self.edit(|backlog| {
                    let found = backlog.stories.iter_mut().find(|known| known.id == story);
                    if let Some(known) = found {
                        (known.passes, known.skipped) = (passes, skipped);
                    }
                });
            }
            Deed::Rename(story) => self.edit(|backlog| {
                let found = backlog.stories.iter_mut().find(|known| known.id == story);
                if let Some(known) = found {
                    known.title.push_str(", that is");
                    known.priority = Some(1.5);
                }
            }),
            Deed::Add => {
                let number = 100 + self.dice.between(0, 900);
                let added = scene::story(number, &mut self.dice);
                let free = self.file.story(&added.id).is_none();
                let on_known = added.depends_on.iter().all(|on| self.file.story(on).is_some());
                if free && on_known {
                    let story = Story { passes: false, skipped: false, ..added };
                    self.edit(|backlog| backlog.stories.push(story));
                }
            }
            Deed::Remove(story) => self.remove_story(&story),
            Deed::Break => {
                // While something else could have done it, nobody has to mend it.
                let is_suspect = !self.running.is_empty() || !self.gates.is_empty();
                self.broken_by_attack |= is_suspect && !self.broken;
                self.broken = true;
            }
            Deed::Mend => (self.broken, self.broken_by_attack) = (false, false),
            Deed::FillDisk => self.disk_is_low = true,
        }
        Happened::Tick
    }

    fn ask_for(&mut self, request: Request) {
        self.asked_for += 1;
        self.requests.push((self.asked_for, request));
    }

    /// A file that cannot be read is edited as it was.
    pub fn edit(&mut self, change: impl FnOnce(&mut Backlog)) {
        let mut backlog = self.file.clone();
        change(&mut backlog);
        self.file = with_stories(&self.file, backlog.stories);
    }

    pub fn remove_story(&mut self, story: &StoryId) {
        let is_needed = self.file.stories.iter().any(|one| one.depends_on.contains(story));
        if !is_needed && self.file.stories.len() > 1 {
            self.removed.insert(story.clone());
            self.edit(|backlog| backlog.stories.retain(|known| known.id != *story));
        }
    }

    pub fn marks_in_file(&self) -> Marks {
        Marks::of(&self.file)
    }

    /// When and what the human will answer.
    pub fn plan_answer(&mut self, about: &About, question: &Escalation, patience: i64) {
        let begins = self.human_is_free_at.max(self.now());
        let left = self.scene.answers.checked_sub(1);
        let asked = match left {
            Some(left) => {
                self.scene.answers = left;
                self.draw_answer(question)
            }
            None => Asked::NoAnswer,
        };
        let most = u64::try_from(patience).unwrap();
        let takes = if asked == Asked::NoAnswer { most } else { self.dice.between(1, most) };
        let at = begins + i64::try_from(takes).unwrap();
        self.human_is_free_at = at;
        let slot = self.plan(at, Planned::Answer(about.clone(), asked));
        self.questions.insert(about.clone(), slot);
    }

    fn draw_answer(&mut self, question: &Escalation) -> Asked {
        let number = self.dice.between(1, 3);
        Asked::Answered(match self.dice.weighted(&[8, 8, 4, 6, 6, 1, 1]) {
            0 => Answer::Retry,
            1 => Answer::Guidance { text: "like this".into() },
            2 => Answer::Skip,
            3 => Answer::Option { number: usize::try_from(number).unwrap(), text: "so".into() },
            4 if question.kind.can_be_accepted() => Answer::Accept,
            4 => Answer::Retry,
            5 => Answer::Abort,
            _ => return Asked::Interrupted,
        })
    }

    /// The human's word, as it reaches the run.
    pub fn note_answer(&mut self, about: &About, asked: &Asked) {
        let (About::Story(story) | About::Attempt { story, .. }) = about;
        match asked {
            Asked::Answered(Answer::Accept) => {
                self.accepted.insert(story.clone());
            }
            Asked::Answered(Answer::Skip) => {
                self.settled.insert(story.clone());
            }
            _ => {}
        }
    }

    /// Withdrawn, unless an answer was just given.
    pub fn take_back(&mut self, about: &About) {
        let Some(slot) = self.questions.get(about).copied() else { return };
        let soon = self.now() + SECOND / 2;
        let Some(Planned::Answer(about, asked)) = self.queue.remove(&slot) else { return };
        let was_given = slot.0 <= soon || self.dice.percent(20);
        let asked = if was_given { asked } else { Asked::NoAnswer };
        let slot = self.plan(slot.0.min(soon), Planned::Answer(about.clone(), asked));
        self.questions.insert(about, slot);
        self.human_is_free_at = self.human_is_free_at.min(soon);
    }
}
