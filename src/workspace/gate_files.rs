//! The files that decide what gates run, before a story's work and now.
//!
//! What an agent can forge is not believed: objects of the base are hashed when they are read, and
//! files are read instead of compared by what the index knows of them.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use git2::{ObjectType, Odb, Oid};

use crate::decide::definitions::{Definition, relevant};
use crate::decide::gate_files::{GateFiles, Sight, Thing};
use crate::decide::scripts::RunBy;
use crate::files::{Dir, FileKind};
use crate::model::{Base, Gate};

use super::diff::{Patterns, text_diff};
use super::error::GitContext;
use super::tree::{TreeEntry, between, path_of};
use super::{Result, WorkTree};

/// How much of a difference is shown, in bytes.
const LONGEST_DIFF: usize = 16 * 1024;
/// Of a file that is compared as a whole.
const LARGEST_COMPARED: u64 = 100_000_000;
/// Of a script that is searched for other scripts.
const LARGEST_SCRIPT: usize = 1 << 20;
const LINK: u32 = 0o120_000;
const READ_BASE: &str = "read a file of the base";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedFile {
    pub path: PathBuf,
    /// As a unified diff, for people.
    pub diff: String,
    /// Of a file; a link has none.
    pub old: Option<Vec<u8>>,
    pub new: Option<Vec<u8>>,
}

/// A file, or a link with where it leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Content {
    bytes: Vec<u8>,
    is_link: bool,
}

/// All files of a base's tree.
struct BaseFiles<'a> {
    odb: Odb<'a>,
    base: String,
    entries: BTreeMap<PathBuf, TreeEntry>,
}

/// What is at a path of a work tree now.
pub fn look_at(root: &Path, path: &Path) -> Option<Thing> {
    let root = Dir::open(root).ok()?;
    match root.kind(path) {
        FileKind::Link => root.read_link(path).ok().map(Thing::Link),
        FileKind::Folder => Some(Thing::Folder),
        FileKind::File => {
            let bytes = root.read(path, LARGEST_SCRIPT as u64);
            Some(Thing::File(text(&bytes.unwrap_or_default())))
        }
        FileKind::Nothing | FileKind::Other => None,
    }
}

pub(super) fn shown_diff(path: &Path, old: Option<&[u8]>, new: Option<&[u8]>) -> Result<String> {
    let mut diff = text_diff(path, old.unwrap_or_default(), new.unwrap_or_default())?;
    diff.truncate(diff.floor_char_boundary(LONGEST_DIFF));
    Ok(diff)
}

fn text(bytes: &[u8]) -> String {
    let bytes = bytes.get(..LARGEST_SCRIPT).unwrap_or(bytes);
    String::from_utf8_lossy(bytes).into_owned()
}

