//! Pipes in the place of files with rules, for which libgit2 would wait for ever.
//!
//! They can be anywhere in the work tree, and looking for them costs as much as a scan. So a scan
//! begins without looking. If it takes long, a thread looks, moves the pipes away and releases
//! whoever waits for them.

use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use crate::files::{FileKind, follow, nofollow};

use super::WorkTree;
use super::moved_away::MovedAway;

const RULES: [&str; 2] = [".gitignore", ".gitattributes"];
/// Longer than almost every scan.
const PATIENCE: Duration = Duration::from_millis(500);

impl WorkTree {
    /// For whatever reads the rules of all folders.
    pub(super) fn without_pipes<T>(&self, work: impl FnOnce() -> T) -> T {
        let (done, over) = channel::<()>();
        let (moved, root) = (&self.moved_away, self.root());
        thread::scope(|scope| {
            scope.spawn(move || {
                let mut patience = PATIENCE;
                while over.recv_timeout(patience) == Err(RecvTimeoutError::Timeout) {
                    release(moved, root, root);
                    patience *= 2;
                }
            });
            let found = work();
            drop(done);
            found
        })
    }

    /// Before the rules for one path are read.
    pub(super) fn release_rules_for(&self, path: &Path) {
        for folder in path.ancestors().skip(1) {
            for name in RULES.map(|name| folder.join(name)) {
                if is_pipe(&self.root().join(&name)) {
                    let _ = self.moved_away.take(&self.root().join(&name), &name);
                }
            }
        }
    }
}

fn release(moved: &MovedAway, root: &Path, folder: &Path) {
    for entry in nofollow::list(folder).unwrap_or_default() {
        let path = folder.join(&entry.name);
        if entry.kind == FileKind::Folder && entry.name != ".git" {
            release(moved, root, &path);
        } else if RULES.iter().any(|rules| entry.name == *rules) && is_pipe(&path) {
            // Opened first: after the move, a link of it may lead nowhere.
            let writer = follow::open_pipe(&path);
            let _ = moved.take(&path, path.strip_prefix(root).unwrap_or(&path));
            // Whoever waits reads an empty file.
            drop(writer);
        }
    }
}

/// Or a link to one, which libgit2 follows.
fn is_pipe(path: &Path) -> bool {
    follow::look(path).is_ok_and(|found| found.file_type().is_fifo())
}
