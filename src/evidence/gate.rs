//! One gate from its start to the proof that nothing of it is left.

use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::core::evidence::{GateEnd, GateReport, TAIL};
use crate::core::gate::{Gate, Run};
use crate::core::secrets::{Redactor, Rules};
use crate::process::message::{Exit, Report};
use crate::process::{Order, Running, SpawnError, Spec, Supervisor, ordered};

use super::tail::Tail;

/// What is in the pipes once nothing can write any more is there now.
const DRAIN: Duration = Duration::from_millis(300);
/// The supervisor's own grace and patience, and a little: then it is not coming back.
const END_PATIENCE: Duration = Duration::from_secs(20);

#[derive(Debug, thiserror::Error)]
pub enum EvidenceError {
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    #[error("processes of a gate could not be ended: {}; end them by hand", .0.join(", "))]
    Survivors(Vec<String>),
    #[error("the supervisor of a gate was killed from outside; look for what it left")]
    SupervisorLost,
}

pub enum Checked {
    Report(GateReport),
    /// The human wants the run to end; the gate said nothing.
    Stopped,
}

/// Runs gates, one after the other.
pub struct Runner {
    pub supervisor: Supervisor,
    pub root: PathBuf,
    /// Set, or removed when None.
    pub env: Vec<(OsString, Option<OsString>)>,
    pub stop: watch::Receiver<Option<Order>>,
    /// What the gates print passes these before anybody else sees it.
    pub secrets: Arc<Rules>,
    /// Everything that the gates print.
    pub log: File,
}

/// How one process of a gate ended.
struct Ended {
    exit: Option<Exit>,
    not_started: Option<String>,
    timed_out: bool,
    stopped: bool,
    tail: Tail,
}

impl Runner {
    /// As often as the gate may be tried.
    pub async fn run(&mut self, gate: &Gate) -> Result<Checked, EvidenceError> {
        let started = Instant::now();
        let mut tries = gate.retries + 1;
        loop {
            let ended = self.once(gate).await?;
            if ended.stopped {
                return Ok(Checked::Stopped);
            }
            tries -= 1;
            let end = ended.end();
            if end != GateEnd::Passed && tries > 0 {
                continue;
            }
            let elapsed_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
            let (gate, tail) = (self.shown(gate), ended.tail.text());
            return Ok(Checked::Report(GateReport { gate, guards: None, end, elapsed_ms, tail }));
        }
    }

    async fn once(&mut self, gate: &Gate) -> Result<Ended, EvidenceError> {
        let _ = writeln!(self.log, "$ {}", self.shown(gate));
        let mut running = self.supervisor.spawn(&self.spec(gate))?;
        let ended = self.listen(&mut running, gate.timeout).await;
        running.supervisor_ended().await;
        ended
    }

    /// As it may stand in a log, a prompt and a commit.
    fn shown(&self, gate: &Gate) -> String {
        self.secrets.redact(&gate.to_string()).into_owned()
    }

    fn spec(&self, gate: &Gate) -> Spec {
        let (program, args) = match &gate.run {
            Run::Shell(command) => ("/bin/sh".into(), vec!["-c".into(), command.into()]),
            Run::Program(words) => {
                let mut words = words.iter().map(OsString::from);
                (words.next().unwrap_or_default(), words.collect())
            }
        };
        let own = gate.env.iter().map(|(key, value)| (key.into(), Some(value.into())));
        Spec {
            program,
            args,
            dir: gate.dir.as_ref().map_or_else(|| self.root.clone(), |dir| self.root.join(dir)),
            env: self.env.iter().cloned().chain(own).collect(),
            input: Some(PathBuf::from("/dev/null")),
        }
    }

    async fn listen(
        &mut self,
        running: &mut Running,
        timeout: Duration,
    ) -> Result<Ended, EvidenceError> {
        let mut ended = Ended {
            exit: None,
            not_started: None,
            timed_out: false,
            stopped: false,
            tail: Tail::new(TAIL),
        };
        let redactor = || Redactor::new(Arc::clone(&self.secrets));
        let (mut clean_out, mut clean_err) = (redactor(), redactor());
        let mut open = (true, true);
        let (mut out, mut err) = (vec![0; 64 * 1024], vec![0; 8 * 1024]);
        let mut deadline = Instant::now() + timeout;
        let mut gone = false;
        while !gone || open != (false, false) {
            tokio::select! {
                biased;
                read = running.stdout.read(&mut out), if open.0 => match read {
                    Ok(count @ 1..) => self.hear(&mut clean_out, out.get(..count), &mut ended),
                    _ => open.0 = false,
                },
                read = running.stderr.read(&mut err), if open.1 => match read {
                    Ok(count @ 1..) => self.hear(&mut clean_err, err.get(..count), &mut ended),
                    _ => open.1 = false,
                },
                report = running.control.report(), if !gone => {
                    gone = ended.take(report)?;
                    if gone {
                        deadline = Instant::now() + DRAIN;
                    }
                }
                order = ordered(&mut self.stop), if !gone => {
                    ended.stopped = true;
                    deadline = Instant::now() + END_PATIENCE;
                    running.order(order).await;
                }
                () = sleep_until(deadline) => {
                    if gone {
                        break;
                    }
                    if ended.timed_out || ended.stopped {
                        return Err(EvidenceError::SupervisorLost);
                    }
                    ended.timed_out = true;
                    deadline = Instant::now() + END_PATIENCE;
                    running.order(Order::Stop).await;
                }
            }
        }
        self.hear(&mut clean_out, None, &mut ended);
        self.hear(&mut clean_err, None, &mut ended);
        Ok(ended)
    }

    /// No chunk: there are no more.
    fn hear(&mut self, redactor: &mut Redactor, chunk: Option<&[u8]>, ended: &mut Ended) {
        let mut clean = Vec::new();
        match chunk {
            Some(chunk) => redactor.push(chunk, &mut clean),
            None => redactor.finish(&mut clean),
        }
        ended.tail.push(&clean);
        // The log is for people; a full disk must not decide about a claim.
        let _ = self.log.write_all(&clean);
    }
}

impl Ended {
    /// True when nothing of it is left.
    fn take(&mut self, report: Option<Report>) -> Result<bool, EvidenceError> {
        match report {
            Some(Report::Spawned { .. }) => Ok(false),
            Some(Report::SpawnFailed { error }) => {
                self.not_started = Some(error);
                Ok(true)
            }
            Some(Report::Exited { exit }) => {
                self.exit = Some(exit);
                Ok(false)
            }
            Some(Report::Gone { survivors, .. }) if survivors.is_empty() => Ok(true),
            Some(Report::Gone { survivors, .. }) => Err(EvidenceError::Survivors(survivors)),
            None => Err(EvidenceError::SupervisorLost),
        }
    }

    fn end(&self) -> GateEnd {
        match (&self.not_started, self.timed_out, self.exit) {
            (Some(error), ..) => GateEnd::NotStarted { error: error.clone() },
            (_, true, _) => GateEnd::TimedOut,
            (_, _, Some(Exit::Code(0))) => GateEnd::Passed,
            (_, _, Some(Exit::Code(code))) => GateEnd::Failed { code },
            (_, _, Some(Exit::Signal(signal))) => GateEnd::Killed { signal },
            (_, _, None) => GateEnd::NotStarted { error: "it never ran".to_owned() },
        }
    }
}
