//! Everything on the disk, except the repository.
//!
//! The store (journal, requests, costs, answers and the lease of a run), PRD.json's exact-text
//! editor, logs and the `.ralph` folder. Knows nothing of agents, git or terminals.

pub mod log;
pub mod prd;
pub mod ralph_dir;
mod sqlite;

use std::cell::RefCell;
use std::fs::{File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::files::atomic::keep_private;
use crate::files::{self, nofollow};
use crate::model::visible_line;
use sqlite::{Database, Newest};

pub use sqlite::approvals::{Answers, Approvals};
pub use sqlite::costs::{AttemptCosts, Costs, UserCosts, state_folder, user_spent_since};
pub use sqlite::human::{PendingRequest, Requests};
pub use sqlite::journal::{Journal, OpenRun};
pub use sqlite::sync::SyncPoint;

const JOURNAL: &str = "journal.db";
const LOCK: &str = "lock";
const LONGEST_HOLDER: u64 = 4096;
/// The holder, when the file that names it is gone.
const NAMELESS: &str = "its lock file was deleted";
/// How long a look for the holder may take, and how often to try again.
const GLANCE: Duration = Duration::from_millis(1);
const GLANCES: u32 = 1000;

/// Where a repository's store is.
#[derive(Clone, Debug)]
pub struct StorePlace {
    /// Of all work trees: `<git common dir>/ralph`, out of the reach of `git clean`.
    pub shared: PathBuf,
    /// Of this work tree: `<git dir>/ralph`.
    pub own: PathBuf,
    /// The name of this work tree; empty for the main one.
    pub work_tree: String,
    /// A folder that stays when `own` is deleted: the git folder of this work tree.
    pub anchor: PathBuf,
}

/// Everything that is kept about a repository's runs, behind one connection that is opened when
/// first needed. Its methods fit a remote database as well: append, read from a cursor, lease.
#[derive(Clone)]
pub struct Store {
    place: Rc<StorePlace>,
    database: Rc<RefCell<Option<Rc<Database>>>>,
}

impl Store {
    pub fn new(place: StorePlace) -> Self {
        Self { place: Rc::new(place), database: Rc::default() }
    }

    /// There is a journal. Looking for it creates nothing.
    pub fn exists(&self) -> bool {
        nofollow::exists(&self.path())
    }

    /// The journal of one backlog in this work tree.
    pub fn journal(&self, backlog: &str) -> Result<impl Journal + use<>> {
        Ok(sqlite::journal::open(self.database()?, backlog, &self.place.work_tree))
    }

    /// From other processes to the run in this work tree.
    pub fn requests(&self) -> Result<Requests> {
        Ok(Requests { database: self.database()?, work_tree: self.place.work_tree.clone() })
    }

    /// The requests to each active run of the repository but that of this work tree; with `and_own`
    /// to that one too.
    pub fn requests_to_runs(&self, and_own: bool) -> Result<Vec<Requests>> {
        let mut names = vec![(String::new(), self.place.shared.clone())];
        let linked = self.place.shared.parent().map(|common| common.join("worktrees"));
        let entries = linked.as_ref().and_then(|linked| nofollow::list(linked).ok());
        for (linked, entry) in linked
            .iter()
            .zip(entries)
            .flat_map(|(linked, entries)| entries.into_iter().map(move |entry| (linked, entry)))
        {
            let name = entry.name.to_string_lossy().into_owned();
            names.push((name, linked.join(entry.name).join("ralph")));
        }
        let is_wanted = |(name, folder): &(String, PathBuf)| {
            (and_own || *name != self.place.work_tree) && is_held(&folder.join(LOCK))
        };
        let database = self.database()?;
        let to = |(work_tree, _)| Requests { database: Rc::clone(&database), work_tree };
        Ok(names.into_iter().filter(is_wanted).map(to).collect())
    }

    pub fn costs(&self) -> Result<Costs> {
        self.database().map(Costs)
    }

    /// What the user's runs cost over all repositories; `repository` is the name of this one there.
    /// Without the costs of the agents in `but`.
    pub fn user_costs(
        &self,
        folder: &Path,
        repository: String,
        but: &'static [&'static str],
    ) -> Result<UserCosts> {
        UserCosts::open(folder, &self.path(), repository, but)
    }

    pub fn answers(&self) -> Result<Answers> {
        self.database().map(Answers)
    }

    /// The runs of this work tree that have no end, whatever their backlog.
    pub fn open_runs(&self) -> Result<Vec<OpenRun>> {
        if !self.exists() {
            return Ok(Vec::new());
        }
        self.database()?.open_runs(&self.place.work_tree)
    }

    /// One run per work tree. `about` describes the holder to others that want the lease. Two locks: an
    /// agent may delete the file during a run, and then another one could lock a new file.
    pub fn lease(&self, about: &str) -> Result<Lease> {
        nofollow::private_folder(&self.place.own).map_err(Problem::Folder)?;
        let path = self.place.own.join(LOCK);
        let failed = |source| Problem::Lock { path: path.display().to_string(), source };
        let mut file = keep_private(&path).map_err(failed)?;
        try_lock(&file).map_err(|error| match error {
            TryLockError::Error(source) => failed(source),
            TryLockError::WouldBlock => {
                let holder = nofollow::read_text(&path, LONGEST_HOLDER).unwrap_or_default();
                Problem::Held { holder: visible_line(&holder) }
            }
        })?;
        let anchor = self.lock_anchor()?;
        file.set_len(0).and_then(|()| file.write_all(about.as_bytes())).map_err(failed)?;
        Ok(Lease { file, anchor })
    }

    /// None where folders cannot be locked, as on some network file systems.
    fn lock_anchor(&self) -> Result<Option<File>> {
        let Ok(folder) = files::open_place(&self.place.anchor) else { return Ok(None) };
        match try_lock(&folder) {
            Ok(()) => Ok(Some(folder)),
            Err(TryLockError::Error(_)) => Ok(None),
            Err(TryLockError::WouldBlock) => {
                Err(Problem::Held { holder: NAMELESS.to_owned() }.into())
            }
        }
    }

    /// Who holds the lease; None if it is free. Looking for it creates nothing.
    pub fn lease_holder(&self) -> Option<String> {
        let path = self.place.own.join(LOCK);
        if is_held(&path) {
            return Some(nofollow::read_text(&path, LONGEST_HOLDER).unwrap_or_default());
        }
        is_held(&self.place.anchor).then(|| NAMELESS.to_owned())
    }

    /// Checks every page, and for the newest event, in a thread.
    pub fn start_check(&self) -> Result<StoreCheck> {
        let path = self.path();
        let newest = Newest::of(&path).read().unwrap_or_default();
        if !self.exists() && newest == 0 {
            return Ok(StoreCheck(None));
        }
        // Creates missing tables, and reports damage of the whole at once.
        self.database()?;
        let thread = thread::Builder::new().name("journal check".to_owned());
        let check = move || Database::open(&path)?.check(newest);
        Ok(StoreCheck(Some(thread.spawn(check).map_err(Problem::Folder)?)))
    }

    /// Renames a damaged journal, so that the next one is new. Returns its new path.
    pub fn rename_damaged(&self, at: i64) -> Result<PathBuf> {
        self.database.take();
        Ok(sqlite::rename_damaged(&self.path(), at).map_err(Problem::Folder)?)
    }

    /// A journal before this one was damaged.
    pub fn was_damaged(&self) -> bool {
        sqlite::was_damaged(&self.path())
    }

    fn path(&self) -> PathBuf {
        self.place.shared.join(JOURNAL)
    }

    fn database(&self) -> Result<Rc<Database>> {
        let mut database = self.database.borrow_mut();
        if let Some(database) = &*database {
            return Ok(Rc::clone(database));
        }
        nofollow::private_folder(&self.place.shared).map_err(Problem::Folder)?;
        let opened = Rc::new(Database::open(&self.path())?);
        Ok(Rc::clone(database.insert(opened)))
    }
}

