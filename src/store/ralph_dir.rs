//! `.ralph/`: the working folder at the root of the work tree.
//!
//! Logs and prompts, for people. It can be deleted at any time without losing the run: nothing is
//! decided by what is in it. Only the agents' notes, the scratchpad, are read, for the next prompt.

use std::fs::{self, File, Permissions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::iter;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::files::atomic::{self, naming, private_file, private_folder};
use crate::files::{Dir, ReadError};
use crate::model::StoryId;

const FOLDER: &str = ".ralph";
const SCRATCHPAD: &str = "scratchpad.md";
/// Scratchpads of other stories.
const ARCHIVE: &str = "scratchpads";
/// Read of a scratchpad's end: more than is shown, so that no secret is cut in half before it is
/// recognized.
const READ: u64 = 64 * 1024;

#[derive(Clone, Debug)]
pub struct RalphDir {
    folder: PathBuf,
}

#[derive(Debug, thiserror::Error)]
pub enum RalphDirError {
    #[error("`.ralph` is a link or a file instead of a folder; move it away")]
    NotAFolder,
    #[error(transparent)]
    Io(#[from] io::Error),
}

#[derive(Debug, thiserror::Error)]
pub enum ScratchpadError {
    #[error("ignoring `.ralph/scratchpad.md`: it is a link, a folder or a pipe instead of a file")]
    NotAFile,
    #[error("cannot use `.ralph/scratchpad.md`: {0}")]
    Io(#[from] io::Error),
    #[error(transparent)]
    RalphDir(#[from] RalphDirError),
}

type DirResult<T> = Result<T, RalphDirError>;

/// The files of one iteration.
#[derive(Clone, Debug)]
pub struct IterationFiles {
    pub prompt: PathBuf,
    pub output: PathBuf,
    pub errors: PathBuf,
}

impl RalphDir {
    pub fn open(root: &Path) -> DirResult<Self> {
        let dir = Self { folder: root.join(FOLDER) };
        dir.make()?;
        Ok(dir)
    }

    /// Earlier files stay: an attempt that did not count has the same number.
    pub fn iteration(&self, run: &str, number: u32, story: &StoryId) -> DirResult<IterationFiles> {
        let folder = self.run_folder(run)?;
        let file = |name: &str, kind: &str| folder.join(format!("{name}.{kind}"));
        let is_free = |name: &str| !file(name, "prompt.md").exists();
        let name = free_name(format!("{number:04}-{story}"), is_free);
        Ok(IterationFiles {
            prompt: file(&name, "prompt.md"),
            output: file(&name, "log"),
            errors: file(&name, "stderr"),
        })
    }

    /// The log of an iteration's gates; without a story, of the baseline.
    pub fn gates(&self, run: &str, number: u32, story: Option<&StoryId>) -> DirResult<PathBuf> {
        let whose = story.map_or("baseline", StoryId::as_str);
        Ok(self.run_folder(run)?.join(format!("{number:04}-{whose}.gates.log")))
    }

    /// Writes a file at the top of the folder, whole for every reader.
    pub fn put(&self, name: &str, bytes: &[u8]) -> DirResult<()> {
        self.make()?;
        Ok(atomic::publish(&self.folder.join(name), bytes)?)
    }

    /// Moves a file of the work tree here, whatever it is. Returns where it is in the work tree;
    /// None if there was nothing.
    pub fn keep(&self, path: &Path, name: &str) -> DirResult<Option<PathBuf>> {
        self.make()?;
        match fs::rename(path, self.folder.join(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            moved => {
                moved.map_err(naming(path))?;
                Ok(Some(Path::new(FOLDER).join(name)))
            }
        }
    }

    /// Leftovers of a killed `put` may stay if they cannot be removed.
    pub fn remove_leftovers(&self, name: &str) {
        let _ = atomic::remove_leftovers(&self.folder.join(name));
    }

    /// An agent may have deleted the folder since it was made.
    fn run_folder(&self, run: &str) -> DirResult<PathBuf> {
        self.make()?;
        let folder = self.folder.join("runs").join(run);
        private_folder(&folder)?;
        Ok(folder)
    }

    fn make(&self) -> DirResult<()> {
        if fs::symlink_metadata(&self.folder).is_ok_and(|meta| !meta.is_dir()) {
            return Err(RalphDirError::NotAFolder);
        }
        private_folder(&self.folder)?;
        let ignore = self.folder.join(".gitignore");
        if !ignore.exists() {
            private_file(&ignore)?.write_all(b"*\n").map_err(naming(&ignore))?;
        }
        Ok(())
    }

    /// The story is closed: its notes are for the record.
    pub fn archive_scratchpad(&self, story: &StoryId) -> Result<(), ScratchpadError> {
        let file = |name: &str| format!("{name}.md");
        let is_free = |name: &str| fs::symlink_metadata(self.archive().join(file(name))).is_err();
        self.move_scratchpad(&file(&free_name(story.to_string(), is_free)))
    }

    /// The story is left unfinished: its notes come back with it.
    pub fn shelve_scratchpad(&self, story: &StoryId) -> Result<(), ScratchpadError> {
        self.move_scratchpad(&shelved(story))
    }

    pub fn unshelve_scratchpad(&self, story: &StoryId) -> Result<(), ScratchpadError> {
        let (from, to) = (self.archive().join(shelved(story)), self.folder.join(SCRATCHPAD));
        let is_folder = |path: &Path| fs::symlink_metadata(path).is_ok_and(|found| found.is_dir());
        let is_file = |path: &Path| fs::symlink_metadata(path).is_ok_and(|found| found.is_file());
        let is_there = is_folder(&self.folder) && is_folder(&self.archive()) && is_file(&from);
        // A scratchpad that is there now was written since, so it is the newer one.
        if !is_there || fs::symlink_metadata(&to).is_ok() {
            return Ok(());
        }
        Ok(fs::rename(from, to)?)
    }

    fn move_scratchpad(&self, name: &str) -> Result<(), ScratchpadError> {
        let Some(root) = self.folder.parent() else { return Ok(()) };
        if find(root, Path::new(SCRATCHPAD))?.is_none() {
            return Ok(());
        }
        let archive = self.archive();
        if fs::symlink_metadata(&archive).is_ok_and(|found| !found.is_dir()) {
            return Err(RalphDirError::NotAFolder.into());
        }
        private_folder(&archive)?;
        let target = archive.join(name);
        fs::rename(self.folder.join(SCRATCHPAD), &target)?;
        Ok(fs::set_permissions(&target, Permissions::from_mode(0o600))?)
    }

    fn archive(&self) -> PathBuf {
        self.folder.join(ARCHIVE)
    }
}

impl IterationFiles {
    pub fn write_prompt(&self, text: &str) -> io::Result<()> {
        let written = private_file(&self.prompt)?.write_all(text.as_bytes());
        written.map_err(naming(&self.prompt))
    }
}

/// The name itself, or with the first number that makes it free.
fn free_name(name: String, is_free: impl Fn(&str) -> bool) -> String {
    let numbered = (2_u32..).map(|number| format!("{name}-{number}"));
    iter::once(name.clone()).chain(numbered).find(|name| is_free(name)).unwrap_or_default()
}

/// Archived scratchpads end in `.md`, so the names of two stories never collide.
fn shelved(story: &StoryId) -> String {
    format!("{story}.waiting")
}

/// The end of the scratchpad at this root; None without notes.
pub fn scratchpad(root: &Path) -> Result<Option<String>, ScratchpadError> {
    read_end(root, Path::new(SCRATCHPAD))
}

/// The same, of the scratchpad that waits for its story.
pub fn shelved_scratchpad(root: &Path, story: &StoryId) -> Result<Option<String>, ScratchpadError> {
    read_end(root, &Path::new(ARCHIVE).join(shelved(story)))
}

fn read_end(root: &Path, name: &Path) -> Result<Option<String>, ScratchpadError> {
    let Some(mut file) = find(root, name)? else { return Ok(None) };
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(READ)))?;
    let mut bytes = Vec::new();
    file.take(READ).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    // Reading may have begun in the middle of a character.
    let text = if length > READ { text.trim_start_matches('\u{fffd}') } else { &text };
    Ok(Some(text.to_owned()).filter(|text| !text.trim().is_empty()))
}

/// An agent can put anything in the place of the scratchpad.
fn find(root: &Path, name: &Path) -> Result<Option<File>, ScratchpadError> {
    let folder = match Dir::open(root)?.dir(Path::new(FOLDER)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
            return Err(RalphDirError::NotAFolder.into());
        }
        folder => folder?,
    };
    match folder.open_file(name) {
        Err(ReadError::Io(error)) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(ReadError::Io(error)) => Err(error.into()),
        Err(_) => Err(ScratchpadError::NotAFile),
        Ok(file) => Ok(Some(file)),
    }
}

#[cfg(test)]
mod tests;
