//! One attempt: the last preparations, the agent process, the inspection of what it left.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::task::yield_now;
use tokio::time::Instant;

use crate::agent::{AgentEvent, EventListener, StreamReader};
use crate::model::{Base, EndedBy, Story, StoryId, Timeouts};
use crate::ports::{Activity, Clock, Doing};
use crate::process::pump::{Deadline, Pump, Pumped};
use crate::process::{Order, Spec, Supervisor};
use crate::runner::config::RunConfig;
use crate::runner::effects::{EndedAttempt, Happened, Inspection};
use crate::runner::error::Result;
use crate::runner::lane::Lane;
use crate::runner::task::inspect::Inspect;
use crate::runner::task::progress::AgentProgress;
use crate::runner::task::transcript::Transcript;
use crate::runner::task::{Mailbox, Message};
use crate::store::SyncPoint;
use crate::store::log::Log;
use crate::store::ralph_dir::{IterationFiles, PromptFile};
use crate::text::redact::{Redactor, SecretRules};
use crate::workspace::WorkTree;

/// Standard error's share of the log limit.
const ERRORS_SHARE: u64 = 16;
/// Only the latest activities of a chunk are shown.
const LATEST: usize = 8;

/// From the loop to an attempt.
pub enum Instruction {
    /// A message to the agent.
    Say(String),
    /// Scan the work tree, to see whether the agent makes progress.
    Scan,
    End(EndedBy),
}

/// An attempt from the moment at which it is recorded.
pub struct AttemptTask {
    pub attempt: String,
    pub lane: Lane,
    pub begin: Begin,
    pub files: IterationFiles,
    pub inspect: Inspect,
    pub supervisor: Supervisor,
    pub spec: Spec,
    pub stop: watch::Receiver<Option<Order>>,
    pub instructions: mpsc::UnboundedReceiver<Instruction>,
    /// It takes messages until its result, or its end.
    pub takes_messages: Arc<AtomicBool>,
    /// Counts its chunks of output.
    pub heard: Arc<AtomicU64>,
    pub reader: StreamReader,
    pub secrets: Arc<SecretRules>,
    pub at_start: Story,
    pub config: Arc<RunConfig>,
    pub mailbox: Mailbox,
    pub clock: Clock,
}

/// What is done before the agent starts, while the disk works.
pub struct Begin {
    pub story: StoryId,
    pub iteration: u32,
    pub before: Base,
    /// The ref that it is kept at.
    pub snapshot: String,
    pub prompt: String,
    /// The attempt's start must be safe before the agent does anything.
    pub started: SyncPoint,
}

impl Begin {
    fn run(self, tree: &WorkTree, file: &PromptFile) -> Result<()> {
        tree.keep_snapshot(&self.snapshot, &self.story, self.iteration, &self.before)?;
        file.write(&self.prompt)?;
        Ok(self.started.wait()?)
    }
}

/// An agent that runs.
struct RunningAgent {
    attempt: String,
    story: StoryId,
    progress: Arc<AgentProgress>,
    lane: Lane,
    supervisor: Supervisor,
    pump: Pump,
    instructions: mpsc::UnboundedReceiver<Instruction>,
    takes_messages: Arc<AtomicBool>,
    heard: Arc<AtomicU64>,
    reader: StreamReader,
    transcript: Transcript,
    /// Redact the agent's output.
    clean_output: Redactor,
    clean_errors: Redactor,
    timeouts: Timeouts,
    /// Report all of the agent's text.
    verbose: bool,
    mailbox: Mailbox,
    times: AttemptTimes,
}

/// Times of an attempt.
struct AttemptTimes {
    started: Instant,
    last_heard: Instant,
    /// The first result.
    result_at: Option<Instant>,
    /// When it ran out of work.
    done_since: Option<Instant>,
}

enum Input {
    Started,
    Output(Vec<u8>),
    Errors(Vec<u8>),
    Ordered,
    Due,
    Over,
    Instruction(Instruction),
}

