//! The process table as a tree.

use std::collections::{HashMap, VecDeque};

use rustix::process::{Pid, Signal};

use super::platform;

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

/// What to end, and what to keep.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    pub others: Vec<ProcessFacts>,
    pub kept: Vec<ProcessFacts>,
}

/// Every living process of one scan.
pub struct ProcessTable {
    all: Vec<ProcessFacts>,
}

impl ProcessTable {
    pub fn take() -> Self {
        Self { all: platform::processes() }
    }

    pub fn iter(&self) -> impl Iterator<Item = &ProcessFacts> {
        self.all.iter()
    }

    /// A process's ancestors, nearest first.
    pub fn above(&self, pid: i32) -> Vec<&ProcessFacts> {
        let process = |pid: i32| self.all.iter().find(|process| process.pid == pid);
        let parent = |child: &&ProcessFacts| process(child.parent);
        let chain = std::iter::successors(process(pid).and_then(|own| parent(&own)), parent);
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
}
