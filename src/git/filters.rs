//! Refusing files that git would pass through a program.

use std::path::Path;

use git2::{AttrCheckFlags, AttrValue};

use super::WorkTree;
use super::error::{Doing, GitError};

impl WorkTree {
    /// libgit2 runs no filter programs and knows no file encodings: it would
    /// store a large file instead of its LFS pointer, or a secret in clear.
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

    /// Git too passes a file as it is if nobody said what the filter does. But what belongs into
    /// a large file store or under encryption is wrong as it is, set up here or not.
    pub(super) fn is_configured(&self, filter: &str) -> bool {
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
}
