//! The files of the git folder that libgit2 reads whole, waits for or writes through a link: each
//! must be what git makes it.
//!
//! During a run, what is not goes to the kept files, and what a link led to takes its place. At the
//! start it is refused, because it may be the human's.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::files::{self, ReadError};

use super::error::{GitError, file_error};
use super::{OWN_GIT_FOLDER, Result, WorkTree};

/// No file of git's that is read whole is larger, except packs.
const LARGEST: u64 = 1 << 30;
/// Of a file that took its place as a link, or of a pointer to a git folder.
const LARGEST_COPY: u64 = 64 << 20;
const LARGEST_POINTER: u64 = 4096;
const NO_FOLDER: &str = "it is a link or a pipe instead of a folder";
const HEAD: &str = "HEAD";
const INDEX: &str = "index";
/// Here while something untrusted runs, and after it was interrupted.
const ATTEMPT: &str = "ralph/attempt";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Expected {
    /// A file that is written.
    File,
    /// A folder in which files are written.
    Folder,
    /// A file that is only read; a link to it may be the human's.
    Readable,
}

/// Of one work tree.
const OWN: [(&str, Expected); 12] = [
    (HEAD, Expected::File),
    (INDEX, Expected::File),
    ("logs", Expected::Folder),
    ("logs/HEAD", Expected::File),
    ("config.worktree", Expected::Readable),
    ("commondir", Expected::Readable),
    ("gitdir", Expected::Readable),
    (OWN_GIT_FOLDER, Expected::Folder),
    ("ralph/seen", Expected::File),
    ("ralph/lock", Expected::File),
    (ATTEMPT, Expected::File),
    ("ralph/changed", Expected::Folder),
];

/// Shared by all work trees of a repository.
const SHARED: [(&str, Expected); 18] = [
    ("config", Expected::Readable),
    ("packed-refs", Expected::File),
    ("refs", Expected::Folder),
    ("refs/heads", Expected::Folder),
    ("refs/ralph", Expected::Folder),
    ("logs", Expected::Folder),
    ("logs/refs", Expected::Folder),
    ("logs/refs/heads", Expected::Folder),
    ("objects", Expected::Folder),
    ("info/attributes", Expected::Readable),
    ("info/exclude", Expected::Readable),
    ("objects/info/alternates", Expected::Readable),
    (OWN_GIT_FOLDER, Expected::Folder),
    ("ralph/journal.db", Expected::File),
    ("ralph/journal.db-wal", Expected::File),
    ("ralph/journal.db-shm", Expected::File),
    ("ralph/numbers", Expected::File),
    ("ralph/kept", Expected::File),
];

impl Expected {
    fn check(self, path: &Path) -> Result<(), ReadError> {
        let found = match fs::symlink_metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            found => found?,
        };
        match self {
            // Of a format that libgit2 refuses, it may be a file.
            Self::Folder if found.is_dir() || found.is_file() => Ok(()),
            Self::Folder => Err(io::Error::new(io::ErrorKind::NotADirectory, NO_FOLDER).into()),
            Self::File if found.is_symlink() => Err(ReadError::NotAFile("link")),
            // What a link of the human's leads to may be missing.
            Self::Readable if found.is_symlink() && !path.exists() => Ok(()),
            Self::File | Self::Readable => match files::find(path)?.len() {
                0..=LARGEST => Ok(()),
                _ => Err(ReadError::TooLarge { limit: LARGEST }),
            },
        }
    }
}

/// Of the repository that a folder is in. Call before libgit2 looks at it.
pub(super) fn require_plain_files(start: &Path) -> Result<()> {
    let Some((own, shared)) = git_folders(start) else { return Ok(()) };
    // The guard puts the index back, and reads nothing of one that is no file.
    let was_interrupted = own.join(ATTEMPT).symlink_metadata().is_ok();
    let is_put_back = |path: &Path, problem: &ReadError| {
        let is_large = matches!(problem, ReadError::TooLarge { .. });
        was_interrupted && !is_large && path == own.join(INDEX)
    };
    match odd_files(&own, &shared).find(|(path, problem)| !is_put_back(path, problem)) {
        Some((path, problem)) => Err(GitError::OddFile { path, problem }),
        None => Ok(()),
    }
}

