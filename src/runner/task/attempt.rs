//! One agent process, from its start to its report.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::mpsc;
use tokio::task::yield_now;
use tokio::time::Instant;

use crate::agent::{AgentEvent, StreamReader};
use crate::model::{EndedBy, Exit, Timeouts};
use crate::ports::{Activity, Doing};
use crate::process::pump::{Deadline, Pump, Pumped, SupervisedEnd};
use crate::process::{Order, ProcessExit};
use crate::runner::effects::{EndedAttempt, Happened};
use crate::runner::task::transcript::Transcript;
use crate::runner::task::{Mailbox, Message};
use crate::text::redact::Redactor;

/// Only the latest activities of a chunk are shown.
const LATEST: usize = 8;

/// From the loop to an attempt.
pub enum Instruction {
    /// A message to the agent.
    Say(String),
    End(EndedBy),
}

pub struct AttemptTask {
    pub attempt: String,
    pub pump: Pump,
    pub instructions: mpsc::UnboundedReceiver<Instruction>,
    /// It takes messages until its result.
    pub takes_messages: bool,
    /// Counts its chunks of output.
    pub heard: Arc<AtomicU64>,
    pub reader: StreamReader,
    pub transcript: Transcript,
    /// Redact the agent's output.
    pub clean_output: Redactor,
    pub clean_errors: Redactor,
    pub timeouts: Timeouts,
    /// Report all of the agent's text.
    pub verbose: bool,
    pub mailbox: Mailbox,
    pub clock: AttemptClock,
}

/// Times of an attempt, and why it was ended.
pub struct AttemptClock {
    started: Instant,
    last_heard: Instant,
    /// The first result.
    result_at: Option<Instant>,
    /// Since when it has nothing left to do.
    done_since: Option<Instant>,
    ended_by: Option<EndedBy>,
}

enum Input {
    Output(Vec<u8>),
    Errors(Vec<u8>),
    Ordered,
    Due,
    Over,
    Instruction(Instruction),
}

impl AttemptTask {
    pub async fn run(mut self) -> Happened {
        self.listen().await;
        let processes = self.pump.finish();
        let mut rest = Rest::default();
        rest.take(&mut self.clean_output, &mut self.clean_errors, &mut self.reader);
        self.transcript.errors(rest.errors).await;
        self.transcript.output(rest.output).await;
        let (exit, ended_by) = (exit(&processes), self.clock.ended_by);
        let heard = &mut |event: &AgentEvent<'_>| rest.heard.extend(doing(event));
        let report = self.reader.finish(&exit, ended_by, heard);
        let is_wanted = |doing: &Doing| self.verbose || !matches!(doing, Doing::Said(_));
        for doing in rest.heard.into_iter().filter(is_wanted) {
            let attempt = self.attempt.clone();
            let _ = self.mailbox.send(Message::Activity(Activity { attempt, doing })).await;
        }
        Happened::AttemptEnded(Box::new(EndedAttempt {
            report,
            ended_by,
            processes,
            elapsed: self.clock.started.elapsed(),
            log_problem: self.transcript.finish().await.map(|error| error.to_string()),
            attempt: self.attempt,
        }))
    }

    async fn listen(&mut self) {
        let mut clean = self.transcript.buffer();
        loop {
            let (deadline, why) = self.clock.deadline(&self.timeouts, self.reader.has_begun());
            let next = tokio::select! {
                biased;
                Some(instruction) = self.instructions.recv() => Input::Instruction(instruction),
                pumped = self.pump.next(deadline) => match pumped {
                    Pumped::Output(chunk) => {
                        self.clean_output.push(chunk, &mut clean);
                        Input::Output(std::mem::take(&mut clean))
                    }
                    Pumped::Errors(chunk) => {
                        self.clean_errors.push(chunk, &mut clean);
                        Input::Errors(std::mem::take(&mut clean))
                    }
                    Pumped::Ordered => Input::Ordered,
                    Pumped::Due => Input::Due,
                    Pumped::Over => Input::Over,
                },
            };
            match next {
                Input::Output(said) => {
                    self.hear(&said).await;
                    clean = self.transcript.output(said).await;
                    // The loop runs on the same thread.
                    yield_now().await;
                }
                Input::Errors(said) => {
                    self.clock.last_heard = Instant::now();
                    self.reader.push_stderr(&said);
                    clean = self.transcript.errors(said).await;
                }
                Input::Ordered if self.pump.has_exited() => {}
                Input::Ordered => {
                    self.clock.ended_by = self.clock.ended_by.or(Some(EndedBy::Human))
                }
                Input::Due => self.end(why).await,
                Input::Over => return,
                Input::Instruction(Instruction::Say(text)) if self.takes_messages => {
                    self.pump.say(self.reader.message(&text)).await;
                }
                Input::Instruction(Instruction::Say(_)) => {}
                Input::Instruction(Instruction::End(why)) => self.end(why).await,
            }
        }
    }

