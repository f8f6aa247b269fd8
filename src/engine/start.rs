//! An attempt: from the decision to start it to what it amounts to.

use std::ffi::OsString;

use uuid::Uuid;

use crate::agent::{Launch, Reading};
use crate::core::backlog::Backlog;
use crate::core::event::{AttemptEnded, AttemptStarted, Base, Event, Role};
use crate::core::id::StoryId;
use crate::core::outcome::{Outcome, classify};
use crate::core::prompt::{Prompt, Standing};
use crate::core::verdict::{Evidence, Verdict, is_false_promise, judge};
use crate::core::{backlog::Story, signal::Signals};
use crate::process::Spec;
use crate::store::room::{Pages, private_file};

use super::Engine;
use super::attempt::{Attendance, Report, TreeEnd};
use super::error::EngineError;
use super::ports::Notice;

/// What is known of an attempt under way beside the journal.
pub struct UnderWay {
    /// Tree and branch right before it.
    pub before: Base,
    /// The marks as they were: the agent's own are put back.
    pub backlog: Backlog,
}

impl Engine {
    pub(super) fn start_attempt(&mut self, id: &StoryId) -> Result<(), EngineError> {
        let launch = self.parts.agent.launch(self.parts.tree.root())?;
        let Some(story) = self.parts.backlog.current().story(id).cloned() else { return Ok(()) };
        let before = self.base_for_next_attempt()?;
        let base = self.story_base(id, &before)?;
        let kept_at = self.bring_back(id, &base)?;
        let iteration = self.state.iterations + 1;
        let prompt = self.prompt(&story, iteration, kept_at.as_deref());
        let pages = self.parts.room.iteration(&self.run, iteration, id)?;
        pages.write_prompt(&prompt)?;
        let started = AttemptStarted {
            attempt: Uuid::now_v7().to_string(),
            iteration,
            role: Role::Implement,
            story: id.clone(),
            title: story.title.clone(),
            agent: self.parts.agent.label(),
            base,
            guided: self.state.story(id).is_some_and(|known| !known.guidance.is_empty()),
        };
        let backlog = self.parts.backlog.current().clone();
        self.record(vec![Event::AttemptStarted(Box::new(started.clone()))])?;
        self.under_way.insert(started.attempt.clone(), UnderWay { before, backlog });
        self.spawn(&started, launch, &pages, &prompt)
    }

    /// Where the story began; it begins now when it has no work in the tree yet.
    fn story_base(&self, id: &StoryId, now: &Base) -> Result<Base, EngineError> {
        if let Some(base) = self.state.story(id).and_then(|known| known.base.clone()) {
            return Ok(base);
        }
        self.parts.tree.hold(now)?;
        Ok(now.clone())
    }

    /// Right after a close the tree is known; else it is looked at.
    fn base_for_next_attempt(&mut self) -> Result<Base, EngineError> {
        match self.known_base.take() {
            Some(base) => Ok(base),
            None => Ok(self.parts.tree.base()?),
        }
    }

    fn prompt(&self, story: &Story, iteration: u32, kept_at: Option<&str>) -> String {
        let backlog = self.parts.backlog.current();
        let known = self.state.story(&story.id);
        Prompt {
            instructions: &self.orders.instructions,
            story,
            standing: Standing {
                iteration,
                max_iterations: self.orders.policy.max_iterations,
                attempt: known.map_or(0, |known| known.attempts) + 1,
                stories_done: backlog.done(),
                stories: backlog.stories.len(),
                remaining: backlog.remaining(),
                last_error: known.and_then(|known| known.last_error.as_deref()),
                kept_at,
            },
            guidance: known.map_or(&[], |known| &known.guidance),
        }
        .text()
    }

