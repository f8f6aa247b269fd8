//! The driver's end of a supervised process.

use std::ffi::OsString;
use std::io;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdStream;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::process::{Child, ChildStderr, ChildStdout, Command};

use super::message::{Input, Order, SupervisorReport};

/// A larger pipe saves context switches between agent and driver.
#[cfg(target_os = "linux")]
const PIPE_BYTES: usize = 1024 * 1024;

/// How long a supervisor may take to exit after its last report.
const LAST_MOMENT: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(1);

/// Starts supervisors: this program with a hidden subcommand. One is kept on standby, so that a
/// process need not wait for its supervisor to start, and none is waited for until the end.
#[derive(Clone)]
pub struct Supervisor {
    program: PathBuf,
    /// Names of programs that it does not end.
    keep: Vec<String>,
    idle: Arc<Mutex<IdleSupervisors>>,
}

/// A supervisor that waits for its spec.
struct Standby {
    process: Child,
    control: StdStream,
}

/// Supervisors without a process. When the run ends, none of them is left.
#[derive(Default)]
struct IdleSupervisors {
    standby: Option<Standby>,
    /// They have made their last report and are about to exit.
    leaving: Vec<Child>,
}

impl IdleSupervisors {
    /// Keeps those that have not exited yet.
    fn reap(&mut self) {
        self.leaving.retain_mut(|process| matches!(process.try_wait(), Ok(None)));
    }
}

impl Drop for IdleSupervisors {
    /// None of them has children, so they can be killed.
    fn drop(&mut self) {
        let deadline = Instant::now() + LAST_MOMENT;
        self.reap();
        while !self.leaving.is_empty() && Instant::now() < deadline {
            thread::sleep(POLL);
            self.reap();
        }
        let standby = self.standby.take().map(|standby| standby.process);
        for mut process in self.leaving.drain(..).chain(standby) {
            let pid = pid_of(&process);
            if process.start_kill().is_ok() && pid.is_some() {
                let _ = waitpid(pid, WaitOptions::empty());
            }
        }
    }
}

fn pid_of(process: &Child) -> Option<Pid> {
    Pid::from_raw(i32::try_from(process.id()?).ok()?)
}

/// A process to start.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Spec {
    pub program: OsString,
    pub args: Vec<OsString>,
    pub dir: PathBuf,
    /// Set, or removed when None. Everything else is inherited.
    pub env: Vec<(OsString, Option<OsString>)>,
    /// A file for its standard input; None: it stays open for messages.
    pub input: Option<PathBuf>,
}

#[derive(Debug, thiserror::Error)]
#[error("cannot start a process: {0}")]
pub struct SpawnError(#[from] io::Error);

/// A supervised process. Dropping it closes the socket, which kills everything below.
pub struct Running {
    pub stdout: ChildStdout,
    pub stderr: ChildStderr,
    pub control: Control,
    supervisor: Child,
    idle: Arc<Mutex<IdleSupervisors>>,
}

/// The agent itself. On Linux a pidfd makes sure that its pid is not reused.
pub struct Leader {
    pid: Pid,
    #[cfg(target_os = "linux")]
    handle: OwnedFd,
}

impl Leader {
    /// None if it has ended already.
    pub fn hold(pid: i32) -> Option<Self> {
        let pid = Pid::from_raw(pid)?;
        Some(Self {
            pid,
            #[cfg(target_os = "linux")]
            handle: rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).ok()?,
        })
    }

    /// Kills an agent whose supervisor is gone, with its process group.
    pub fn kill(&self) {
        #[cfg(target_os = "linux")]
        if rustix::process::pidfd_send_signal(&self.handle, Signal::KILL).is_err() {
            return;
        }
        let _ = rustix::process::kill_process_group(self.pid, Signal::KILL);
    }
}

/// The socket to the supervisor.
pub struct Control {
    orders: OwnedWriteHalf,
    reports: Lines<BufReader<OwnedReadHalf>>,
}