    /// The first reason counts.
    async fn end(&mut self, why: EndedBy) {
        if self.clock.ended_by.is_none() {
            self.clock.ended_by = Some(why);
            self.pump.order(Order::Stop).await;
        }
    }

    async fn hear(&mut self, chunk: &[u8]) {
        self.clock.last_heard = Instant::now();
        self.heard.fetch_add(1, Ordering::Relaxed);
        let (mut said, mut latest) = (Vec::new(), VecDeque::new());
        let verbose = self.verbose;
        self.reader.push(chunk, &mut |event| match event {
            AgentEvent::Doing(_) => {
                if latest.len() == LATEST {
                    latest.pop_front();
                }
                latest.extend(doing(event));
            }
            AgentEvent::Said(_) if verbose => said.extend(doing(event)),
            _ => {}
        });
        self.clock.note_result(&self.reader);
        if self.clock.result_at.is_some() && self.takes_messages {
            self.takes_messages = false;
            self.pump.close_input().await;
        }
        if self.reader.is_hopeless() {
            self.end(EndedBy::HopelessRetry).await;
        }
        let attempt = &self.attempt;
        let told = |doing| Message::Activity(Activity { attempt: attempt.clone(), doing });
        for doing in said {
            let _ = self.mailbox.send(told(doing)).await;
        }
        for doing in latest {
            let _ = self.mailbox.try_send(told(doing));
        }
    }
}

/// Output held back because it could have become a secret.
#[derive(Default)]
struct Rest {
    output: Vec<u8>,
    errors: Vec<u8>,
    heard: Vec<Doing>,
}

impl Rest {
    fn take(&mut self, output: &mut Redactor, errors: &mut Redactor, reader: &mut StreamReader) {
        output.finish(&mut self.output);
        errors.finish(&mut self.errors);
        reader.push_stderr(&self.errors);
        reader.push(&self.output, &mut |event| self.heard.extend(doing(event)));
    }
}

fn exit(end: &SupervisedEnd) -> Exit {
    match (&end.not_started, end.exit) {
        (Some(error), _) => Exit::NotSpawned { error: error.clone() },
        (None, Some(ProcessExit::Code(code))) => Exit::Code(code),
        (None, Some(ProcessExit::Signal(signal))) => Exit::Signal(signal),
        (None, None) => Exit::Unknown,
    }
}

fn doing(event: &AgentEvent<'_>) -> Option<Doing> {
    match event {
        AgentEvent::Doing(what) => Some(Doing::Step((*what).to_owned())),
        AgentEvent::Said(text) => Some(Doing::Said((*text).to_owned())),
        _ => None,
    }
}

impl AttemptClock {
    pub fn start() -> Self {
        let now = Instant::now();
        Self { started: now, last_heard: now, result_at: None, done_since: None, ended_by: None }
    }

    fn note_result(&mut self, reader: &StreamReader) {
        if !reader.has_result() {
            return;
        }
        self.result_at.get_or_insert(self.last_heard);
        if reader.is_at_work() {
            self.done_since = None;
        } else {
            self.done_since.get_or_insert(self.last_heard);
        }
    }

    /// Background tasks have their own grace, counted from the first result.
    fn result_deadline(&self, result_at: Instant, times: &Timeouts) -> Instant {
        let last = result_at + times.background.max(times.after_result);
        self.done_since.map_or(last, |since| last.min(since + times.after_result))
    }

    /// The next time-out, and its kind.
    fn deadline(&self, times: &Timeouts, has_begun: bool) -> (Deadline, EndedBy) {
        if let Some(at) = self.result_at {
            let at = self.result_deadline(at, times);
            return (Deadline { at, silence: false }, EndedBy::AfterResult);
        }
        let (silent, why) = if has_begun {
            (self.last_heard + times.idle, EndedBy::IdleTimeout)
        } else {
            (self.started + times.first_event, EndedBy::FirstEventTimeout)
        };
        let whole = self.started + times.iteration;
        if whole < silent {
            (Deadline { at: whole, silence: false }, EndedBy::IterationTimeout)
        } else {
            (Deadline { at: silent, silence: true }, why)
        }
    }
}
