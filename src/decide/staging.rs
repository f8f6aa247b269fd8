//! Rules for a story's commit.
//!
//! Files with generated or private names are left out, and the story closes. Files that are too
//! large, too many or seem to contain secrets need the human's approval.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};

/// Never committed as new files, unless the settings remove one.
#[rustfmt::skip]
const NEVER: [&str; 41] = [
    // Secrets.
    ".env*", "!.env.example", "!.env.sample", "!.env.template", "!.env.dist", "*.pem", "*.key",
    "*.p12", "*.pfx", "*.ppk", "*.jks", "*.keystore", "*.kdbx", "id_rsa*", "id_dsa*",
    "id_ecdsa*", "id_ed25519*", "!*.pub", ".netrc",
    // Dependencies, builds and caches.
    "node_modules/", "target/", "*.pyc", "__pycache__/", ".venv/", ".tox/", ".mypy_cache/",
    ".pytest_cache/", ".ruff_cache/", ".gradle/", ".terraform/",
    // Files of editors and desktops.
    ".idea/", "*.swp", "*.swo", "*~", ".#*", ".DS_Store", "._*", "Thumbs.db", "desktop.ini",
    ".directory", ".Trash-*/",
];

const KILOBYTE: u64 = 1000;
const MEGABYTE: u64 = 1000 * KILOBYTE;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// A later one wins.
    pub never_commit: Vec<Pattern>,
    /// In bytes; None: no limit.
    pub max_file_size: Option<u64>,
    /// None: no limit.
    pub max_new_files: Option<usize>,
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
    /// In bytes.
    TooLarge { path: PathBuf, size: u64, limit: u64 },
    /// New files.
    TooMany { count: usize, limit: usize },
    /// A secret of this kind was added.
    Secret { path: PathBuf, kind: String },
    /// Among the agent's own commits.
    Private { path: PathBuf },
    /// It changes the same lines as a user's edit, which must stay out.
    OverAnEdit { path: PathBuf },
    /// Git would filter or re-encode it.
    Filtered { path: PathBuf, filter: String },
}

impl Rules {
    /// The part of a new file's path that is excluded: itself, or a folder.
    pub fn never(&self, path: &Path) -> Option<PathBuf> {
        let mut newest_first = self.never_commit.iter().rev();
        let (pattern, prefix) = newest_first.find_map(|one| Some((one, one.matches(path)?)))?;
        (!pattern.allows).then_some(prefix)
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
    let known: HashSet<&[u8]> = lines(before).collect();
    lines(now).filter(|line| !known.contains(line)).flatten().copied().collect()
}

const PRIVATE: &str = "must not be committed (`never_commit`), but the agent committed it";
const OVER_AN_EDIT: &str =
    "had uncommitted edits of the user, and the story changed the same lines";

impl fmt::Display for Objection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (path, what) = match self {
            Self::TooMany { count, limit } => {
                return write!(f, "{count} new files are too many (limit {limit})");
            }
            Self::TooLarge { path, size, limit } => {
                (path, format!("is too large: {} (limit {})", Size(*size), Size(*limit)))
            }
            Self::Secret { path, kind } => (path, format!("seems to contain a secret ({kind})")),
            Self::Private { path } => (path, PRIVATE.to_owned()),
            Self::OverAnEdit { path } => (path, OVER_AN_EDIT.to_owned()),
            Self::Filtered { path, filter } => {
                (path, format!("needs the git filter `{filter}`, which ralph cannot apply"))
            }
        };
        write!(f, "`{}` {what}", path.display())
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

/// A file pattern with `*` and `?`, simpler than .gitignore: without a slash it is the name of a file
/// or folder at any depth, else a path from the root. A trailing slash: only folders. A leading `!`:
/// may be committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    allows: bool,
    folders_only: bool,
    anywhere: bool,
    /// One glob per part of the path.
    parts: Vec<String>,
}

impl Pattern {
    /// Those of every run.
    pub fn built_in() -> impl Iterator<Item = Self> {
        NEVER.iter().filter_map(|text| Self::new(text))
    }

    /// None: it can never match.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        let (allows, text) = text.strip_prefix('!').map_or((false, text), |rest| (true, rest));
        let (folders_only, text) =
            text.strip_suffix('/').map_or((false, text), |rest| (true, rest));
        let anywhere = !text.contains('/');
        let text = text.strip_prefix('/').unwrap_or(text);
        let parts: Vec<String> = text.split('/').map(str::to_owned).collect();
        let fine = parts.iter().all(|part| !part.is_empty());
        fine.then_some(Self { allows, folders_only, anywhere, parts })
    }

    /// The part of the path that it matches.
    pub fn matches(&self, path: &Path) -> Option<PathBuf> {
        let names: Vec<_> = path.iter().map(OsStr::to_string_lossy).collect();
        let last_start = if self.anywhere { names.len().checked_sub(1)? } else { 0 };
        let ends = (0..=last_start).filter_map(|start| {
            let rest = names.get(start..)?;
            let alike = self.parts.len() <= rest.len()
                && self.parts.iter().zip(rest).all(|(glob, name)| is_like(glob, name));
            alike.then_some(start + self.parts.len())
        });
        let mut ends = ends.filter(|end| *end < names.len() || !self.folders_only);
        ends.next().map(|end| path.iter().take(end).collect())
    }
}

/// Backtracks only to the last star, so no pattern takes long.
fn is_like(glob: &str, name: &str) -> bool {
    let (glob, name): (Vec<char>, Vec<char>) = (glob.chars().collect(), name.chars().collect());
    let (mut at, mut place) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while let Some(found) = name.get(place) {
        match glob.get(at) {
            Some('*') => {
                star = Some((at, place));
                at += 1;
            }
            Some(wanted) if *wanted == '?' || wanted == found => {
                at += 1;
                place += 1;
            }
            _ => {
                let Some((before, taken)) = star else { return false };
                star = Some((before, taken + 1));
                at = before + 1;
                place = taken + 1;
            }
        }
    }
    glob.iter().skip(at).all(|rest| *rest == '*')
}

#[cfg(test)]
mod tests;
