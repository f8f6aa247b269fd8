//! `.ralph/scratchpad.md`: the agents' own notes.
//!
//! An agent writes it and can put anything in its place: it is opened without following links and
//! without waiting, only a file is read, and only its end.

use std::fs::{File, Permissions};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::{fs, io};

use rustix::fs::{Mode, OFlags, open, openat};

use crate::model::StoryId;

use super::files::private_folder;
use super::ralph_dir::{FOLDER, RalphDir, RalphDirError};

pub const NAME: &str = "scratchpad.md";
/// Where those of other stories are.
const ARCHIVE: &str = "scratchpads";
/// Read of its end: more than is shown, so that a secret is not cut in half before it is known.
const READ: u64 = 64 * 1024;

#[derive(Debug, thiserror::Error)]
pub enum ScratchpadError {
    #[error(
        "`.ralph/scratchpad.md` is not a file of its own (a link, folder or pipe stands there); it is left alone"
    )]
    NotAFile,
    #[error("`.ralph/scratchpad.md` cannot be used: {0}")]
    Io(#[from] io::Error),
    #[error(transparent)]
    RalphDir(#[from] RalphDirError),
}

/// The end of the notes at this root, as text; None when there are none.
pub fn end(root: &Path) -> Result<Option<String>, ScratchpadError> {
    end_of(find(root, Path::new(NAME))?)
}

/// Of those that wait for their story.
pub fn end_of_waiting(root: &Path, story: &StoryId) -> Result<Option<String>, ScratchpadError> {
    end_of(find(root, &Path::new(ARCHIVE).join(waiting(story)))?)
}

fn end_of(file: Option<File>) -> Result<Option<String>, ScratchpadError> {
    let Some(mut file) = file else { return Ok(None) };
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(READ)))?;
    let mut bytes = Vec::new();
    file.take(READ).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    // The half of a character where the reading began.
    let text = if length > READ { text.trim_start_matches('\u{fffd}') } else { &text };
    Ok(Some(text.to_owned()).filter(|text| !text.trim().is_empty()))
}

fn find(root: &Path, name: &Path) -> Result<Option<File>, ScratchpadError> {
    let strict = OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
    let folder = match open(root.join(FOLDER), strict | OFlags::DIRECTORY, Mode::empty()) {
        Err(rustix::io::Errno::NOENT) => return Ok(None),
        Err(rustix::io::Errno::LOOP | rustix::io::Errno::NOTDIR) => {
            return Err(RalphDirError::NotAFolder.into());
        }
        opened => opened.map_err(io::Error::from)?,
    };
    let file = match openat(&folder, name, strict | OFlags::NONBLOCK, Mode::empty()) {
        Err(rustix::io::Errno::NOENT) => return Ok(None),
        Err(rustix::io::Errno::LOOP | rustix::io::Errno::NXIO) => {
            return Err(ScratchpadError::NotAFile);
        }
        opened => File::from(opened.map_err(io::Error::from)?),
    };
    if file.metadata()?.is_file() { Ok(Some(file)) } else { Err(ScratchpadError::NotAFile) }
}

impl RalphDir {
    /// The story is closed: its notes are for the record.
    pub fn archive_scratchpad(&self, story: &StoryId) -> Result<(), ScratchpadError> {
        let names = (1..).map(|n: u32| match n {
            1 => format!("{story}.md"),
            n => format!("{story}-{n}.md"),
        });
        let folder = self.archive();
        let free = |name: &String| fs::symlink_metadata(folder.join(name)).is_err();
        let Some(name) = names.into_iter().find(free) else { return Ok(()) };
        self.move_scratchpad(&name)
    }

    /// The story is left unfinished: its notes come back with it.
    pub fn put_scratchpad_away(&self, story: &StoryId) -> Result<(), ScratchpadError> {
        self.move_scratchpad(&waiting(story))
    }

    pub fn bring_scratchpad_back(&self, story: &StoryId) -> Result<(), ScratchpadError> {
        let (from, to) = (self.archive().join(waiting(story)), self.folder().join(NAME));
        let is_file = |path: &Path| fs::symlink_metadata(path).is_ok_and(|found| found.is_file());
        if !is_real_folder(self.folder()) || !is_real_folder(&self.archive()) || !is_file(&from) {
            return Ok(());
        }
        // Whatever stands there now was written since, so it is the newer.
        if fs::symlink_metadata(&to).is_ok() {
            return Ok(());
        }
        Ok(fs::rename(from, to)?)
    }

    fn move_scratchpad(&self, name: &str) -> Result<(), ScratchpadError> {
        let Some(root) = self.folder().parent() else { return Ok(()) };
        if find(root, Path::new(NAME))?.is_none() {
            return Ok(());
        }
        let archive = self.archive();
        if fs::symlink_metadata(&archive).is_ok_and(|found| !found.is_dir()) {
            return Err(RalphDirError::NotAFolder.into());
        }
        private_folder(&archive)?;
        let target = archive.join(name);
        fs::rename(self.folder().join(NAME), &target)?;
        Ok(fs::set_permissions(&target, Permissions::from_mode(0o600))?)
    }

    fn archive(&self) -> PathBuf {
        self.folder().join(ARCHIVE)
    }
}

/// What is archived ends in `.md`, so no two stories meet here.
fn waiting(story: &StoryId) -> String {
    format!("{story}.waiting")
}

fn is_real_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_dir())
}

#[cfg(test)]
mod tests;
