//! What may become a part of a story's commit.
//!
//! Files that are litter or private by their name are left out, and the story closes. What is
//! too large, too much or looks like a secret is not committed without the human's word.

mod pattern;

use std::fmt;
use std::path::{Path, PathBuf};

pub use pattern::Pattern;

/// Never committed as new files, unless the settings take one out.
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

/// A file that a commit would bring in or change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    pub path: PathBuf,
    pub size: u64,
    /// It was not committed when the story began.
    pub is_new: bool,
    /// By its name it is never committed, and an agent has done it itself.
    pub is_private: bool,
    /// What kind of secret was added to it.
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
    /// The same lines as an edit of the user's, which has to stay out.
    OverAnEdit {
        path: PathBuf,
    },
    /// Git would pass it through a program, or store it in another encoding.
    Filtered {
        path: PathBuf,
        filter: String,
    },
}

impl Rules {
    /// What of a new file's path is never committed: itself, or the folder that it is in.
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

/// The lines of a file that were not in it before: only they can bring a secret in.
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
                "`{}` has {}, more than the {} that a file may have",
                path.display(),
                Size(*size),
                Size(*limit)
            ),
            Self::TooMany { count, limit } => {
                write!(f, "it adds {count} new files, more than the {limit} that a story may add")
            }
            Self::Secret { path, kind } => {
                write!(f, "`{}` has what looks like a secret ({kind})", path.display())
            }
            Self::Private { path } => write!(
                f,
                "`{}` must not be committed, and it is in a commit of the agent's own",
                path.display()
            ),
            Self::OverAnEdit { path } => write!(
                f,
                "`{}` had uncommitted edits of the user's before, and the same lines were changed",
                path.display()
            ),
            Self::Filtered { path, filter } => write!(
                f,
                "`{}` goes through the filter `{filter}`, which only git itself can apply",
                path.display()
            ),
        }
    }
}

/// `9.5 MB`, as exact as people need it.
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
