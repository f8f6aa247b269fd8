//! Files outside of the git folder that libgit2 reads because of their names or because the
//! configuration names them.

use std::env;
use std::path::{Path, PathBuf};

use crate::files::{self, ReadError, follow};

use super::{Expected, GitFolders, LARGEST_SETUP};

/// The keys of files that are read; all of them end in one of these.
const KEYS: [&str; 3] = ["path", "excludesfile", "attributesfile"];
/// As in git.
const DEEPEST: usize = 10;

/// A file that is odd, or the configuration of the repository that names one: without that, the file is
/// not read.
pub(super) fn odd_names(folders: &GitFolders) -> Vec<(PathBuf, ReadError)> {
    let own = [folders.shared.join("config"), folders.own.join("config.worktree")];
    let mut odd = Vec::new();
    for path in users().chain(own) {
        let found = Expected::Readable(LARGEST_SETUP).check(&path);
        // The tables have those of the repository.
        let is_known = path.starts_with(&folders.shared) || path.starts_with(&folders.own);
        match found {
            Err(ReadError::NotAFile(_) | ReadError::TooLarge { .. }) if is_known => {}
            Err(problem @ (ReadError::NotAFile(_) | ReadError::TooLarge { .. })) => {
                odd.push((path, problem));
            }
            _ => odd.extend(named_in(&path, 0).map(|problem| (path, problem))),
        }
    }
    odd
}

/// Where libgit2 looks for the user's own.
fn users() -> impl Iterator<Item = PathBuf> {
    let home = home();
    let set = env::var_os("XDG_CONFIG_HOME").filter(|set| !set.is_empty()).map(PathBuf::from);
    let folder = set.or_else(|| home.as_ref().map(|home| home.join(".config")));
    let folder = folder.map(|folder| folder.join("git"));
    let in_folder = |folder: PathBuf| ["config", "ignore", "attributes"].map(|n| folder.join(n));
    home.map(|home| home.join(".gitconfig"))
        .into_iter()
        .chain(folder.into_iter().flat_map(in_folder))
}

fn home() -> Option<PathBuf> {
    env::var_os("HOME").filter(|home| !home.is_empty()).map(PathBuf::from)
}

/// What is wrong with a file that this configuration, or one that it includes, names.
fn named_in(config: &Path, depth: usize) -> Option<ReadError> {
    let text = files::read(config, LARGEST_SETUP).ok()?;
    let text = String::from_utf8_lossy(&text);
    let folder = config.parent()?;
    text.lines().filter_map(|line| value(line)).find_map(|(key, value)| {
        let path = resolved(value, folder)?;
        // A key of this name may be for a folder.
        let found = follow::look(&path).ok().filter(|found| !found.is_dir())?;
        if !found.is_file() || found.len() > LARGEST_SETUP {
            return Expected::Readable(LARGEST_SETUP).check(&path).err();
        }
        let is_included = key == KEYS[0] && depth < DEEPEST;
        is_included.then(|| named_in(&path, depth + 1)).flatten()
    })
}

/// Of a line with one of the keys.
fn value(line: &str) -> Option<(&'static str, &str)> {
    // A section may begin in the same line.
    let line = line.rsplit_once(']').map_or(line, |(_, rest)| rest);
    let (key, value) = line.split_once('=')?;
    let key = KEYS.into_iter().find(|known| key.trim().eq_ignore_ascii_case(known))?;
    Some((key, value.trim().trim_matches('"')))
}

fn resolved(value: &str, folder: &Path) -> Option<PathBuf> {
    match value.strip_prefix("~/") {
        Some(rest) => Some(home()?.join(rest)),
        None => Some(folder.join(value)),
    }
}
