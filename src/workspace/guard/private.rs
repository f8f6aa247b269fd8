//! What people write by hand and no commit has: settings with passwords and keys, which are put
//! back, and other texts, which are named. Tools rewrite the rest of what git ignores all the time.

use std::path::{Path, PathBuf};

use crate::files::{Dir, nofollow};
use crate::model::{Base, Violation};
use crate::workspace::error::file_error;
use crate::workspace::stamp::FileStamp;
use crate::workspace::tree::entry_at;
use crate::workspace::{Result, WorkTree};

use super::below;
use super::files::OnDisk;
use super::held::MOST_STORED;
use super::ignored::{HeldIgnored, IgnoredFile};

/// Names of files with passwords and keys, their beginnings and their ends.
const NAMES: [&str; 8] =
    [".env", ".envrc", ".netrc", ".npmrc", ".pypirc", "credentials", "id_ed25519", "id_rsa"];
const BEGINNINGS: [&str; 3] = [".env.", "credentials.", "secrets."];
const ENDS: [&str; 5] = [".env", ".key", ".p12", ".pem", ".pfx"];
/// Texts for people, which tools do not write.
const BY_HAND: [&str; 11] =
    ["cfg", "conf", "ini", "local", "md", "properties", "sh", "tfvars", "toml", "yaml", "yml"];
/// In a name of any kind.
const OWN: [&str; 2] = [".local.", ".override."];
/// More names make the journal large, and nobody reads them.
const MOST_NAMES: usize = 50;

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase()
}

fn is_private(path: &Path) -> bool {
    let name = name_of(path);
    NAMES.contains(&name.as_str())
        || BEGINNINGS.iter().any(|start| name.starts_with(start))
        || ENDS.iter().any(|end| name.ends_with(end))
}

fn is_by_hand(path: &Path) -> bool {
    let name = name_of(path);
    let end = Path::new(&name).extension().and_then(|end| end.to_str()).unwrap_or_default();
    BY_HAND.contains(&end) || OWN.iter().any(|part| name.contains(part))
}

/// Files that have other content now.
#[derive(Default)]
struct Changed<'a> {
    ignored: Vec<&'a IgnoredFile>,
    untracked: Vec<PathBuf>,
    /// These stay.
    by_hand: Vec<String>,
}

impl WorkTree {
    /// `states`: the story's base and right before. `names`: texts are named too.
    pub(super) fn private_violation(
        &self,
        held: Option<&HeldIgnored>,
        states: (&Base, &Base),
        folder: &Path,
        names: bool,
    ) -> Result<Option<Violation>> {
        let found = self.changed_private(held, states)?;
        let ignored = found.ignored.iter().map(|file| file.path());
        let all = ignored.chain(found.untracked.iter().map(PathBuf::as_path));
        let restored: Vec<String> = all.map(|path| path.to_string_lossy().into_owned()).collect();
        let by_hand = if names { found.by_hand } else { Vec::new() };
        if restored.is_empty() && by_hand.is_empty() {
            return Ok(None);
        }
        Ok(Some(Violation::PrivateFiles {
            restored,
            kept: below(&self.root, folder),
            changed: by_hand.into_iter().take(MOST_NAMES).collect(),
            copies: below(&self.root, &self.ignored_folder()),
        }))
    }

    /// `folder`: for the versions that were there.
    pub(super) fn repair_private(
        &self,
        held: Option<&HeldIgnored>,
        states: (&Base, &Base),
        folder: &Path,
    ) -> Result<()> {
        let found = self.changed_private(held, states)?;
        for file in found.ignored {
            let (path, kept) = (self.root.join(file.path()), folder.join(file.path()));
            let Some(then) = self.restorable(file) else { continue };
            let done = self.keep(&path, &kept).and_then(|()| self.write_held(&path, &then));
            done.map_err(file_error("restore", &path))?;
        }
        found.untracked.iter().try_for_each(|path| self.return_file(states.1, path, folder))?;
        self.ignored.borrow_mut().told.extend(found.by_hand);
        Ok(())
    }

    fn changed_private<'a>(
        &self,
        held: Option<&'a HeldIgnored>,
        states: (&Base, &Base),
    ) -> Result<Changed<'a>> {
        let mut found =
            Changed { untracked: self.changed_untracked(states)?, ..Changed::default() };
        for file in held.into_iter().flat_map(|held| &held.files) {
            let path = file.path();
            let is_private = is_private(path);
            if !(is_private || is_by_hand(path)) || !self.is_changed(file) {
                continue;
            }
            let name = path.to_string_lossy().into_owned();
            if is_private {
                found.ignored.extend(self.restorable(file).is_some().then_some(file));
            } else if !self.ignored.borrow().told.contains(&name) {
                found.by_hand.push(name);
            }
        }
        Ok(found)
    }

    /// One that is gone or empty is lost instead.
    fn is_changed(&self, file: &IgnoredFile) -> bool {
        let (Some(hash), Ok(now)) = (file.hash(), nofollow::look(&self.root.join(file.path())))
        else {
            return false;
        };
        let is_same = self.ignored.borrow().stamp(file.path()) == Some(FileStamp::of(&now));
        if is_same || !now.is_file() || now.len() == 0 {
            return false;
        }
        let read = Dir::open(&self.root).map(|root| root.read(file.path(), MOST_STORED));
        let bytes = read.ok().and_then(std::result::Result::ok);
        bytes.is_none_or(|bytes| crate::workspace::hash(&bytes).as_deref() != Some(hash))
    }

    fn changed_untracked(&self, (base, before): (&Base, &Base)) -> Result<Vec<PathBuf>> {
        let mut found = Vec::new();
        if self.is_committed(base)? {
            return Ok(found);
        }
        let tree = self.tree(&before.tree)?;
        for change in self.uncommitted_at(base)? {
            if change.old.is_some() || !is_private(&change.path) {
                continue;
            }
            let Some(wanted) = entry_at(Some(&tree), &change.path)? else { continue };
            if let OnDisk::Entry(Some(now)) = self.on_disk(&change.path)?
                && now != wanted
                && now.is_like(wanted)
            {
                found.push(change.path);
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_private_or_by_hand_by_their_names() {
        for (name, expected) in [
            (".env", (true, false)),
            ("sub/.env.production", (true, false)),
            ("prod.env", (true, false)),
            (".envrc", (true, false)),
            ("tls/server.pem", (true, false)),
            ("server.KEY", (true, false)),
            ("credentials.json", (true, false)),
            ("secrets.yaml", (true, true)),
            ("notes.md", (false, true)),
            ("settings.local.json", (false, true)),
            ("docker-compose.override.yml", (false, true)),
            ("environment.ts", (false, false)),
            ("dev.sqlite3", (false, false)),
            ("report.json", (false, false)),
            ("run.log", (false, false)),
            (".eslintcache", (false, false)),
            ("keyboard", (false, false)),
        ] {
            let path = Path::new(name);
            assert_eq!((is_private(path), is_by_hand(path)), expected, "{name}");
        }
    }
}