fn odd_files<'a>(
    own: &'a Path,
    shared: &'a Path,
) -> impl Iterator<Item = (PathBuf, ReadError)> + 'a {
    let own = OWN.iter().map(move |(name, expected)| (own.join(name), expected));
    let shared = SHARED.iter().map(move |(name, expected)| (shared.join(name), expected));
    own.chain(shared).filter_map(|(path, expected)| {
        let problem = expected.check(&path).err()?;
        Some((path, problem))
    })
}

/// Like libgit2 finds them: the work tree's own git folder, and the one that it shares.
fn git_folders(start: &Path) -> Option<(PathBuf, PathBuf)> {
    let start = start.canonicalize().ok()?;
    let found = start.ancestors().map(|folder| folder.join(".git")).find(|path| path.exists())?;
    let own = match files::read_text(&found, LARGEST_POINTER) {
        Ok(text) => found.parent()?.join(text.strip_prefix("gitdir:")?.trim()),
        Err(_) => found,
    };
    let shared = match files::read_text(&own.join("commondir"), LARGEST_POINTER) {
        Ok(text) => own.join(text.trim()),
        Err(_) => own.clone(),
    };
    Some((own, shared))
}

impl WorkTree {
    /// What is odd in the git folder makes room for what git expects.
    pub fn mend_git_files(&self) -> Result<()> {
        let odd: Vec<_> = odd_files(&self.git_dir, &self.common_dir).collect();
        odd.into_iter().try_for_each(|(path, problem)| self.mend(&path, problem))
    }

    /// Nothing is written through a link on the way to a ref, an index or their logs.
    pub(super) fn require_own_place(&self, lock: &Path) -> Result<()> {
        let file = lock.with_extension("");
        for folder in [&self.git_dir, &self.common_dir] {
            let Ok(name) = file.strip_prefix(folder) else { continue };
            for path in [folder.join(name), folder.join("logs").join(name)] {
                if let Some(link) = first_link(folder, &path) {
                    self.mend(&link, ReadError::NotAFile("link"))?;
                }
            }
            break;
        }
        Ok(())
    }

    fn mend(&self, path: &Path, problem: ReadError) -> Result<()> {
        if self.service.is_none() || !self.can_be_replaced(path) {
            return Err(GitError::OddFile { path: path.to_owned(), problem });
        }
        let text = self.text_for(path);
        let replace = || {
            self.moved_away.take(path, &self.shown(path))?;
            match text {
                Some(text) => fs::File::create_new(path)?.write_all(&text),
                None => Ok(()),
            }
        };
        replace().map_err(file_error("replace", path))
    }

    /// Without the objects nothing can be read, and without the journal's files the run is lost.
    fn can_be_replaced(&self, path: &Path) -> bool {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_store = name.starts_with("journal.db") || name == "lock" || name == OWN_GIT_FOLDER;
        !is_store && path != self.common_dir.join("objects")
    }

    /// What belongs there: HEAD is known, and an agent may have moved the file to where the link
    /// leads.
    fn text_for(&self, path: &Path) -> Option<Vec<u8>> {
        let start = match path.strip_prefix(&self.git_dir).ok()?.to_str()? {
            HEAD => {
                let name = self.run_branch.as_ref()?;
                return Some(format!("ref: {name}\n").into_bytes());
            }
            INDEX => "DIRC",
            "packed-refs" => "# pack-refs",
            _ => return None,
        };
        let text = files::read(path, LARGEST_COPY).ok()?;
        text.starts_with(start.as_bytes()).then_some(text)
    }
}

fn first_link(folder: &Path, path: &Path) -> Option<PathBuf> {
    let mut below: Vec<&Path> = path.ancestors().take_while(|part| *part != folder).collect();
    below.reverse();
    let is_link = |part: &&Path| fs::symlink_metadata(part).is_ok_and(|found| found.is_symlink());
    below.into_iter().find(is_link).map(Path::to_owned)
}
