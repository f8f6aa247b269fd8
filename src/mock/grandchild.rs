//! Leaves a process behind, to see whether the driver finds it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;

use super::scene::Scene;

/// A process that outlives the agent.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grandchild {
    pub grandchild: Kinship,
    pub command: Option<String>,
    pub pid_file: Option<PathBuf>,
    /// Keeps the agent's standard output open.
    #[serde(default)]
    pub holds_output: bool,
    /// Without the environment by which the driver could know it.
    #[serde(default)]
    pub clean_env: bool,
}

/// How a process that is left behind is related to the agent.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kinship {
    /// A child in the agent's own process group and session.
    Plain,
    /// A child in a session of its own.
    Setsid,
    /// In a session of its own, and its parent is gone.
    DoubleFork,
}

const IDLE: &str = "sleep 1000";

/// `$0` is the command, `$1` the file for its process id.
const START: &str = r#"exec /bin/sh -c "$0""#;
const START_IN_SESSION: &str = r#"exec setsid /bin/sh -c "$0""#;
const START_AND_LEAVE: &str = r#"setsid /bin/sh -c "$0" & echo $! > "$1""#;

pub fn leave(left: &Grandchild, scene: &Scene) -> io::Result<()> {
    let pid_file = left.pid_file.as_ref().map(|file| scene.folder.join(file));
    let mut child = command(left, scene, pid_file.as_deref()).spawn()?;
    match (left.grandchild, pid_file) {
        (Kinship::DoubleFork, _) => child.wait().map(|_| ()),
        (_, Some(file)) => fs::write(file, format!("{}\n", child.id())),
        (_, None) => Ok(()),
    }
}

fn command(left: &Grandchild, scene: &Scene, pid_file: Option<&Path>) -> Command {
    let start = match left.grandchild {
        Kinship::Plain => START,
        Kinship::Setsid => START_IN_SESSION,
        Kinship::DoubleFork => START_AND_LEAVE,
    };
    let mut shell = Command::new("/bin/sh");
    shell.arg("-c").arg(start).arg(left.command.as_deref().unwrap_or(IDLE));
    shell.arg(pid_file.unwrap_or(Path::new("/dev/null")));
    shell.current_dir(&scene.folder).stdin(Stdio::null()).stderr(Stdio::null());
    shell.stdout(if left.holds_output { Stdio::inherit() } else { Stdio::null() });
    if left.clean_env {
        shell.env_clear();
    }
    shell
}
