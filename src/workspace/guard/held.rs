//! Files that are held as a whole: their content, their kind and their absence.
//!
//! They decide what git, ralph and the agents do next, so untrusted code must not change them. A
//! look follows no link: a link is an entry itself, and what a link of the human's leads to is held
//! at its own place.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::files::{FileKind, follow, nofollow};
use crate::model::HeldKind;
use crate::workspace::error::file_error;
use crate::workspace::{GitError, OWN_GIT_FOLDER, Result, WorkTree};

use super::look::{MOST_ENTRIES, look};
use super::modules::{MODULES, has_modules, is_configuration, is_gone, look_at_modules};
use super::unrecorded::is_plain;

/// Of all that is stored; its bytes are written as numbers.
pub(super) const MOST_STORED: u64 = 1 << 30;
/// What was held at the last look, for recovery after a crash.
const HELD: &str = "held.json";

/// Shared by all work trees of a repository.
const SHARED_SETUP: [&str; 10] = [
    MODULES,
    "config",
    "hooks",
    "info/attributes",
    "info/exclude",
    "info/grafts",
    "info/sparse-checkout",
    "objects/info/alternates",
    "objects/info/http-alternates",
    "shallow",
];
/// Of one work tree.
const OWN_SETUP: [&str; 4] = [MODULES, "config.worktree", "commondir", "gitdir"];

/// A file, or a folder with all that is in it. It need not exist.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldPlace {
    pub kind: HeldKind,
    pub path: PathBuf,
}

/// What is at the held places.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeldFiles {
    places: Vec<HeldPlace>,
    files: BTreeMap<PathBuf, HeldFile>,
    pub objects: HeldObjects,
}

/// What is held as git objects, by their ids.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HeldObjects {
    pub refs: Option<String>,
    /// The hash of the list of ignored files.
    pub ignored: Option<String>,
    /// What was beside git's files when the story began, byte by byte.
    pub beside: Option<String>,
    pub head: Option<HeldHead>,
    /// The checksum of the index; None without one that can be held.
    pub index: Option<String>,
    /// With their messages, newest first.
    pub stashes: Vec<(String, String)>,
    /// Refs of snapshots and of what was put back.
    pub own_refs: Vec<(String, String)>,
}