impl AttemptTask {
    pub async fn run(self) -> Result<Happened> {
        let progress =
            AgentProgress::new(self.begin.before.clone(), self.config.backlog_in_tree.clone());
        let (story, begin) = (self.begin.story.clone(), self.begin);
        let IterationFiles { prompt, output, errors } = self.files;
        let transcript = transcript(output, errors, self.config.settings.log_limit);
        self.lane.with(move |tree| begin.run(tree, &prompt)).await??;
        let began = self.clock.now().steady;
        let redactor = || Redactor::new(Arc::clone(&self.secrets));
        let agent = RunningAgent {
            attempt: self.attempt,
            story,
            progress: Arc::new(progress),
            lane: self.lane.clone(),
            pump: Pump::new(self.supervisor.spawn(&self.spec)?, self.stop),
            supervisor: self.supervisor,
            instructions: self.instructions,
            takes_messages: self.takes_messages,
            heard: self.heard,
            reader: self.reader,
            transcript,
            clean_output: redactor(),
            clean_errors: redactor(),
            timeouts: self.config.settings.timeouts,
            verbose: self.config.verbose,
            mailbox: self.mailbox.clone(),
            times: AttemptTimes::start(),
        };
        let mut ended = agent.run(self.at_start).await;
        ended.elapsed = self.clock.now().steady.saturating_sub(began);
        let (inspect, mut mailbox) = (self.inspect, self.mailbox);
        let inspected = self.lane.with(move |tree| {
            ended.inspection = inspect.run(tree, &ended, &mut mailbox)?;
            Ok(Happened::AttemptEnded(Box::new(ended)))
        });
        inspected.await?
    }
}

fn transcript(output: io::Result<File>, errors: io::Result<File>, limit: u64) -> Transcript {
    let for_errors = limit / ERRORS_SHARE;
    let output = Log::new(output, limit - for_errors);
    Transcript::begin(output, Some(Log::new(errors, for_errors)))
}

impl RunningAgent {
    async fn run(mut self, at_start: Story) -> EndedAttempt {
        self.listen().await;
        self.takes_messages.store(false, Ordering::Relaxed);
        let processes = self.pump.finish();
        let mut rest = Rest::default();
        rest.take(&mut self.clean_output, &mut self.clean_errors, &mut self.reader);
        self.transcript.errors(rest.errors).await;
        self.transcript.output(rest.output).await;
        let ended_by = self.reader.ended_by();
        let heard = &mut |event: &AgentEvent<'_>| rest.heard.extend(doing(event));
        let report = self.reader.finish(&processes.exit, heard);
        let is_wanted = |doing: &Doing| self.verbose || !matches!(doing, Doing::Said(_));
        for doing in rest.heard.into_iter().filter(is_wanted) {
            let attempt = self.attempt.clone();
            let _ = self.mailbox.send(Message::Activity(Activity { attempt, doing })).await;
        }
        EndedAttempt {
            report,
            ended_by,
            processes,
            elapsed: Duration::ZERO,
            log_problem: self.transcript.finish().await.map(|error| error.to_string()),
            inspection: Inspection::default(),
            at_start,
            attempt: self.attempt,
        }
    }

