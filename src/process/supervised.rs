//! Whether this process works for a run: as an agent, a gate, or what one of them started.
//!
//! Whatever a program does to its environment, session or parents, its supervisor stays above it:
//! it adopts orphans. What another daemon starts on a program's behalf is not below the supervisor;
//! only a sandbox prevents that. Neither terminal nor control group is looked at: a human's
//! terminal shares both with a run that was started from it.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::process::{getpid, getsid};

use super::tree::{ProcessFacts, ProcessTable, words};

/// The supervisors' subcommand.
pub const SUPERVISE: &str = "supervise";

/// In a supervisor's command line, where nobody below it can change it. Device and number of the git
/// folder: they have no spaces, and stay when the folder is renamed.
pub fn repository_flag(git_dir: &Path) -> io::Result<String> {
    let folder = git_dir.metadata()?;
    Ok(format!("--repository={}:{}", folder.dev(), folder.ino()))
}

/// This process is below a supervisor of this repository. Those of other repositories do not
/// count, because an agent may try `ralph` in a repository of its own.
pub fn is_supervised(git_dir: &Path) -> io::Result<bool> {
    let (flag, table) = (repository_flag(git_dir)?, ProcessTable::take());
    // Where orphans are not adopted, the session still shows whose they are.
    let session = getsid(None).ok().map(|leader| leader.as_raw_pid());
    let leader = table.all.iter().find(|process| Some(process.pid) == session);
    let mut above = table.above(getpid().as_raw_pid()).into_iter().chain(leader);
    Ok(above.any(|process| is_supervisor(process, &flag)))
}

fn is_supervisor(process: &ProcessFacts, flag: &str) -> bool {
    let words = words(process);
    let has = |wanted: &str| words.iter().any(|word| word == wanted);
    has(SUPERVISE) && has(flag)
}
