//! The files of the git folder that libgit2 reads whole, waits for or writes through a link: each
//! must be what git makes it.
//!
//! During a run, and after something was interrupted, what is not goes to the kept files, and what a
//! link led to takes its place. Else it is refused, because it may be the human's.

mod folders;
mod named;
mod own;

use std::collections::BTreeSet;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::files::{self, FileKind, ReadError, follow, nofollow};

use super::checkout::is_absence;
use super::error::{GitError, file_error};
use super::moved_away::MovedAway;
use super::object_copies::{CopiedFolders, ObjectCopies};
use super::{OWN_GIT_FOLDER, Result, WorkTree};

pub(super) use folders::KnownFolders;
pub(super) use own::mend_own_files;

/// No file of git's that is read whole is larger, except packs.
const LARGEST: u64 = 1 << 30;
/// Git's configuration and lists of commits.
const LARGEST_SETUP: u64 = 64 << 20;
/// A name or an id.
const LARGEST_NAME: u64 = 64 << 10;
/// Of a file that took its place as a link.
const LARGEST_COPY: u64 = 64 << 20;
const NO_FOLDER: &str = "it is a link or a pipe instead of a folder";
const HEAD: &str = "HEAD";
const INDEX: &str = "index";
const OBJECTS: &str = "objects";
/// Here while something untrusted runs, and after it was interrupted.
pub(super) const ATTEMPT: &str = "ralph/attempt";
const FILE_IN_PLACE: &str = "file that also has a name elsewhere";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Expected {
    /// A file that is replaced as a whole.
    File(u64),
    /// A file that is written into.
    Written(u64),
    /// A folder in which files are written.
    Folder,
    /// The same, made by ralph.
    OwnFolder,
    /// A file that is only read; a link to it may be the human's.
    Readable(u64),
    /// A folder with such files.
    ReadableFolder,
}

use Expected::{Folder, OwnFolder, Readable, ReadableFolder, Written};

/// Of one work tree.
const OWN: [(&str, Expected); 6] = [
    (HEAD, Expected::File(LARGEST_NAME)),
    (INDEX, Expected::File(LARGEST)),
    ("logs", Folder),
    ("config.worktree", Readable(LARGEST_SETUP)),
    ("commondir", Readable(LARGEST_NAME)),
    ("gitdir", Readable(LARGEST_NAME)),
];

/// Shared by all work trees of a repository.
const SHARED: [(&str, Expected); 16] = [
    ("config", Readable(LARGEST_SETUP)),
    ("packed-refs", Expected::File(LARGEST)),
    ("shallow", Readable(LARGEST_SETUP)),
    ("refs", Folder),
    ("refs/heads", Folder),
    ("refs/ralph", Folder),
    ("logs", Folder),
    ("logs/refs", Folder),
    ("logs/refs/heads", Folder),
    (OBJECTS, Folder),
    ("hooks", ReadableFolder),
    ("info", ReadableFolder),
    ("info/attributes", Readable(LARGEST_SETUP)),
    ("info/exclude", Readable(LARGEST_SETUP)),
    ("info/grafts", Readable(LARGEST_SETUP)),
    ("objects/info/alternates", Readable(LARGEST_SETUP)),
];

impl Expected {
    /// Nothing may be there at all.
    fn check(self, path: &Path) -> Result<(), ReadError> {
        // What is only read may be found through a link of the human's.
        let look = if self.is_only_read() { follow::look_at_end } else { nofollow::look };
        let found = match look(path) {
            Err(error) if is_absence(&error) => return Ok(()),
            found => found?,
        };
        let limit = match self {
            // Of a format that libgit2 refuses, it may be a file.
            Folder if found.is_dir() || found.is_file() => return Ok(()),
            ReadableFolder if follow::is_folder(path) => return Ok(()),
            OwnFolder if found.is_dir() => return Ok(()),
            Folder | OwnFolder | ReadableFolder => {
                return Err(io::Error::new(io::ErrorKind::NotADirectory, NO_FOLDER).into());
            }
            Self::File(_) | Written(_) if found.is_symlink() => {
                return Err(ReadError::NotAFile("link"));
            }
            // What a link of the human's leads to may be missing.
            Readable(_) if found.is_symlink() && !follow::exists(path) => return Ok(()),
            Self::File(limit) | Written(limit) | Readable(limit) => limit,
        };
        if files::find(path)?.len() > limit {
            return Err(ReadError::TooLarge { limit });
        }
        Ok(())
    }

