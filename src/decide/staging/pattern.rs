//! File patterns with `*` and `?`, simpler than .gitignore.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Without a slash it is the name of a file or folder at any depth, else a path from the root. A
/// trailing slash: only folders. A leading `!`: may be committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    allows: bool,
    folders_only: bool,
    anywhere: bool,
    /// One glob per part of the path.
    parts: Vec<String>,
}

impl Pattern {
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

    pub fn allows(&self) -> bool {
        self.allows
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
