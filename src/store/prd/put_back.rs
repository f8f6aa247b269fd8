//! Puts PRD.json back where something else is now, and keeps that.

use std::path::{Path, PathBuf};

use super::place::{Place, PutBack};
use super::{MarkedText, PrdFile, TrackedPrd, WriteError, WrittenText};

impl PrdFile {
    /// Its path leads where it did: it was a symlink to `link`, or none.
    pub fn has_link(&self, link: Option<&Path>) -> bool {
        Place::known(self.path(), link.map(Path::to_owned)).is_ok_and(|place| place.is_at())
    }

    /// Like `TrackedPrd::put_back`, for a file that this process has not opened.
    pub fn put_back(
        &self,
        link: Option<&Path>,
        text: &str,
        keep: &Path,
    ) -> Result<Option<PathBuf>, WriteError> {
        let path = self.path().to_owned();
        let place = Place::known(&path, link.map(Path::to_owned));
        let done = place.and_then(|place| place.put_back(text, keep));
        done.map(|done| done.kept).map_err(|source| WriteError::Failed { path, source })
    }
}

impl TrackedPrd {
    /// Writes the text regardless of what is at its path. That is kept as `keep`, or under a similar
    /// name if that is taken; returns the name, unless nothing was there.
    pub fn put_back(
        &mut self,
        text: MarkedText,
        keep: &Path,
    ) -> Result<Option<PathBuf>, WriteError> {
        let path = self.file.path().to_owned();
        let done = self.place.put_back(text.text(), keep);
        let PutBack { kept, metadata } =
            done.map_err(|source| WriteError::Failed { path, source })?;
        self.take_written(WrittenText { marked: text, metadata });
        Ok(kept)
    }
}
