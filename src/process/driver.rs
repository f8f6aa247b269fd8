//! The driver's end of a supervised process.

use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdStream;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use serde::Serialize;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::process::{Child, ChildStderr, ChildStdout, Command};

use super::supervised::SUPERVISE;
use super::{Order, Spec, json_line};

/// A larger pipe saves context switches between agent and driver.
#[cfg(target_os = "linux")]
const PIPE_BYTES: usize = 1024 * 1024;

/// How long a supervisor may take to exit after its last report.
const LAST_MOMENT: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(1);

/// Starts supervisors: this program with a hidden subcommand. One is on standby, so that a process
/// does not wait for its supervisor to start.
#[derive(Clone)]
pub struct Supervisor {
    program: PathBuf,
    /// Names of programs that it does not end.
    keep: Vec<String>,
    /// Of `supervised::repository_flag`.
    repository: String,
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

/// An agent may have stopped its supervisor. False if it has ended.
fn resume(supervisor: &Child) -> bool {
    pid_of(supervisor).is_some_and(|pid| kill_process(pid, Signal::CONT).is_ok())
}

#[derive(Debug, thiserror::Error)]
#[error("cannot start a process: {0}")]
pub struct SpawnError(#[from] io::Error);

/// A supervised process. Dropping it closes the socket, which kills everything below.
pub struct Running {
    pub stdout: ChildStdout,
    pub stderr: ChildStderr,
    /// What the supervisor sends, line by line.
    pub reports: Lines<BufReader<OwnedReadHalf>>,
    orders: OwnedWriteHalf,
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

impl Supervisor {
    pub fn new(program: PathBuf, keep: Vec<String>, repository: String) -> Self {
        Self { program, keep, repository, idle: Arc::default() }
    }

    /// Whose programs it starts.
    pub fn repository(&self) -> &str {
        &self.repository
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
        command.args([SUPERVISE, &self.repository]);
        command.args(self.keep.iter().map(|name| format!("--keep={name}")));
        command.stdin(Stdio::from(OwnedFd::from(theirs)));
        let process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        Ok(Standby { process, control })
    }

    /// The one on standby, unless an agent killed it.
    fn take_standby(&self) -> Option<Standby> {
        let mut standby = self.idle.lock().ok()?.standby.take()?;
        let is_alive = matches!(standby.process.try_wait(), Ok(None));
        (is_alive && resume(&standby.process)).then_some(standby)
    }

    pub fn spawn(&self, spec: &Spec) -> Result<Running, SpawnError> {
        let task = json_line(spec).map_err(io::Error::other)?;
        let assign = |standby: Standby| (&standby.control).write_all(&task).map(|()| standby);
        let Standby { process: mut supervisor, control } =
            match self.take_standby().and_then(|standby| assign(standby).ok()) {
                Some(standby) => standby,
                None => assign(self.start()?)?,
            };
        control.set_nonblocking(true)?;
        let pipes = (supervisor.stdout.take(), supervisor.stderr.take());
        let (Some(stdout), Some(stderr)) = pipes else {
            return Err(io::Error::other("the pipes of a new process are missing").into());
        };
        // Fails if the user's quota of pipe memory is used up; the default size works too.
        #[cfg(target_os = "linux")]
        let _ = rustix::pipe::fcntl_setpipe_size(&stdout, PIPE_BYTES);
        let (reports, orders) = UnixStream::from_std(control)?.into_split();
        let reports = BufReader::new(reports).lines();
        let idle = Arc::clone(&self.idle);
        Ok(Running { stdout, stderr, reports, orders, supervisor, idle })
    }
}

impl Running {
    pub async fn order(&mut self, order: Order) {
        resume(&self.supervisor);
        self.send(&order).await;
    }

    /// A failed write means that the supervisor has ended.
    pub async fn send(&mut self, message: &impl Serialize) {
        if let Ok(line) = json_line(message) {
            let _ = self.orders.write_all(&line).await;
        }
    }

    /// After the supervisor's last report.
    pub fn retire(self) {
        if let Ok(mut idle) = self.idle.lock() {
            idle.leaving.push(self.supervisor);
        }
    }
}
