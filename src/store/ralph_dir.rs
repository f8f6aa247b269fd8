//! `.ralph/`: the working folder at the root of the work tree.
//!
//! Transcripts and prompts, for people. It can be deleted at any time without
//! losing the run: nothing in here is ever read back to decide anything. Only the agents' own
//! notes are read, to be shown to the next agent.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::model::StoryId;

use super::atomic;
use super::files::{naming, private_file, private_folder};

pub const FOLDER: &str = ".ralph";

#[derive(Clone, Debug)]
pub struct RalphDir {
    folder: PathBuf,
}

#[derive(Debug, thiserror::Error)]
pub enum RalphDirError {
    #[error("`.ralph` is not a folder of its own (a link or a file stands there); move it away")]
    NotAFolder,
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl RalphDir {
    pub fn open(root: &Path) -> Result<Self, RalphDirError> {
        let dir = Self { folder: root.join(FOLDER) };
        dir.make()?;
        Ok(dir)
    }

    /// Files for one iteration: what it was given, and what it said.
    pub fn iteration(
        &self,
        run: &str,
        number: u32,
        story: &StoryId,
    ) -> Result<IterationFiles, RalphDirError> {
        // An agent may have deleted the folder since it was made.
        self.make()?;
        let folder = self.folder.join("runs").join(run);
        private_folder(&folder)?;
        // An attempt that did not count left its files under the same number: they stay.
        let names = (1..).map(|n| match n {
            1 => format!("{number:04}-{story}"),
            n => format!("{number:04}-{story}-{n}"),
        });
        let free = |name: &String| !folder.join(format!("{name}.prompt.md")).exists();
        let name = names.into_iter().find(free).unwrap_or_default();
        let page = |kind: &str| folder.join(format!("{name}.{kind}"));
        Ok(IterationFiles {
            prompt: page("prompt.md"),
            output: page("log"),
            errors: page("stderr"),
        })
    }

    /// Where an iteration's gates print; the baseline's, without a story.
    pub fn gates(
        &self,
        run: &str,
        number: u32,
        story: Option<&StoryId>,
    ) -> Result<PathBuf, RalphDirError> {
        self.make()?;
        let folder = self.folder.join("runs").join(run);
        private_folder(&folder)?;
        let whose = story.map_or("baseline", StoryId::as_str);
        Ok(folder.join(format!("{number:04}-{whose}.gates.log")))
    }

    /// Where an attempt's version of the human's instructions is kept, when no ref can.
    pub fn instructions(
        &self,
        run: &str,
        number: u32,
        story: &StoryId,
    ) -> Result<PathBuf, RalphDirError> {
        self.make()?;
        let folder = self.folder.join("runs").join(run);
        private_folder(&folder)?;
        Ok(folder.join(format!("{number:04}-{story}.PROMPT.md")))
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Writes a file at the top of the folder, whole for every reader.
    pub fn put(&self, name: &str, bytes: &[u8]) -> Result<(), RalphDirError> {
        self.make()?;
        Ok(atomic::publish(&self.folder.join(name), bytes)?)
    }

    /// What a killed `put` of this file left is litter, and may stay.
    pub fn remove_leftovers(&self, name: &str) {
        let _ = atomic::remove_leftovers(&self.folder.join(name));
    }

    fn make(&self) -> Result<(), RalphDirError> {
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
}

/// The files of one iteration.
#[derive(Clone, Debug)]
pub struct IterationFiles {
    pub prompt: PathBuf,
    pub output: PathBuf,
    pub errors: PathBuf,
}

impl IterationFiles {
    pub fn write_prompt(&self, text: &str) -> io::Result<()> {
        let written = private_file(&self.prompt)?.write_all(text.as_bytes());
        written.map_err(naming(&self.prompt))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn a_link_is_refused_even_a_dangling_one() {
        let root = tempfile::tempdir().unwrap();
        symlink(root.path().join("nowhere"), root.path().join(FOLDER)).unwrap();
        assert!(matches!(RalphDir::open(root.path()), Err(RalphDirError::NotAFolder)));
        assert!(!root.path().join("nowhere").exists());
    }

    #[test]
    fn it_ignores_itself_and_is_private_and_comes_back() {
        let root = tempfile::tempdir().unwrap();
        let dir = RalphDir::open(root.path()).unwrap();
        fs::remove_dir_all(root.path().join(FOLDER)).unwrap();
        let story = StoryId::try_from("US-001").unwrap();
        let files = dir.iteration("r", 1, &story).unwrap();
        files.write_prompt("secret").unwrap();
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&files.prompt), 0o600);
        assert_eq!(mode(files.prompt.parent().unwrap()), 0o700);
        let folder = root.path().join(FOLDER);
        fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
        RalphDir::open(root.path()).unwrap();
        assert_eq!(mode(&folder), 0o700);
        assert_eq!(fs::read_to_string(root.path().join(".ralph/.gitignore")).unwrap(), "*\n");
    }
}
