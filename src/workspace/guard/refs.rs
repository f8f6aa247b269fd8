//! Branches, tags, notes, replacements and the refs of kept work, as files of the git folder.
//!
//! They are read without libgit2: a pipe in the place of a ref would block it, and it refuses a
//! `packed-refs` that was cut.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use git2::Oid;

use crate::files::{Dir, FileKind, ReadError, ReadResult, nofollow};
use crate::workspace::WorkTree;
use crate::workspace::checkout::is_absence;

/// All refs that are in one file.
const PACKED: &str = "packed-refs";
const LARGEST_PACKED: u64 = 256 << 20;
/// Of a ref in a file of its own.
pub(super) const LARGEST: u64 = 8 << 10;
/// As in `.git`, and stored.
const SYMBOLIC: &str = "ref: ";
/// As stored.
const ODD: &str = "!";

const BRANCHES: &str = "refs/heads/";
const TAGS: &str = "refs/tags/";
/// These change what git says about a commit.
const NOTES: &str = "refs/notes/";
const REPLACED: &str = "refs/replace/";
const KEPT_WORK: &str = "refs/ralph/attempts/";
const FOLDERS: [&str; 5] = [BRANCHES, TAGS, NOTES, REPLACED, KEPT_WORK];
const PARENTS: [&str; 2] = ["refs", "refs/ralph"];

/// Where a ref points.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RefValue {
    Object(Oid),
    /// To another ref.
    Symbolic(String),
    /// Not a ref: a pipe, a link, a file with something else.
    Odd,
}

impl RefValue {
    fn parse(text: &str) -> Self {
        match text.strip_prefix(SYMBOLIC) {
            Some(name) => Self::Symbolic(name.trim().to_owned()),
            None => oid(text).map_or(Self::Odd, Self::Object),
        }
    }

    fn to_text(&self) -> String {
        match self {
            Self::Object(id) => id.to_string(),
            Self::Symbolic(name) => format!("{SYMBOLIC}{name}"),
            Self::Odd => ODD.to_owned(),
        }
    }

    pub fn object(&self) -> Option<Oid> {
        if let Self::Object(id) = self { Some(*id) } else { None }
    }
}

/// Libgit2 takes a part of an id for one.
fn oid(text: &str) -> Option<Oid> {
    let is_whole = text.len() == Oid::ZERO_SHA1.as_bytes().len() * 2;
    Oid::from_str(text).ok().filter(|_| is_whole)
}

/// Refs by their names in the git folder, without those whose names are not UTF-8. The HEADs of other
/// work trees are among them, and the places that are not what git expects there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Refs {
    pub all: BTreeMap<String, RefValue>,
    /// Git never deletes or empties the file of packed refs.
    has_packed: bool,
}

/// What each changed ref was; None: it was not there.
pub(super) type RefChanges = BTreeMap<String, Option<RefValue>>;

impl WorkTree {
    pub(super) fn refs_now(&self) -> Refs {
        let mut found = Refs::default();
        found.read_packed(&self.common_dir.join(PACKED));
        for folder in PARENTS {
            found.require_folder(&self.common_dir, folder);
        }
        for folder in FOLDERS {
            let folder = folder.trim_end_matches('/');
            if found.require_folder(&self.common_dir, folder) {
                found.read_folder(&self.common_dir, folder);
            }
        }
        found.read_heads(self);
        found
    }

    /// What differs and was not to be changed.
    pub(super) fn changed_refs(&self, then: &Refs, now: &Refs) -> RefChanges {
        let mut changes = RefChanges::new();
        if then.is_strange() {
            return changes;
        }
        let busy = then.checked_out_elsewhere(now);
        let names: BTreeSet<&String> = then.all.keys().chain(now.all.keys()).collect();
        for name in names {
            let (old, new) = (then.all.get(name), now.all.get(name));
            let is_change = old != new && !busy.contains(name.as_str());
            if is_change && self.is_untrue(name, old, new, now.has_packed) {
                changes.insert(name.clone(), old.cloned());
            }
        }
        changes
    }

    fn is_untrue(
        &self,
        name: &str,
        old: Option<&RefValue>,
        new: Option<&RefValue>,
        has_packed: bool,
    ) -> bool {
        let is_place = is_place(name);
        if !is_place && !FOLDERS.iter().any(|folder| name.starts_with(folder)) {
            // Only the file of packed refs had it.
            return name.starts_with("refs/") && new.is_none() && !has_packed;
        }
        match (old, new) {
            (Some(RefValue::Odd), _) => false,
            (_, Some(RefValue::Odd)) => true,
            (None, _) => name.starts_with(NOTES) || name.starts_with(REPLACED),
            (Some(RefValue::Object(old)), Some(RefValue::Object(new))) => {
                let is_forward = self.repo.graph_descendant_of(*new, *old).unwrap_or(false);
                !(is_forward && name.starts_with(BRANCHES) && self.was_moved_by_human(name))
            }
            _ => true,
        }
    }
}

/// The place of many refs.
fn is_place(name: &str) -> bool {
    let is_folder = |folder: &str| folder.trim_end_matches('/') == name;
    name == PACKED || PARENTS.contains(&name) || FOLDERS.iter().any(|folder| is_folder(folder))
}