    fn is_only_read(self) -> bool {
        matches!(self, Readable(_) | ReadableFolder)
    }

    /// Writing into it would change a file elsewhere. A human may have made it so.
    fn is_shared(self, path: &Path) -> bool {
        let is_shared = |found: Metadata| found.is_file() && found.nlink() > 1;
        matches!(self, Written(_)) && nofollow::look(path).is_ok_and(is_shared)
    }
}

/// The git folder of a work tree, and the one that it shares.
struct GitFolders {
    own: PathBuf,
    shared: PathBuf,
}

impl GitFolders {
    /// Like libgit2 finds them.
    fn of(start: &Path) -> Option<Self> {
        let start = follow::real(start).ok()?;
        let found = start.ancestors().map(|folder| folder.join(".git"));
        let found = found.into_iter().find(|path| follow::exists(path))?;
        let own = match files::read_text(&found, LARGEST_NAME) {
            Ok(text) => found.parent()?.join(text.strip_prefix("gitdir:")?.trim()),
            Err(_) => found,
        };
        // A linked work tree's, and a git folder elsewhere, may be behind links of the human's.
        let own = follow::real(&own).unwrap_or(own);
        let shared = match files::read_text(&own.join("commondir"), LARGEST_NAME) {
            Ok(text) => own.join(text.trim()),
            Err(_) => own.clone(),
        };
        Some(Self { shared: follow::real(&shared).unwrap_or(shared), own })
    }

    fn was_interrupted(&self) -> bool {
        nofollow::exists(&self.own.join(ATTEMPT))
    }

    fn places(&self) -> impl Iterator<Item = (PathBuf, Expected)> {
        let own = OWN.iter().map(|(name, expected)| (self.own.join(name), *expected));
        let shared = SHARED.iter().map(|(name, expected)| (self.shared.join(name), *expected));
        own.chain(shared).chain(self.own_places())
    }

    /// Folders come before what is in them, and are looked into only if they are real.
    fn odd(&self, known: &KnownFolders) -> Vec<(PathBuf, ReadError)> {
        let problem = |(path, expected): (PathBuf, Expected)| {
            let problem = expected.check(&path).err()?;
            Some((path, problem))
        };
        if nofollow::look(&self.own).is_ok_and(|found| !found.is_dir()) {
            let problem = io::Error::new(io::ErrorKind::NotADirectory, NO_FOLDER);
            return vec![(self.own.clone(), problem.into())];
        }
        let mut odd: Vec<_> = self.places().filter_map(problem).collect();
        odd.extend(named::odd_names(self));
        for folder in [&self.own, &self.shared] {
            known.look(folder, folder == &self.shared, &mut odd);
            if self.own == self.shared {
                break;
            }
        }
        let mut seen = BTreeSet::new();
        odd.retain(|(path, _)| seen.insert(path.clone()));
        odd
    }

    /// Files that ralph or libgit2 would write into, and that have a name elsewhere too.
    fn shared_files(&self) -> Vec<(PathBuf, ReadError)> {
        let shared = self.places().filter(|(path, expected)| expected.is_shared(path));
        let logs = [&self.own, &self.shared].map(|folder| folder.join("logs"));
        let logs = logs.iter().flat_map(|logs| folders::files_below(logs));
        let logs = logs.filter(|path| Written(LARGEST).is_shared(path));
        let paths = shared.map(|(path, _)| path).chain(logs);
        paths.map(|path| (path, ReadError::NotAFile(FILE_IN_PLACE))).collect()
    }
}

