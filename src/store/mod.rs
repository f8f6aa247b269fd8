//! What lies on the disk.
//!
//! The store (journal, requests, costs, answers and the lease of a run), PRD.json's exact-text
//! editor, atomic files, logs and the working folder. Knows nothing of agents, git or terminals.

mod error;
pub mod files;
mod lease;
pub mod log;
pub mod prd;
pub mod ralph_dir;
mod sqlite;

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::thread::JoinHandle;

use files::private_folder;
use sqlite::Database;

use error::Problem;

pub use error::StoreError;
pub use lease::Lease;
pub use sqlite::answers::Answers;
pub use sqlite::costs::{AttemptCosts, Costs};
pub use sqlite::journal::{Journal, OpenRun, SqliteJournal};
pub use sqlite::requests::{PendingRequest, Requests};
pub use sqlite::user_costs::{UserCosts, state_folder, user_spent_since};

const JOURNAL: &str = "journal.db";
const LOCK: &str = "lock";

/// Where a repository's store is.
#[derive(Clone, Debug)]
pub struct StorePlace {
    /// Of all work trees: `<git common dir>/ralph`, out of the reach of `git clean`.
    pub shared: PathBuf,
    /// Of this work tree: `<git dir>/ralph`.
    pub own: PathBuf,
    /// The name of this work tree; empty for the main one.
    pub work_tree: String,
}

/// Everything that is kept about a repository's runs, behind one connection that is opened when
/// it is first needed. Its methods fit a remote database as well: append, read from a cursor, lease.
#[derive(Clone)]
pub struct Store {
    place: Rc<StorePlace>,
    database: Rc<RefCell<Option<Rc<Database>>>>,
}

impl Store {
    pub fn new(place: StorePlace) -> Self {
        Self { place: Rc::new(place), database: Rc::default() }
    }

    /// Is there a journal? Looking for it creates nothing.
    pub fn exists(&self) -> bool {
        self.path().exists()
    }

    /// The journal of one backlog in this work tree.
    pub fn journal(&self, backlog: &str) -> Result<SqliteJournal, StoreError> {
        Ok(SqliteJournal::new(self.database()?, backlog, &self.place.work_tree))
    }

    /// What other processes want of the run in this work tree.
    pub fn requests(&self) -> Result<Requests, StoreError> {
        Ok(Requests::new(self.database()?, &self.place.work_tree))
    }

    pub fn costs(&self) -> Result<Costs, StoreError> {
        Ok(Costs::new(self.database()?))
    }

    /// What the user's runs cost over all repositories; `repository` is the name of this one there.
    pub fn user_costs(&self, folder: &Path, repository: String) -> Result<UserCosts, StoreError> {
        UserCosts::open(folder, &self.path(), repository)
    }

    pub fn answers(&self) -> Result<Answers, StoreError> {
        Ok(Answers::new(self.database()?))
    }

    /// The runs of this work tree that have no end, whatever their backlog.
    pub fn open_runs(&self) -> Result<Vec<OpenRun>, StoreError> {
        if !self.exists() {
            return Ok(Vec::new());
        }
        sqlite::journal::open_runs(&*self.database()?, &self.place.work_tree)
    }

    /// One run per work tree: held as long as it lives. `about` is shown to whoever comes second.
    pub fn lease(&self, about: &str) -> Result<Lease, StoreError> {
        private_folder(&self.place.own).map_err(Problem::Folder)?;
        Lease::take(&self.place.own.join(LOCK), about)
    }

    /// Who holds the lease. Looking for it creates nothing.
    pub fn lease_holder(&self) -> Option<String> {
        lease::holder(&self.place.own.join(LOCK))
    }

    /// Looks at every page, and for the newest event, from a thread of its own.
    pub fn start_check(&self) -> Result<StoreCheck, StoreError> {
        let (path, newest) = (self.path(), sqlite::newest(&self.path()));
        if !self.exists() && newest == 0 {
            return Ok(StoreCheck(None));
        }
        // Makes the tables if need be, and says at once what is wrong with the whole.
        self.database()?;
        let thread = std::thread::Builder::new().name("journal check".to_owned());
        let check = move || Database::open(&path)?.check(newest);
        Ok(StoreCheck(Some(thread.spawn(check).map_err(Problem::Folder)?)))
    }

    pub fn check(&self) -> Result<(), StoreError> {
        self.start_check()?.finish()
    }

    /// Renames a damaged journal, so that the next one is new. Returns its new path.
    pub fn set_aside(&self, at: i64) -> Result<PathBuf, StoreError> {
        self.database.take();
        Ok(sqlite::set_aside(&self.path(), at).map_err(Problem::Folder)?)
    }

    /// A journal before this one was damaged.
    pub fn was_set_aside(&self) -> bool {
        sqlite::was_set_aside(&self.path())
    }

    fn path(&self) -> PathBuf {
        self.place.shared.join(JOURNAL)
    }

    fn database(&self) -> Result<Rc<Database>, StoreError> {
        let mut database = self.database.borrow_mut();
        if let Some(database) = &*database {
            return Ok(Rc::clone(database));
        }
        private_folder(&self.place.shared).map_err(Problem::Folder)?;
        let opened = Rc::new(Database::open(&self.path())?);
        Ok(Rc::clone(database.insert(opened)))
    }
}

/// A check of the journal that goes on beside other work.
#[must_use = "nothing may be recorded before it has ended well"]
pub struct StoreCheck(Option<JoinHandle<Result<(), StoreError>>>);

impl StoreCheck {
    /// Waits for it.
    pub fn finish(self) -> Result<(), StoreError> {
        let stopped = |_| Err(Problem::Damaged("the check itself stopped".to_owned()).into());
        self.0.map_or(Ok(()), |thread| thread.join().unwrap_or_else(stopped))
    }
}

impl StorePlace {
    /// A folder for everything, as in the main work tree.
    pub fn in_folder(folder: &Path) -> Self {
        Self { shared: folder.to_owned(), own: folder.to_owned(), work_tree: String::new() }
    }
}
