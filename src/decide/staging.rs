//! What may be part of a story's commit.
//!
//! Files that are junk or private by name are left out, and the story closes. Files that are too
//! large, too many or look like secrets need the human's approval.

mod pattern;

use std::fmt;
use std::path::{Path, PathBuf};

pub use pattern::Pattern;

/// Never committed as new files, unless the settings remove one.
const NEVER: [&str; 41] = [
    ".env*",
    "!.env.example",
    "!.env.sample",
    "!.env.template",
    "!.env.dist",
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "*.ppk",
    "*.jks",
    "*.keystore",
    "*.kdbx",
    "id_rsa*",
    "id_dsa*",
    "id_ecdsa*",
    "id_ed25519*",
    "!*.pub",
    ".netrc",
    "node_modules/",
    "target/",
    "*.pyc",
    "__pycache__/",
    ".venv/",
    ".tox/",
    ".mypy_cache/",
    ".pytest_cache/",
    ".ruff_cache/",
    ".gradle/",
    ".terraform/",
    ".idea/",
    "*.swp",
    "*.swo",
    "*~",
    ".#*",
    ".DS_Store",
    "._*",
    "Thumbs.db",
    "desktop.ini",
    ".directory",
    ".Trash-*/",
];

const KILOBYTE: u64 = 1000;
const MEGABYTE: u64 = 1000 * KILOBYTE;
const DEFAULT_MAX_FILE_SIZE: u64 = 10 * MEGABYTE;
const DEFAULT_MAX_NEW_FILES: usize = 2000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// A later one wins.
    pub never_commit: Vec<Pattern>,
    /// In bytes; None: no limit.
    pub max_file_size: Option<u64>,
    /// None: no limit.
    pub max_new_files: Option<usize>,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            never_commit: NEVER.iter().filter_map(|text| Pattern::new(text)).collect(),
            max_file_size: Some(DEFAULT_MAX_FILE_SIZE),
            max_new_files: Some(DEFAULT_MAX_NEW_FILES),
        }
    }
}

/// A file that a commit would add or change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    pub path: PathBuf,
    pub size: u64,
    /// It is new since the story began.
    pub is_new: bool,
    /// Excluded by name, but committed by the agent itself.
    pub is_private: bool,
    /// The kind of secret that was added to it.
    pub secret: Option<String>,
}

/// Why a story cannot be committed as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Objection {
    TooLarge {
        path: PathBuf,
        size: u64,
        limit: u64,
    },
    TooMany {
        count: usize,
        limit: usize,
    },
    Secret {
        path: PathBuf,
        kind: String,
    },
    /// Among the agent's own commits.
    Private {
        path: PathBuf,
    },
    /// It changes the same lines as a user's edit, which must stay out.
    OverAnEdit {
        path: PathBuf,
    },
    /// Git would filter or re-encode it.
    Filtered {
        path: PathBuf,
        filter: String,
    },
}

impl Rules {
    /// The part of a new file's path that is excluded: itself, or a folder.
    pub fn never(&self, path: &Path) -> Option<PathBuf> {
        let matching = self.never_commit.iter().rev();
        let (pattern, prefix) =
            matching.filter_map(|pattern| Some((pattern, pattern.matches(path)?))).next()?;
        (!pattern.allows()).then_some(prefix)
    }

    pub fn objections(&self, contents: &[Content]) -> Vec<Objection> {
        let mut found = Vec::new();
        for content in contents {
            let path = || content.path.clone();
            if content.is_private {
                found.push(Objection::Private { path: path() });
            }
            if let Some(limit) = self.max_file_size.filter(|limit| content.size > *limit) {
                found.push(Objection::TooLarge { path: path(), size: content.size, limit });
            }
            if let Some(kind) = &content.secret {
                found.push(Objection::Secret { path: path(), kind: kind.clone() });
            }
        }
        let count = contents.iter().filter(|content| content.is_new).count();
        if let Some(limit) = self.max_new_files.filter(|limit| count > *limit) {
            found.push(Objection::TooMany { count, limit });
        }
        found
    }
}

/// New lines of a file: only they can add a secret.
pub fn added_lines(before: &[u8], now: &[u8]) -> Vec<u8> {
    let lines = |text| <[u8]>::split_inclusive(text, |byte| *byte == b'\n');
    let known: std::collections::HashSet<&[u8]> = lines(before).collect();
    lines(now).filter(|line| !known.contains(line)).flatten().copied().collect()
}

impl fmt::Display for Objection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge { path, size, limit } => write!(
                f,
                "`{}` has {}, more than the limit of {}",
                path.display(),
                Size(*size),
                Size(*limit)
            ),
            Self::TooMany { count, limit } => {
                write!(f, "it adds {count} new files, more than the limit of {limit}")
            }
            Self::Secret { path, kind } => {
                write!(f, "`{}` seems to contain a secret ({kind})", path.display())
            }
            Self::Private { path } => write!(
                f,
                "`{}` must not be committed, but the agent committed it itself",
                path.display()
            ),
            Self::OverAnEdit { path } => write!(
                f,
                "`{}` had uncommitted edits of the user, and the same lines were changed",
                path.display()
            ),
            Self::Filtered { path, filter } => write!(
                f,
                "`{}` needs the filter `{filter}`, which only git itself can apply",
                path.display()
            ),
        }
    }
}

/// `9.5 MB`.
struct Size(u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenths = |unit: u64| (u128::from(self.0) * 10).div_ceil(u128::from(unit));
        let (tenths, name) = match self.0 {
            MEGABYTE.. => (tenths(MEGABYTE), "MB"),
            KILOBYTE.. => (tenths(KILOBYTE), "KB"),
            bytes => return write!(f, "{bytes} bytes"),
        };
        match (tenths / 10, tenths % 10) {
            (whole, 0) => write!(f, "{whole} {name}"),
            (whole, rest) => write!(f, "{whole}.{rest} {name}"),
        }
    }
}

#[cfg(test)]
mod tests;
