//! A claim: what the driver finds out about it itself.

use std::ffi::OsString;
use std::sync::Arc;

use crate::agent::GIT_PLACES;
use crate::core::event::Event;
use crate::core::evidence::{Findings, GateReport, Item, Weighed, weigh};
use crate::core::gate::Gate;
use crate::core::id::StoryId;
use crate::evidence::{Checked, Runner};
use crate::process::sweep::RUN_ID;
use crate::store::room::append_private;

use super::Engine;
use super::error::EngineError;
use super::ports::Activity;

/// A gate, and the closed story for whose sake it is run.
type Due = (Gate, Option<StoryId>);

impl Engine {
    /// Runs what the claim has to pass and records what follows.
    pub(super) async fn check(&mut self, id: &StoryId, attempt: &str) -> Result<(), EngineError> {
        let due = self.due(id);
        let Some(items) = self.run_gates(&due, Some(id)).await? else { return Ok(()) };
        let base = self.state.story(id).and_then(|known| known.base.clone());
        let changed = match base {
            Some(base) => self.parts.tree.changed_since(&base)?,
            None => true,
        };
        let checked = Event::ClaimChecked {
            attempt: attempt.to_owned(),
            story: id.clone(),
            items: items.clone(),
        };
        let follows = self.follows(id, attempt, &items, changed);
        let rejected = matches!(follows, Event::ClaimRejected { .. });
        self.record(vec![checked, follows])?;
        if rejected { self.keep_attempt(id) } else { Ok(()) }
    }

    /// Nothing has to be found out: no gate applies, and nobody has to be asked.
    pub(super) fn is_plain_claim(&self, id: &StoryId, has_concerns: bool) -> bool {
        !has_concerns && self.due(id).is_empty() && !self.is_first_of_two(id)
    }

    /// With a gate the claim does not rest on the agent's word.
    fn is_first_of_two(&self, id: &StoryId) -> bool {
        let looked_again = self.state.story(id).is_some_and(|known| known.looked_again);
        self.orders.require_two_claims && !looked_again && self.due(id).is_empty()
    }

    /// A claim that was accepted for its change, and there is none.
    pub(super) fn nothing_changed(
        &mut self,
        id: &StoryId,
        attempt: &str,
    ) -> Result<(), EngineError> {
        let follows = self.follows(id, attempt, &[], false);
        self.record(vec![follows])
    }

    /// What the gates of every story say before any work.
    pub(super) async fn take_baseline(&mut self) -> Result<(), EngineError> {
        let due: Vec<Due> = self.orders.gates.all.iter().map(|gate| (gate.clone(), None)).collect();
        let begun = self.state.has_baseline || self.state.attempts > 0;
        if begun || due.is_empty() || self.parts.backlog.current().remaining() == 0 {
            return Ok(());
        }
        let Some(items) = self.run_gates(&due, None).await? else { return Ok(()) };
        let reports: Vec<GateReport> = items.into_iter().map(|Item::Gate(report)| report).collect();
        self.record(vec![Event::BaselineTaken { reports }])
    }

    fn follows(&self, id: &StoryId, attempt: &str, items: &[Item], changed: bool) -> Event {
        let known = self.state.story(id);
        let findings = Findings {
            story: id,
            items,
            changed,
            unfounded: known.map_or(0, |known| known.unfounded),
            concerns: known.map_or(&[], |known| &known.concerns),
            first_of_two: self.is_first_of_two(id),
        };
        let story = id.clone();
        match weigh(&findings) {
            Weighed::Accepted => Event::ClosePlanned { attempt: attempt.to_owned(), story },
            Weighed::Rejected { error, fingerprint, unfounded } => {
                Event::ClaimRejected { story, error, fingerprint, unfounded }
            }
            Weighed::LookAgain => Event::SecondLookWanted { story },
            Weighed::Doubtful { question } => Event::QuestionRaised { story, question },
        }
    }

    fn due(&self, id: &StoryId) -> Vec<Due> {
        let due = self.orders.gates.due(id, self.parts.backlog.current());
        due.into_iter().map(|due| (due.gate.clone(), due.guards.cloned())).collect()
    }

    /// In order, up to the first that fails; the baseline runs them all. None: told to stop.
    async fn run_gates(
        &mut self,
        due: &[Due],
        story: Option<&StoryId>,
    ) -> Result<Option<Vec<Item>>, EngineError> {
        if due.is_empty() {
            return Ok(Some(Vec::new()));
        }
        let mut runner = self.runner(story)?;
        let mut items = Vec::new();
        for (gate, guards) in due {
            let checking = Activity::Checking { at: (self.parts.clock)(), gate: gate.to_string() };
            self.parts.reporter.on_activity(&checking);
            let Some(mut report) = self.run_gate(&mut runner, gate).await? else {
                return Ok(None);
            };
            report.guards.clone_from(guards);
            let failed = !report.passed();
            items.push(Item::Gate(report));
            if failed && story.is_some() {
                break;
            }
        }
        Ok(Some(items))
    }

    async fn run_gate(
        &mut self,
        runner: &mut Runner,
        gate: &Gate,
    ) -> Result<Option<GateReport>, EngineError> {
        let mut running = std::pin::pin!(runner.run(gate));
        loop {
            let checked = tokio::select! {
                checked = &mut running => checked?,
                signal = self.signals.next() => {
                    self.take_signal(signal);
                    continue;
                }
            };
            return Ok(match checked {
                Checked::Report(report) => Some(report),
                Checked::Stopped => None,
            });
        }
    }

    fn runner(&self, story: Option<&StoryId>) -> Result<Runner, EngineError> {
        let page = self.parts.room.gates(&self.run, self.state.iterations, story)?;
        let mut env: Vec<(OsString, Option<OsString>)> =
            GIT_PLACES.iter().map(|name| (OsString::from(name), None)).collect();
        let mut set = |key: &str, value: String| env.push((key.into(), Some(value.into())));
        set(RUN_ID, self.run.clone());
        set("RALPH_ITERATION", self.state.iterations.to_string());
        if let Some(story) = story {
            set("RALPH_STORY", story.to_string());
        }
        Ok(Runner {
            supervisor: self.parts.supervisor.clone(),
            root: self.parts.tree.root().to_owned(),
            env,
            stop: self.stop.subscribe(),
            secrets: Arc::clone(&self.parts.secrets),
            log: append_private(&page)?,
        })
    }
}
