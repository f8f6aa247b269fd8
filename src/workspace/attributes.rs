//! What .gitattributes and .gitignore say about files.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use git2::{AttrCheckFlags, AttrValue, Index};

use super::WorkTree;
use super::error::{GitContext, GitError};
use super::tree::path_of;

impl WorkTree {
    /// libgit2 runs no filter programs and does not convert encodings: it would store a large file
    /// instead of its LFS pointer, or a secret in plain text.
    pub(super) fn require_plain(&self, path: &Path) -> Result<(), GitError> {
        let filter = self.attribute(path, "filter")?.filter(|name| self.is_configured(name));
        let encoding = self.attribute(path, "working-tree-encoding")?;
        match filter.or(encoding) {
            None => Ok(()),
            Some(filter) => {
                Err(GitError::ForeignFilter { path: path.display().to_string(), filter })
            }
        }
    }

    fn attribute(&self, path: &Path, name: &str) -> Result<Option<String>, GitError> {
        let value = self.repo.get_attr(path, name, AttrCheckFlags::FILE_THEN_INDEX);
        Ok(match AttrValue::from_string(value.doing("read .gitattributes")?) {
            AttrValue::String(text) => Some(text.to_owned()),
            _ => None,
        })
    }

    /// Like git, ignores a filter that is not configured, except LFS and git-crypt: their files
    /// would be wrong without it.
    fn is_configured(&self, filter: &str) -> bool {
        if filter == "lfs" || filter.starts_with("git-crypt") {
            return true;
        }
        let Ok(config) = self.repo.config() else {
            return true;
        };
        ["clean", "smudge", "process"]
            .iter()
            .any(|step| config.get_entry(&format!("filter.{filter}.{step}")).is_ok())
    }

    /// Attributes that change a file when it is committed.
    pub(super) fn attributes(&self, index: &Index) -> BTreeSet<String> {
        let tracked = index.iter().map(|entry| path_of(&entry.path));
        let tracked = tracked.filter(|path| path.ends_with(".gitattributes"));
        let files = tracked.map(|path| self.root.join(path));
        let files = files
            .chain([self.root.join(".gitattributes"), self.common_dir.join("info/attributes")]);
        let texts = files.filter_map(|file| fs::read_to_string(file).ok());
        let words: Vec<String> = texts.flat_map(|text| attribute_words(&text)).collect();
        words.into_iter().filter(|word| self.changes_files(word)).collect()
    }

    fn changes_files(&self, word: &str) -> bool {
        match word.split_once('=') {
            Some(("filter", name)) => self.is_configured(name),
            Some(("working-tree-encoding", _)) => true,
            _ => false,
        }
    }

    pub(super) fn is_ignored(&self, path: &Path) -> Result<bool, GitError> {
        self.repo.is_path_ignored(path).doing("read the ignore rules")
    }
}

fn attribute_words(text: &str) -> Vec<String> {
    let lines = text.lines().map(str::trim).filter(|line| !line.starts_with('#'));
    lines.flat_map(|line| line.split_whitespace().skip(1)).map(str::to_owned).collect()
}
