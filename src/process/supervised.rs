//! Whether this process works for a run: as an agent, a gate, or what one of them started.
//!
//! Whatever a program does to its environment, session or parents, its supervisor stays above it:
//! it adopts orphans. What another daemon starts on a program's behalf is not below the supervisor;
//! only a sandbox prevents that. Neither terminal nor control group is looked at: a human's
//! terminal shares both with a run that was started from it.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::process::{Pid, getpid};

use crate::files::follow;
use crate::model::Requester;

use super::sweep::RUN_ID;
use super::tree::{ProcessFacts, ProcessTable, has_variable, words};

/// The supervisors' subcommand.
pub const SUPERVISE: &str = "supervise";
/// How this program is called.
const PROGRAM: &str = "ralph";

/// In a supervisor's command line, where nobody below it can change it. Device and number of the git
/// folder: they have no spaces, and stay when the folder is renamed.
pub fn repository_flag(git_dir: &Path) -> io::Result<String> {
    let folder = follow::look(git_dir)?;
    Ok(format!("--repository={}:{}", folder.dev(), folder.ino()))
}

/// This process is below a supervisor of this repository. Those of other repositories do not
/// count, because an agent may try `ralph` in a repository of its own.
pub fn is_supervised(git_dir: &Path) -> io::Result<bool> {
    let flag = repository_flag(git_dir)?;
    Ok(is_below(&ProcessTable::take(), getpid(), &flag))
}

/// This process, for others that want to know who asks.
pub fn requester() -> Requester {
    let pid = getpid().as_raw_pid();
    let started = ProcessTable::take().find(pid).map_or(0, |own| own.started);
    Requester { pid, started }
}

/// It is a ralph that lives, was started with one of these words, if there are any, and is not below a
/// supervisor of the repository, which its `flag` names.
pub fn is_human_command(by: Requester, any_of: &[&str], flag: &str) -> bool {
    let (table, Some(pid)) = (ProcessTable::take(), Pid::from_raw(by.pid)) else { return false };
    let is_it = |process: &&ProcessFacts| {
        process.started == by.started && process.is_named(&[PROGRAM.to_owned()])
    };
    let Some(process) = table.find(by.pid).filter(is_it) else { return false };
    let is_one = |word: &String| any_of.contains(&word.as_str());
    (any_of.is_empty() || words(process).iter().any(is_one))
        && !is_below(&table, pid, flag)
        && !came_from_run(&table, process)
}

/// A run started it, or something above it: a daemon that was kept, or that got away, is below no
/// supervisor any more, but still has the environment that it was started with.
fn came_from_run(table: &ProcessTable, process: &ProcessFacts) -> bool {
    std::iter::once(process).chain(table.above(process.pid)).any(|one| has_variable(one, RUN_ID))
}

fn is_below(table: &ProcessTable, pid: Pid, flag: &str) -> bool {
    // Where orphans are not adopted, the session still shows whose they are.
    let pid = pid.as_raw_pid();
    let mut above = table.above(pid).into_iter().chain(table.leader_of(pid));
    above.any(|process| is_supervisor(process, flag))
}

fn is_supervisor(process: &ProcessFacts, flag: &str) -> bool {
    let words = words(process);
    let has = |wanted: &str| words.iter().any(|word| word == wanted);
    has(SUPERVISE) && has(flag)
}
