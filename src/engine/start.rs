//! An attempt: from the decision to start it to what it amounts to.

use std::ffi::OsString;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use tokio::sync::mpsc;
use uuid::Uuid;

use crate::agent::{Launch, message};
use crate::core::backlog::Story;
use crate::core::event::{AttemptEnded, AttemptStarted, Base, Event, Role, Stray};
use crate::core::id::StoryId;
use crate::core::outcome::classify;
use crate::core::prompt::joined;
use crate::core::rut::Traces;
use crate::core::secrets::Redactor;
use crate::core::signal::Signals;
use crate::core::verdict::{Evidence, Verdict, is_false_promise, judge};
use crate::git::{Difference, Setup, Stash};
use crate::process::Spec;
use crate::process::sweep::RUN_ID;
use crate::store::instructions::Instructions;
use crate::store::log::Log;
use crate::store::room::Pages;

use super::attempt::{Attendance, Report, Word};
use super::brief::last_words;
use super::error::EngineError;
use super::names::some_of;
use super::ports::Notice;
use super::progress::TreeEnd;
use super::stuck::Watch;
use super::transcript::Transcript;
use super::{Engine, Happened};

/// Standard error gets this part of the log's room: little is ever said there.
const ERRORS_SHARE: u64 = 16;

/// What is known of an attempt under way beside the journal.
pub struct UnderWay {
    /// Tree and branch right before it.
    pub before: Base,
    /// The user's stashes at that time.
    pub stashes: Vec<Stash>,
    /// How git behaved.
    pub setup: Setup,
    /// The stories there were.
    pub stories: Vec<StoryId>,
    /// Its own, as it was.
    pub story: Story,
    /// The human's instructions, as they were.
    pub instructions: Option<Instructions>,
    pub watch: Watch,
}

