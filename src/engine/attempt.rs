//! Attending one agent process from its start to the proof that nothing of it is left.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::sync::{mpsc, watch};
use tokio::task::yield_now;
use tokio::time::{Instant, sleep_until, timeout};

use crate::agent::reading::{Heard, Read, Reading};
use crate::core::outcome::{EndedBy, Exit};
use crate::core::policy::Timeouts;
use crate::core::secrets::Redactor;
use crate::process::{Order, Running, ordered};

use super::Happened;
use super::ports::Activity;
use super::progress::{Progress, TreeEnd};
use super::transcript::Transcript;

/// One read of the agent's output.
const CHUNK: usize = 256 * 1024;
/// What it did before these was over anyway.
const LATEST: usize = 8;
/// After the last process is gone nothing can write any more; what is in the pipe is there now.
const DRAIN: Duration = Duration::from_millis(300);

/// How long a supervisor that has nothing more to do may take to end.
const LAST_MOMENT: Duration = Duration::from_secs(2);

/// Everything that is known once an attempt is over.
pub struct Report {
    pub attempt: String,
    pub read: Read,
    pub exit: Exit,
    pub ended_by: Option<EndedBy>,
    pub elapsed: Duration,
    /// What had to be ended after the agent itself was gone, or with it.
    pub ended: Vec<String>,
    /// What was left alone, as the human wants it.
    pub kept: Vec<String>,
    pub tree: TreeEnd,
    /// Why the log is not whole.
    pub log_problem: Option<io::Error>,
}

/// What the loop has to say about an agent under way.
pub enum Word {
    /// To the agent, as it takes it.
    Say(String),
    End(EndedBy),
}

pub struct Attendance {
    pub attempt: String,
    pub running: Running,
    /// From the loop.
    pub words: mpsc::UnboundedReceiver<Word>,
    /// It takes messages until its result is there.
    pub takes_messages: bool,
    /// Counts what is heard of it.
    pub heard: Arc<AtomicU64>,
    pub reading: Reading,
    pub transcript: Transcript,
    /// What comes from the agent passes these before anybody else sees it.
    pub clean_output: Redactor,
    pub clean_errors: Redactor,
    pub timeouts: Timeouts,
    /// The agent's words are wanted, all of them.
    pub listening: bool,
    pub stop: watch::Receiver<Option<Order>>,
    pub happened: mpsc::Sender<Happened>,
}

impl Attendance {
    pub async fn attend(mut self) {
        let mut progress = Progress::new();
        self.listen(&mut progress).await;
        // Its last report came a moment before its end.
        let _ = timeout(LAST_MOMENT, self.running.supervisor_ended()).await;
        let mut heard = Vec::new();
        self.hear_the_rest(&mut heard).await;
        let read = self.reading.finish(&mut |what| heard.push(activity(what)));
        let last = heard.into_iter().filter(|what| self.listening || !is_said(what));
        for activity in last {
            let _ = self.happened.send(Happened::Activity(activity)).await;
        }
        let log_problem = self.transcript.finish().await;
        let report = Report {
            attempt: self.attempt,
            read,
            exit: progress.exit.unwrap_or(Exit::Unknown),
            ended_by: progress.ended_by,
            elapsed: progress.started.elapsed(),
            ended: progress.ended,
            kept: progress.kept,
            tree: progress.tree.unwrap_or(TreeEnd::Unknown),
            log_problem,
        };
        // The loop that is not there any more needs no report.
        let _ = self.happened.send(Happened::AttemptEnded(Box::new(report))).await;
    }