pub type Result<T, E = StoreError> = std::result::Result<T, E>;

/// Why the store cannot be used. Opaque, so that another database needs no other error.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct StoreError(#[from] Problem);

#[derive(Debug, thiserror::Error)]
enum Problem {
    #[error("cannot open the journal `{path}`: {source}")]
    Open { path: String, source: sqlite::Failure },
    #[error(
        "a newer ralph wrote the journal `{path}` (format {found}; this version supports {known}); \
         use the newer ralph. Nothing was changed"
    )]
    Newer { path: String, found: i64, known: i64 },
    #[error(
        "the journal is damaged ({0}): `ralph run` renames it and rebuilds a new one from the \
         backlog, the refs and the commits' trailers"
    )]
    Damaged(String),
    #[error(
        "the journal is lost ({0}) while the run was active, so everything was stopped; the next \
         `ralph run` rebuilds it from the backlog, the refs and the commits' trailers"
    )]
    Lost(&'static str),
    #[error("cannot write the journal (is the disk full?): {0}")]
    Write(sqlite::Failure),
    #[error("cannot sync the journal to disk (is the disk full?): {0}")]
    Sync(io::Error),
    #[error("cannot read the journal: {0}")]
    Read(sqlite::Failure),
    #[error("the journal has an event that this version of ralph does not support: {0}")]
    Payload(serde_json::Error),
    #[error("another `ralph run` is active in this work tree ({holder}); wait for it or stop it")]
    Held { holder: String },
    #[error("cannot lock `{path}`: {source}")]
    Lock { path: String, source: io::Error },
    #[error("`{path}`: {problem}")]
    UserCosts { path: String, problem: String },
    #[error("{0}")]
    Folder(io::Error),
}

