//! Git's objects under a second name: whatever an agent lets git delete is still there.
//!
//! Each file of objects gets a hard link in ralph's folder before something untrusted runs, which
//! costs no copy. Git never writes into such a file. Of objects that git replaces itself, as in
//! `git gc`, the links go at the next look.

use std::collections::{BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use git2::Oid;

use super::error::{GitContext, LibResult, file_error};
use super::objects::fresh;
use super::stamp::FileStamp;
use super::{OWN_GIT_FOLDER, Result, WorkTree};
use crate::files::{Dir, FileKind, nofollow};

const FOLDER: &str = "objects";
const PACKS: &str = "pack";
/// Of a pack; git makes the other files again.
const IN_PACKS: [&str; 2] = ["pack", "idx"];
/// Copied where the disk has no hard links. Larger ones have only the one name.
const LARGEST_COPY: u64 = 16 << 20;

/// Folders whose files all have their second name, as they were then.
pub(super) type CopiedFolders = HashMap<PathBuf, (FileStamp, FileStamp)>;

/// Of one work tree.
pub(super) struct ObjectCopies<'a> {
    pub git_dir: &'a Path,
    pub common_dir: &'a Path,
}

/// What only the copies have.
#[derive(Default)]
struct Missing {
    objects: Vec<(Oid, PathBuf)>,
    packs: Vec<PathBuf>,
}

impl ObjectCopies<'_> {
    fn originals(&self) -> PathBuf {
        self.common_dir.join(FOLDER)
    }

    fn copies(&self) -> PathBuf {
        self.git_dir.join(OWN_GIT_FOLDER).join(FOLDER)
    }

    /// Gives each file its second name, and removes that of files that are gone.
    fn update(&self, known: &mut CopiedFolders) -> io::Result<()> {
        let originals = Dir::open_real(&self.originals())?;
        let copies =
            Dir::open_real(self.git_dir)?.make_way(&Path::new(OWN_GIT_FOLDER).join(FOLDER))?;
        for name in folders() {
            let stamp = |parent: &Dir| FileStamp::of_name(parent, &name);
            let now = (stamp(&originals), stamp(&copies));
            if now.0.is_none() && now.1.is_none() {
                continue;
            }
            let is_same = known.get(&name).is_some_and(|then| now == (Some(then.0), Some(then.1)));
            if is_same {
                continue;
            }
            known.remove(&name);
            let (found, held) = (listed(&originals, &name), listed(&copies, &name));
            let folder = copies.make_way(&name)?;
            for gone in held.difference(&found) {
                folder.remove(Path::new(gone))?;
            }
            for new in found.difference(&held) {
                copy(&originals, &name.join(new), &folder);
            }
            let time = SystemTime::now();
            let settled = |parent: &Dir| stamp(parent)?.if_settled(time);
            if let Some(stamps) = settled(&originals).zip(settled(&copies)) {
                known.insert(name, stamps);
            }
        }
        Ok(())
    }

    /// Returns whether something was missing.
    pub fn bring_back(&self, known: &CopiedFolders) -> io::Result<bool> {
        let missing = self.missing(known);
        if missing.objects.is_empty() && missing.packs.is_empty() {
            return Ok(false);
        }
        let wanted = self.originals().join(PACKS);
        nofollow::make_folders(&wanted)?;
        let (originals, copies) =
            (Dir::open_real(&self.originals())?, Dir::open_real(&self.copies())?);
        let now = fresh(&self.originals()).map_err(io::Error::other)?;
        let mut is_changed = false;
        for (id, path) in missing.objects.iter().filter(|(id, _)| !now.exists(*id)) {
            let folder = path.parent().unwrap_or(path);
            // Whether it is there, opening it tells.
            let _ = nofollow::make_folders(&self.originals().join(folder));
            copy(&copies, path, &originals.dir(folder)?);
            is_changed |= now.exists(*id);
        }
        if !missing.packs.is_empty() && self.lost_packed().map_err(io::Error::other)? {
            let packs = originals.dir(Path::new(PACKS))?;
            missing.packs.iter().for_each(|path| copy(&copies, path, &packs));
            is_changed = true;
        }
        Ok(is_changed)
    }

    fn missing(&self, known: &CopiedFolders) -> Missing {
        let mut missing = Missing::default();
        let Ok(copies) = Dir::open_real(&self.copies()) else { return missing };
        let originals = Dir::open_real(&self.originals()).ok();
        for name in folders() {
            let now = originals.as_ref().and_then(|folder| FileStamp::of_name(folder, &name));
            let is_same = now.is_some() && now == known.get(&name).map(|then| then.0);
            if is_same || FileStamp::of_name(&copies, &name).is_none() {
                continue;
            }
            let held = listed(&copies, &name);
            let found = originals.as_ref().map(|folder| listed(folder, &name)).unwrap_or_default();
            for file in held.difference(&found) {
                match id_of(&name, file) {
                    Some(id) => missing.objects.push((id, name.join(file))),
                    None => missing.packs.push(name.join(file)),
                }
            }
        }
        // A pack counts once its index is there.
        missing.packs.sort_by_key(|path| path.extension() == Some(OsStr::new("idx")));
        missing
    }

    /// Whether some object is in a pack that is gone, and in no other.
    fn lost_packed(&self) -> LibResult<bool> {
        let now = fresh(&self.originals())?;
        let mut is_lost = false;
        // Stopping is an error to it.
        let _ = fresh(&self.copies())?.foreach(|id| {
            is_lost = !now.exists(*id);
            !is_lost
        });
        Ok(is_lost)
    }
}

