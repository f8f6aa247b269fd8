//! Beginning a run, or going on with one that was interrupted.

use std::collections::{BTreeSet, HashMap};

use tokio::sync::{mpsc, watch};
use uuid::Uuid;

use crate::core::backlog::Backlog;
use crate::core::budget::Today;
use crate::core::event::{Event, RunStarted};
use crate::core::findings::findings;
use crate::core::id::StoryId;
use crate::core::state::RunState;

use super::brief::base_on_branch;
use super::error::EngineError;
use super::ports::Notice;
use super::signals::Signals;
use super::{Engine, Orders, Parts};

/// Activities that may wait to be shown.
const ACTIVITIES: usize = 64;

impl Engine {
    /// Folds what the journal knows of this backlog and takes up the run from there.
    pub fn begin(mut parts: Parts, orders: Orders) -> Result<Self, EngineError> {
        let signals = Signals::listen()?;
        let mut state = RunState::default();
        let (events, _) = parts.journal.read(0)?;
        for recorded in &events {
            state.apply(recorded);
        }
        parts.reporter.on_earlier(&events);
        let resumed = state.is_open() && is_same(&state, parts.backlog.current());
        let cut_off = resumed && state.cut_off;
        let rebuilding = orders.journal_was_damaged && events.is_empty();
        let run = match &state.run {
            Some(run) if resumed => run.run.clone(),
            _ => Uuid::now_v7().to_string(),
        };
        let mut engine = Self {
            parts,
            orders,
            state,
            run,
            signals,
            happened: mpsc::channel(ACTIVITIES),
            stop: watch::Sender::new(None),
            interrupted: None,
            signals_taken: 0,
            marks_are_suspect: cut_off,
            resumed,
            under_way: HashMap::new(),
            today: Today::default(),
            ear: None,
            disk_was_low: None,
            ends_attempts: false,
            told_left_out: BTreeSet::new(),
            known_base: None,
            wishes_seen: None,
        };
        engine.forget_old_wishes()?;
        engine.parts.tree.serve(&engine.run, &engine.orders.backlog_key);
        engine.refresh_backlog();
        if resumed {
            engine.go_on(cut_off)?;
        } else {
            engine.start_anew(rebuilding)?;
        }
        engine.orders.policy.attempts_before = engine.state.attempts;
        // After a crash nobody can tell the agent's commits from the human's.
        if !cut_off {
            engine.follow_the_branch()?;
        }
        engine.tell_user_books()?;
        engine.say_what_is_not_kept();
        engine.prune();
        Ok(engine)
    }

    fn go_on(&mut self, cut_off: bool) -> Result<(), EngineError> {
        self.require_same_branch()?;
        let found = findings(&self.state);
        if cut_off {
            // A mark whose story was not confirmed yet would look like the human's.
            self.put_back_marks()?;
        }
        self.leave_what_does_not_go_on()?;
        if cut_off {
            // First of all: once the run goes on, nobody knows what was under way.
            self.put_back_after_cut()?;
        }
        let lost = self.lost_attempts();
        self.record(lost.into_iter().chain([Event::RunContinued]).collect())?;
        for line in found {
            self.notice(Notice::Info(line));
        }
        Ok(())
    }

    /// What an attempt did whose end nobody saw.
    fn put_back_after_cut(&mut self) -> Result<(), EngineError> {
        let setup = self.parts.tree.held_setup();
        let under_way: Vec<_> = self.state.in_flight.values().cloned().collect();
        for started in &under_way {
            self.put_back_setup(started, setup.as_ref())?;
            self.put_back_lost_files(started)?;
            self.tell_changed_instructions(started);
        }
        Ok(())
    }

