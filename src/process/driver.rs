//! The driver's end of a supervised process.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdStream;
use std::path::PathBuf;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde::Serialize;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::process::{Child, ChildStderr, ChildStdout, Command};
use tokio::sync::watch;

use super::message::{Input, Order, Report};

/// A larger pipe than the default means far fewer switches between agent and driver.
#[cfg(target_os = "linux")]
const PIPE_BYTES: usize = 1024 * 1024;

/// How to start a supervisor: this program, told to be one.
#[derive(Clone, Debug)]
pub struct Supervisor {
    pub program: PathBuf,
    /// Names of programs that it leaves alone.
    pub keep: Vec<String>,
}

/// What runs, where, with what.
#[derive(Clone, Debug)]
pub struct Spec {
    pub program: OsString,
    pub args: Vec<OsString>,
    pub dir: PathBuf,
    /// Set, or removed when None. Everything else is inherited.
    pub env: Vec<(OsString, Option<OsString>)>,
    /// A file that becomes its standard input; None: it stays open for what is `said`.
    pub input: Option<PathBuf>,
}

#[derive(Debug, thiserror::Error)]
#[error("cannot start a process: {0}")]
pub struct SpawnError(#[from] io::Error);

/// A supervised process. Dropping it cuts the life line: everything below is killed.
pub struct Running {
    pub stdout: ChildStdout,
    pub stderr: ChildStderr,
    pub control: Control,
    supervisor: Child,
}

/// The agent itself. On Linux it is held by a handle, so that its number cannot become somebody
/// else's.
pub struct Leader {
    pid: Pid,
    #[cfg(target_os = "linux")]
    handle: OwnedFd,
}

impl Leader {
    /// None when it has ended already.
    pub fn hold(pid: i32) -> Option<Self> {
        let pid = Pid::from_raw(pid)?;
        Some(Self {
            pid,
            #[cfg(target_os = "linux")]
            handle: rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).ok()?,
        })
    }

    /// For an agent whose supervisor was killed: it and its group, as far as that can be told.
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
    pub fn spawn(&self, spec: &Spec) -> Result<Running, SpawnError> {
        let (ours, theirs) = StdStream::pair()?;
        ours.set_nonblocking(true)?;
        let mut command = Command::new(&self.program);
        command.arg("supervise");
        if let Some(input) = &spec.input {
            command.arg("--input").arg(input);
        }
        command.args(self.keep.iter().map(|name| format!("--keep={name}")));
        command.arg("--").arg(&spec.program).args(&spec.args).current_dir(&spec.dir);
        for (key, value) in &spec.env {
            match value {
                Some(value) => command.env(key, value),
                None => command.env_remove(key),
            };
        }
        command.stdin(Stdio::from(OwnedFd::from(theirs)));
        let mut supervisor = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let pipes = (supervisor.stdout.take(), supervisor.stderr.take());
        let (Some(stdout), Some(stderr)) = pipes else {
            return Err(io::Error::other("the pipes of a new process are missing").into());
        };
        enlarge(&stdout);
        let (reports, orders) = UnixStream::from_std(ours)?.into_split();
        let reports = BufReader::new(reports).lines();
        let control = Control { orders, reports };
        Ok(Running { stdout, stderr, control, supervisor })
    }
}

#[cfg(target_os = "linux")]
fn enlarge(pipe: &ChildStdout) {
    // The default size serves too, when the user's quota of pipe memory is used up.
    let _ = rustix::pipe::fcntl_setpipe_size(pipe, PIPE_BYTES);
}

#[cfg(not(target_os = "linux"))]
fn enlarge(_pipe: &ChildStdout) {}

impl Running {
    /// An agent may have stopped its supervisor: it has to go on to obey.
    pub async fn order(&mut self, order: Order) {
        let pid = self.supervisor.id().and_then(|id| i32::try_from(id).ok());
        if let Some(pid) = pid.and_then(Pid::from_raw) {
            let _ = kill_process(pid, Signal::CONT);
        }
        self.control.tell(&order).await;
    }

    /// Onto its standard input. One that does not read keeps nobody waiting.
    pub async fn say(&mut self, text: String) {
        self.control.tell(&Input::Write(text)).await;
    }

    pub async fn close_input(&mut self) {
        self.control.tell(&Input::Close).await;
    }

    /// The supervisor itself, after its last report.
    pub async fn supervisor_ended(&mut self) {
        let _ = self.supervisor.wait().await;
    }
}

impl Control {
    /// The supervisor that cannot be told any more has already ended.
    async fn tell(&mut self, what: &impl Serialize) {
        if let Ok(mut line) = serde_json::to_vec(what) {
            line.push(b'\n');
            let _ = self.orders.write_all(&line).await;
        }
    }

    /// The next report, or None when the supervisor has ended. Safe to drop half-way.
    pub async fn report(&mut self) -> Option<Report> {
        loop {
            let line = self.reports.next_line().await.ok().flatten()?;
            if let Ok(report) = serde_json::from_str(&line) {
                return Some(report);
            }
        }
    }
}

/// Resolves once per order.
pub async fn ordered(stop: &mut watch::Receiver<Option<Order>>) -> Order {
    loop {
        if stop.changed().await.is_err() {
            return std::future::pending().await;
        }
        if let Some(order) = *stop.borrow_and_update() {
            return order;
        }
    }
}