    async fn listen(&mut self) {
        let mut clean = self.transcript.buffer();
        loop {
            let (deadline, why) = self.times.deadline(&self.timeouts, self.reader.has_begun());
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
                    Pumped::Started => Input::Started,
                    Pumped::Ordered => Input::Ordered,
                    Pumped::Due => Input::Due,
                    Pumped::Over => Input::Over,
                },
            };
            match next {
                Input::Output(said) => {
                    self.heard.fetch_add(1, Ordering::Relaxed);
                    self.hear(&said, StreamReader::push).await;
                    self.transcript.output(said).await;
                    clean = self.transcript.buffer();
                    // The loop runs on the same thread.
                    yield_now().await;
                }
                Input::Errors(said) => {
                    self.hear(&said, StreamReader::push_stderr).await;
                    self.transcript.errors(said).await;
                    clean = self.transcript.buffer();
                }
                Input::Started => self.started().await,
                // It ended by itself, and its result may still be in the pipe.
                Input::Ordered | Input::Instruction(Instruction::End(_))
                    if self.pump.has_exited() => {}
                Input::Ordered => drop(self.reader.end(EndedBy::Human)),
                Input::Due => self.end(why).await,
                Input::Over => return,
                Input::Instruction(Instruction::Say(text)) => {
                    self.reader.message(&text);
                    self.reply().await;
                }
                Input::Instruction(Instruction::Scan) => self.scan(),
                Input::Instruction(Instruction::End(why)) => self.end(why).await,
            }
        }
    }

    /// What the next agent and the close need is prepared while this agent works.
    async fn started(&mut self) {
        self.supervisor.prepare();
        let _ = self.mailbox.send(Message::Started { story: self.story.clone() }).await;
    }

    /// In a task of its own: a scan of a large tree takes long, and the agent's output is read
    /// meanwhile.
    fn scan(&self) {
        let (lane, mailbox, attempt) =
            (self.lane.clone(), self.mailbox.clone(), self.attempt.clone());
        let progress = Arc::clone(&self.progress);
        tokio::spawn(async move {
            let scanned = lane.with(move |tree| progress.look(tree)).await;
            // A failed scan is no reason to end an agent.
            let changed = !matches!(scanned, Ok(Ok(false)));
            let _ = mailbox.send(Message::Scanned { attempt, changed }).await;
        });
    }

    async fn end(&mut self, why: EndedBy) {
        if self.reader.end(why) {
            self.takes_messages.store(false, Ordering::Relaxed);
            self.pump.order(Order::Stop).await;
        }
    }

    async fn reply(&mut self) {
        let text = self.reader.take_replies();
        if !text.is_empty() {
            self.pump.say(text).await;
        }
    }

    async fn hear(&mut self, chunk: &[u8], push: fn(&mut StreamReader, &[u8], EventListener<'_>)) {
        self.times.last_heard = Instant::now();
        let (mut said, mut latest) = (Vec::new(), VecDeque::new());
        let verbose = self.verbose;
        push(&mut self.reader, chunk, &mut |event| match event {
            AgentEvent::Doing(..) => {
                if latest.len() == LATEST {
                    latest.pop_front();
                }
                latest.extend(doing(event));
            }
            AgentEvent::Said(_) if verbose => said.extend(doing(event)),
            _ => {}
        });
        self.reply().await;
        let had_result = self.times.result_at.is_some();
        self.times.note_result(&self.reader);
        if !had_result && self.times.result_at.is_some() {
            self.takes_messages.store(false, Ordering::Relaxed);
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
        reader.push_stderr(&self.errors, &mut |event| self.heard.extend(doing(event)));
        reader.push(&self.output, &mut |event| self.heard.extend(doing(event)));
    }
}

fn doing(event: &AgentEvent<'_>) -> Option<Doing> {
    match event {
        AgentEvent::Doing(kind, what) => {
            Some(Doing::Step { kind: *kind, what: (*what).to_owned() })
        }
        AgentEvent::Said(text) => Some(Doing::Said((*text).to_owned())),
        _ => None,
    }
}

impl AttemptTimes {
    fn start() -> Self {
        let now = Instant::now();
        Self { started: now, last_heard: now, result_at: None, done_since: None }
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

    /// The next timeout, and its kind.
    fn deadline(&self, times: &Timeouts, has_begun: bool) -> (Deadline, EndedBy) {
        if let Some(result_at) = self.result_at {
            // Background tasks have their own grace, counted from the first result.
            let last = result_at + times.background.max(times.after_result);
            let at = self.done_since.map_or(last, |since| last.min(since + times.after_result));
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

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn the_earliest_timeout_counts() {
        let times = Timeouts {
            first_event: 10 * SECOND,
            idle: 20 * SECOND,
            iteration: 50 * SECOND,
            after_result: 5 * SECOND,
            background: 30 * SECOND,
        };
        let short = Timeouts { background: SECOND, ..times };
        let begin = AttemptTimes::start();
        let after = |seconds: u32| begin.started + seconds * SECOND;
        let heard = |seconds| AttemptTimes { last_heard: after(seconds), ..AttemptTimes::start() };
        let result = |at: u32, done: Option<u32>| AttemptTimes {
            result_at: Some(after(at)),
            done_since: done.map(after),
            ..heard(at)
        };
        for (case, times, of, has_begun, at, why) in [
            ("silent", &times, heard(0), false, 10, EndedBy::FirstEventTimeout),
            ("heard", &times, heard(15), true, 35, EndedBy::IdleTimeout),
            ("never silent", &times, heard(40), true, 50, EndedBy::IterationTimeout),
            ("a result", &times, result(40, Some(40)), true, 45, EndedBy::AfterResult),
            ("background tasks", &times, result(40, None), true, 70, EndedBy::AfterResult),
            ("done with them", &times, result(40, Some(60)), true, 65, EndedBy::AfterResult),
            ("done with them late", &times, result(40, Some(69)), true, 70, EndedBy::AfterResult),
            ("no time for them", &short, result(40, Some(40)), true, 45, EndedBy::AfterResult),
        ] {
            let of = AttemptTimes { started: begin.started, ..of };
            let (deadline, found) = of.deadline(times, has_begun);
            assert_eq!((deadline.at - begin.started, found), (at * SECOND, why), "{case}");
            let is_silence = matches!(why, EndedBy::FirstEventTimeout | EndedBy::IdleTimeout);
            assert_eq!(deadline.silence, is_silence, "{case}");
        }
    }
}