impl Refs {
    /// One line for each ref; its name has no spaces.
    pub fn to_text(&self) -> String {
        let line = |(name, value): (&String, &RefValue)| format!("{name} {}\n", value.to_text());
        self.all.iter().map(line).collect()
    }

    pub fn from_text(text: &str) -> Self {
        let line = |line: &str| {
            let (name, value) = line.split_once(' ')?;
            Some((name.to_owned(), RefValue::parse(value)))
        };
        Self { all: text.lines().filter_map(line).collect(), has_packed: true }
    }

    /// Refs that the guard holds, not only those of the file of packed refs.
    pub fn held(&self) -> impl Iterator<Item = (&String, &RefValue)> {
        let is_held = |name: &str| FOLDERS.iter().any(|folder| name.starts_with(folder));
        self.all.iter().filter(move |(name, _)| is_held(name))
    }

    /// The file of packed refs is not there, or damaged.
    pub fn lost_packed(&self) -> bool {
        !self.has_packed
    }

    /// The human's own arrangement of links, or damage from before: nothing is known.
    fn is_strange(&self) -> bool {
        self.all.iter().any(|(name, value)| is_place(name) && *value == RefValue::Odd)
    }

    /// Somebody may be working on these branches. Only work trees from before count.
    fn checked_out_elsewhere<'a>(&'a self, now: &'a Self) -> BTreeSet<&'a str> {
        let heads = self.all.keys().filter(|name| name.ends_with("HEAD"));
        let values = heads.flat_map(|name| [self.all.get(name), now.all.get(name)]);
        let branch = |value: &'a RefValue| match value {
            RefValue::Symbolic(branch) => Some(branch.as_str()),
            _ => None,
        };
        values.flatten().filter_map(branch).collect()
    }

    /// Lines that cannot be read are left out.
    fn read_packed(&mut self, path: &Path) {
        if !nofollow::exists(path) {
            return;
        }
        let Ok(text) = nofollow::read(path, LARGEST_PACKED) else {
            self.all.insert(PACKED.to_owned(), RefValue::Odd);
            return;
        };
        let mut is_sound = text.ends_with(b"\n") || text.is_empty();
        let whole = text.split_inclusive(|byte| *byte == b'\n').filter(|l| l.ends_with(b"\n"));
        for line in whole.filter(|line| !matches!(line.first(), Some(b'#' | b'^'))) {
            let Ok(line) = std::str::from_utf8(line) else { continue };
            let line = line.trim_end().split_once(' ');
            match line.and_then(|(id, name)| Some((name, oid(id)?))) {
                Some((name, id)) => _ = self.all.insert(name.to_owned(), RefValue::Object(id)),
                None => is_sound = false,
            }
        }
        self.has_packed = is_sound && !text.is_empty();
        if !is_sound {
            self.all.insert(PACKED.to_owned(), RefValue::Odd);
        }
    }

    fn require_folder(&mut self, git: &Path, name: &str) -> bool {
        let found = nofollow::look(&git.join(name));
        let is_folder = found.as_ref().is_ok_and(|found| found.is_dir());
        if !is_folder && !found.is_err_and(|error| is_absence(&error)) {
            self.all.insert(name.to_owned(), RefValue::Odd);
        }
        is_folder
    }

    fn read_folder(&mut self, git: &Path, folder: &str) {
        if let Ok(opened) = Dir::open_real(&git.join(folder)) {
            self.read_open_folder(&opened, folder);
        }
    }

    fn read_open_folder(&mut self, opened: &Dir, folder: &str) {
        for entry in opened.list().unwrap_or_default() {
            let (Some(short), place) = (entry.name.to_str(), Path::new(&entry.name)) else {
                continue;
            };
            let name = format!("{folder}/{short}");
            match entry.kind {
                FileKind::Folder => {
                    if let Ok(below) = opened.dir(place) {
                        self.read_open_folder(&below, &name);
                    }
                }
                _ if name.ends_with(".lock") || name.contains(' ') => {}
                FileKind::File => {
                    if let Some(value) = read_ref(opened.read(place, LARGEST)) {
                        self.all.insert(name, value);
                    }
                }
                _ => _ = self.all.insert(name, RefValue::Odd),
            }
        }
    }

    fn read_heads(&mut self, tree: &WorkTree) {
        let folder = tree.common_dir.join("worktrees");
        let linked = nofollow::list(&folder).unwrap_or_default().into_iter();
        let homes = linked.map(|entry| folder.join(entry.name)).chain([tree.common_dir.clone()]);
        for home in homes.filter(|home| *home != tree.git_dir) {
            let head = home.join("HEAD");
            let name = head.strip_prefix(&tree.common_dir).ok().and_then(Path::to_str);
            let Some(name) = name.filter(|name| !name.contains([' ', '\n'])) else { continue };
            if let Some(value) = read_ref(nofollow::read(&head, LARGEST)) {
                self.all.insert(name.to_owned(), value);
            }
        }
    }
}

/// None: it has just been deleted.
pub(super) fn read_ref(found: ReadResult<Vec<u8>>) -> Option<RefValue> {
    match found.map(String::from_utf8) {
        Ok(Ok(text)) => Some(RefValue::parse(text.trim_end())),
        Err(ReadError::Io(error)) if is_absence(&error) => None,
        Ok(Err(_)) | Err(_) => Some(RefValue::Odd),
    }
}