impl Engine {
    pub(super) fn start_attempt(&mut self, id: &StoryId) -> Result<(), EngineError> {
        let backlog = self.parts.backlog.current();
        let Some(story) = backlog.story(id).cloned() else { return Ok(()) };
        let gates: Vec<_> = self.orders.gates.due(id, backlog).iter().map(|due| due.gate).collect();
        let launch = self.parts.agent.launch(self.parts.tree.root(), &gates, self.allowance(id))?;
        let before = self.base_for_next_attempt()?;
        let base = self.story_base(id, &before)?;
        let before = if self.bring_back(id, &base)? { self.parts.tree.base()? } else { before };
        let iteration = self.state.iterations + 1;
        self.with_scratchpad(|room| room.bring_scratchpad_back(id));
        let prompt = joined(&self.layers(&story, &base, &before));
        let pages = self.parts.room.iteration(&self.run, iteration, id)?;
        pages.write_prompt(&prompt)?;
        let snapshot = self.keep_snapshot(id, iteration, &before)?;
        let started = AttemptStarted {
            attempt: Uuid::now_v7().to_string(),
            iteration,
            role: Role::Implement,
            story: id.clone(),
            title: story.title.clone(),
            agent: self.parts.agent.label(),
            base,
            criteria: Some(story.criteria.clone()),
            before: Some(before.clone()),
            snapshot: Some(snapshot),
            guided: self.state.story(id).is_some_and(|known| !known.guidance.is_empty()),
            why: self.state.story(id).map(|known| known.why).unwrap_or_default(),
            stable: self.stable_hash(),
        };
        let all = &self.parts.backlog.current().stories;
        let stories = all.iter().map(|story| story.id.clone()).collect();
        let stashes = self.parts.tree.hold_stashes()?;
        let setup = self.parts.tree.hold_setup()?;
        self.parts.tree.begin_attempt()?;
        self.record(vec![Event::AttemptStarted(Box::new(started.clone()))])?;
        let instructions = self.orders.instructions_file.as_deref().and_then(Instructions::hold);
        let watch = self.spawn(&started, launch, &pages, &prompt)?;
        let under_way = UnderWay { before, stashes, setup, stories, story, instructions, watch };
        self.under_way.insert(started.attempt, under_way);
        Ok(())
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

    fn spawn(
        &mut self,
        started: &AttemptStarted,
        launch: Launch,
        pages: &Pages,
        prompt: &str,
    ) -> Result<Watch, EngineError> {
        let attempt = self.state.story(&started.story).map_or(1, |known| known.attempts);
        let mut env = launch.env;
        for (key, value) in [
            (RUN_ID, self.run.clone()),
            ("RALPH_STORY", started.story.to_string()),
            ("RALPH_ITERATION", started.iteration.to_string()),
            ("RALPH_ATTEMPT", attempt.to_string()),
        ] {
            env.push((OsString::from(key), Some(OsString::from(value))));
        }
        env.push((OsString::from("RALPH_STAGES"), self.stages_left(&started.story)));
        let spec = Spec {
            program: launch.program.into_os_string(),
            args: launch.args,
            dir: self.parts.tree.root().to_owned(),
            env,
            input: (!launch.takes_messages).then(|| pages.prompt.clone()),
        };
        let (speak, words) = mpsc::unbounded_channel();
        let takes_messages = launch.takes_messages;
        if takes_messages {
            let _ = speak.send(Word::Say(message(prompt)));
        }
        let heard = Arc::new(AtomicU64::new(0));
        let secrets = &self.parts.secrets;
        let attendance = Attendance {
            attempt: started.attempt.clone(),
            running: self.parts.supervisor.spawn(&spec)?,
            words,
            takes_messages,
            heard: Arc::clone(&heard),
            // An agent that prints its prompt is read with the same eyes.
            reading: self.reading(&started.story, &secrets.redact(prompt)),
            transcript: self.transcript(pages),
            clean_output: Redactor::new(Arc::clone(secrets)),
            clean_errors: Redactor::new(Arc::clone(secrets)),
            timeouts: self.orders.timeouts,
            listening: self.orders.listening,
            stop: self.stop.subscribe(),
            happened: self.happened.0.clone(),
        };
        let attending = tokio::spawn(attendance.attend());
        let happened = self.happened.0.clone();
        tokio::spawn(async move {
            if attending.await.is_err() {
                let _ = happened.send(Happened::AttendanceLost).await;
            }
        });
        let tree = Self::before(started).clone();
        Ok(Watch::new(tree, heard, speak, takes_messages))
    }

    fn transcript(&self, pages: &Pages) -> Transcript {
        let for_errors = self.orders.log_limit / ERRORS_SHARE;
        let output = Log::create(&pages.output, self.orders.log_limit - for_errors);
        Transcript::begin(output, Log::create(&pages.errors, for_errors))
    }

    pub(super) fn attempt_ended(&mut self, report: Report) -> Result<(), EngineError> {
        let Some(started) = self.state.in_flight.get(&report.attempt).cloned() else {
            return Ok(());
        };
        let under_way = self.under_way.remove(&report.attempt);
        self.take_back_the_end();
        let outcome = classify(&report.read.seen, &report.exit, report.ended_by);
        let mut signals = report.read.signals.clone();
        self.remove_locks(report.ended_by.is_some() || !report.ended.is_empty());
        // What cannot be put back now, the next process puts back first: for it, this attempt is
        // still under way.
        let stray = self.look_after(&started, under_way.as_ref())?;
        let ticked = stray.is_none() && self.put_back_instructions(&started, under_way.as_ref())?;
        signals.claims_story |= ticked && !signals.stages_left;
        if stray.is_none() {
            self.refresh_backlog();
        }
        self.marks_are_suspect = true;
        // An attempt that cannot be looked at is recorded all the same: what it said and cost is
        // known.
        let differs = self.look_at_changes(&started, &signals, &outcome, under_way.as_ref());
        let (evidence, difference, problem) = match differs {
            Ok(difference) => (self.gather(difference.as_ref(), stray), difference, None),
            Err(error) => {
                let unknown = Evidence { changed: true, remaining: usize::MAX, stray: None };
                (unknown, None, Some(error))
            }
        };
        let traces = match stray {
            // Branch and tree go back to where they were.
            Some(_) => Traces { changed: Some(false), ..Traces::default() },
            None => {
                let text = &report.read.final_text;
                self.traces(&started, &outcome, difference.as_ref(), text, under_way.as_ref())
            }
        };
        let verdict = judge(&outcome, &signals, evidence);
        let (concerns, trouble) = match (&verdict, &problem) {
            (Verdict::Done, None) => match self.concerns(&started.story, under_way.as_ref()) {
                Ok(concerns) => (concerns, None),
                Err(error) => (Vec::new(), Some(error)),
            },
            _ => (Vec::new(), None),
        };
        let problem = problem.or(trouble);
        let agent = report.read.started.clone().unwrap_or_default();
        let bill = self.bill(&report);
        let counted = bill.counted(&report.read.usage);
        self.tell(&report, &signals, evidence, under_way.as_ref());
        let said = last_words(&report.read.final_text);
        let stages = self.stages(&started.story, &outcome, &signals, stray);
        let triggers = self.triggers(&started.story, &report, &verdict, &stages, counted);
        let mut events = vec![Event::AttemptEnded(Box::new(AttemptEnded {
            attempt: report.attempt.clone(),
            story: started.story.clone(),
            outcome,
            signals,
            verdict: verdict.clone(),
            usage: report.read.usage,
            elapsed_ms: u64::try_from(report.elapsed.as_millis()).unwrap_or(u64::MAX),
            head: self.parts.tree.head_commit().unwrap_or_default(),
            concerns: concerns.clone(),
            agent_version: agent.version,
            model: agent.model,
            traces,
            bill,
            said,
            context: report.read.context,
            triggers,
        }))];
        events.extend(stages);
        let plain = self.is_plain_claim(&started.story, !concerns.is_empty());
        let failed = matches!(verdict, Verdict::Failed { .. });
        events.extend(follow_up(&started, verdict, plain));
        events.extend(stray.map(|stray| way_back(&started, stray)));
        self.record(events)?;
        self.tell_user_books()?;
        self.say_what_was_too_dear(counted);
        if let Some(error) = problem {
            return Err(error);
        }
        if failed && stray.is_none() {
            self.keep_attempt(&started.story)?;
        }
        match report.tree {
            TreeEnd::Gone => Ok(()),
            TreeEnd::Survivors(names) => Err(EngineError::Survivors(names)),
            TreeEnd::Unknown => Err(EngineError::SupervisorLost),
        }
    }

    fn gather(&self, difference: Option<&Difference>, stray: Option<Stray>) -> Evidence {
        let remaining = self.state.marks.remaining(self.parts.backlog.current());
        let changed = difference.is_none_or(|difference| !difference.is_empty());
        Evidence { changed, remaining, stray }
    }

    fn tell(
        &mut self,
        report: &Report,
        signals: &Signals,
        evidence: Evidence,
        under_way: Option<&UnderWay>,
    ) {
        if is_false_promise(signals, evidence) {
            self.notice(Notice::FalsePromise { remaining: evidence.remaining });
        }
        if !signals.claims_others.is_empty() {
            self.notice(Notice::OtherClaims { ids: signals.claims_others.clone() });
        }
        let gone = self.disappeared(under_way);
        if !gone.is_empty() {
            let gone = gone.join(", ");
            let text = format!("{gone} disappeared from the backlog during the attempt");
            self.notice(Notice::Warning(text));
        }
        for (rule, times) in &report.read.denied {
            let often = if *times == 1 { "once".to_owned() } else { format!("{times} times") };
            let text = format!(
                "the agent was not allowed to use `{rule}` ({often}); if it may, add {rule:?} to \
                 `allowed_tools` in ralph.toml"
            );
            self.notice(Notice::Warning(text));
        }
        if let Some(problem) = &report.log_problem {
            let text = format!("the agent's log is not whole, the run goes on without: {problem}");
            self.notice(Notice::Warning(text));
        }
        if !report.ended.is_empty() && report.ended_by.is_none() {
            let names = some_of(&report.ended);
            self.notice(Notice::Info(format!("ended what the agent left behind: {names}")));
        }
        if !report.kept.is_empty() {
            let names = some_of(&report.kept);
            let text = format!("left running, as `keep_processes` in ralph.toml says: {names}");
            self.notice(Notice::Info(text));
        }
    }
}

/// What it did is kept, and costs the next attempt nothing.
fn way_back(started: &AttemptStarted, stray: Stray) -> Event {
    let to = Engine::before(started).clone();
    Event::ReturnPlanned { story: started.story.clone(), to, why: stray.into() }
}

/// A plain claim is decided by the commit itself, which sees whether anything changed.
fn follow_up(started: &AttemptStarted, verdict: Verdict, plain: bool) -> Option<Event> {
    let story = started.story.clone();
    match verdict {
        Verdict::Done if !plain => None,
        Verdict::Done => Some(Event::ClosePlanned { attempt: started.attempt.clone(), story }),
        Verdict::Escalated { escalation } => {
            Some(Event::QuestionRaised { story, question: escalation })
        }
        Verdict::Progress
        | Verdict::Failed { .. }
        | Verdict::NotTheStory { .. }
        | Verdict::PromptTooLong { .. }
        | Verdict::Interrupted => None,
    }
}