    /// The run and the marks that it begins with are one fact: without them, the next process
    /// would take every mark in the file for an agent's.
    fn start_anew(&mut self, rebuilding: bool) -> Result<(), EngineError> {
        self.leave_what_does_not_go_on()?;
        let known = if rebuilding {
            self.known_without_a_journal()?
        } else {
            vec![self.marks_in_the_file()]
        };
        let backlog = self.parts.backlog.current();
        let started = RunStarted {
            run: self.run.clone(),
            backlog: self.orders.backlog_name.clone(),
            project: backlog.project.clone(),
            description: backlog.description.clone(),
            agent: self.parts.agent.label(),
            branch: self.orders.branch.clone(),
            allow_dirty: self.orders.allow_dirty,
            carried: carried(&self.state, backlog),
        };
        let begin = self.lost_attempts().into_iter().chain([Event::RunStarted(started)]);
        self.record(begin.chain(known).collect())?;
        if rebuilding { self.tell_what_is_known() } else { Ok(()) }
    }

    /// Old states of the work tree cost nothing but room: that they stay is no reason to stop.
    fn prune(&mut self) {
        let needed = self.state.kept_refs().map(ToOwned::to_owned).collect();
        let now = (self.parts.clock)() / 1000;
        if let Err(error) = self.parts.tree.prune(self.orders.keeping, &needed, now) {
            self.notice(Notice::Warning(format!("old snapshots stay: {error}")));
        }
    }

    /// A run belongs to its branch, unless the human names another one.
    fn require_same_branch(&self) -> Result<(), EngineError> {
        let before = self.state.run.as_ref().and_then(|run| run.branch.clone());
        match (before, &self.orders.branch) {
            (Some(before), Some(now)) if before != *now && !self.orders.branch_is_chosen => {
                Err(EngineError::OtherBranch { before, now: now.clone() })
            }
            _ => Ok(()),
        }
    }

    /// Another story of the same id is not the one whose work is in the tree or was accepted.
    fn leave_what_does_not_go_on(&mut self) -> Result<(), EngineError> {
        let backlog = self.parts.backlog.current();
        let is_other = |id: &&StoryId| !goes_on(&self.state, backlog, id);
        let in_tree = self.state.in_tree.iter().filter(is_other).cloned();
        let accepted = self.state.stories.iter().filter(|(_, known)| known.closing.is_some());
        let accepted = accepted.map(|(id, _)| id).filter(is_other).cloned();
        let others: Vec<StoryId> = in_tree.chain(accepted).collect();
        for id in others {
            if self.parts.backlog.current().story(&id).is_some_and(|story| story.passes) {
                self.let_go(id)?;
                continue;
            }
            let text = format!("{id} is another story now; the work of the earlier one is kept");
            self.notice(Notice::Warning(text));
            self.set_aside(&id)?;
        }
        Ok(())
    }

    /// Commits that were made while no attempt ran are not the story's work.
    fn follow_the_branch(&mut self) -> Result<(), EngineError> {
        let Some((story, base)) = base_on_branch(&self.state, &self.parts.tree)? else {
            return Ok(());
        };
        self.parts.tree.hold(&base)?;
        self.record(vec![Event::BaseSet { story, base }])
    }
}

/// Stories whose question, guidance or unfinished work goes on.
pub(super) fn carried(state: &RunState, backlog: &Backlog) -> Vec<StoryId> {
    let worth = state.stories.iter().filter(|(_, known)| known.is_worth_carrying());
    worth.map(|(id, _)| id).filter(|id| goes_on(state, backlog, id)).cloned().collect()
}

/// In the same backlog the id decides, so that a title can be corrected; where another backlog
/// took its place, only a story of the same title is the same story.
fn goes_on(state: &RunState, backlog: &Backlog, id: &StoryId) -> bool {
    let same_title = |title: &str| state.story(id).is_some_and(|known| known.title == title);
    backlog.story(id).is_some_and(|story| {
        !story.is_settled() && (is_same(state, backlog) || same_title(&story.title))
    })
}

/// Not another backlog in the same place.
pub(super) fn is_same(state: &RunState, backlog: &Backlog) -> bool {
    state
        .run
        .as_ref()
        .is_some_and(|run| run.project == backlog.project && run.description == backlog.description)
}
