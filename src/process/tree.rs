//! The process table as a tree.

use std::collections::{HashMap, VecDeque};

use rustix::process::{Pid, Signal};

/// A process as scanned; its pid alone may be reused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessFacts {
    pub pid: i32,
    pub name: String,
    pub(super) parent: i32,
    pub(super) started: u64,
}

impl ProcessFacts {
    /// Signals it, if it is still the same process.
    pub fn signal(&self, signal: Signal) {
        if let Some(pid) = Pid::from_raw(self.pid) {
            platform::signal(self, pid, signal);
        }
    }

    /// It runs one of these programs.
    pub fn is_named(&self, programs: &[String]) -> bool {
        // Linux cuts process names after 15 characters.
        let is_one = |name: &String| programs.contains(name);
        !programs.is_empty()
            && (is_one(&self.name) || platform::program_names(self).iter().any(is_one))
    }

    /// For messages.
    pub fn describe(&self) -> String {
        format!("{} ({})", self.name, self.pid)
    }
}

pub use platform::{boot_id, carries, has_variable, words};

/// What to end, and what to keep.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    pub others: Vec<ProcessFacts>,
    pub kept: Vec<ProcessFacts>,
}

/// Every living process of one scan.
pub struct ProcessTable {
    pub all: Vec<ProcessFacts>,
}

impl ProcessTable {
    pub fn take() -> Self {
        Self { all: platform::processes() }
    }

    pub fn find(&self, pid: i32) -> Option<&ProcessFacts> {
        self.all.iter().find(|process| process.pid == pid)
    }

    /// The leader of its session, if that is visible: it may be outside of a container.
    pub fn leader_of(&self, pid: i32) -> Option<&ProcessFacts> {
        self.find(platform::session(pid)?)
    }

    /// A process's ancestors, nearest first.
    pub fn above(&self, pid: i32) -> Vec<&ProcessFacts> {
        let parent = |child: &&ProcessFacts| self.find(child.parent);
        let chain = std::iter::successors(self.find(pid).and_then(|own| parent(&own)), parent);
        // A scan is not atomic, so parents may form a cycle.
        chain.take(self.all.len()).collect()
    }

    /// The roots and their descendants, nearest first, without those of kept processes.
    pub fn subtrees(
        self,
        is_root: impl Fn(&ProcessFacts) -> bool,
        is_kept: impl Fn(&ProcessFacts) -> bool,
    ) -> Found {
        let (mut waiting, rest): (VecDeque<_>, VecDeque<_>) =
            self.all.into_iter().partition(is_root);
        let mut children: HashMap<i32, Vec<ProcessFacts>> = HashMap::new();
        for process in rest {
            children.entry(process.parent).or_default().push(process);
        }
        let mut found = Found::default();
        while let Some(process) = waiting.pop_front() {
            if is_kept(&process) {
                found.kept.push(process);
            } else {
                waiting.extend(children.remove(&process.pid).unwrap_or_default());
                found.others.push(process);
            }
        }
        found
    }
}

/// Processes through `/proc`.
#[cfg(target_os = "linux")]
mod platform {
    use std::os::unix::fs::MetadataExt;
    use std::path::{Path, PathBuf};

    use rustix::process::{Pid, PidfdFlags, Signal, geteuid, pidfd_open, pidfd_send_signal};

    use super::ProcessFacts;
    use crate::files::{self, ReadResult, follow};

    /// Of what the system says about a process; its arguments may be long.
    const LONGEST: u64 = 16 << 20;

    fn folder(pid: i32) -> PathBuf {
        format!("/proc/{pid}").into()
    }

    fn said(pid: i32, what: &str) -> ReadResult<Vec<u8>> {
        files::read(&folder(pid).join(what), LONGEST)
    }

    pub fn processes() -> Vec<ProcessFacts> {
        let names = follow::names(Path::new("/proc"));
        let pids = names.filter_map(|name| name.to_str()?.parse().ok());
        pids.filter_map(read).collect()
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
        let file = follow::read_link(&folder(seen.pid).join("exe")).unwrap_or_default();
        let first = words(seen).into_iter().next().unwrap_or_default();
        let name = |path: &Path| Some(path.file_name()?.to_string_lossy().into_owned());
        [name(&file), name(Path::new(&first))].into_iter().flatten().collect()
    }

