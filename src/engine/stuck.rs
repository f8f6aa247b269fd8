//! Agents that are heard and get nowhere.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};

use crate::agent::message;
use crate::core::decide::Due;
use crate::core::event::{Answer, AttemptStarted, Base, Event, Nudger, StuckStep};
use crate::core::health::{Ladder, Rung};
use crate::core::outcome::EndedBy;
use crate::core::signal::{Escalation, EscalationKind};

use super::attempt::Word;
use super::error::EngineError;
use super::ports::{Asked, WITHDRAWAL};
use super::signals::SIGINT;
use super::{Engine, Happened};

/// In so many parts the patience with a stuck agent is looked at.
const LOOKS: u32 = 3;
const MORE_TIME: usize = 1;
const HAND_OFF: usize = 2;
const MINUTE: u64 = 60;

/// What the loop has in its hands of an agent under way.
pub struct Watch {
    began: Instant,
    ladder: Ladder,
    /// When the tree was last looked at, and how it was.
    looked: Duration,
    tree: Base,
    /// How often something was heard, now and at the last look.
    heard: Arc<AtomicU64>,
    heard_before: u64,
    words: mpsc::UnboundedSender<Word>,
    takes_messages: bool,
}

impl Watch {
    pub fn new(
        tree: Base,
        heard: Arc<AtomicU64>,
        words: mpsc::UnboundedSender<Word>,
        takes_messages: bool,
    ) -> Self {
        Self {
            began: Instant::now(),
            ladder: Ladder::default(),
            looked: Duration::ZERO,
            tree,
            heard,
            heard_before: 0,
            words,
            takes_messages,
        }
    }

    /// How long its agent has been at work, while the machine was awake.
    pub fn busy(&self) -> Duration {
        self.began.elapsed()
    }

    pub fn takes_messages(&self) -> bool {
        self.takes_messages
    }

    /// An agent that is on its way out hears nothing any more.
    pub fn say(&self, text: &str) {
        if self.takes_messages {
            let _ = self.words.send(Word::Say(message(text)));
        }
    }
}

impl Engine {
    /// What is due for an agent that gets nowhere. The tree is looked at now and then, and before
    /// anything is done.
    pub(super) fn stuck(&mut self) -> Result<Option<Due>, EngineError> {
        let patience = self.orders.patience;
        let Some(started) = self.state.in_flight.values().next().cloned() else {
            return Ok(None);
        };
        let Some(under_way) = self.under_way.get(&started.attempt) else { return Ok(None) };
        let Some(stuck_after) = patience.stuck_after else { return Ok(None) };
        let watch = &under_way.watch;
        let awake = watch.began.elapsed();
        let due = watch.ladder.due(awake, &patience);
        if due.is_none() && awake.saturating_sub(watch.looked) < stuck_after / LOOKS {
            return Ok(None);
        }
        self.look_for_progress(&started)?;
        let Some(under_way) = self.under_way.get(&started.attempt) else { return Ok(None) };
        let due = under_way.watch.ladder.due(awake, &patience);
        Ok(due.map(|rung| Due { attempt: started.attempt, rung }))
    }

    /// Silence is what time-outs are for.
    fn look_for_progress(&mut self, started: &AttemptStarted) -> Result<(), EngineError> {
        let now = self.parts.tree.base();
        let Some(under_way) = self.under_way.get_mut(&started.attempt) else { return Ok(()) };
        let watch = &mut under_way.watch;
        let awake = watch.began.elapsed();
        let heard = watch.heard.load(Ordering::Relaxed);
        let was_silent = std::mem::replace(&mut watch.heard_before, heard) == heard;
        watch.looked = awake;
        let is_unchanged = now.as_ref().is_ok_and(|now| *now == watch.tree);
        if is_unchanged && !was_silent {
            return Ok(());
        }
        // What cannot be looked at now is no reason to end anybody.
        if let Ok(now) = now {
            watch.tree = now;
        }
        let was_stuck = !watch.ladder.is_calm();
        watch.ladder.calm(awake);
        if was_stuck && watch.ladder.is_calm() {
            self.step(started, StuckStep::Recovered)
        } else {
            Ok(())
        }
    }

    fn is_calm(&self, attempt: &str) -> bool {
        self.under_way.get(attempt).is_some_and(|under_way| under_way.watch.ladder.is_calm())
    }

    pub(super) fn give_time(&mut self, attempt: &str) {
        if let Some(under_way) = self.under_way.get_mut(attempt) {
            let awake = under_way.watch.began.elapsed();
            under_way.watch.ladder.calm(awake);
        }
    }

    pub(super) async fn climb(&mut self, due: Due) -> Result<(), EngineError> {
        let Some(under_way) = self.under_way.get_mut(&due.attempt) else { return Ok(()) };
        let awake = under_way.watch.began.elapsed();
        under_way.watch.ladder.climb(due.rung, awake);
        let Some(started) = self.state.in_flight.get(&due.attempt).cloned() else {
            return Ok(());
        };
        match due.rung {
            Rung::Nudge => self.nudge(&due.attempt, reminder(&started, awake), Nudger::Driver),
            Rung::Ask => self.ask_about(&started, awake).await,
            Rung::Terminate => self.terminate(&started, awake),
        }
    }

    fn terminate(&mut self, started: &AttemptStarted, awake: Duration) -> Result<(), EngineError> {
        self.step(started, StuckStep::Ended { minutes: minutes(awake) })?;
        if let Some(under_way) = self.under_way.get_mut(&started.attempt) {
            under_way.watch.ladder.climb(Rung::Terminate, awake);
            let _ = under_way.watch.words.send(Word::End(EndedBy::Stuck));
        }
        Ok(())
    }

