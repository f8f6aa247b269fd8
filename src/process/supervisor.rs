//! The process between driver and agent. See the theory of operation in `process`.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use rustix::process::{Signal, WaitOptions, getpid, setsid, wait};
use tokio::signal::unix::{SignalKind, signal};

use crate::files::{self, follow};
use crate::model::Exit;

use super::sweep::{POLL, TreeEnding};
use super::tree::{Found, ProcessFacts, ProcessTable};
use super::{InputOrder, NO_INPUT, Order, Spec, SupervisorReport, json_line};

enum SupervisorEvent {
    Ordered(Order),
    Reaped(i32, Exit),
    /// No children are left: every orphan was adopted and has ended.
    NoChildren,
}

/// Waits for the driver's first line, the spec; if the driver ends before that, so does this
/// process. Then runs the agent, and returns when nothing of it is left, or nothing more can be
/// done.
pub fn supervise(keep: Vec<String>) -> io::Result<()> {
    // A separate session keeps the terminal's signals and prompts away from the agent. It fails
    // only if this process already leads a group, which is enough.
    let _ = setsid();
    #[cfg(target_os = "linux")]
    rustix::process::set_child_subreaper(Some(getpid()))?;
    let control = UnixStream::from(rustix::stdio::stdin().try_clone_to_owned()?);
    let mut orders = BufReader::new(control.try_clone()?);
    let Some(spec) = assigned(&mut orders) else { return Ok(()) };
    let failed = |error: io::Error| SupervisorReport::SpawnFailed { error: error.to_string() };
    let (agent, input) = match spawn(&spec).map_err(failed) {
        Ok(spawned) => spawned,
        Err(failed) => return send(&control, &failed),
    };
    let (sender, happened) = channel();
    let ending = TreeEnding::default();
    let mut watch = TreeWatch { control, agent, keep, happened, ending, has_exited: false };
    let started = start_threads(orders, input, &sender);
    match &started {
        Ok(()) => watch.run(),
        // Without supervision it must not continue.
        Err(_) => below(|_| false).others.iter().for_each(|one| one.signal(Signal::KILL)),
    }
    started
}

fn assigned(orders: &mut impl BufRead) -> Option<Spec> {
    let mut line = String::new();
    orders.read_line(&mut line).ok()?;
    serde_json::from_str(&line).ok()
}

fn spawn(spec: &Spec) -> io::Result<(i32, Option<ChildStdin>)> {
    let input = match &spec.input {
        Some(file) if file == Path::new(NO_INPUT) => Stdio::null(),
        Some(file) => Stdio::from(files::open(file).map_err(io::Error::from)?.0),
        None => Stdio::piped(),
    };
    let mut command = Command::new(&spec.program);
    command.args(&spec.args).current_dir(&spec.dir).stdin(input).process_group(0);
    for (key, value) in &spec.env {
        match value {
            Some(value) => command.env(key, value),
            None => command.env_remove(key),
        };
    }
    let mut child = command.spawn()?;
    Ok((i32::try_from(child.id()).map_err(io::Error::other)?, child.stdin.take()))
}

/// The agent has its pipes: this process closes its own ends, then listens.
fn start_threads(
    orders: BufReader<UnixStream>,
    input: Option<ChildStdin>,
    happened: &Sender<SupervisorEvent>,
) -> io::Result<()> {
    let null = follow::open_device(Path::new(NO_INPUT))?;
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)?;
    listen(orders, happened.clone(), feed(input)?)?;
    obey_signals(happened.clone())?;
    reap(happened.clone())
}

/// Writes to the agent from a thread, because it may read slowly.
fn feed(mut input: Option<ChildStdin>) -> io::Result<Sender<InputOrder>> {
    let (sender, orders) = channel();
    in_background(move || {
        for order in orders {
            input = match order {
                // A failed write means that it no longer reads.
                InputOrder::Write(text) => {
                    input.filter(|mut open| open.write_all(text.as_bytes()).is_ok())
                }
                InputOrder::Close => None,
            };
        }
    })?;
    Ok(sender)
}

