//! The process between driver and agent. See the theory of operation in `process`.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;

use rustix::process::{Signal, WaitOptions, getpid, setsid, wait};
use tokio::signal::unix::{SignalKind, signal};

use super::driver::Spec;
use super::ending::{EndPolicy, POLL, TreeEnding};
use super::message::{Input, Order, ProcessExit, SupervisorReport};
use super::tree::{Found, KeepList, ProcessFacts, ProcessTable};

enum SupervisorEvent {
    Ordered(Order),
    /// The driver is gone.
    LifeLineCut,
    Reaped(i32, ProcessExit),
    /// No children are left: every orphan was adopted and has ended.
    NoChildren,
}

/// Runs the agent and returns when nothing of it is left, or nothing more can be done. Without a
/// spec it is on standby: the driver's first line is the spec, and if the driver ends before that,
/// so does this process.
pub fn supervise(spec: Option<Spec>, keep: &[String]) -> io::Result<()> {
    // A separate session keeps the terminal's signals and prompts away from the agent. It fails
    // only if this process already leads a group, which is enough.
    let _ = setsid();
    adopt_orphans()?;
    let control = UnixStream::from(rustix::stdio::stdin().try_clone_to_owned()?);
    let mut orders = BufReader::new(control.try_clone()?);
    let Some(spec) = spec.or_else(|| assigned(&mut orders)) else { return Ok(()) };
    let (agent, input) = match spawn(&spec) {
        Ok(spawned) => spawned,
        Err(error) => {
            return send(&control, &SupervisorReport::SpawnFailed { error: error.to_string() });
        }
    };
    let attended = attend((control, orders), agent, input, KeepList::new(keep));
    if attended.is_err() {
        // Without supervision it must not continue.
        let below = ProcessTable::take().below(getpid().as_raw_pid(), |_| false);
        below.others.iter().for_each(|one| one.signal(Signal::KILL));
    }
    attended
}

fn assigned(orders: &mut impl BufRead) -> Option<Spec> {
    let mut line = String::new();
    orders.read_line(&mut line).ok()?;
    serde_json::from_str(&line).ok()
}

fn attend(
    (control, orders): (UnixStream, BufReader<UnixStream>),
    agent: i32,
    input: Option<ChildStdin>,
    keep: KeepList,
) -> io::Result<()> {
    let_go_of_the_pipes()?;
    let (sender, happened) = channel();
    listen(orders, sender.clone(), feed(input)?)?;
    obey_signals(sender.clone())?;
    reap(sender)?;
    let ending = TreeEnding::new(EndPolicy::default());
    let mut watch = TreeWatch { control, agent, keep, happened, ending, has_exited: false };
    watch.report(&SupervisorReport::Spawned { pid: agent });
    watch.run();
    Ok(())
}

fn adopt_orphans() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::process::set_child_subreaper(Some(getpid()))?;
    Ok(())
}