/// The branch that the run works on, by its full name, and its tip.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldHead {
    pub branch: String,
    pub commit: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldFile {
    pub(super) kind: HeldKind,
    pub content: HeldContent,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HeldContent {
    File {
        bytes: Vec<u8>,
        mode: u32,
    },
    Link(Vec<u8>),
    /// Too large to hold.
    Large {
        size: u64,
    },
    /// A pipe, a device, or a folder with too many files.
    Other,
}

/// As JSON: paths may not be UTF-8.
#[derive(Serialize, Deserialize)]
struct StoredHeld {
    places: Vec<(HeldKind, Vec<u8>)>,
    files: Vec<(Vec<u8>, HeldFile)>,
    #[serde(default)]
    objects: HeldObjects,
}

impl HeldFiles {
    pub(super) fn of(
        kind: HeldKind,
        places: Vec<HeldPlace>,
        files: impl Iterator<Item = (PathBuf, HeldContent)>,
    ) -> Self {
        let files = files.map(|(path, content)| (path, HeldFile { kind, content })).collect();
        Self { places, files, ..Self::default() }
    }

    /// A look at places. Where a link leads to is a place too.
    pub fn hold(root: &Path, places: Vec<HeldPlace>) -> Result<Self> {
        let mut held = Self::default();
        for place in places {
            let place = HeldPlace { path: below_real_folder(root, &place.path), ..place };
            held.note(root, &place)?;
            // A gate's program outside is the system's.
            let is_ours =
                |real: &Path| place.kind != HeldKind::GateScripts || real.starts_with(root);
            if let Ok(real) = follow::real(&place.path)
                && real != place.path
                && is_ours(&real)
            {
                let real = HeldPlace { path: real, ..place };
                held.note(root, &real)?;
                held.places.push(real);
            }
            held.places.push(place);
        }
        held.require_few()?;
        Ok(held)
    }

    /// A folder that is held as one thing looks the same whatever changes in it.
    fn require_few(&self) -> Result<()> {
        let is_whole = |(path, file): &(&PathBuf, &HeldFile)| {
            let must_be_few = matches!(file.kind, HeldKind::GitSetup | HeldKind::AgentSettings);
            must_be_few && file.content == HeldContent::Other && nofollow::is_folder(path)
        };
        match self.files.iter().find(is_whole) {
            Some((path, _)) => {
                Err(GitError::TooManyHeld { path: path.clone(), most: MOST_ENTRIES })
            }
            None => Ok(()),
        }
    }

    /// In the git folder of a submodule.
    pub(super) fn is_of_module(&self, path: &Path) -> bool {
        let mut modules = self.places.iter().filter(|place| has_modules(place));
        modules.any(|modules| path.starts_with(&modules.path))
    }

    /// Git makes and removes submodules. What names no program may come, and all may go.
    fn is_plain_module(&self, path: &Path, is_new: bool) -> bool {
        let is_plain = || is_configuration(path) && is_plain(path, true).unwrap_or(false);
        self.is_of_module(path) && if is_new { is_plain() } else { is_gone(path) }
    }

    /// A second look at the places of one kind.
    pub fn again(&self, root: &Path, kind: HeldKind) -> Result<Self> {
        let mut now = Self::default();
        for place in self.places.iter().filter(|place| place.kind == kind) {
            now.note(root, place)?;
        }
        Ok(now)
    }

    /// What differs at the places of one kind.
    pub fn differences(&self, other: &Self, kind: HeldKind) -> Vec<PathBuf> {
        let is_other = |path: &&PathBuf| {
            let (old, new) = (self.files.get(*path), other.files.get(*path));
            let may_be = || match (old, new) {
                (Some(_), Some(_)) => false,
                (old, _) => self.is_plain_module(path, old.is_none()),
            };
            old != new && old.or(new).is_some_and(|file| file.kind == kind) && !may_be()
        };
        let mut paths: Vec<PathBuf> =
            self.files.keys().chain(other.files.keys()).filter(is_other).cloned().collect();
        paths.sort();
        paths.dedup();
        paths
    }

    pub fn get(&self, path: &Path) -> Option<&HeldContent> {
        self.files.get(path).map(|file| &file.content)
    }

    pub fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        self.files.keys()
    }

    /// A file's text; empty without one.
    pub fn text(&self, path: &Path) -> String {
        match self.get(path) {
            Some(HeldContent::File { bytes, .. }) => String::from_utf8_lossy(bytes).into_owned(),
            _ => String::new(),
        }
    }

    fn note(&mut self, root: &Path, place: &HeldPlace) -> Result<()> {
        let path = first_link(root, &place.path).unwrap_or_else(|| place.path.clone());
        let mut found = BTreeMap::new();
        let is_few = match has_modules(place) {
            true => look_at_modules(&path, &mut found),
            false => look(&path, place.kind, &mut found),
        };
        if is_few.map_err(file_error("read", &path))? {
            self.files.extend(found);
        } else {
            let file = HeldFile { kind: place.kind, content: HeldContent::Other };
            self.files.insert(path, file);
        }
        Ok(())
    }

    fn to_json(&self) -> Vec<u8> {
        let bytes = |path: &Path| path.as_os_str().as_bytes().to_vec();
        let places = self.places.iter().map(|place| (place.kind, bytes(&place.path))).collect();
        let files = self.files.iter().map(|(path, file)| (bytes(path), file.clone())).collect();
        let objects = self.objects.clone();
        serde_json::to_vec(&StoredHeld { places, files, objects }).unwrap_or_default()
    }

    fn from_json(text: &[u8]) -> Option<Self> {
        let path = |bytes| PathBuf::from(OsString::from_vec(bytes));
        let stored: StoredHeld = serde_json::from_slice(text).ok()?;
        let place = |(kind, bytes)| HeldPlace { kind, path: path(bytes) };
        let files = stored.files.into_iter().map(|(bytes, file)| (path(bytes), file));
        Some(Self {
            places: stored.places.into_iter().map(place).collect(),
            files: files.collect(),
            objects: stored.objects,
        })
    }
}

impl WorkTree {
    /// Where git's own setup is.
    pub fn git_setup(&self) -> Vec<HeldPlace> {
        let shared = SHARED_SETUP.iter().map(|name| self.common_dir.join(name));
        let own = OWN_SETUP.iter().map(|name| self.git_dir.join(name));
        let mut paths: BTreeSet<PathBuf> = shared.chain(own).collect();
        let pointer = self.root.join(".git");
        if !nofollow::is_folder(&pointer) {
            paths.insert(pointer);
        }
        let place = |path| HeldPlace { kind: HeldKind::GitSetup, path };
        paths.into_iter().map(place).collect()
    }

