//! A repository of its own for each test, away from the machine's configuration.

use std::ffi::OsStr;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Once;

use git2::ConfigLevel;
use tempfile::TempDir;

use super::memory;
use crate::model::{Base, StoryId};
use crate::workspace::{CollectRequest, Committed, GitError, Replacement, Staging, WorkTree};

pub struct Sandbox {
    folder: TempDir,
    root: PathBuf,
}

impl Sandbox {
    /// A repository without commits.
    pub fn unborn() -> Self {
        let sandbox = Self::empty();
        sandbox.git(["init", "-q", "-b", "main"]);
        sandbox.git(["config", "user.name", "Tess Ter"]);
        sandbox.git(["config", "user.email", "tess@example.com"]);
        sandbox
    }

    /// A repository with `a`, `b` and `docs/c` committed.
    pub fn new() -> Self {
        let sandbox = Self::unborn();
        sandbox.write("a", "a0\n").write("b", "b0\n").write("docs/c", "c0\n");
        sandbox.commit_all("first");
        sandbox
    }

    /// A folder that is no repository.
    pub fn empty() -> Self {
        isolate();
        let folder = TempDir::new_in(memory::place()).unwrap();
        let root = folder.path().canonicalize().unwrap().join("repo");
        fs::create_dir(&root).unwrap();
        Self { folder, root }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// A place beside the repository.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    pub fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        self.root.join(path)
    }

    pub fn open(&self) -> WorkTree {
        WorkTree::open(&self.root).unwrap()
    }

    pub fn refusal(&self) -> GitError {
        WorkTree::open(&self.root).err().expect("a refusal")
    }

    pub fn write(&self, path: impl AsRef<Path>, text: impl AsRef<[u8]>) -> &Self {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    pub fn link(&self, path: &str, target: &str) -> &Self {
        symlink(target, self.path(path)).unwrap();
        self
    }

    pub fn make_executable(&self, path: &str) -> &Self {
        fs::set_permissions(self.path(path), fs::Permissions::from_mode(0o755)).unwrap();
        self
    }

    pub fn is_executable(&self, path: &str) -> bool {
        self.path(path).metadata().unwrap().permissions().mode() & 0o111 != 0
    }

    pub fn delete(&self, path: &str) -> &Self {
        let path = self.path(path);
        if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }.unwrap();
        self
    }

    /// A pipe that nobody writes to.
    pub fn fifo(&self, path: impl AsRef<Path>) -> &Self {
        let (mode, kind) = (rustix::fs::Mode::from_raw_mode(0o600), rustix::fs::FileType::Fifo);
        rustix::fs::mknodat(rustix::fs::CWD, self.path(path), kind, mode, 0).unwrap();
        self
    }

    pub fn read(&self, path: impl AsRef<Path>) -> String {
        String::from_utf8(fs::read(self.path(path)).unwrap()).unwrap()
    }

    pub fn exists(&self, path: impl AsRef<Path>) -> bool {
        self.path(path).symlink_metadata().is_ok()
    }

    pub fn git<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> String {
        git_in(&self.root, args).expect("git succeeds")
    }

    /// For set-up that is meant to fail, as a merge with conflicts.
    pub fn git_fails<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) {
        assert!(git_in(&self.root, args).is_none());
    }

    pub fn commit_all(&self, message: &str) -> String {
        self.git(["add", "-A"]);
        self.git(["commit", "-q", "--allow-empty", "-m", message]);
        self.head()
    }

    pub fn head(&self) -> String {
        self.git(["rev-parse", "HEAD"]).trim().to_owned()
    }

    pub fn status(&self) -> String {
        self.git(["status", "--porcelain", "-uall"])
    }

    /// What HEAD has at a path.
    pub fn committed(&self, path: &str) -> Option<String> {
        git_in(&self.root, ["show", &format!("HEAD:{path}")])
    }

    /// `STATUS\tPATH` lines of what the last commit changed.
    pub fn last_changes(&self) -> String {
        self.git(["show", "--format=", "--name-status", "--no-renames", "HEAD"])
    }

    pub fn assert_sound(&self) {
        let report = self.git(["fsck", "--strict", "--no-dangling"]);
        assert_eq!(report, "");
    }
}

/// A git process in a repository, until it is dropped.
pub struct GitAtWork(Child);

impl GitAtWork {
    pub fn start(folder: &Path) -> Self {
        let mut command = Command::new("git");
        command.args(["cat-file", "--batch"]).current_dir(folder);
        let mut git = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        // It has its own name once it answers; a process that has only just started has its parent's.
        git.stdin.as_mut().unwrap().write_all(b"HEAD\n").unwrap();
        git.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        Self(git)
    }
}

impl Drop for GitAtWork {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

fn git_in<S: AsRef<OsStr>>(folder: &Path, args: impl IntoIterator<Item = S>) -> Option<String> {
    let output = Command::new("git")
        .args(args)
        .current_dir(folder)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", "/nonexistent")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// libgit2 reads its configuration's places once per process.
#[allow(unsafe_code)]
fn isolate() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let levels = [ConfigLevel::ProgramData, ConfigLevel::System];
        for level in levels.into_iter().chain([ConfigLevel::XDG, ConfigLevel::Global]) {
            // SAFETY: runs once, before any repository is opened by these tests.
            unsafe { git2::opts::set_search_path(level, "/nonexistent") }.unwrap();
        }
    });
}

pub fn story(id: &str) -> StoryId {
    StoryId::try_from(id).unwrap()
}

/// Closes a story without touching any file of its own.
pub fn close(tree: &WorkTree, base: &Base) -> Committed {
    try_close(tree, base).unwrap()
}

pub fn try_close(tree: &WorkTree, base: &Base) -> Result<Committed, GitError> {
    let request = CommitRequest { base: Some(base), message: "close\n", ..Default::default() };
    request.commit(tree)
}

/// Everything from a story's work to its commit, in the work tree of the branch itself.
#[derive(Default)]
pub struct CommitRequest<'a> {
    /// None: only the replaced files.
    pub base: Option<&'a Base>,
    pub must_change: bool,
    pub replaced: &'a [(PathBuf, Vec<u8>)],
    pub staging: Option<Staging<'a>>,
    pub as_it_is: bool,
    pub message: &'a str,
}

impl CommitRequest<'_> {
    pub fn commit(&self, tree: &WorkTree) -> Result<Committed, GitError> {
        let Self { must_change, staging, as_it_is, .. } = *self;
        let except: Vec<PathBuf> = self.replaced.iter().map(|(path, _)| path.clone()).collect();
        let all = match self.base {
            Some(base) => tree.collect(&CollectRequest {
                checked: None,
                refused: &[],
                counted: None,
                base,
                must_change,
                except: &except,
                staging,
                as_it_is,
            })?,
            None => tree.collect_nothing()?,
        };
        let replaced = self.replaced.iter().map(|(path, bytes)| Replacement::new(path, bytes));
        let replaced: Vec<_> = replaced.collect();
        tree.advance(tree.prepare_commit(all, &replaced, self.message)?, None)
    }
}
