//! The process between driver and agent. See the module's theory of operation.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;

use rustix::process::{Signal, WaitOptions, getpid, setsid, wait};
use tokio::signal::unix::{SignalKind, signal};

use super::ending::{Ending, POLL, Patience};
use super::message::{Exit, Input, Order, Report};
use super::tree::{Found, Keep, Seen, Snapshot};

/// What to run, and what it reads.
pub struct Task {
    pub program: OsString,
    pub args: Vec<OsString>,
    /// Its standard input; None: what the driver says.
    pub input: Option<PathBuf>,
    /// Names of programs that are left alone.
    pub keep: Vec<String>,
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
    let (agent, input) = match spawn(task) {
        Ok(spawned) => spawned,
        Err(error) => {
            return send(&control, &Report::SpawnFailed { error: error.to_string() });
        }
    };
    let attended = attend(control, agent, input, Keep::new(&task.keep));
    if attended.is_err() {
        // Nobody watches it, so it must not go on, and nothing of it.
        let below = Snapshot::take().below(getpid().as_raw_pid(), |_| false);
        below.others.iter().for_each(|one| one.signal(Signal::KILL));
    }
    attended
}

fn attend(
    control: UnixStream,
    agent: i32,
    input: Option<ChildStdin>,
    keep: Keep,
) -> io::Result<()> {
    let_go_of_the_pipes()?;
    let (sender, happened) = channel();
    listen(control.try_clone()?, sender.clone(), feed(input)?)?;
    obey_signals(sender.clone())?;
    reap(sender)?;
    let ending = Ending::new(Patience::default());
    let mut watch = Watch { control, agent, keep, happened, ending, has_exited: false };
    watch.report(&Report::Spawned { pid: agent });
    watch.run();
    Ok(())
}

fn adopt_orphans() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::process::set_child_subreaper(Some(getpid()))?;
    Ok(())
}

fn spawn(task: &Task) -> io::Result<(i32, Option<ChildStdin>)> {
    let input = match &task.input {
        Some(file) => Stdio::from(File::open(file)?),
        None => Stdio::piped(),
    };
    let mut child =
        Command::new(&task.program).args(&task.args).stdin(input).process_group(0).spawn()?;
    Ok((i32::try_from(child.id()).map_err(io::Error::other)?, child.stdin.take()))
}

/// Writes to the agent in the background: it may take its time to read.
fn feed(input: Option<ChildStdin>) -> io::Result<Sender<Input>> {
    let (sender, words) = channel();
    in_background(move || {
        let mut input = input;
        for word in words {
            let (Input::Write(text), Some(open)) = (word, &mut input) else {
                input = None;
                continue;
            };
            // One that does not read any more needs nothing more.
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

fn send(mut control: &UnixStream, report: &Report) -> io::Result<()> {
    let mut line = serde_json::to_vec(report)?;
    line.push(b'\n');
    control.write_all(&line)
}

fn listen(control: UnixStream, happened: Sender<Happened>, input: Sender<Input>) -> io::Result<()> {
    in_background(move || {
        for line in BufReader::new(control).lines() {
            let Ok(line) = line else { break };
            if let Ok(word) = serde_json::from_str(&line) {
                let _ = input.send(word);
            }
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
    keep: Keep,
    happened: Receiver<Happened>,
    ending: Ending,
    /// The agent's own end was reported.
    has_exited: bool,
}

impl Watch {
    fn run(&mut self) {
        loop {
            match self.next() {
                Some(Happened::NoChildren) => return self.gone(&Found::default()),
                Some(Happened::Reaped(pid, exit)) if pid == self.agent => {
                    self.has_exited = true;
                    self.report(&Report::Exited { exit });
                    // `NoChildren` is next when nothing was left behind; else it is ended now.
                    match self.happened.recv_timeout(POLL) {
                        Ok(Happened::NoChildren) => return self.gone(&Found::default()),
                        Ok(Happened::LifeLineCut | Happened::Ordered(Order::Kill)) => {
                            self.ending.order(Order::Kill);
                        }
                        _ => self.ending.order(Order::Stop),
                    }
                }
                Some(Happened::Ordered(order)) => self.ending.order(order),
                Some(Happened::LifeLineCut) => self.ending.order(Order::Kill),
                Some(Happened::Reaped(..)) | None => {}
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

    fn next(&self) -> Option<Happened> {
        if !self.ending.has_begun() {
            return self.happened.recv().ok();
        }
        match self.happened.recv_timeout(POLL) {
            Ok(event) => Some(event),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(Happened::NoChildren),
        }
    }

    /// Where nothing is kept, `NoChildren` tells when it is over.
    fn go_on_ending(&mut self) {
        if self.ending.wants_a_look() {
            let found = self.below();
            self.ending.act_on(&found);
        }
    }

    /// Then `NoChildren` never comes.
    fn only_kept_is_left(&self) -> bool {
        self.has_exited && self.ending.keeps_something() && self.ending.is_over()
    }

    /// The agent itself is never kept, whatever its name.
    fn below(&self) -> Found {
        let is_kept = |process: &Seen| process.pid != self.agent && self.keep.has(process);
        Snapshot::take().below(getpid().as_raw_pid(), is_kept)
    }

    /// A driver that is gone cannot be told, and need not be.
    fn report(&self, report: &Report) {
        let _ = send(&self.control, report);
    }

    fn gone(&self, left: &Found) {
        let names = |of: &[Seen]| of.iter().map(Seen::describe).collect();
        let (kept, survivors) = (names(&left.kept), names(&left.others));
        self.report(&Report::Gone { ended: self.ending.ended().to_vec(), kept, survivors });
    }
}