/// All that there can be.
fn folders() -> impl Iterator<Item = PathBuf> {
    let loose = (0..=u8::MAX).map(|byte| PathBuf::from(format!("{byte:02x}")));
    std::iter::once(PathBuf::from(PACKS)).chain(loose)
}

/// The files that git keeps objects in.
fn listed(parent: &Dir, name: &Path) -> BTreeSet<OsString> {
    let is_packs = name == Path::new(PACKS);
    let ends = |file: &Path| IN_PACKS.iter().any(|end| file.extension() == Some(OsStr::new(end)));
    let is_of_objects = |file: &OsString| match is_packs {
        true => ends(Path::new(file)),
        false => id_of(name, file).is_some(),
    };
    let entries = parent.dir(name).and_then(|folder| folder.list()).unwrap_or_default();
    entries.into_iter().map(|entry| entry.name).filter(is_of_objects).collect()
}

fn id_of(folder: &Path, file: &OsStr) -> Option<Oid> {
    let text = format!("{}{}", folder.to_str()?, file.to_str()?);
    let is_whole = text.len() == Oid::ZERO_SHA1.as_bytes().len() * 2;
    Oid::from_str(&text).ok().filter(|_| is_whole)
}

/// One that cannot be copied has only the one name.
fn copy(from: &Dir, path: &Path, folder: &Dir) {
    let name = Path::new(path.file_name().unwrap_or_default());
    if from.link(path, folder, name).is_err()
        && folder.kind(name) == FileKind::Nothing
        && let Ok(bytes) = from.read(path, LARGEST_COPY)
    {
        let _ = folder.publish(name, &bytes);
    }
}

impl WorkTree {
    /// Call before something untrusted runs.
    pub(super) fn hold_objects(&self) -> Result<()> {
        let copies = self.object_copies();
        let updated = copies.update(&mut self.copied_folders.borrow_mut());
        updated.map_err(file_error("hold objects in", &copies.copies()))
    }

    /// One that was made since. It is no loss if it has only the one name.
    pub(super) fn hold_object(&self, id: Oid) {
        let (text, copies) = (id.to_string(), self.object_copies());
        let Some((folder, file)) = text.split_at_checked(2) else { return };
        let held = Dir::open(&copies.copies()).and_then(|held| held.make_way(Path::new(folder)));
        if let (Ok(originals), Ok(held)) = (Dir::open(&copies.originals()), held) {
            copy(&originals, &Path::new(folder).join(file), &held);
        }
    }

    /// What was deleted since is there again.
    pub(super) fn return_objects(&self) -> Result<()> {
        let copies = self.object_copies();
        let is_changed = copies.bring_back(&self.copied_folders.borrow());
        if is_changed.map_err(file_error("restore objects in", &copies.originals()))? {
            let refreshed = self.repo.odb().and_then(|odb| odb.refresh());
            refreshed.doing("look for restored objects")?;
        }
        Ok(())
    }

    fn object_copies(&self) -> ObjectCopies<'_> {
        ObjectCopies { git_dir: &self.git_dir, common_dir: &self.common_dir }
    }
}