impl WorkTree {
    /// As they are now.
    pub fn gate_files<'a>(&self, gates: impl IntoIterator<Item = &'a Gate>) -> GateFiles {
        let look = |path: &Path| look_at(&self.root, path);
        GateFiles::of(gates, Sight { root: &self.root, look: &look })
    }

    /// Call when a story begins: files that decide what gates run and that no commit has are held from
    /// then on, also those that the last story brought. What a build makes anew each time is none of
    /// them.
    pub fn note_gate_scripts<'a>(&self, gates: impl IntoIterator<Item = &'a Gate>) {
        let files = self.gate_files(gates);
        let scripts = files.scripts.iter().filter(|(path, by)| is_held(path, **by));
        let scripts = scripts.map(|(path, _)| path.clone());
        let defined = files.definitions.iter().flat_map(Definition::paths);
        let all: BTreeSet<PathBuf> = scripts.chain(defined).collect();
        let ignored = all.into_iter().filter(|path| self.is_in_no_commit(path));
        *self.gate_scripts.borrow_mut() = ignored.map(|path| self.root.join(path)).collect();
    }

    /// The files that commands run, without what a build makes anew.
    pub fn scripts_of(&self, commands: &[String]) -> Vec<PathBuf> {
        let gates: Vec<Gate> = commands.iter().map(|text| Gate::shell(text)).collect();
        let scripts = self.gate_files(&gates).scripts.into_iter();
        scripts.filter(|(path, by)| is_held(path, *by)).map(|(path, _)| path).collect()
    }

    /// Files of these gates that differ from the base, and all changes that match the patterns. A new
    /// script is work; a new definition is not, unless the gate could do nothing without it.
    pub fn changed_files<'a>(
        &self,
        base: &Base,
        gates: impl IntoIterator<Item = &'a Gate>,
        patterns: &[String],
    ) -> Result<Vec<ChangedFile>> {
        let before = self.base_files(base)?;
        let look = |path: &Path| before.look(path).or_else(|| look_at(&self.root, path));
        let files = GateFiles::of(gates, Sight { root: &self.root, look: &look });
        let matching = self.changed_and_matching(base, patterns)?;
        let defining = self.defining(&before, &files)?;
        let scripts = files.scripts.keys().filter(|path| before.entries.contains_key(*path));
        let included = self.included(&before, &files)?;
        let whole: BTreeSet<PathBuf> = scripts.cloned().chain(matching).chain(included).collect();
        let mut changed = Vec::new();
        for path in whole.union(&defining) {
            let part = |content: &Option<Content>| {
                let text = content.as_ref().map(|content| text(&content.bytes));
                relevant(path, &text.unwrap_or_default())
            };
            let (old, now) = (before.content(path)?, self.content_now(path));
            let Some(old) = old else {
                let diff = "Its version from before the story is damaged.".to_owned();
                changed.push(ChangedFile { path: path.clone(), diff, old: None, new: None });
                continue;
            };
            let is_same = same(old.as_ref(), now.as_ref())
                || (!whole.contains(path) && part(&old) == part(&now));
            if !is_same {
                let bytes = |content: &Option<Content>| content.as_ref().map(|it| it.bytes.clone());
                let diff = shown_diff(path, bytes(&old).as_deref(), bytes(&now).as_deref())?;
                let file = |content: Option<Content>| {
                    content.filter(|content| !content.is_link).map(|content| content.bytes)
                };
                let (old, new) = (file(old), file(now));
                changed.push(ChangedFile { path: path.clone(), diff, old, new });
            }
        }
        Ok(changed)
    }

    /// Where a file may define what these gates run, if they could run before.
    fn defining(&self, before: &BaseFiles<'_>, files: &GateFiles) -> Result<BTreeSet<PathBuf>> {
        let could_run =
            |one: &&Definition| one.could_run(before.entries.keys().map(PathBuf::as_path));
        let definitions: Vec<_> = files.definitions.iter().filter(could_run).collect();
        if definitions.is_empty() {
            return Ok(BTreeSet::new());
        }
        let now = self.tree_now()?;
        let news = between(&self.repo, Some(&self.tree(&before.base)?), Some(&now))?;
        let paths = news.iter().map(|change| &change.path).chain(before.entries.keys());
        let folders: BTreeSet<&Path> = paths.flat_map(|path| path.ancestors().skip(1)).collect();
        let of = |one: &&Definition| {
            let below = folders.iter().flat_map(|folder| one.paths_in(folder));
            one.paths().into_iter().chain(below).collect::<Vec<_>>()
        };
        Ok(definitions.iter().flat_map(of).collect())
    }

    /// What files of the base include if it is there: the command runs without it, too.
    fn included(&self, before: &BaseFiles<'_>, files: &GateFiles) -> Result<Vec<PathBuf>> {
        let all = files.optional.iter().filter(|(_, by)| before.entries.contains_key(by));
        let of_pattern = |path: &Path| path.as_os_str().as_encoded_bytes().contains(&b'*');
        let (patterns, mut paths): (Vec<PathBuf>, Vec<PathBuf>) =
            all.map(|(path, _)| path.clone()).partition(|path| of_pattern(path));
        // What compilers write about their sources.
        let is_written = |path: &Path| path.extension().is_some_and(|end| end == "d");
        let patterns = patterns.into_iter().filter(|path| !is_written(path));
        let patterns: Vec<String> =
            patterns.map(|path| path.to_string_lossy().into_owned()).collect();
        if !patterns.is_empty() {
            let wanted = Patterns::new("read what a Makefile includes", &patterns)?;
            let news =
                between(&self.repo, Some(&self.tree(&before.base)?), Some(&self.tree_now()?))?;
            let news = news.into_iter().map(|change| change.path);
            paths.extend(news.filter(|path| wanted.matches(path)));
        }
        paths.retain(|path| !is_written(path));
        Ok(paths)
    }

    fn changed_and_matching(&self, base: &Base, patterns: &[String]) -> Result<Vec<PathBuf>> {
        if patterns.is_empty() {
            return Ok(Vec::new());
        }
        let wanted = Patterns::new("read the patterns of `protect`", patterns)?;
        let now = self.tree_now()?;
        let changes = between(&self.repo, Some(&self.tree(&base.tree)?), Some(&now))?;
        let paths = changes.into_iter().map(|change| change.path);
        Ok(paths.filter(|path| wanted.matches(path)).collect())
    }

    /// None if there is none, or a link is on the way to it.
    fn content_now(&self, path: &Path) -> Option<Content> {
        let dir = Dir::open(&self.root).ok()?;
        if let Ok(bytes) = dir.read(path, LARGEST_COMPARED) {
            return Some(Content { bytes, is_link: false });
        }
        let target = dir.read_link(path).ok()?;
        Some(Content { bytes: target.into_os_string().into_vec(), is_link: true })
    }

    fn base_files(&self, base: &Base) -> Result<BaseFiles<'_>> {
        let odb = self.repo.odb().doing("open the object database")?;
        let tree = Oid::from_str(&base.tree).doing(READ_BASE)?;
        let mut files = BaseFiles { odb, base: base.tree.clone(), entries: BTreeMap::new() };
        let mut folders = vec![(PathBuf::new(), tree)];
        while let Some((folder, id)) = folders.pop() {
            files.require_genuine(id)?;
            for entry in &self.repo.find_tree(id).doing(READ_BASE)? {
                let path = folder.join(path_of(entry.name_bytes()));
                match entry.kind() {
                    Some(ObjectType::Tree) => folders.push((path, entry.id())),
                    _ => {
                        let mode = entry.filemode().unsigned_abs();
                        files.entries.insert(path, TreeEntry { id: entry.id(), mode });
                    }
                }
            }
        }
        Ok(files)
    }
}

