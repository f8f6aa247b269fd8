//! Processes by way of `ps`, where there is no `/proc`.

use std::process::Command;

use rustix::process::{Pid, Signal, kill_process};

use super::tree::Seen;

pub fn processes() -> Vec<Seen> {
    let Ok(listing) = Command::new("/bin/ps").args(["-A", "-o", "pid=,ppid=,ucomm="]).output()
    else {
        return Vec::new();
    };
    String::from_utf8_lossy(&listing.stdout).lines().filter_map(parse).collect()
}

fn parse(line: &str) -> Option<Seen> {
    let mut fields = line.split_ascii_whitespace();
    let pid = fields.next()?.parse().ok()?;
    let parent = fields.next()?.parse().ok()?;
    let name = fields.collect::<Vec<_>>().join(" ");
    Some(Seen { pid, name, parent, started: 0 })
}

pub fn signal(_seen: &Seen, pid: Pid, signal: Signal) {
    let _ = kill_process(pid, signal);
}

/// `ps` tells the name already.
pub fn program_names(_seen: &Seen) -> Vec<String> {
    Vec::new()
}

/// Never: `ps` prints an environment as words after the arguments, so that an argument can look
/// like an entry, and the system hides the environment of its own programs altogether. What cannot
/// be proven is not signalled.
pub fn carries(_seen: &Seen, _entry: &[u8], _since: i64) -> bool {
    false
}