fn spawn(spec: &Spec) -> io::Result<(i32, Option<ChildStdin>)> {
    let input = match &spec.input {
        Some(file) => Stdio::from(File::open(file)?),
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

/// Writes to the agent from a thread, because it may read slowly.
fn feed(input: Option<ChildStdin>) -> io::Result<Sender<Input>> {
    let (sender, words) = channel();
    in_background(move || {
        let mut input = input;
        for word in words {
            let (Input::Write(text), Some(open)) = (word, &mut input) else {
                input = None;
                continue;
            };
            // It no longer reads.
            if open.write_all(text.as_bytes()).is_err() {
                input = None;
            }
        }
    })?;
    Ok(sender)
}

fn let_go_of_the_pipes() -> io::Result<()> {
    let nowhere = File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdout(&nowhere)?;
    rustix::stdio::dup2_stderr(&nowhere)?;
    Ok(())
}

fn send(mut control: &UnixStream, report: &SupervisorReport) -> io::Result<()> {
    let mut line = serde_json::to_vec(report)?;
    line.push(b'\n');
    control.write_all(&line)
}

fn listen(
    orders: BufReader<UnixStream>,
    happened: Sender<SupervisorEvent>,
    input: Sender<Input>,
) -> io::Result<()> {
    in_background(move || {
        for line in orders.lines() {
            let Ok(line) = line else { break };
            if let Ok(word) = serde_json::from_str(&line) {
                let _ = input.send(word);
            }
            let Ok(order) = serde_json::from_str(&line) else { continue };
            if happened.send(SupervisorEvent::Ordered(order)).is_err() {
                return;
            }
        }
        let _ = happened.send(SupervisorEvent::LifeLineCut);
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
            let event = match wait(WaitOptions::empty()) {
                Ok(Some((pid, status))) => {
                    match (status.exit_status(), status.terminating_signal()) {
                        (Some(code), _) => {
                            SupervisorEvent::Reaped(pid.as_raw_pid(), ProcessExit::Code(code))
                        }
                        (_, Some(signal)) => {
                            SupervisorEvent::Reaped(pid.as_raw_pid(), ProcessExit::Signal(signal))
                        }
                        _ => continue,
                    }
                }
                Err(rustix::io::Errno::INTR) | Ok(None) => continue,
                Err(_) => SupervisorEvent::NoChildren,
            };
            let last = matches!(event, SupervisorEvent::NoChildren);
            if happened.send(event).is_err() || last {
                return;
            }
        }
    })
}

struct TreeWatch {
    control: UnixStream,
    agent: i32,
    keep: KeepList,
    happened: Receiver<SupervisorEvent>,
    ending: TreeEnding,
    /// The agent's own end was reported.
    has_exited: bool,
}

impl TreeWatch {
    fn run(&mut self) {
        loop {
            match self.next() {
                Some(SupervisorEvent::NoChildren) => return self.gone(&Found::default()),
                Some(SupervisorEvent::Reaped(pid, exit)) if pid == self.agent => {
                    self.has_exited = true;
                    self.report(&SupervisorReport::Exited { exit });
                    // `NoChildren` follows if nothing is left; otherwise the rest is ended now.
                    match self.happened.recv_timeout(POLL) {
                        Ok(SupervisorEvent::NoChildren) => return self.gone(&Found::default()),
                        Ok(
                            SupervisorEvent::LifeLineCut | SupervisorEvent::Ordered(Order::Kill),
                        ) => {
                            self.ending.order(Order::Kill);
                        }
                        _ => self.ending.order(Order::Stop),
                    }
                }
                Some(SupervisorEvent::Ordered(order)) => self.ending.order(order),
                Some(SupervisorEvent::LifeLineCut) => self.ending.order(Order::Kill),
                Some(SupervisorEvent::Reaped(..)) | None => {}
            }
            self.go_on_ending();
            if self.only_kept_is_left() {
                let kept = self.below().kept;
                return self.gone(&Found { kept, ..Found::default() });
            }
            if self.ending.is_in_vain() {
                return self.gone(&self.below());
            }
        }
    }

    fn next(&self) -> Option<SupervisorEvent> {
        if !self.ending.has_begun() {
            return self.happened.recv().ok();
        }
        match self.happened.recv_timeout(POLL) {
            Ok(event) => Some(event),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(SupervisorEvent::NoChildren),
        }
    }

    /// Without kept processes, `NoChildren` shows the end.
    fn go_on_ending(&mut self) {
        if self.ending.wants_a_look() {
            let found = self.below();
            self.ending.act_on(&found);
        }
    }

    /// With kept processes `NoChildren` never comes.
    fn only_kept_is_left(&self) -> bool {
        self.has_exited && self.ending.keeps_something() && self.ending.is_over()
    }

    /// The agent itself is never kept, whatever its name.
    fn below(&self) -> Found {
        let is_kept = |process: &ProcessFacts| process.pid != self.agent && self.keep.has(process);
        ProcessTable::take().below(getpid().as_raw_pid(), is_kept)
    }

    /// Fails only if the driver is gone.
    fn report(&self, report: &SupervisorReport) {
        let _ = send(&self.control, report);
    }

    fn gone(&self, left: &Found) {
        let names = |of: &[ProcessFacts]| of.iter().map(ProcessFacts::describe).collect();
        let (kept, survivors) = (names(&left.kept), names(&left.others));
        self.report(&SupervisorReport::Gone {
            ended: self.ending.ended().to_vec(),
            kept,
            survivors,
        });
    }
}
