//! `.ralph/`: the working folder at the root of the work tree.
//!
//! Logs and prompts, for people. It can be deleted at any time without losing the run: nothing is
//! decided by what is in it, except that files of runs without a journal lead to a question. Only the
//! agents' notes, the scratchpad, are read, for the next prompt.

use std::fs::{File, Permissions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::iter;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::files::atomic::naming;
use crate::files::{Dir, FileKind, ReadError};
use crate::model::StoryId;

const FOLDER: &str = ".ralph";
const SCRATCHPAD: &str = "scratchpad.md";
/// Scratchpads of other stories.
const ARCHIVE: &str = "scratchpads";
const RUNS: &str = "runs";
/// Whatever was in the place of a folder.
const REPLACED: &str = "replaced";
/// The next folder, while something else is in its place.
const NEW_FOLDER: &str = ".ralph.new";
/// Read of a scratchpad's end: more than is shown, so that no secret is cut in half before it is
/// recognized.
const READ: u64 = 64 * 1024;

#[derive(Clone, Debug)]
pub struct RalphDir {
    root: PathBuf,
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

/// The files of one iteration, new and open. A log that cannot be made is reported later.
#[derive(Debug)]
pub struct IterationFiles {
    pub prompt: PromptFile,
    pub output: io::Result<File>,
    pub errors: io::Result<File>,
}

#[derive(Debug)]
pub struct PromptFile {
    pub path: PathBuf,
    file: File,
}

impl RalphDir {
    /// A link may be the human's: it is refused.
    pub fn open(root: &Path) -> DirResult<Self> {
        let dir = Self { root: root.to_owned() };
        match Dir::open(root)?.make_dir(Path::new(FOLDER)) {
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
                Err(RalphDirError::NotAFolder)
            }
            made => {
                made.map_err(naming(&dir.path()))?;
                dir.make()?;
                Ok(dir)
            }
        }
    }

    /// After a crash: whatever is in its place came from what ran then.
    pub fn put_back(root: &Path) -> DirResult<()> {
        Self { root: root.to_owned() }.make().map(drop)
    }

    /// There was a run in this work tree.
    pub fn has_runs(root: &Path) -> bool {
        Dir::open(root).is_ok_and(|root| root.dir(&Path::new(FOLDER).join(RUNS)).is_ok())
    }

    /// Earlier files stay: an attempt that did not count has the same number.
    pub fn iteration(&self, run: &str, number: u32, story: &StoryId) -> DirResult<IterationFiles> {
        let (folder, path) = self.run_folder(run)?;
        let file = |name: &str, kind: &str| PathBuf::from(format!("{name}.{kind}"));
        let is_free = |name: &str| {
            let kinds = ["prompt.md", "log", "stderr"];
            kinds.iter().all(|kind| folder.kind(&file(name, kind)) == FileKind::Nothing)
        };
        let name = free_name(format!("{number:04}-{story}"), is_free);
        let create = |kind| {
            let name = file(&name, kind);
            folder.create(&name).map_err(naming(&path.join(&name)))
        };
        Ok(IterationFiles {
            prompt: PromptFile {
                path: path.join(file(&name, "prompt.md")),
                file: create("prompt.md")?,
            },
            output: create("log"),
            errors: create("stderr"),
        })
    }

    /// The log of an iteration's gates; without a story, of the baseline.
    pub fn gates(
        &self,
        run: &str,
        number: u32,
        story: Option<&StoryId>,
    ) -> DirResult<io::Result<File>> {
        let whose = story.map_or("baseline", StoryId::as_str);
        let name = PathBuf::from(format!("{number:04}-{whose}.gates.log"));
        let (folder, path) = self.run_folder(run)?;
        Ok(folder.create(&name).map_err(naming(&path.join(&name))))
    }

    /// Writes a file at the top of the folder, whole for every reader.
    pub fn put(&self, name: &str, bytes: &[u8]) -> DirResult<()> {
        Ok(self.make()?.publish(Path::new(name), bytes)?)
    }

    /// Moves a file at the root of the work tree here, whatever it is. Returns where it is in the
    /// work tree; None if there was nothing.
    pub fn keep(&self, file: &Path, name: &str) -> DirResult<Option<PathBuf>> {
        match Dir::open(&self.root)?.rename(file, &self.make()?, Path::new(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            moved => {
                moved.map_err(naming(file))?;
                Ok(Some(Path::new(FOLDER).join(name)))
            }
        }
    }

    fn path(&self) -> PathBuf {
        self.root.join(FOLDER)
    }

    /// The folder of a run, and its path.
    fn run_folder(&self, run: &str) -> DirResult<(Dir, PathBuf)> {
        let name = Path::new(RUNS).join(run);
        Ok((self.make_in(&self.make()?, &name)?, self.path().join(name)))
    }

    /// An agent may have deleted the folder since it was made, or replaced it.
    fn make(&self) -> DirResult<Dir> {
        let root = Dir::open(&self.root)?;
        let folder = match root.make_dir(Path::new(FOLDER)) {
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => replaced(&root),
            made => made,
        };
        let folder = folder.map_err(naming(&self.path()))?;
        let ignore = Path::new(".gitignore");
        if folder.kind(ignore) != FileKind::File {
            let written = folder.create(ignore).and_then(|mut file| file.write_all(b"*\n"));
            written.map_err(naming(&self.path().join(ignore)))?;
        }
        Ok(folder)
    }

    fn make_in(&self, folder: &Dir, name: &Path) -> DirResult<Dir> {
        let mut parts: Vec<&Path> =
            name.ancestors().filter(|part| *part != Path::new("")).collect();
        parts.reverse();
        for part in parts {
            if folder.kind(part).is_in_the_way() {
                folder.rename(part, folder, &free_place(folder))?;
            }
        }
        Ok(folder.make_dir(name).map_err(naming(&self.path().join(name)))?)
    }

    /// The story is closed: its notes are for the record.
    pub fn archive_scratchpad(&self, story: &StoryId) -> Result<(), ScratchpadError> {
        let file = |name: &str| format!("{name}.md");
        let archive = self.existing().and_then(|folder| folder.dir(Path::new(ARCHIVE))).ok();
        let is_free = |name: &str| {
            let entry = archive.as_ref().map(|archive| archive.kind(Path::new(&file(name))));
            entry.is_none_or(|entry| entry == FileKind::Nothing)
        };
        self.move_scratchpad(&file(&free_name(story.to_string(), is_free)))
    }

    /// The story is left unfinished: its notes come back with it.
    pub fn shelve_scratchpad(&self, story: &StoryId) -> Result<(), ScratchpadError> {
        self.move_scratchpad(&shelved(story))
    }

    pub fn unshelve_scratchpad(&self, story: &StoryId) -> Result<(), ScratchpadError> {
        let (from, to) = (Path::new(ARCHIVE).join(shelved(story)), Path::new(SCRATCHPAD));
        let Ok(folder) = self.existing() else { return Ok(()) };
        // A scratchpad that is there now was written since, so it is the newer one.
        if folder.kind(&from) == FileKind::File && folder.kind(to) == FileKind::Nothing {
            folder.rename(&from, &folder, to)?;
        }
        Ok(())
    }

    fn move_scratchpad(&self, name: &str) -> Result<(), ScratchpadError> {
        let Some(file) = find(&self.root, Path::new(SCRATCHPAD))? else { return Ok(()) };
        let folder = self.existing()?;
        let archive = self.make_in(&folder, Path::new(ARCHIVE))?;
        folder.rename(Path::new(SCRATCHPAD), &archive, Path::new(name))?;
        // The mode of a file that has a name elsewhere too is not ralph's.
        if file.metadata()?.nlink() == 1 {
            file.set_permissions(Permissions::from_mode(0o600))?;
        }
        Ok(())
    }

    fn existing(&self) -> io::Result<Dir> {
        Dir::open(&self.root)?.dir(Path::new(FOLDER))
    }
}

/// Makes the folder where something else is, which is kept in it.
fn replaced(root: &Dir) -> io::Result<Dir> {
    let new = root.make_dir(Path::new(NEW_FOLDER))?;
    root.rename(Path::new(FOLDER), &new, &free_place(&new))?;
    root.rename(Path::new(NEW_FOLDER), root, Path::new(FOLDER))?;
    Ok(new)
}

fn free_place(folder: &Dir) -> PathBuf {
    let is_free = |name: &str| folder.kind(Path::new(name)) == FileKind::Nothing;
    free_name(REPLACED.to_owned(), is_free).into()
}

impl PromptFile {
    pub fn write(&self, text: &str) -> io::Result<()> {
        (&self.file).write_all(text.as_bytes()).map_err(naming(&self.path))
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