impl BaseFiles<'_> {
    fn require_genuine(&self, id: Oid) -> Result<()> {
        let object = self.odb.read(id).doing(READ_BASE)?;
        let is_genuine = Oid::hash_object(object.kind(), object.data()).is_ok_and(|it| it == id);
        let forged = || git2::Error::from_str("an object is not what its name says");
        if is_genuine { Ok(()) } else { Err(forged()).doing(READ_BASE) }
    }

    /// The outer None: what is stored is not what it was.
    fn content(&self, path: &Path) -> Result<Option<Option<Content>>> {
        let Some(entry) = self.entries.get(path).filter(|entry| !entry.is_nested_repository())
        else {
            return Ok(Some(None));
        };
        let object = self.odb.read(entry.id).doing(READ_BASE)?;
        let bytes = object.data().to_vec();
        let is_genuine =
            Oid::hash_object(ObjectType::Blob, &bytes).is_ok_and(|found| found == entry.id);
        let is_link = entry.mode == LINK;
        Ok(is_genuine.then_some(Some(Content { bytes, is_link })))
    }

    fn look(&self, path: &Path) -> Option<Thing> {
        match self.content(path) {
            Ok(Some(Some(Content { bytes, is_link: true }))) => {
                return Some(Thing::Link(PathBuf::from(OsString::from_vec(bytes))));
            }
            Ok(Some(Some(content))) => return Some(Thing::File(text(&content.bytes))),
            Ok(Some(None)) => {}
            Ok(None) | Err(_) => return Some(Thing::File(String::new())),
        }
        let mut after = self.entries.range(path.to_owned()..).map(|(path, _)| path);
        after.next().is_some_and(|other| other.starts_with(path)).then_some(Thing::Folder)
    }
}

/// Git may have changed the line endings.
fn same(old: Option<&Content>, now: Option<&Content>) -> bool {
    let plain = |content: &Content| {
        let bytes = content.bytes.iter().copied().filter(|byte| *byte != b'\r');
        (bytes.collect::<Vec<u8>>(), content.is_link)
    };
    old == now || old.map(plain) == now.map(plain)
}

/// Folders that builds fill.
const BUILDS: [&str; 4] = ["build", "dist", "out", "target"];

/// A build's own program must not be put back: the gate would run an old one.
fn is_held(path: &Path, by: RunBy) -> bool {
    let mut own = path.iter().take_while(|part| *part != "node_modules");
    let is_built = own.any(|part| BUILDS.iter().any(|name| part == *name));
    by == RunBy::Shell || !is_built
}
