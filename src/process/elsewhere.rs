//! Processes through `ps`, where there is no `/proc`.

use std::process::Command;

use rustix::process::{Pid, Signal, kill_process};

use super::tree::ProcessFacts;

pub fn processes() -> Vec<ProcessFacts> {
    let Ok(listing) = Command::new("/bin/ps").args(["-A", "-o", "pid=,ppid=,ucomm="]).output()
    else {
        return Vec::new();
    };
    String::from_utf8_lossy(&listing.stdout).lines().filter_map(parse).collect()
}

fn parse(line: &str) -> Option<ProcessFacts> {
    let mut fields = line.split_ascii_whitespace();
    let pid = fields.next()?.parse().ok()?;
    let parent = fields.next()?.parse().ok()?;
    let name = fields.collect::<Vec<_>>().join(" ");
    Some(ProcessFacts { pid, name, parent, started: 0 })
}

pub fn signal(_seen: &ProcessFacts, pid: Pid, signal: Signal) {
    let _ = kill_process(pid, signal);
}

/// `ps` already gives the name.
pub fn program_names(_seen: &ProcessFacts) -> Vec<String> {
    Vec::new()
}

/// Never: `ps` prints the environment as words after the arguments, so an argument can look like an
/// entry, and the system hides the environment of its own programs. Only a proven process may be
/// signalled.
pub fn carries(_seen: &ProcessFacts, _entry: &[u8], _since: i64) -> bool {
    false
}