    async fn listen(&mut self, progress: &mut Progress) {
        let mut output = vec![0; CHUNK];
        let mut errors = vec![0; 8 * 1024];
        let mut clean = self.transcript.buffer();
        let mut drained_by = None;
        loop {
            if progress.tree.is_some() {
                drained_by.get_or_insert_with(|| Instant::now() + DRAIN);
            }
            if drained_by.is_some() && progress.open == (false, false) {
                return;
            }
            let (deadline, why) = match drained_by {
                Some(drained_by) => (drained_by, None),
                None => progress.deadline(&self.timeouts, self.reading.has_begun()),
            };
            tokio::select! {
                // An agent that never stops talking must not keep orders and its own time waiting.
                // But what was said comes before what was not: a process that was stopped itself
                // must not take the agent's waiting output for silence.
                biased;
                order = ordered(&mut self.stop) => {
                    if progress.exit.is_none() {
                        progress.ended_by.get_or_insert(EndedBy::Human);
                    }
                    self.order(order, progress).await;
                }
                why = at(deadline, why.filter(|why| !is_silence(*why))) => {
                    self.end(why, progress).await;
                }
                read = self.running.stdout.read(&mut output), if progress.open.0 => {
                    match read {
                        Ok(count @ 1..) => {
                            self.clean_output.push(output.get(..count).unwrap_or_default(), &mut clean);
                            self.hear(&clean, progress).await;
                            clean = self.transcript.output(clean).await;
                            // The loop hears signals on the same thread.
                            yield_now().await;
                        }
                        _ => progress.open.0 = false,
                    }
                }
                read = self.running.stderr.read(&mut errors), if progress.open.1 => {
                    match read {
                        Ok(count @ 1..) => {
                            self.clean_errors.push(errors.get(..count).unwrap_or_default(), &mut clean);
                            self.hear_errors(&clean, progress);
                            clean = self.transcript.errors(clean).await;
                        }
                        _ => progress.open.1 = false,
                    }
                }
                Some(word) = self.words.recv() => match word {
                    Word::Say(text) if self.takes_messages => self.running.say(text).await,
                    Word::Say(_) => {}
                    Word::End(why) if progress.ended_by.is_none() => self.end(why, progress).await,
                    Word::End(_) => {}
                },
                report = self.running.control.report(), if progress.tree.is_none() => progress.take(report),
                () = sleep_until(deadline) => match why {
                    Some(why) => self.end(why, progress).await,
                    None => return,
                },
            }
        }
    }

    async fn end(&mut self, why: EndedBy, progress: &mut Progress) {
        progress.ended_by = Some(why);
        self.order(Order::Stop, progress).await;
    }

    async fn order(&mut self, order: Order, progress: &mut Progress) {
        progress.ending_since.get_or_insert_with(Instant::now);
        self.running.order(order).await;
    }

    async fn hear(&mut self, chunk: &[u8], progress: &mut Progress) {
        progress.last_heard = Instant::now();
        self.heard.fetch_add(1, Ordering::Relaxed);
        let (mut said, mut doing) = (Vec::new(), VecDeque::new());
        let listening = self.listening;
        self.reading.push(chunk, &mut |what| match what {
            Heard::Doing(_) => {
                doing.truncate(LATEST - 1);
                doing.push_front(activity(what));
            }
            Heard::Said(_) if listening => said.push(activity(what)),
            Heard::Said(_) => {}
        });
        progress.note_result(&self.reading);
        if progress.result_at.is_some() && self.takes_messages {
            self.takes_messages = false;
            self.running.close_input().await;
        }
        if self.reading.is_hopeless() && progress.ended_by.is_none() {
            progress.ended_by = Some(EndedBy::HopelessRetry);
            self.order(Order::Stop, progress).await;
        }
        for activity in said {
            let _ = self.happened.send(Happened::Activity(activity)).await;
        }
        for activity in doing.into_iter().rev() {
            let _ = self.happened.try_send(Happened::Activity(activity));
        }
    }

    fn hear_errors(&mut self, chunk: &[u8], progress: &mut Progress) {
        progress.last_heard = Instant::now();
        self.reading.push_stderr(chunk);
    }

    /// What was held back because it could have been the beginning of a secret.
    async fn hear_the_rest(&mut self, heard: &mut Vec<Activity>) {
        let (mut output, mut errors) = (Vec::new(), Vec::new());
        self.clean_output.finish(&mut output);
        self.clean_errors.finish(&mut errors);
        self.reading.push_stderr(&errors);
        self.reading.push(&output, &mut |what| heard.push(activity(what)));
        self.transcript.errors(errors).await;
        self.transcript.output(output).await;
    }
}

/// Never, when there is no reason.
async fn at(deadline: Instant, why: Option<EndedBy>) -> EndedBy {
    match why {
        Some(why) => {
            sleep_until(deadline).await;
            why
        }
        None => std::future::pending().await,
    }
}

fn is_silence(why: EndedBy) -> bool {
    matches!(why, EndedBy::FirstEventTimeout | EndedBy::IdleTimeout)
}

fn activity(heard: Heard<'_>) -> Activity {
    match heard {
        Heard::Doing(what) => Activity::Doing(what.to_owned()),
        Heard::Said(what) => Activity::Said(what.to_owned()),
    }
}

fn is_said(activity: &Activity) -> bool {
    matches!(activity, Activity::Said(_))
}