    /// Stores what is held for recovery after a crash; returns its hash.
    pub(super) fn store_held(&self, held: &HeldFiles) -> Result<Option<String>> {
        let (path, text) = (self.held_file(), held.to_json());
        let is_there = nofollow::read(&path, MOST_STORED).is_ok_and(|old| old == text);
        if !is_there {
            self.write_whole(&path, &text, 0o600).map_err(file_error("write", &path))?;
        }
        Ok(crate::workspace::hash(&text))
    }

    /// What was held at the last look; None if it is unknown or not what was stored then.
    pub(super) fn stored_held(&self, hash: &str) -> Option<HeldFiles> {
        let text = self.read_held()?;
        let is_the_same = crate::workspace::hash(&text).as_deref() == Some(hash);
        if is_the_same { HeldFiles::from_json(&text) } else { None }
    }

    /// Whether the record of what was held is the one that the journal means.
    pub fn knows_held(&self, hash: &str) -> bool {
        self.stored_held(hash).is_some()
    }

    /// Git's setup as it is now, for people: the configuration, the names of the rest, and a hash.
    pub fn setup_text(&self) -> Result<String> {
        let held = HeldFiles::hold(&self.root, self.git_setup())?;
        let mut text = String::new();
        for path in held.files.keys() {
            text += &format!("{}\n", self.shown(path).display());
            if path.file_name().is_some_and(|name| name.as_bytes().starts_with(b"config")) {
                text += &held.text(path);
            }
        }
        text += &crate::workspace::hash(&held.to_json()).unwrap_or_default();
        Ok(text)
    }

    /// The same without the journal's word for it.
    pub(super) fn unconfirmed_held(&self) -> Option<HeldFiles> {
        match self.read_held() {
            Some(text) => HeldFiles::from_json(&text),
            None => self.held_by_earlier_version(),
        }
    }

    pub(super) fn held_head_now(&self) -> Result<Option<HeldHead>> {
        let commit = self.head_commit()?;
        Ok(self.run_branch.clone().map(|branch| HeldHead { branch, commit }))
    }

    fn read_held(&self) -> Option<Vec<u8>> {
        nofollow::read(&self.held_file(), MOST_STORED).ok()
    }

    fn held_file(&self) -> PathBuf {
        self.git_dir.join(OWN_GIT_FOLDER).join(HELD)
    }
}

/// Of a repository that may not be found any more, by its git folder.
pub(super) fn held_head(git_dir: &Path) -> Option<HeldHead> {
    let text = nofollow::read(&git_dir.join(OWN_GIT_FOLDER).join(HELD), MOST_STORED).ok()?;
    HeldFiles::from_json(&text)?.objects.head
}

/// The files that say where a linked work tree's other folders are. Of others there are none.
pub(super) fn held_pointers(git_dir: &Path) -> Option<Vec<(PathBuf, String)>> {
    let text = nofollow::read(&git_dir.join(OWN_GIT_FOLDER).join(HELD), MOST_STORED).ok()?;
    let held = HeldFiles::from_json(&text)?;
    let own = follow::real(git_dir).ok()?;
    let pointers =
        ["commondir", "gitdir"].map(|name| (git_dir.join(name), held.text(&own.join(name))));
    Some(pointers.into_iter().filter(|(_, text)| !text.is_empty()).collect())
}

/// The path with a real folder, if it is not below the root: what comes later is compared with it.
fn below_real_folder(root: &Path, path: &Path) -> PathBuf {
    let is_plain = path.starts_with(root)
        && path.components().all(|part| part != std::path::Component::ParentDir);
    let folder = path.parent().filter(|_| !is_plain);
    let real = folder.and_then(|folder| follow::real(folder).ok());
    real.zip(path.file_name()).map_or_else(|| path.to_owned(), |(real, name)| real.join(name))
}

/// The first link on the way to a path.
pub(super) fn first_link(root: &Path, path: &Path) -> Option<PathBuf> {
    let is_link = |folder: &Path| nofollow::kind(folder) == FileKind::Link;
    let mut folders: Vec<&Path> = path.ancestors().skip(1).collect();
    folders.reverse();
    let start = if path.starts_with(root) { root } else { Path::new("/") };
    let below = folders.into_iter().filter(|folder| folder.starts_with(start) && *folder != start);
    below.into_iter().find(|folder| is_link(folder)).map(Path::to_owned)
}