/// Like libgit2 finds them: the work tree's own git folder, and the one that it shares.
pub(super) fn git_folders(start: &Path) -> Option<(PathBuf, PathBuf)> {
    GitFolders::of(start).map(|folders| (folders.own, folders.shared))
}

/// The git folder of the repository that a folder is in, found without libgit2.
pub fn shared_git_folder(start: &Path) -> Option<PathBuf> {
    GitFolders::of(start).map(|folders| folders.shared)
}

/// Of the repository that a folder is in. Call before libgit2 looks at it.
pub(super) fn require_plain_files(start: &Path) -> Result<()> {
    let Some(folders) = GitFolders::of(start) else { return Ok(()) };
    match folders.odd(&KnownFolders::default()).into_iter().next() {
        Some((path, problem)) => Err(GitError::OddFile { path, problem }),
        None => Ok(()),
    }
}

/// The same, but if something was interrupted, what is odd makes room: it is not the human's. Unless
/// a run is active, which does that itself.
pub(super) fn mend_after_interruption(start: &Path) -> Result<Option<MovedAway>> {
    let Some(folders) = GitFolders::of(start).filter(GitFolders::was_interrupted) else {
        return Ok(None);
    };
    let Ok(own) = follow::real(&folders.own) else { return Ok(None) };
    let place = files::open_place(&own).map_err(file_error("open", &own))?;
    if place.try_lock().is_err() {
        return Ok(None);
    }
    let copies = ObjectCopies { git_dir: &own, common_dir: &folders.shared };
    // What is missing then, whoever needs it says.
    let _ = copies.bring_back(&CopiedFolders::default());
    let moved = MovedAway::to(&own);
    let known = KnownFolders::default();
    let mender = Mender { folders: &folders, moved: &moved, branch: None, is_running: false };
    // What it names may be found only once a file is back.
    for _ in 0..2 {
        mender.mend_all(folders.odd(&known))?;
    }
    mender.mend_all(folders.shared_files())?;
    Ok(Some(moved))
}

impl WorkTree {
    /// What is odd in the git folder makes room for what git expects.
    pub fn mend_git_files(&self) -> Result<()> {
        let folders = self.folders();
        folders.open_own();
        let mender = self.mender(&folders);
        let branch = self.run_branch.iter().map(String::as_str).chain(["refs/stash"]);
        let branch = branch.flat_map(|name| [name.to_owned(), format!("logs/{name}")]);
        let as_folder = branch.map(|name| self.common_dir.join(name)).filter(|path| is_dir(path));
        let as_folder = as_folder.map(|path| (path, ReadError::Folder));
        let odd = folders.odd(&self.known_folders).into_iter().chain(as_folder);
        let shared = if self.service.is_some() { folders.shared_files() } else { Vec::new() };
        mender.mend_all(odd.chain(shared))?;
        for (path, text) in self.broken_heads() {
            let moved = self.moved_away.take(&path, &self.shown(&path));
            let mended = moved.and_then(|()| {
                text.map_or(Ok(()), |text| nofollow::write_new(&path, text.as_bytes()))
            });
            mended.map_err(file_error("restore", &path))?;
        }
        Ok(())
    }

    /// Nothing is written through a link on the way to a ref, an index or their logs.
    pub(super) fn require_own_place(&self, lock: &Path) -> Result<()> {
        let file = lock.with_extension("");
        for folder in [&self.git_dir, &self.common_dir] {
            let Ok(name) = file.strip_prefix(folder) else { continue };
            for path in [folder.join(name), folder.join("logs").join(name)] {
                if let Some(link) = first_link(folder, &path) {
                    let folders = self.folders();
                    self.mender(&folders).mend(&link, ReadError::NotAFile("link"))?;
                }
            }
            break;
        }
        Ok(())
    }

    fn folders(&self) -> GitFolders {
        GitFolders { own: self.git_dir.clone(), shared: self.common_dir.clone() }
    }

    fn mender<'a>(&'a self, folders: &'a GitFolders) -> Mender<'a> {
        let is_running = self.service.is_some();
        let branch = self.run_branch.as_deref().filter(|_| is_running);
        Mender { folders, moved: &self.moved_away, branch, is_running }
    }
}

