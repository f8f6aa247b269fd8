//! Processes through `/proc`.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::param::clock_ticks_per_second;
use rustix::process::{Pid, PidfdFlags, Signal, geteuid, pidfd_open, pidfd_send_signal};

use super::tree::ProcessFacts;

pub fn processes() -> Vec<ProcessFacts> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(read)
        .collect()
}

/// A pidfd makes sure that check and signal mean the same process.
pub fn signal(seen: &ProcessFacts, pid: Pid, signal: Signal) {
    let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else { return };
    if is_still(seen) {
        // It may have ended by itself.
        let _ = pidfd_send_signal(handle, signal);
    }
}

/// The names of its file and of its first argument.
pub fn program_names(seen: &ProcessFacts) -> Vec<String> {
    let file = fs::read_link(format!("/proc/{}/exe", seen.pid)).unwrap_or_default();
    let words = fs::read(format!("/proc/{}/cmdline", seen.pid)).unwrap_or_default();
    let first = words.split(|byte| *byte == 0).next().unwrap_or_default();
    let first = String::from_utf8_lossy(first);
    let name = |path: &Path| Some(path.file_name()?.to_string_lossy().into_owned());
    [name(&file), name(Path::new(&*first))].into_iter().flatten().collect()
}

/// It belongs to this user, began at that time (milliseconds since the epoch) or later, and has
/// exactly this entry in its environment.
pub fn carries(seen: &ProcessFacts, entry: &[u8], since: i64) -> bool {
    fs::read(format!("/proc/{}/environ", seen.pid)).is_ok_and(|all| has(&all, entry))
        && fs::metadata(format!("/proc/{}", seen.pid))
            .is_ok_and(|folder| folder.uid() == geteuid().as_raw())
        && began(seen).is_some_and(|began| began >= since)
        && is_still(seen)
}

fn has(environment: &[u8], entry: &[u8]) -> bool {
    // The part after the last NUL is empty.
    !entry.is_empty() && environment.split(|byte| *byte == 0).any(|one| one == entry)
}

fn is_still(seen: &ProcessFacts) -> bool {
    read(seen.pid).is_some_and(|now| now.started == seen.started)
}

/// In wall-clock time like the journal; the system counts from boot.
fn began(seen: &ProcessFacts) -> Option<i64> {
    let uptime = fs::read_to_string("/proc/uptime").ok()?;
    let uptime: f64 = uptime.split_ascii_whitespace().next()?.parse().ok()?;
    let ticks_per_second = i64::try_from(clock_ticks_per_second()).ok()?;
    let after_boot = i64::try_from(seen.started).ok()? * 1000 / ticks_per_second;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    #[expect(clippy::cast_possible_truncation, reason = "no machine is up for so long")]
    let uptime = (uptime * 1000.0) as i64;
    Some(i64::try_from(now.as_millis()).ok()? - uptime + after_boot)
}

/// None for a zombie too: it is dead, but not waited for yet.
fn read(pid: i32) -> Option<ProcessFacts> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    parse(pid, &String::from_utf8_lossy(&stat))
}

/// The name is in parentheses and may contain any character, even `)`.
fn parse(pid: i32, stat: &str) -> Option<ProcessFacts> {
    let (before, after) = stat.rsplit_once(')')?;
    let (_, name) = before.split_once('(')?;
    let mut fields = after.split_ascii_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let started = fields.nth(17)?.parse().ok()?;
    (!matches!(state, "Z" | "X")).then(|| ProcessFacts {
        pid,
        name: name.to_owned(),
        parent,
        started,
    })
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
            Some(ProcessFacts { pid: 7, name: "a) b (c".to_owned(), parent: 42, started: 991 })
        );
    }

    #[test]
    fn a_zombie_is_not_listed() {
        assert_eq!(parse(7, "7 (x) Z 42 7 7 0 -1 4 1 0 0 0 0 0 0 0 20 0 1 0 991 0"), None);
    }

    #[test]
    fn only_a_whole_entry_of_an_environment_counts() {
        let environment = b"A=1\0RALPH_RUN_ID=1-2\0B=RALPH_RUN_ID=3-4\0XRALPH_RUN_ID=5-6\0";
        assert!(has(environment, b"RALPH_RUN_ID=1-2"));
        for entry in ["", "RALPH_RUN_ID=1", "RALPH_RUN_ID=", "RALPH_RUN_ID=3-4", "RALPH_RUN_ID=5-6"]
        {
            assert!(!has(environment, entry.as_bytes()), "{entry}");
        }
        assert!(!has(b"", b""));
    }
}