    /// Its command line.
    pub fn words(seen: &ProcessFacts) -> Vec<String> {
        let line = said(seen.pid, "cmdline").unwrap_or_default();
        let words = line.split(|byte| *byte == 0);
        words.map(|word| String::from_utf8_lossy(word).into_owned()).collect()
    }

    pub fn session(pid: i32) -> Option<i32> {
        let stat = said(pid, "stat").ok()?;
        session_in(&String::from_utf8_lossy(&stat))
    }

    /// 0 if its leader is in another namespace.
    pub(super) fn session_in(stat: &str) -> Option<i32> {
        let (_, after) = stat.rsplit_once(')')?;
        let session = after.split_ascii_whitespace().nth(3)?.parse().ok()?;
        (session != 0).then_some(session)
    }

    /// The system's current run, from its boot on.
    pub fn boot_id() -> Option<String> {
        let id = Path::new("/proc/sys/kernel/random/boot_id");
        let id = files::read_text(id, LONGEST).ok()?;
        Some(id.trim().to_owned())
    }

    /// It belongs to this user, began at that time (ticks since the boot) or later, and has exactly
    /// this entry in its environment.
    pub fn carries(seen: &ProcessFacts, entry: &[u8], since: u64) -> bool {
        said(seen.pid, "environ").is_ok_and(|all| has(&all, entry))
            && follow::look(&folder(seen.pid))
                .is_ok_and(|folder| folder.uid() == geteuid().as_raw())
            && seen.started >= since
            && is_still(seen)
    }

    /// It was started with the variable.
    pub fn has_variable(seen: &ProcessFacts, name: &str) -> bool {
        let is_it = |one: &[u8]| {
            one.strip_prefix(name.as_bytes()).is_some_and(|rest| rest.starts_with(b"="))
        };
        said(seen.pid, "environ").is_ok_and(|all| all.split(|byte| *byte == 0).any(is_it))
    }

    pub(super) fn has(environment: &[u8], entry: &[u8]) -> bool {
        // The part after the last NUL is empty.
        !entry.is_empty() && environment.split(|byte| *byte == 0).any(|one| one == entry)
    }

    fn is_still(seen: &ProcessFacts) -> bool {
        read(seen.pid).is_some_and(|now| now.started == seen.started)
    }

    /// None for a zombie too: it is dead, but not waited for yet.
    fn read(pid: i32) -> Option<ProcessFacts> {
        let stat = said(pid, "stat").ok()?;
        parse(pid, &String::from_utf8_lossy(&stat))
    }

    /// The name is in parentheses and may contain any character, even `)`.
    pub(super) fn parse(pid: i32, stat: &str) -> Option<ProcessFacts> {
        let (before, after) = stat.rsplit_once(')')?;
        let (_, name) = before.split_once('(')?;
        let mut fields = after.split_ascii_whitespace();
        let state = fields.next()?;
        let parent = fields.next()?.parse().ok()?;
        let started = fields.nth(17)?.parse().ok()?;
        let process = ProcessFacts { pid, name: name.to_owned(), parent, started };
        (!matches!(state, "Z" | "X")).then_some(process)
    }
}

/// Processes through `ps`, where there is no `/proc`.
#[cfg(not(target_os = "linux"))]
mod platform {
    use std::process::Command;

    use rustix::process::{Pid, Signal, getsid, kill_process};

    use super::ProcessFacts;

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

    /// Its command line; `ps` does not show where a word with spaces ends.
    pub fn words(seen: &ProcessFacts) -> Vec<String> {
        let pid = seen.pid.to_string();
        let shown = Command::new("/bin/ps").args(["-ww", "-o", "args=", "-p", &pid]).output();
        let line = shown.map(|shown| shown.stdout).unwrap_or_default();
        String::from_utf8_lossy(&line).split_ascii_whitespace().map(str::to_owned).collect()
    }

    pub fn session(pid: i32) -> Option<i32> {
        getsid(Pid::from_raw(pid)).ok().map(Pid::as_raw_pid)
    }

    /// Nothing is searched for, so nothing has to be compared.
    pub fn boot_id() -> Option<String> {
        None
    }

    /// `ps` already gives the name.
    pub fn program_names(_seen: &ProcessFacts) -> Vec<String> {
        Vec::new()
    }