/// Moves away what is odd.
struct Mender<'a> {
    folders: &'a GitFolders,
    moved: &'a MovedAway,
    branch: Option<&'a str>,
    /// Else something was interrupted, and nothing has the journal open.
    is_running: bool,
}

impl Mender<'_> {
    fn mend_all(&self, odd: impl IntoIterator<Item = (PathBuf, ReadError)>) -> Result<()> {
        odd.into_iter().try_for_each(|(path, problem)| self.mend(&path, problem))
    }

    fn mend(&self, path: &Path, problem: ReadError) -> Result<()> {
        if !nofollow::exists(path) && !follow::exists(path) {
            // What it was in moved away.
            return Ok(());
        }
        let is_ralphs = self.folders.is_ralphs(path);
        let may_mend = self.is_running || is_ralphs || self.folders.was_interrupted();
        if !may_mend || !self.can_be_replaced(path) {
            return Err(GitError::OddFile { path: path.to_owned(), problem });
        }
        let text = self.text_for(path);
        let replace = || {
            self.moved.take(path, &self.shown(path))?;
            match text {
                Some(text) => nofollow::write_new(path, &text),
                None => Ok(()),
            }
        };
        replace().map_err(file_error("replace", path))
    }

    /// Without the objects nothing can be read, and without the journal's files the run is lost. What
    /// is elsewhere is the human's.
    fn can_be_replaced(&self, path: &Path) -> bool {
        let GitFolders { own, shared } = self.folders;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_open = matches!(&*name, "journal.db" | "journal.db-wal" | "journal.db-shm");
        let is_inside = path.starts_with(own) || path.starts_with(shared);
        let is_own = [own, shared].iter().any(|git| path == git.join(OWN_GIT_FOLDER));
        let is_needed = path == own || path == shared.join(OBJECTS);
        is_inside && !is_needed && !((is_open || is_own) && self.is_running)
    }

    /// What belongs there: HEAD is known, and an agent may have moved the file to where the link
    /// leads.
    fn text_for(&self, path: &Path) -> Option<Vec<u8>> {
        let found = nofollow::look(path).ok()?;
        if found.is_file() && found.nlink() > 1 {
            return files::read(path, LARGEST_COPY).ok();
        }
        let name = path.strip_prefix(&self.folders.own).ok()?.to_str()?;
        let start = match name {
            HEAD => return self.head(),
            ATTEMPT => return Some(Vec::new()),
            INDEX => "DIRC",
            "packed-refs" => "# pack-refs",
            _ => return None,
        };
        let text = files::read(path, LARGEST_COPY).ok()?;
        text.starts_with(start.as_bytes()).then_some(text)
    }

    /// The branch; else the commit that it was at, and the journal knows the branch.
    fn head(&self) -> Option<Vec<u8>> {
        let text = match self.branch {
            Some(name) => format!("ref: {name}"),
            None => {
                let note =
                    nofollow::read_text(&self.folders.own.join(ATTEMPT), LARGEST_NAME).ok()?;
                let commit = note.lines().next()?.to_owned();
                Some(commit).filter(|commit| !commit.is_empty())?
            }
        };
        Some((text + "\n").into_bytes())
    }

    /// For people.
    fn shown(&self, path: &Path) -> PathBuf {
        let GitFolders { own, shared } = self.folders;
        let inside = [own, shared].into_iter().find_map(|folder| path.strip_prefix(folder).ok());
        Path::new(".git").join(inside.unwrap_or(path))
    }
}

fn is_dir(path: &Path) -> bool {
    nofollow::is_folder(path)
}

fn first_link(folder: &Path, path: &Path) -> Option<PathBuf> {
    let mut below: Vec<&Path> = path.ancestors().take_while(|part| *part != folder).collect();
    below.reverse();
    let is_link = |part: &&Path| nofollow::kind(part) == FileKind::Link;
    below.into_iter().find(is_link).map(Path::to_owned)
}