    fn spawn(
        &mut self,
        started: &AttemptStarted,
        launch: Launch,
        pages: &Pages,
        prompt: &str,
    ) -> Result<(), EngineError> {
        let attempt = self.state.story(&started.story).map_or(1, |known| known.attempts);
        let mut env = launch.env;
        for (key, value) in [
            ("RALPH_RUN_ID", self.run.clone()),
            ("RALPH_STORY", started.story.to_string()),
            ("RALPH_ITERATION", started.iteration.to_string()),
            ("RALPH_ATTEMPT", attempt.to_string()),
        ] {
            env.push((OsString::from(key), Some(OsString::from(value))));
        }
        let spec = Spec {
            program: launch.program.into_os_string(),
            args: launch.args,
            dir: self.parts.tree.root().to_owned(),
            env,
            input: pages.prompt.clone(),
        };
        let attendance = Attendance {
            attempt: started.attempt.clone(),
            running: self.parts.supervisor.spawn(&spec)?,
            reading: Reading::new(&started.story, prompt),
            output: private_file(&pages.output)?,
            errors: private_file(&pages.errors)?,
            timeouts: self.orders.timeouts,
            listening: self.orders.listening,
            stop: self.stop.subscribe(),
            happened: self.happened.0.clone(),
        };
        tokio::spawn(attendance.attend());
        Ok(())
    }

    pub(super) fn attempt_ended(&mut self, report: Report) -> Result<(), EngineError> {
        let Some(started) = self.state.in_flight.get(&report.attempt).cloned() else {
            return Ok(());
        };
        let under_way = self.under_way.remove(&report.attempt);
        let outcome = classify(&report.read.seen, &report.exit, report.ended_by);
        let signals = report.read.signals.clone();
        let evidence = self.gather(&signals, &outcome, under_way.as_ref())?;
        self.put_back_marks(under_way.as_ref())?;
        let verdict = judge(&outcome, &signals, evidence);
        self.tell(&report, &signals, evidence);
        let mut events = vec![Event::AttemptEnded(Box::new(AttemptEnded {
            attempt: report.attempt.clone(),
            story: started.story.clone(),
            outcome,
            signals,
            verdict: verdict.clone(),
            usage: report.read.usage,
            elapsed_ms: u64::try_from(report.elapsed.as_millis()).unwrap_or(u64::MAX),
            head: self.parts.tree.head_commit()?,
        }))];
        events.extend(follow_up(&started, verdict));
        self.record(events)?;
        match report.tree {
            TreeEnd::Gone => Ok(()),
            TreeEnd::Survivors(names) => Err(EngineError::Survivors(names)),
            TreeEnd::Unknown => Err(EngineError::SupervisorLost),
        }
    }

    fn gather(
        &mut self,
        signals: &Signals,
        outcome: &Outcome,
        under_way: Option<&UnderWay>,
    ) -> Result<Evidence, EngineError> {
        self.refresh_backlog();
        let remaining = under_way.map_or_else(
            || self.parts.backlog.current().remaining(),
            |under_way| under_way.backlog.remaining(),
        );
        // Looking at a large tree takes its time, and a claim does not depend on it.
        let depends = *outcome == Outcome::Completed && !signals.claims_story;
        let changed = match under_way {
            Some(under_way) if depends => self.parts.tree.changed_since(&under_way.before)?,
            _ => true,
        };
        Ok(Evidence { changed, remaining })
    }

    /// The agent is not trusted with its own marks.
    fn put_back_marks(&mut self, under_way: Option<&UnderWay>) -> Result<(), EngineError> {
        let Some(under_way) = under_way else { return Ok(()) };
        if self.parts.backlog.problem().is_some() {
            return Ok(());
        }
        let ids = self.parts.backlog.put_back_marks(&under_way.backlog)?;
        if !ids.is_empty() {
            self.notice(Notice::MarksPutBack { ids });
        }
        Ok(())
    }

    fn tell(&mut self, report: &Report, signals: &Signals, evidence: Evidence) {
        if is_false_promise(signals, evidence) {
            self.notice(Notice::FalsePromise { remaining: evidence.remaining });
        }
        if !signals.claims_others.is_empty() {
            self.notice(Notice::OtherClaims { ids: signals.claims_others.clone() });
        }
        if !report.ended.is_empty() && report.ended_by.is_none() {
            let names = report.ended.join(", ");
            self.notice(Notice::Info(format!("ended what the agent left behind: {names}")));
        }
    }
}

fn follow_up(started: &AttemptStarted, verdict: Verdict) -> Option<Event> {
    let story = started.story.clone();
    match verdict {
        Verdict::Done => Some(Event::ClosePlanned { attempt: started.attempt.clone(), story }),
        Verdict::Escalated { escalation } => {
            Some(Event::QuestionRaised { story, question: escalation })
        }
        Verdict::Progress | Verdict::Failed { .. } | Verdict::Interrupted => None,
    }
}
