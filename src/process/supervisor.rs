//! The process between driver and agent. See the module's theory of operation.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Signal, WaitOptions, getpid, setsid, wait};
use tokio::signal::unix::{SignalKind, signal};

use super::message::{Exit, Order, Report};
use super::tree::{self, Seen};

/// How long what was told to end has before it is killed.
const GRACE: Duration = Duration::from_secs(5);
/// How long SIGKILL may take before a process counts as not killable.
const KILL_PATIENCE: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(5);

/// What to run, and what it reads.
pub struct Task {
    pub program: OsString,
    pub args: Vec<OsString>,
    pub input: PathBuf,
}

enum Happened {
    Ordered(Order),
    /// The driver is gone.
    LifeLineCut,
    Reaped(i32, Exit),
    /// Nothing is below this process any more: every orphan was adopted and has ended.
    NoChildren,
}

/// Runs the agent and returns when nothing of it is left, or nothing more can be done about it.
pub fn supervise(task: &Task) -> io::Result<()> {
    // A session of its own keeps the terminal's signals and questions away from the agent.
    // It fails only when this process leads a group already, and then it has what it needs.
    let _ = setsid();
    adopt_orphans()?;
    let control = UnixStream::from(rustix::stdio::stdin().try_clone_to_owned()?);
    let agent = match spawn(task) {
        Ok(pid) => pid,
        Err(error) => {
            return send(&control, &Report::SpawnFailed { error: error.to_string() });
        }
    };
    let attended = attend(control, agent);
    if attended.is_err() {
        // Nobody watches it, so it must not go on.
        tree::descendants(getpid().as_raw_pid()).iter().for_each(|one| one.signal(Signal::KILL));
    }
    attended
}

fn attend(control: UnixStream, agent: i32) -> io::Result<()> {
    let_go_of_the_pipes()?;
    let (sender, happened) = channel();
    listen(control.try_clone()?, sender.clone())?;
    obey_signals(sender.clone())?;
    reap(sender)?;
    let mut watch =
        Watch { control, agent, happened, ended: Vec::new(), named: HashSet::new(), killed: None };
    watch.report(&Report::Spawned { pid: agent });
    watch.run();
    Ok(())
}

fn adopt_orphans() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::process::set_child_subreaper(Some(getpid()))?;
    Ok(())
}

fn spawn(task: &Task) -> io::Result<i32> {
    let child = Command::new(&task.program)
        .args(&task.args)
        .stdin(Stdio::from(File::open(&task.input)?))
        .process_group(0)
        .spawn()?;
    i32::try_from(child.id()).map_err(io::Error::other)
}

fn let_go_of_the_pipes() -> io::Result<()> {
    let nowhere = File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdout(&nowhere)?;
    rustix::stdio::dup2_stderr(&nowhere)?;
    Ok(())
}

fn send(mut control: &UnixStream, report: &Report) -> io::Result<()> {
    let mut line = serde_json::to_vec(report)?;
    line.push(b'\n');
    control.write_all(&line)
}

fn listen(control: UnixStream, happened: Sender<Happened>) -> io::Result<()> {
    in_background(move || {
        for line in BufReader::new(control).lines() {
            let Ok(line) = line else { break };
            let Ok(order) = serde_json::from_str(&line) else { continue };
            if happened.send(Happened::Ordered(order)).is_err() {
                return;
            }
        }
        let _ = happened.send(Happened::LifeLineCut);
    })
}

fn in_background(work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().spawn(work).map(drop)
}

/// Whoever wants to end this process wants to end the agent: it must not outlive its supervisor.
fn obey_signals(happened: Sender<Happened>) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    in_background(move || {
        runtime.block_on(async {
            let kinds = [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()];
            let [Ok(mut term), Ok(mut int), Ok(mut hup)] = kinds.map(signal) else { return };
            loop {
                tokio::select! {
                    _ = term.recv() => {}
                    _ = int.recv() => {}
                    _ = hup.recv() => {}
                }
                if happened.send(Happened::Ordered(Order::Stop)).is_err() {
                    return;
                }
            }
        });
    })
}