impl Supervisor {
    pub fn new(program: PathBuf, keep: Vec<String>) -> Self {
        Self { program, keep, idle: Arc::default() }
    }

    /// Prepares one for the next process. If that fails, it is started on demand.
    pub fn prepare(&self) {
        if let Ok(mut idle) = self.idle.lock() {
            idle.reap();
            idle.standby = idle.standby.take().or_else(|| self.start().ok());
        }
    }

    fn start(&self) -> io::Result<Standby> {
        let (control, theirs) = StdStream::pair()?;
        let mut command = Command::new(&self.program);
        command.args(["supervise", "--standby"]);
        command.args(self.keep.iter().map(|name| format!("--keep={name}")));
        command.stdin(Stdio::from(OwnedFd::from(theirs)));
        let process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        Ok(Standby { process, control })
    }

    /// The one on standby, unless an agent killed or stopped it.
    fn take_standby(&self) -> Option<Standby> {
        let mut standby = self.idle.lock().ok()?.standby.take()?;
        let is_alive = matches!(standby.process.try_wait(), Ok(None));
        let pid = pid_of(&standby.process)?;
        (is_alive && kill_process(pid, Signal::CONT).is_ok()).then_some(standby)
    }

    pub fn spawn(&self, spec: &Spec) -> Result<Running, SpawnError> {
        let mut task = serde_json::to_vec(spec).map_err(io::Error::other)?;
        task.push(b'\n');
        let assign = |standby: Standby| (&standby.control).write_all(&task).map(|()| standby);
        let assigned = self.take_standby().and_then(|standby| assign(standby).ok());
        let standby = match assigned {
            Some(standby) => standby,
            None => assign(self.start()?)?,
        };
        let Standby { process: mut supervisor, control: ours } = standby;
        ours.set_nonblocking(true)?;
        let pipes = (supervisor.stdout.take(), supervisor.stderr.take());
        let (Some(stdout), Some(stderr)) = pipes else {
            return Err(io::Error::other("the pipes of a new process are missing").into());
        };
        enlarge(&stdout);
        let (reports, orders) = UnixStream::from_std(ours)?.into_split();
        let reports = BufReader::new(reports).lines();
        let control = Control { orders, reports };
        Ok(Running { stdout, stderr, control, supervisor, idle: Arc::clone(&self.idle) })
    }
}

#[cfg(target_os = "linux")]
fn enlarge(pipe: &ChildStdout) {
    // Fails if the user's quota of pipe memory is used up; the default size works too.
    let _ = rustix::pipe::fcntl_setpipe_size(pipe, PIPE_BYTES);
}

#[cfg(not(target_os = "linux"))]
fn enlarge(_pipe: &ChildStdout) {}

impl Running {
    /// Resumes the supervisor first, because an agent may have stopped it.
    pub async fn order(&mut self, order: Order) {
        if let Some(pid) = pid_of(&self.supervisor) {
            let _ = kill_process(pid, Signal::CONT);
        }
        self.control.tell(&order).await;
    }

    /// Writes to its standard input, without blocking if it does not read.
    pub async fn say(&mut self, text: String) {
        self.control.tell(&Input::Write(text)).await;
    }

    pub async fn close_input(&mut self) {
        self.control.tell(&Input::Close).await;
    }

    /// After the supervisor's last report.
    pub fn retire(self) {
        if let Ok(mut idle) = self.idle.lock() {
            idle.leaving.push(self.supervisor);
        }
    }
}

impl Control {
    /// A failed write means that the supervisor has ended.
    async fn tell(&mut self, what: &impl Serialize) {
        if let Ok(mut line) = serde_json::to_vec(what) {
            line.push(b'\n');
            let _ = self.orders.write_all(&line).await;
        }
    }

    /// The next report, or None if the supervisor has ended. Cancel-safe.
    pub async fn report(&mut self) -> Option<SupervisorReport> {
        loop {
            let line = self.reports.next_line().await.ok().flatten()?;
            if let Ok(report) = serde_json::from_str(&line) {
                return Some(report);
            }
        }
    }
}
