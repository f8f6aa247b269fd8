//! Running a short-lived helper: libgit2 cannot sign, so git's own helpers do.
//!
//! Agents and gates never run this way. A helper gets no terminal to ask at, all of its input at
//! once, and an end.

use std::ffi::{OsStr, OsString};
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

const GLANCE: Duration = Duration::from_millis(5);

pub(super) struct Helper<'a> {
    pub program: &'a OsStr,
    pub args: Vec<OsString>,
    pub dir: &'a Path,
    /// None: not in its environment.
    pub env: &'a [(&'a str, Option<&'a str>)],
    pub patience: Duration,
}

impl Helper<'_> {
    /// What it printed, or why there is nothing to use.
    pub fn run(&self, input: &[u8]) -> Result<Vec<u8>, String> {
        let deadline = Instant::now() + self.patience;
        let mut child = self.spawn().map_err(|error| error.to_string())?;
        feed(&mut child, input.to_vec());
        let (out, err) = (gather(child.stdout.take()), gather(child.stderr.take()));
        let end = wait(&mut child, deadline);
        // Whatever it left behind could hold the pipes open.
        let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
        let late = || format!("it did not end within {} s", self.patience.as_secs());
        let Some(success) = end else {
            let _ = child.wait();
            return Err(late());
        };
        let rest = || deadline.saturating_duration_since(Instant::now()).max(GLANCE);
        let errors = err.recv_timeout(rest()).unwrap_or_default();
        let output = out.recv_timeout(rest()).map_err(|_| late())?;
        if success { Ok(output) } else { Err(last_words(&errors)) }
    }

    fn spawn(&self) -> std::io::Result<Child> {
        let mut command = Command::new(self.program);
        command.args(&self.args).current_dir(self.dir);
        for (name, value) in self.env {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // In the background of any terminal: who reads from it all the same is stopped, and ended.
        command.process_group(0).spawn()
    }
}

/// A helper that does not read to the end says so by how it ends.
fn feed(child: &mut Child, input: Vec<u8>) {
    let Some(mut pipe) = child.stdin.take() else { return };
    thread::spawn(move || drop(pipe.write_all(&input)));
}

fn gather(pipe: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = pipe.map(|mut pipe| pipe.read_to_end(&mut bytes));
        drop(read);
        let _ = sender.send(bytes);
    });
    receiver
}

/// Whether it went well; None: it was too slow.
fn wait(child: &mut Child, deadline: Instant) -> Option<bool> {
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status.success()),
            Ok(None) if Instant::now() < deadline => thread::sleep(GLANCE),
            _ => return None,
        }
    }
}

/// The last thing it said to people.
fn last_words(errors: &[u8]) -> String {
    let text = String::from_utf8_lossy(errors);
    let for_people = |line: &&str| !line.trim().is_empty() && !line.starts_with("[GNUPG:]");
    let last = text.lines().rfind(for_people).unwrap_or("it failed without a word");
    last.trim().to_owned()
}