    fn step(&mut self, started: &AttemptStarted, step: StuckStep) -> Result<(), EngineError> {
        self.record(vec![Event::Stuck { story: started.story.clone(), step }])
    }

    /// The agent goes on meanwhile; when it comes to its end, or gets on, there is nothing to ask
    /// any more.
    async fn ask_about(
        &mut self,
        started: &AttemptStarted,
        awake: Duration,
    ) -> Result<(), EngineError> {
        self.step(started, StuckStep::Asked { minutes: minutes(awake) })?;
        let Some(story) = self.parts.backlog.current().story(&started.story).cloned() else {
            return Ok(());
        };
        let (human, patience) = (Arc::clone(&self.parts.human), self.orders.patience.answer);
        let question = question(&self.parts.agent.label(), awake);
        let mut asking =
            tokio::task::spawn_blocking(move || human.ask(&story, &question, patience));
        let look = self.orders.patience.stuck_after.unwrap_or(patience) / LOOKS;
        let asked = loop {
            tokio::select! {
                asked = &mut asking => break asked.unwrap_or(Asked::NobodyThere),
                signal = self.signals.next() => {
                    self.take_signal(signal);
                    break self.withdraw_question(asking).await;
                }
                () = sleep(look) => {
                    self.look_for_progress(started)?;
                    if self.is_calm(&started.attempt) {
                        let asked = self.withdraw_question(asking).await;
                        self.parts.human.come_back();
                        break asked;
                    }
                }
                happened = self.happened.1.recv() => match happened {
                    // The menu has the terminal.
                    Some(Happened::Activity(_)) => {}
                    Some(Happened::AttemptEnded(report)) => {
                        let asked = self.withdraw_question(asking).await;
                        self.parts.human.come_back();
                        self.attempt_ended(*report)?;
                        return self.answered_late(started, asked);
                    }
                    _ => return Err(EngineError::SupervisorLost),
                },
            }
        };
        self.take_answer(started, asked, awake)
    }

    /// An answer that was just given counts.
    async fn withdraw_question(&self, asking: tokio::task::JoinHandle<Asked>) -> Asked {
        self.parts.human.withdraw();
        match timeout(WITHDRAWAL, asking).await {
            Ok(Ok(answered @ Asked::Answered(_))) => answered,
            _ => Asked::NobodyThere,
        }
    }

    fn answered_late(&mut self, started: &AttemptStarted, asked: Asked) -> Result<(), EngineError> {
        match asked {
            Asked::Answered(answer @ (Answer::Skip | Answer::Abort | Answer::Guidance { .. })) => {
                self.record_answer(started, answer)
            }
            _ => Ok(()),
        }
    }

    fn take_answer(
        &mut self,
        started: &AttemptStarted,
        asked: Asked,
        awake: Duration,
    ) -> Result<(), EngineError> {
        let answer = match asked {
            Asked::Answered(answer) => answer,
            // The rest of the time for an answer passes first.
            Asked::NobodyThere => return Ok(()),
            Asked::Interrupted => {
                self.take_signal(SIGINT);
                return Ok(());
            }
        };
        match answer {
            Answer::Option { number: MORE_TIME, .. } => {
                self.step(started, StuckStep::MoreTime)?;
                self.give_time(&started.attempt);
                Ok(())
            }
            Answer::Guidance { text } => {
                self.nudge(&started.attempt, text, Nudger::Human)?;
                self.give_time(&started.attempt);
                Ok(())
            }
            Answer::Option { number: HAND_OFF, .. } | Answer::Retry => {
                self.terminate(started, awake)
            }
            Answer::Skip | Answer::Abort => {
                self.record_answer(started, answer)?;
                self.terminate(started, awake)
            }
            // It is the human's from here on.
            Answer::Option { .. } | Answer::Accept => {
                let (story, question) = (started.story.clone(), given_up(awake));
                let parked = Event::StoryParked { story: story.clone() };
                self.record(vec![Event::QuestionRaised { story, question }, parked])?;
                self.terminate(started, awake)
            }
        }
    }

    fn record_answer(
        &mut self,
        started: &AttemptStarted,
        answer: Answer,
    ) -> Result<(), EngineError> {
        self.record(vec![Event::QuestionAnswered { story: started.story.clone(), answer }])
    }
}

fn minutes(awake: Duration) -> u64 {
    awake.as_secs() / MINUTE
}

fn reminder(started: &AttemptStarted, awake: Duration) -> String {
    format!(
        "This attempt at {} has been going on for {} minutes, and nothing in the work tree changed \
         for a long time. Go back to the story and its criteria. When it is done, check it and say \
         so. When you cannot get on, stop and escalate with a question.",
        started.story,
        minutes(awake)
    )
}

fn question(agent: &str, awake: Duration) -> Escalation {
    Escalation {
        kind: EscalationKind::Stuck,
        summary: format!("{agent} works and gets nowhere"),
        context: format!(
            "It has been at it for {} minutes. It is heard, but nothing in the work tree changed \
             for a long time, and a reminder did not help.",
            minutes(awake)
        ),
        options: vec![
            "Give it more time".to_owned(),
            "Hand over: end it, keep its work, and let a fresh agent go on".to_owned(),
            "End it and leave the story to me".to_owned(),
        ],
        question: "What now?".to_owned(),
        unread: None,
    }
}

fn given_up(awake: Duration) -> Escalation {
    Escalation {
        kind: EscalationKind::Stuck,
        summary: "you ended its agent, which got nowhere".to_owned(),
        context: format!("It had been at it for {} minutes.", minutes(awake)),
        options: Vec::new(),
        question: "How should it go on?".to_owned(),
        unread: None,
    }
}
