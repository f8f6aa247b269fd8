//! HEAD and the run's branch as files: without them git finds no repository, or no history.

use std::io;
use std::path::{Path, PathBuf};

use git2::{Oid, Reference};

use crate::files::{keep, nofollow};
use crate::model::{HeldKind, Violation};
use crate::workspace::checkout::remove_if_there;
use crate::workspace::error::file_error;
use crate::workspace::git_files::{ATTEMPT, git_folders};
use crate::workspace::{CHANGED, OWN_GIT_FOLDER, Result, WorkTree};

use super::held::{HeldHead, held_head, held_pointers};
use super::{INTERRUPTED, below};

const LARGEST: u64 = 4096;
const SYMBOLIC: &str = "ref: ";
const BRANCHES: &str = "refs/heads/";

/// What git needs to know where HEAD is.
struct Heads<'a> {
    own: &'a Path,
    shared: &'a Path,
    known: &'a HeldHead,
}

impl Heads<'_> {
    /// Each broken file with what belongs there.
    fn broken(&self) -> Vec<(PathBuf, Option<String>)> {
        let mut broken = Vec::new();
        let head = self.own.join("HEAD");
        if is_broken(&head, true, is_head) {
            broken.push((head, Some(format!("{SYMBOLIC}{}\n", self.known.branch))));
        }
        let branch = self.shared.join(&self.known.branch);
        if is_broken(&branch, false, is_id) {
            broken.push((branch, self.known.commit.as_ref().map(|id| format!("{id}\n"))));
        }
        broken
    }

    /// Without them git may not even find the repository. They are the human's between attempts.
    fn changed_pointers(&self) -> Vec<(PathBuf, Option<String>)> {
        if !nofollow::exists(&self.own.join(ATTEMPT)) {
            return Vec::new();
        }
        let known = held_pointers(self.own).unwrap_or_default().into_iter();
        let is_other = |(path, text): &(PathBuf, String)| {
            nofollow::read_text(path, LARGEST).ok().as_ref() != Some(text)
        };
        known.filter(is_other).map(|(path, text)| (path, Some(text))).collect()
    }

    fn mend(&self, folder: &Path) -> Result<Vec<PathBuf>> {
        let broken = [self.changed_pointers(), self.broken()].concat();
        for (path, text) in &broken {
            let name = path.strip_prefix(self.own).or_else(|_| path.strip_prefix(self.shared));
            let kept = folder.join(".git").join(name.unwrap_or(path));
            let kept = kept.strip_prefix(self.own).unwrap_or(&kept);
            // What is kept is the same file.
            let removed = keep(path, self.own, kept).and_then(|_| remove_if_there(path));
            let mended = removed.and_then(|()| match text {
                Some(text) => nofollow::write_new(path, text.as_bytes()),
                None => Ok(()),
            });
            mended.map_err(file_error("restore", path))?;
        }
        Ok(broken.into_iter().map(|(path, _)| path).collect())
    }
}

/// What is no file is moved out of the way on its own.
fn is_broken(path: &Path, must_exist: bool, is_sound: fn(&str) -> bool) -> bool {
    match nofollow::look(path) {
        Err(error) => must_exist && error.kind() == io::ErrorKind::NotFound,
        Ok(found) if !found.is_file() => false,
        Ok(_) => !nofollow::read_text(path, LARGEST).is_ok_and(|text| is_sound(text.trim_end())),
    }
}

fn is_id(text: &str) -> bool {
    text.len() == Oid::ZERO_SHA1.as_bytes().len() * 2 && Oid::from_str(text).is_ok()
}

fn is_head(text: &str) -> bool {
    let is_branch = |name: &str| name.starts_with(BRANCHES) && Reference::is_valid_name(name);
    is_id(text) || text.strip_prefix(SYMBOLIC).is_some_and(|name| is_branch(name.trim()))
}

/// For a repository that git does not find: its HEAD and branch become what was held last.
pub fn mend_heads(start: &Path) -> Result<Option<Violation>> {
    let Some((own, shared)) = git_folders(start) else { return Ok(None) };
    let Some(known) = held_head(&own) else { return Ok(None) };
    let folder = own.join(OWN_GIT_FOLDER).join(CHANGED).join(INTERRUPTED);
    let mended = Heads { own: &own, shared: &shared, known: &known }.mend(&folder)?;
    let root = own.parent().unwrap_or(&own);
    let paths: Vec<String> = mended.iter().map(|path| below(root, path)).collect();
    let kept = below(root, &folder);
    let violation = Violation::Held { whose: HeldKind::GitSetup, paths, kept, claims: false };
    Ok((!mended.is_empty()).then_some(violation))
}

impl WorkTree {
    /// During a run.
    pub(in crate::workspace) fn broken_heads(&self) -> Vec<(PathBuf, Option<String>)> {
        let Some(branch) = self.run_branch.clone() else { return Vec::new() };
        let known = HeldHead { branch, commit: None };
        let broken = |known: &HeldHead| {
            Heads { own: &self.git_dir, shared: &self.common_dir, known }.broken()
        };
        let found = broken(&known);
        if found.is_empty() {
            return found;
        }
        held_head(&self.git_dir)
            .filter(|held| held.branch == known.branch)
            .as_ref()
            .map_or(found, broken)
    }
}