impl StoreError {
    /// The bytes of the journal are not what was written.
    pub fn is_damage(&self) -> bool {
        matches!(self.0, Problem::Damaged(_))
    }

    /// The journal is not this run's any more.
    pub fn is_lost(&self) -> bool {
        matches!(self.0, Problem::Lost(_))
    }

    /// Another run has the lease.
    pub fn is_held(&self) -> bool {
        matches!(self.0, Problem::Held { .. })
    }
}

/// Released when dropped; the system releases it when the process dies.
#[derive(Debug)]
pub struct Lease {
    file: File,
    anchor: Option<File>,
}

impl Drop for Lease {
    /// Closing the files is not enough: a process that another thread is starting has them, too.
    fn drop(&mut self) {
        for file in self.anchor.iter().chain([&self.file]) {
            // Closing them comes next.
            let _ = file.unlock();
        }
    }
}

/// A check of the journal that runs next to other work.
#[must_use = "nothing may be recorded before it has succeeded"]
pub struct StoreCheck(Option<JoinHandle<Result<()>>>);

impl StoreCheck {
    pub fn finish(self) -> Result<()> {
        let stopped = |_| Err(Problem::Damaged("the check failed to run".to_owned()).into());
        self.0.map_or(Ok(()), |thread| thread.join().unwrap_or_else(stopped))
    }
}

#[cfg(test)]
impl StorePlace {
    /// One folder for everything, as in the main work tree.
    pub fn in_folder(folder: &Path) -> Self {
        let [shared, own, anchor] = [(); 3].map(|()| folder.to_owned());
        Self { shared, own, work_tree: String::new(), anchor }
    }
}

fn is_held(path: &Path) -> bool {
    // What an agent put in the place of the lock must not be waited for.
    let look = files::open_place(path).map(|file| file.try_lock_shared());
    matches!(look, Ok(Err(TryLockError::WouldBlock)))
}

/// A command that only looks for the holder takes the lock for a moment, shared. Whatever has it so
/// for longer is no such command.
fn try_lock(file: &File) -> Result<(), TryLockError> {
    for _ in 0..GLANCES {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) if file.try_lock_shared().is_ok() => {
                file.unlock().map_err(TryLockError::Error)?;
                thread::sleep(GLANCE);
            }
            locked => return locked,
        }
    }
    Err(TryLockError::WouldBlock)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn a_held_lease_names_its_holder_and_ends_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(StorePlace::in_folder(folder.path()));
        assert_eq!(store.lease_holder(), None);
        let first = store.lease("pid 7").unwrap();
        let error = store.lease("pid 8").unwrap_err().to_string();
        assert!(error.contains("pid 7"), "{error}");
        assert_eq!(store.lease_holder().as_deref(), Some("pid 7"));
        drop(first);
        assert_eq!(store.lease_holder(), None);
        store.lease("pid 8").unwrap();
    }

    #[test]
    fn a_lease_stays_held_when_its_file_is_deleted() {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("ralph");
        let place = StorePlace { own: own.clone(), ..StorePlace::in_folder(folder.path()) };
        let store = Store::new(place);
        let first = store.lease("pid 7").unwrap();
        fs::remove_dir_all(&own).unwrap();
        assert_eq!(store.lease_holder().as_deref(), Some(NAMELESS));
        let error = store.lease("pid 8").unwrap_err();
        assert!(error.is_held() && error.to_string().contains(NAMELESS), "{error}");
        drop(first);
        assert_eq!(store.lease_holder(), None);
        store.lease("pid 8").unwrap();
    }

    #[test]
    fn a_lock_that_something_shares_for_ever_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(StorePlace::in_folder(folder.path()));
        let shared = File::open(folder.path()).unwrap();
        shared.try_lock_shared().unwrap();
        assert!(store.lease("pid 7").unwrap_err().is_held());
        drop(shared);
        store.lease("pid 7").unwrap();
    }

    #[test]
    fn a_look_for_the_holder_is_in_no_runs_way() {
        let folder = tempfile::tempdir().unwrap();
        let place = StorePlace::in_folder(folder.path());
        let store = Store::new(place.clone());
        drop(store.lease("the first run"));
        let (done, is_done) = (Arc::new(AtomicBool::new(false)), Ordering::Relaxed);
        let over = Arc::clone(&done);
        let looking = thread::spawn(move || {
            let store = Store::new(place);
            while !over.load(is_done) {
                store.lease_holder();
            }
        });
        let taken = (0..2000).all(|_| store.lease("the next run").is_ok());
        done.store(true, is_done);
        looking.join().unwrap();
        assert!(taken);
    }
}
