//! What all of the user's runs cost, whatever the repository: one small file in the state folder.
//!
//! It takes over what the journal has and it has not, attempt by attempt, so that a crash between
//! the two loses nothing and nothing counts twice. That needs four syncs, so a thread does it; only
//! a daily budget of the user makes the run wait for it.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, OpenFlags, OptionalExtension, TransactionBehavior, params};

use crate::model::Usd;
use crate::store::error::{Problem, StoreError};
use crate::store::files::{ensure_private, private_folder};

use super::Database;
use super::costs::{paid_since, usd};

/// How long another run may keep the user's file to itself.
const PATIENCE: Duration = Duration::from_secs(10);
const FILE: &str = "spending.db";
/// What a crash kept from the file is still found after so long.
const LOOK_BACK_MS: i64 = 7 * 24 * 60 * 60 * 1000;
/// Runs of other work trees may record an earlier end later than one that is known.
const OVERLAP_MS: i64 = 60 * 60 * 1000;

/// `$XDG_STATE_HOME/ralph`, else `~/.local/state/ralph`, on every system.
pub fn state_folder(env: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let absolute = |text: String| Some(PathBuf::from(text)).filter(|path| path.is_absolute());
    let state = env("XDG_STATE_HOME").and_then(absolute);
    let home = || env("HOME").and_then(absolute).map(|home| home.join(".local/state"));
    state.or_else(home).map(|folder| folder.join("ralph"))
}

/// What the user spent since then over all repositories, where it is known.
pub fn user_spent_since(folder: &Path, at: i64) -> Option<Usd> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(folder.join(FILE), flags).ok()?;
    connection.busy_timeout(PATIENCE).ok()?;
    sum_since(&connection, at).ok()
}

/// The user's file, for one repository. What was told is written when this is dropped.
pub struct UserCosts {
    orders: Option<Sender<Order>>,
    problems: Receiver<StoreError>,
    thread: Option<JoinHandle<()>>,
}

enum Order {
    TakeOver,
    TakeOverNow(Sender<Result<(), StoreError>>),
    Sum { since: i64, reply: Sender<Result<Usd, StoreError>> },
}

impl UserCosts {
    /// The environment names no folder for it.
    pub fn no_folder() -> StoreError {
        let problem = "neither it nor HOME names a folder".to_owned();
        Problem::UserCosts { path: "XDG_STATE_HOME".to_owned(), problem }.into()
    }

    /// `repository`: what the file calls the one whose journal this is.
    pub(in crate::store) fn open(
        folder: &Path,
        journal: &Path,
        repository: String,
    ) -> Result<Self, StoreError> {
        let file = folder.join(FILE);
        let failed = |error: &dyn ToString| failure(&file, error);
        private_folder(folder).map_err(|error| failed(&error))?;
        ensure_private(&file).map_err(|error| failed(&error))?;
        let (orders, received) = channel();
        let (told, problems) = channel();
        let book = Book { file: file.clone(), journal: journal.to_owned(), repository, open: None };
        let thread = std::thread::Builder::new().name("user costs".to_owned());
        let thread = thread.spawn(move || book.serve(&received, &told));
        let thread = Some(thread.map_err(|error| failed(&error))?);
        Ok(Self { orders: Some(orders), problems, thread })
    }

    /// Takes over what ended, in the background. An error is one of an earlier time.
    pub fn take_over(&self) -> Result<(), StoreError> {
        let problem = self.problems.try_recv();
        self.send(Order::TakeOver);
        problem.map_or(Ok(()), Err)
    }

    /// The same, done when it returns.
    pub fn take_over_now(&self) -> Result<(), StoreError> {
        self.ask(Order::TakeOverNow)
    }

    pub fn spent_since(&self, at: i64) -> Result<Usd, StoreError> {
        self.ask(|reply| Order::Sum { since: at, reply })
    }

    fn ask<T>(
        &self,
        order: impl FnOnce(Sender<Result<T, StoreError>>) -> Order,
    ) -> Result<T, StoreError> {
        let (reply, answer) = channel();
        self.send(order(reply));
        let gone = |_| Err(failure(Path::new(FILE), &"its thread has ended").into());
        answer.recv().unwrap_or_else(gone)
    }

