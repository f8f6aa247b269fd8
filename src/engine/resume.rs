//! Beginning a run, or going on with one that was interrupted.

use std::collections::HashMap;

use tokio::sync::{mpsc, watch};
use uuid::Uuid;

use crate::core::backlog::Backlog;
use crate::core::event::{Event, RunStarted};
use crate::core::id::StoryId;
use crate::core::state::RunState;

use super::error::EngineError;
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
        parts.backlog.refresh();
        let resumed = state.is_open();
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
            resumed,
            under_way: HashMap::new(),
            known_base: None,
        };
        engine.open()?;
        Ok(engine)
    }

    fn open(&mut self) -> Result<(), EngineError> {
        if self.resumed {
            self.record(vec![Event::RunContinued])?;
        } else {
            let backlog = self.parts.backlog.current();
            let started = RunStarted {
                run: self.run.clone(),
                backlog: self.orders.backlog_name.clone(),
                project: backlog.project.clone(),
                agent: self.parts.agent.label(),
                branch: self.orders.branch.clone(),
                carried: carried(&self.state, backlog),
            };
            self.record(vec![Event::RunStarted(started)])?;
        }
        self.orders.policy.iterations_before = self.state.iterations;
        self.follow_the_branch()
    }

    /// Commits that were made while no attempt ran are not the story's work.
    fn follow_the_branch(&mut self) -> Result<(), EngineError> {
        let Some(story) = self.state.in_tree.clone() else { return Ok(()) };
        let Some(known) = self.state.story(&story) else { return Ok(()) };
        let Some(base) = known.base.clone() else { return Ok(()) };
        if known.closing.is_some() || known.head == self.parts.tree.head_commit()? {
            return Ok(());
        }
        let from = known.head.clone();
        let base = self.parts.tree.move_base(&base, from.as_deref())?;
        self.record(vec![Event::BaseSet { story, base }])
    }
}

/// Stories whose question, guidance or unfinished work goes on: the same id with the same title.
fn carried(state: &RunState, backlog: &Backlog) -> Vec<StoryId> {
    let goes_on = |id: &StoryId, title: &str| {
        backlog.story(id).is_some_and(|story| !story.is_settled() && story.title == title)
    };
    state
        .stories
        .iter()
        .filter(|(id, known)| known.is_worth_carrying() && goes_on(id, &known.title))
        .map(|(id, _)| id.clone())
        .collect()
}