/// The only place that waits, so no exit status can be taken by another.
fn reap(happened: Sender<Happened>) -> io::Result<()> {
    in_background(move || {
        loop {
            let event = match wait(WaitOptions::empty()) {
                Ok(Some((pid, status))) => {
                    match (status.exit_status(), status.terminating_signal()) {
                        (Some(code), _) => Happened::Reaped(pid.as_raw_pid(), Exit::Code(code)),
                        (_, Some(signal)) => {
                            Happened::Reaped(pid.as_raw_pid(), Exit::Signal(signal))
                        }
                        _ => continue,
                    }
                }
                Err(rustix::io::Errno::INTR) | Ok(None) => continue,
                Err(_) => Happened::NoChildren,
            };
            let last = matches!(event, Happened::NoChildren);
            if happened.send(event).is_err() || last {
                return;
            }
        }
    })
}

struct Watch {
    control: UnixStream,
    agent: i32,
    happened: Receiver<Happened>,
    /// Names of what had to be told to end, for the log.
    ended: Vec<String>,
    named: HashSet<i32>,
    /// When everything was last killed.
    killed: Option<Instant>,
}

/// How far the ending has gone; it only ever goes on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Running,
    Terminating(Instant),
    Killing(Instant),
}

impl Watch {
    fn run(&mut self) {
        let mut stage = Stage::Running;
        loop {
            let wanted = match self.next(stage) {
                Some(Happened::NoChildren) => return self.gone(Vec::new()),
                Some(Happened::Reaped(pid, exit)) if pid == self.agent => {
                    self.report(&Report::Exited { exit });
                    // `NoChildren` is next when nothing was left behind; else it is ended now.
                    match self.happened.recv_timeout(POLL) {
                        Ok(Happened::NoChildren) => return self.gone(Vec::new()),
                        Ok(Happened::LifeLineCut | Happened::Ordered(Order::Kill)) => {
                            Stage::Killing(Instant::now())
                        }
                        _ => Stage::Terminating(Instant::now()),
                    }
                }
                Some(Happened::Reaped(..)) => stage,
                Some(Happened::Ordered(Order::Stop)) => Stage::Terminating(Instant::now()),
                Some(Happened::Ordered(Order::Kill) | Happened::LifeLineCut) => {
                    Stage::Killing(Instant::now())
                }
                None => stage,
            };
            stage = self.advance(stage, wanted);
            if let Stage::Killing(since) = stage
                && since.elapsed() > KILL_PATIENCE
            {
                let survivors = self.below().iter().map(describe).collect();
                return self.gone(survivors);
            }
        }
    }

    fn next(&self, stage: Stage) -> Option<Happened> {
        if stage == Stage::Running {
            return self.happened.recv().ok();
        }
        match self.happened.recv_timeout(POLL) {
            Ok(event) => Some(event),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(Happened::NoChildren),
        }
    }

    /// Enters a later stage when one is wanted or the grace is over, and acts on it.
    fn advance(&mut self, now: Stage, wanted: Stage) -> Stage {
        let stage = match (now, wanted) {
            (Stage::Terminating(since), _) if since.elapsed() > GRACE => {
                Stage::Killing(Instant::now())
            }
            (Stage::Running, later) => later,
            (Stage::Terminating(_), Stage::Killing(since)) => Stage::Killing(since),
            (stage, _) => stage,
        };
        match stage {
            Stage::Terminating(_) if now == Stage::Running => self.signal_all(Signal::TERM),
            // Again and again: what forks faster than it is counted is caught in a later round.
            // But not for each of a thousand that have ended: looking takes longer than dying.
            Stage::Killing(_) if self.killed.is_none_or(|last| last.elapsed() >= POLL) => {
                self.signal_all(Signal::KILL);
                self.killed = Some(Instant::now());
            }
            _ => {}
        }
        stage
    }

    fn below(&self) -> Vec<Seen> {
        tree::descendants(getpid().as_raw_pid())
    }

    fn signal_all(&mut self, signal: Signal) {
        for process in self.below() {
            process.signal(signal);
            if self.named.insert(process.pid) {
                self.ended.push(describe(&process));
            }
        }
    }

    /// A driver that is gone cannot be told, and need not be.
    fn report(&self, report: &Report) {
        let _ = send(&self.control, report);
    }

    fn gone(&mut self, survivors: Vec<String>) {
        let ended = std::mem::take(&mut self.ended);
        self.report(&Report::Gone { ended, survivors });
    }
}

fn describe(process: &Seen) -> String {
    format!("{} ({})", process.name, process.pid)
}
