//! Finding and signalling the processes below this one.

use std::collections::HashMap;

use rustix::process::{Pid, Signal};

/// A process as it was seen: its number alone may be somebody else's a moment later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    pub pid: i32,
    pub name: String,
    parent: i32,
    started: u64,
}

impl Seen {
    /// Signals it, if it is still the process that was seen.
    pub fn signal(&self, signal: Signal) {
        if let Some(pid) = Pid::from_raw(self.pid) {
            platform::signal(self, pid, signal);
        }
    }
}

/// Every living process below `root`, nearest first.
pub fn descendants(root: i32) -> Vec<Seen> {
    let mut children: HashMap<i32, Vec<Seen>> = HashMap::new();
    for process in platform::processes() {
        children.entry(process.parent).or_default().push(process);
    }
    let mut found = children.remove(&root).unwrap_or_default();
    let mut next = 0;
    while let Some(parent) = found.get(next).map(|process| process.pid) {
        found.extend(children.remove(&parent).unwrap_or_default());
        next += 1;
    }
    found
}

#[cfg(target_os = "linux")]
mod platform {
    use std::fs;

    use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

    use super::Seen;

    pub fn processes() -> Vec<Seen> {
        let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
        entries
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
            .filter_map(read)
            .collect()
    }

    /// Holding a pidfd first makes the check and the signal speak of the same process.
    pub fn signal(seen: &Seen, pid: Pid, signal: Signal) {
        let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else { return };
        if read(seen.pid).is_some_and(|now| now.started == seen.started) {
            // It may have ended by itself meanwhile, which is what is wanted.
            let _ = pidfd_send_signal(handle, signal);
        }
    }

    /// None for a zombie too: it is dead, only its parent has not looked yet.
    fn read(pid: i32) -> Option<Seen> {
        let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
        parse(pid, &String::from_utf8_lossy(&stat))
    }

    /// The name stands in parentheses and may itself hold any character, `)` included.
    fn parse(pid: i32, stat: &str) -> Option<Seen> {
        let (before, after) = stat.rsplit_once(')')?;
        let (_, name) = before.split_once('(')?;
        let mut fields = after.split_ascii_whitespace();
        let state = fields.next()?;
        let parent = fields.next()?.parse().ok()?;
        let started = fields.nth(17)?.parse().ok()?;
        (!matches!(state, "Z" | "X")).then(|| Seen { pid, name: name.to_owned(), parent, started })
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_name_with_parentheses_does_not_shift_the_fields() {
            let stat = "7 (a) b (c) S 42 7 7 0 -1 4 1 0 0 0 0 0 0 0 20 0 1 0 991 0 0";
            let seen = parse(7, stat);
            assert_eq!(
                seen,
                Some(Seen { pid: 7, name: "a) b (c".to_owned(), parent: 42, started: 991 })
            );
        }

        #[test]
        fn the_dead_are_not_listed() {
            assert_eq!(parse(7, "7 (x) Z 42 7 7 0 -1 4 1 0 0 0 0 0 0 0 20 0 1 0 991 0"), None);
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod platform {
    use std::process::Command;

    use rustix::process::{Pid, Signal, kill_process};

    use super::Seen;

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
}