fn listen(
    orders: BufReader<UnixStream>,
    happened: Sender<SupervisorEvent>,
    input: Sender<InputOrder>,
) -> io::Result<()> {
    in_background(move || {
        for line in orders.lines().map_while(Result::ok) {
            if let Ok(order) = serde_json::from_str(&line) {
                let _ = input.send(order);
            } else if let Ok(order) = serde_json::from_str(&line) {
                let _ = happened.send(SupervisorEvent::Ordered(order));
            }
        }
        // The driver is gone.
        let _ = happened.send(SupervisorEvent::Ordered(Order::Kill));
    })
}

fn in_background(work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().spawn(work).map(drop)
}

/// A signal to this process ends the agent too: it must not outlive its supervisor.
fn obey_signals(happened: Sender<SupervisorEvent>) -> io::Result<()> {
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
                if happened.send(SupervisorEvent::Ordered(Order::Stop)).is_err() {
                    return;
                }
            }
        });
    })
}

/// The only place that calls `wait`, so no exit status is lost.
fn reap(happened: Sender<SupervisorEvent>) -> io::Result<()> {
    in_background(move || {
        loop {
            let (pid, status) = match wait(WaitOptions::empty()) {
                Ok(Some(reaped)) => reaped,
                Err(rustix::io::Errno::INTR) | Ok(None) => continue,
                Err(_) => break,
            };
            let signal = || status.terminating_signal().map(Exit::Signal);
            if let Some(exit) = status.exit_status().map(Exit::Code).or_else(signal) {
                let _ = happened.send(SupervisorEvent::Reaped(pid.as_raw_pid(), exit));
            }
        }
        let _ = happened.send(SupervisorEvent::NoChildren);
    })
}

fn send(mut control: &UnixStream, report: &SupervisorReport) -> io::Result<()> {
    control.write_all(&json_line(report)?)
}

fn below(is_kept: impl Fn(&ProcessFacts) -> bool) -> Found {
    let own = getpid().as_raw_pid();
    ProcessTable::take().subtrees(|process| process.parent == own, is_kept)
}

struct TreeWatch {
    control: UnixStream,
    agent: i32,
    /// Names of programs that are not ended.
    keep: Vec<String>,
    happened: Receiver<SupervisorEvent>,
    ending: TreeEnding,
    /// The agent's own end was reported.
    has_exited: bool,
}

impl TreeWatch {
    fn run(&mut self) {
        self.report(&SupervisorReport::Spawned { pid: self.agent });
        loop {
            match self.next() {
                Some(SupervisorEvent::NoChildren) => return self.gone(&Found::default()),
                Some(SupervisorEvent::Ordered(order)) => self.ending.order(order),
                Some(SupervisorEvent::Reaped(pid, exit)) if pid == self.agent => {
                    self.has_exited = true;
                    self.report(&SupervisorReport::Exited { exit });
                    self.ending.order(Order::Stop);
                    // `NoChildren` follows if nothing is left; otherwise the rest is ended now.
                    continue;
                }
                Some(SupervisorEvent::Reaped(..)) | None => {}
            }
            if self.ending.wants_scan() {
                self.ending.act_on(&self.below());
            }
            // With kept processes `NoChildren` never comes.
            if self.has_exited && self.ending.keeps_something && self.ending.is_over() {
                let kept = self.below().kept;
                return self.gone(&Found { kept, ..Found::default() });
            }
            if self.ending.has_failed() {
                return self.gone(&self.below());
            }
        }
    }

    /// None when it is time to look at the processes again.
    fn next(&self) -> Option<SupervisorEvent> {
        let patience = if self.ending.has_begun() { POLL } else { Duration::MAX };
        match self.happened.recv_timeout(patience) {
            Ok(event) => Some(event),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(SupervisorEvent::NoChildren),
        }
    }

    /// The agent itself is never kept, whatever its name.
    fn below(&self) -> Found {
        below(|process| process.pid != self.agent && process.is_named(&self.keep))
    }

    /// Fails only if the driver is gone.
    fn report(&self, report: &SupervisorReport) {
        let _ = send(&self.control, report);
    }

    fn gone(&self, left: &Found) {
        let names = |of: &[ProcessFacts]| of.iter().map(ProcessFacts::describe).collect();
        self.report(&SupervisorReport::Gone {
            ended: self.ending.ended.clone(),
            kept: names(&left.kept),
            survivors: names(&left.others),
        });
    }
}
