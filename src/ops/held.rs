//! After a crash: puts back what untrusted code changed, before any of it is used.

use std::path::Path;

use crate::model::{Event, GatesStarted, HeldKind, Notice, Violation};
use crate::ports::Reporter;
use crate::runner::log::JournalHistory;
use crate::runner::{EventSink, GateGuard, Ran, RunnerError};
use crate::state::RunState;
use crate::ui;
use crate::workspace::{Guard, GuardPart, Guarded, Head};

use super::error::{CommandError, Result};
use super::place::BacklogPlace;
use super::preflight::Preflight;
use super::setup::{Interrupted, interrupted};
use super::terminal::{ask, listed};

/// The journal is not open yet.
struct Later<'a> {
    events: &'a mut Vec<Event>,
    reporter: &'a mut dyn Reporter,
}

impl EventSink for Later<'_> {
    fn record(&mut self, event: Event) -> Result<(), RunnerError> {
        self.events.push(event);
        Ok(())
    }

    fn notice(&mut self, notice: Notice) {
        self.reporter.on_notice(&notice);
    }
}

impl Preflight {
    /// For everything whose driver died.
    pub fn restore(
        &mut self,
        prd: &Path,
        place: &BacklogPlace,
        history: &mut JournalHistory,
    ) -> Result<()> {
        self.require_known_setup(&history.state)?;
        let cut = interrupted(&history.state);
        self.restore_held(&cut, GuardPart::held_after_crash(), history)?;
        self.restore_backlog(prd, place, history)?;
        self.restore_writes(place, history)?;
        let hidden = history.state.hidden.take();
        let unseen = hidden.as_deref().map(|list| self.tree.noted_unseen(list));
        self.tree.show_unseen(&unseen.unwrap_or_default())?;
        if hidden.is_some() {
            history.repaired.push(Event::FilesHidden { list: None });
            self.restore_held(&cut, GuardPart::held(), history)?;
        }
        Ok(())
    }

    /// What ran could change the record of git's setup too; the journal has its hash. If it is another
    /// one, or gone, the human decides before git's configuration can name a program that runs.
    fn require_known_setup(&self, state: &RunState) -> Result<()> {
        let held = interrupted(state).into_iter().filter_map(|one| one.held);
        if held.into_iter().all(|hash| self.tree.knows_held(&hash)) {
            return Ok(());
        }
        let text = self.secrets.redact(&self.tree.setup_text()?).into_owned();
        let (facts, patience) = (text.clone(), self.in_force.plan.answer_timeout);
        let asked =
            ask(&self.human, move |human| human.confirm(&ui::UNKNOWN_SETUP, &facts, patience))?;
        if asked == Some(true) { Ok(()) } else { Err(CommandError::UnknownSetup(text)) }
    }

    fn restore_held(
        &mut self,
        cut: &[Interrupted],
        parts: &[GuardPart],
        history: &mut JournalHistory,
    ) -> Result<()> {
        for Interrupted { ran, guarded, held } in cut {
            let guard = Guard::recovered(&self.tree, guarded.clone(), held.as_deref());
            for part in parts {
                let Some(violation) = guard.check(&self.tree, *part)? else { continue };
                if self.are_the_humans(&violation)? {
                    continue;
                }
                guard.repair(&self.tree, &violation)?;
                if matches!(violation, Violation::Held { whose: HeldKind::GitSetup, .. }) {
                    self.tree = self.tree.again()?;
                }
                history.repaired.push(ran.repaired(violation));
            }
        }
        Ok(())
    }

    /// What gates wrote before their driver died is no part of the story.
    fn restore_writes(&mut self, place: &BacklogPlace, history: &mut JournalHistory) -> Result<()> {
        let Some(start) = history.state.gates.take() else { return Ok(()) };
        if self.tree.has_tree(&start.before) && self.is_on_branch(&history.state)? {
            let guard = self.gate_guard(&start, place, &history.state);
            self.restore_index(&start, history)?;
            let gates = guard.recovered(&self.tree, &start);
            let written = guard.forbidden_writes(&self.tree, &gates)?.paths();
            if !written.is_empty() && !self.confirm_edits(&listed(&written))? {
                let (events, reporter) = (&mut history.repaired, self.reporter.as_mut());
                guard.undo(&self.tree, &gates, &mut Later { events, reporter })?;
            }
        }
        history.repaired.push(Event::GatesOver);
        Ok(())
    }

    /// After gates; that of an attempt is compared when its branch is back.
    fn restore_index(&self, start: &GatesStarted, history: &mut JournalHistory) -> Result<()> {
        let before = start.before.clone();
        let ran = start.folder.clone();
        let guarded = Guarded { ran, base: before.clone(), before, snapshot: None };
        let guard = Guard::recovered(&self.tree, guarded, start.held.as_deref());
        let Some(violation) = guard.check(&self.tree, GuardPart::Index)? else { return Ok(()) };
        let Violation::Index { paths } = &violation else { return Ok(()) };
        if !self.confirm_edits(paths)? {
            guard.repair(&self.tree, &violation)?;
            let ran = Ran { what: start.after, story: start.story.clone() };
            history.repaired.push(ran.repaired(violation));
        }
        Ok(())
    }

    pub fn is_on_branch(&self, state: &RunState) -> Result<bool> {
        let known = state.run.as_ref().and_then(|run| run.branch.as_ref());
        Ok(matches!(&self.tree.branch()?, Head::Branch { name, .. } if Some(name) == known))
    }

    fn gate_guard(
        &self,
        start: &GatesStarted,
        place: &BacklogPlace,
        state: &RunState,
    ) -> GateGuard {
        let story = start.story.as_ref().and_then(|story| state.story(story));
        GateGuard {
            ran: Ran { what: start.after, story: start.story.clone() },
            folder: start.folder.clone(),
            is_watched: false,
            base: story.and_then(|story| story.base().cloned()),
            told: state.written.clone(),
            held: Vec::new(),
            // They run again, and one may have run on the story's base.
            keep: Vec::new(),
            all: Vec::new(),
            protect: Vec::new(),
            backlog: place.in_tree.clone(),
        }
    }

    /// Without an answer they are not.
    fn are_the_humans(&self, violation: &Violation) -> Result<bool> {
        match violation {
            Violation::Held { whose: HeldKind::GitSetup, .. } => Ok(false),
            Violation::Held { paths, .. } => self.confirm_edits(paths),
            Violation::Stashes { messages, .. } if !messages.is_empty() => {
                self.confirm_edits(messages)
            }
            Violation::Refs { names, .. } => self.confirm_edits(names),
            Violation::PrivateFiles { restored, .. } if !restored.is_empty() => {
                self.confirm_edits(restored)
            }
            Violation::IgnoredFiles { lost, .. } if !lost.is_empty() => self.confirm_edits(lost),
            _ => Ok(false),
        }
    }

    fn confirm_edits(&self, paths: &[String]) -> Result<bool> {
        let (facts, patience) = (paths.join("\n"), self.in_force.plan.answer_timeout);
        let asked =
            ask(&self.human, move |human| human.confirm(&ui::CHANGED_MEANWHILE, &facts, patience))?;
        Ok(asked == Some(true))
    }
}