    /// Never: `ps` prints the environment as words after the arguments, so an argument can look like an
    /// entry, and the system hides the environment of its own programs. Only a proven process may be
    /// signalled.
    pub fn carries(_seen: &ProcessFacts, _entry: &[u8], _since: u64) -> bool {
        false
    }

    /// The same here.
    pub fn has_variable(_seen: &ProcessFacts, _name: &str) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(pid: i32, parent: i32, name: &str) -> ProcessFacts {
        ProcessFacts { pid, name: name.to_owned(), parent, started: 0 }
    }

    /// 1 ─ 2 ─┬─ 3 ─ 5
    ///        └─ 4 ─ 6 ─ 7
    fn snapshot() -> ProcessTable {
        let tree = [(7, 6, "g"), (5, 3, "e"), (2, 1, "b"), (3, 2, "c"), (4, 2, "d"), (6, 4, "f")];
        let init = seen(1, 0, "a");
        let all = tree.map(|(pid, parent, name)| seen(pid, parent, name)).into_iter();
        ProcessTable { all: all.chain([init]).collect() }
    }

    fn pids(processes: &[ProcessFacts]) -> Vec<i32> {
        let mut pids: Vec<i32> = processes.iter().map(|process| process.pid).collect();
        pids.sort_unstable();
        pids
    }

    #[test]
    fn a_tree_has_all_of_its_layers_and_nothing_else() {
        let found = snapshot().subtrees(|process| process.parent == 2, |_| false);
        assert_eq!((pids(&found.others), pids(&found.kept)), (vec![3, 4, 5, 6, 7], vec![]));
        let found = snapshot().subtrees(|process| [3, 4, 6].contains(&process.pid), |_| false);
        assert_eq!((pids(&found.others), pids(&found.kept)), (vec![3, 4, 5, 6, 7], vec![]));
        assert_eq!(snapshot().subtrees(|process| process.parent == 5, |_| false), Found::default());
    }

    #[test]
    fn a_kept_process_is_kept_with_its_descendants() {
        let is_kept = |process: &ProcessFacts| process.name == "d";
        let found = snapshot().subtrees(|process| process.parent == 2, is_kept);
        assert_eq!((pids(&found.others), pids(&found.kept)), (vec![3, 5], vec![4]));
        let found = snapshot().subtrees(|process| process.pid == 2, is_kept);
        assert_eq!((pids(&found.others), pids(&found.kept)), (vec![2, 3, 5], vec![4]));
    }

    #[test]
    fn ancestors_end_at_the_top_and_after_a_cycle() {
        let above = |snapshot: &ProcessTable, pid| -> Vec<i32> {
            snapshot.above(pid).iter().map(|process| process.pid).collect()
        };
        assert_eq!(above(&snapshot(), 7), [6, 4, 2, 1]);
        assert_eq!(above(&snapshot(), 99), [0; 0]);
        let cycle = ProcessTable { all: vec![seen(2, 3, "b"), seen(3, 2, "c")] };
        assert_eq!(above(&cycle, 2).len(), 2);
    }

    #[cfg(target_os = "linux")]
    mod linux {
        use super::super::platform::{has, parse, session_in};
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
        fn a_session_from_outside_has_no_leader() {
            assert_eq!(session_in("7 (a) b (c) S 42 7 6 0 -1 4"), Some(6));
            assert_eq!(session_in("7 (x) S 0 7 0 0 -1 4"), None);
        }

        #[test]
        fn a_zombie_is_not_listed() {
            assert_eq!(parse(7, "7 (x) Z 42 7 7 0 -1 4 1 0 0 0 0 0 0 0 20 0 1 0 991 0"), None);
        }

        #[test]
        fn only_a_whole_entry_of_an_environment_counts() {
            let environment = b"A=1\0RALPH_RUN_ID=1-2\0B=RALPH_RUN_ID=3-4\0XRALPH_RUN_ID=5-6\0";
            assert!(has(environment, b"RALPH_RUN_ID=1-2"));
            for entry in
                ["", "RALPH_RUN_ID=1", "RALPH_RUN_ID=", "RALPH_RUN_ID=3-4", "RALPH_RUN_ID=5-6"]
            {
                assert!(!has(environment, entry.as_bytes()), "{entry}");
            }
            assert!(!has(b"", b""));
        }
    }
}