    fn send(&self, order: Order) {
        if let Some(orders) = &self.orders {
            // Without the thread nothing is answered, and that is told.
            let _ = orders.send(order);
        }
    }
}

impl Drop for UserCosts {
    fn drop(&mut self) {
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The thread's side.
struct Book {
    file: PathBuf,
    journal: PathBuf,
    repository: String,
    open: Option<OpenBook>,
}

struct OpenBook {
    user: Connection,
    journal: Database,
    /// The latest end that was taken over.
    cursor: i64,
}

impl Book {
    fn serve(mut self, orders: &Receiver<Order>, problems: &Sender<StoreError>) {
        while let Ok(order) = orders.recv() {
            match order {
                Order::TakeOver => {
                    if let Err(error) = self.take_over() {
                        let _ = problems.send(error);
                    }
                }
                Order::TakeOverNow(reply) => drop(reply.send(self.take_over())),
                Order::Sum { since, reply } => drop(reply.send(self.sum(since))),
            }
        }
    }

    fn take_over(&mut self) -> Result<(), StoreError> {
        let (file, repository) = (self.file.clone(), self.repository.clone());
        let failed = |error: rusqlite::Error| failure(&file, &error);
        let open = self.open()?;
        let paid = paid_since(&open.journal.connection, open.cursor).map_err(failed)?;
        let Some(latest) = paid.iter().map(|(_, at, _)| *at).max() else { return Ok(()) };
        let immediate = TransactionBehavior::Immediate;
        let write = |user: &mut Connection| {
            let transaction = user.transaction_with_behavior(immediate)?;
            let mut insert = transaction
                .prepare_cached("INSERT OR IGNORE INTO spent VALUES (?1, ?2, ?3, ?4)")?;
            for (attempt, at, counted) in &paid {
                insert.execute(params![attempt, at, repository, counted])?;
            }
            drop(insert);
            transaction.commit()
        };
        write(&mut open.user).map_err(failed)?;
        open.cursor = latest;
        Ok(())
    }

    fn sum(&mut self, since: i64) -> Result<Usd, StoreError> {
        let file = self.file.clone();
        Ok(sum_since(&self.open()?.user, since).map_err(|error| failure(&file, &error))?)
    }

    fn open(&mut self) -> Result<&mut OpenBook, StoreError> {
        let failed = |error: rusqlite::Error| failure(&self.file, &error);
        match &mut self.open {
            Some(open) => Ok(open),
            closed => {
                let user = create(&self.file).map_err(failed)?;
                let newest = "SELECT MAX(at) FROM spent WHERE repository = ?1";
                let newest = user.query_row(newest, [&self.repository], |row| row.get(0));
                let newest: Option<i64> = newest.optional().map_err(failed)?.flatten();
                let earliest = now().saturating_sub(LOOK_BACK_MS);
                let cursor = newest.map_or(earliest, |at| earliest.max(at - OVERLAP_MS));
                let journal = Database::open(&self.journal)?;
                Ok(closed.insert(OpenBook { user, journal, cursor }))
            }
        }
    }
}

/// Not in WAL mode: home folders can be on a network.
fn create(file: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open(file)?;
    connection.busy_timeout(PATIENCE)?;
    let tables = "SELECT COUNT(*) FROM sqlite_schema WHERE name IN ('spent', 'spent_by_time')";
    let found: i64 = connection.query_row(tables, [], |row| row.get(0))?;
    if found < 2 {
        connection.execute_batch(
            "BEGIN IMMEDIATE;
             CREATE TABLE IF NOT EXISTS spent (
                 attempt    TEXT PRIMARY KEY,
                 at         INTEGER NOT NULL,
                 repository TEXT    NOT NULL,
                 counted    INTEGER NOT NULL
             ) WITHOUT ROWID;
             CREATE INDEX IF NOT EXISTS spent_by_time ON spent (at, counted);
             COMMIT;",
        )?;
    }
    Ok(connection)
}

fn sum_since(connection: &Connection, at: i64) -> rusqlite::Result<Usd> {
    let sum = "SELECT COALESCE(SUM(counted), 0) FROM spent WHERE at >= ?1";
    connection.query_row(sum, [at], |row| row.get(0)).map(usd)
}

fn failure(file: &Path, problem: &dyn ToString) -> Problem {
    Problem::UserCosts { path: file.display().to_string(), problem: problem.to_string() }
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
