//! What the attempts of this repository cost, and what all of the user's runs cost.
//!
//! The user's costs are one small file in the state folder. It copies from the journal what it lacks,
//! attempt by attempt, so a crash between the two loses nothing and nothing counts twice. That needs
//! four syncs, so a thread does it; only a daily budget of the user makes the run wait for it.

use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, OpenFlags, Row, TransactionBehavior, params};

use crate::files::atomic::{ensure_private, private_folder};
use crate::model::{Usage, Usd};
use crate::store::{Problem, Result, StoreError};

use super::{Database, PATIENCE};

/// Reads the tables that are about money.
pub struct Costs(pub(in crate::store) Rc<Database>);

/// One attempt, or one model's part of it.
#[derive(Clone, Debug, PartialEq)]
pub struct AttemptCosts {
    pub backlog: String,
    pub story: String,
    pub title: String,
    /// When it ended; while it runs, when it began.
    pub at: i64,
    pub result: String,
    pub elapsed_ms: u64,
    /// As its agent reported.
    pub stated: Option<Usd>,
    /// What it counts as.
    pub counted: Usd,
    pub usage: Usage,
    /// Empty for a whole attempt.
    pub model: String,
}

impl Costs {
    pub fn spent_since(&self, at: i64) -> Result<Usd> {
        let sum = "SELECT COALESCE(SUM(counted), 0) FROM attempts WHERE ended_at >= ?1";
        Ok(self.0.rows(sum, [at], |row| row.get(0).map(usd))?.pop().unwrap_or_default())
    }

    /// Every attempt of a run, or of the repository, oldest first.
    pub fn attempts(&self, run: Option<&str>) -> Result<Vec<AttemptCosts>> {
        let select = select(
            "COALESCE(SUM(u.input), 0), COALESCE(SUM(u.output), 0),
             COALESCE(SUM(u.cache_read), 0), COALESCE(SUM(u.cache_write), 0), a.counted, ''",
            "LEFT JOIN usage u USING (attempt) WHERE (?1 IS NULL OR a.run = ?1)
             GROUP BY a.attempt",
        );
        self.0.rows(&select, [run], AttemptCosts::of)
    }

    /// The same, with a row for each model that an attempt used.
    pub fn by_model(&self, run: Option<&str>) -> Result<Vec<AttemptCosts>> {
        let select = select(
            "u.input, u.output, u.cache_read, u.cache_write, u.counted, u.model",
            "JOIN usage u USING (attempt) WHERE (?1 IS NULL OR a.run = ?1)",
        );
        self.0.rows(&select, [run], AttemptCosts::of)
    }
}

fn select(figures: &str, which: &str) -> String {
    format!(
        "SELECT a.backlog, a.story, a.title, COALESCE(a.ended_at, a.started_at), a.result,
             a.elapsed_ms, a.stated, a.turns, a.tool_calls, {figures}
         FROM attempts a {which} ORDER BY a.started_at, a.attempt"
    )
}

impl AttemptCosts {
    fn of(row: &Row<'_>) -> rusqlite::Result<Self> {
        let count = |index: usize| row.get(index).map(unsigned);
        Ok(Self {
            backlog: row.get(0)?,
            story: row.get(1)?,
            title: row.get(2)?,
            at: row.get(3)?,
            result: row.get(4)?,
            elapsed_ms: count(5)?,
            stated: row.get::<_, Option<i64>>(6)?.map(usd),
            usage: Usage {
                cost_usd: None,
                turns: count(7)?,
                tool_calls: count(8)?,
                input_tokens: count(9)?,
                output_tokens: count(10)?,
                cache_read_tokens: count(11)?,
                cache_write_tokens: count(12)?,
            },
            counted: row.get(13).map(usd)?,
            model: row.get(14)?,
        })
    }
}

pub(super) fn usd(micros: i64) -> Usd {
    Usd::from_micros(unsigned(micros))
}

fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

const FILE: &str = "spending.db";
/// How far back attempts are looked for that a crash kept from the file.
const LOOK_BACK_MS: i64 = 7 * 24 * 60 * 60 * 1000;
/// Runs of other work trees may record an earlier end later than one that is known.
const OVERLAP_MS: i64 = 60 * 60 * 1000;

/// So that the next agent, which is about to start, need not wait for the same disk.
const COPY_DELAY: Duration = Duration::from_millis(100);

/// `$XDG_STATE_HOME/ralph`, else `~/.local/state/ralph`, on every system.
pub fn state_folder(env: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let absolute = |text: String| Some(PathBuf::from(text)).filter(|path| path.is_absolute());
    let state = env("XDG_STATE_HOME").and_then(absolute);
    let home = || env("HOME").and_then(absolute).map(|home| home.join(".local/state"));
    state.or_else(home).map(|folder| folder.join("ralph"))
}

/// What the user spent since then over all repositories, if it is known.
pub fn user_spent_since(folder: &Path, at: i64) -> Option<Usd> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(folder.join(FILE), flags).ok()?;
    connection.busy_timeout(PATIENCE).ok()?;
    sum_since(&connection, at).ok()
}

/// The user's file, for one repository. Dropping it waits until its thread has written everything.
pub struct UserCosts {
    copy: Arc<Mutex<LazyCopy>>,
    /// Wakes the thread.
    wake: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
    /// Of the thread.
    problems: Receiver<StoreError>,
}

impl UserCosts {
    /// The environment names no folder for it.
    pub fn no_folder() -> StoreError {
        failure(Path::new("XDG_STATE_HOME"), "neither this nor HOME is set to a folder").into()
    }

    /// `name`: of the journal's repository, in the file.
    pub(in crate::store) fn open(
        folder: &Path,
        journal: &Path,
        name: String,
        but: &'static [&'static str],
    ) -> Result<Self> {
        let (file, journal) = (folder.join(FILE), journal.to_owned());
        let failed = |error: io::Error| failure(&file, error);
        private_folder(folder).and_then(|()| ensure_private(&file)).map_err(failed)?;
        let own = file.clone();
        let open = Box::new(move || CostCopy::open(&own, &journal, &name, but));
        let copy = Arc::new(Mutex::new(LazyCopy { open, copy: None }));
        let ((wake, woken), (sender, problems)) = (channel(), channel());
        let thread = std::thread::Builder::new().name("user costs".to_owned());
        let shared = Arc::clone(&copy);
        let thread = thread.spawn(move || work(&woken, &sender, &shared)).map_err(failed)?;
        Ok(Self { copy, wake: Some(wake), thread: Some(thread), problems })
    }

    /// Copies attempts that ended, in the background. The error is one of an earlier time.
    pub fn take_over(&self) -> Result<()> {
        // Without the thread nothing is copied until `take_over_now`.
        let _ = self.wake.as_ref().map(|wake| wake.send(()));
        self.problems.try_recv().map_or(Ok(()), Err)
    }

    /// The same, done when it returns.
    pub fn take_over_now(&self) -> Result<()> {
        lock(&self.copy).opened()?.take_over()
    }

    pub fn spent_since(&self, at: i64) -> Result<Usd> {
        let mut copy = lock(&self.copy);
        let CostCopy { user, file, .. } = copy.opened()?;
        Ok(sum_since(user, at).map_err(|error| failure(file, error))?)
    }
}

impl Drop for UserCosts {
    fn drop(&mut self) {
        self.wake = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The thread's work: copies a little later, once for all that ended until then.
fn work(woken: &Receiver<()>, problems: &Sender<StoreError>, copy: &Mutex<LazyCopy>) {
    while woken.recv().is_ok() {
        let due = Instant::now() + COPY_DELAY;
        let left = || due.saturating_duration_since(Instant::now());
        while !left().is_zero() && woken.recv_timeout(left()).is_ok() {}
        if let Err(error) = lock(copy).opened().and_then(CostCopy::take_over) {
            let _ = problems.send(error);
        }
    }
}

fn lock(copy: &Mutex<LazyCopy>) -> MutexGuard<'_, LazyCopy> {
    copy.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Opened when first needed, mostly by the thread.
struct LazyCopy {
    open: Box<dyn Fn() -> Result<CostCopy> + Send>,
    copy: Option<CostCopy>,
}

impl LazyCopy {
    fn opened(&mut self) -> Result<&mut CostCopy> {
        match &mut self.copy {
            Some(copy) => Ok(copy),
            none => (self.open)().map(|new| none.insert(new)),
        }
    }
}

/// Its id, its end, what it counts as, its agent.
type PaidAttempt = (String, i64, i64, String);

/// The journal, and the user's file.
struct CostCopy {
    file: PathBuf,
    repository: String,
    user: Connection,
    journal: Database,
    /// Agents whose costs are not copied.
    but: &'static [&'static str],
    /// The latest end that was copied.
    cursor: i64,
}

impl CostCopy {
    fn open(
        file: &Path,
        journal: &Path,
        repository: &str,
        but: &'static [&'static str],
    ) -> Result<Self> {
        let failed = |error: rusqlite::Error| failure(file, error);
        let user = create(file).map_err(failed)?;
        let newest = "SELECT MAX(at) FROM spent WHERE repository = ?1";
        let newest: Option<i64> =
            user.query_row(newest, [repository], |row| row.get(0)).map_err(failed)?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = i64::try_from(now.as_millis()).unwrap_or(i64::MAX);
        let earliest = now.saturating_sub(LOOK_BACK_MS);
        let cursor = newest.map_or(earliest, |at| earliest.max(at - OVERLAP_MS));
        let journal = Database::open(journal)?;
        let (file, repository) = (file.to_owned(), repository.to_owned());
        Ok(Self { file, repository, user, journal, but, cursor })
    }

    fn take_over(&mut self) -> Result<()> {
        let mut paid: Vec<PaidAttempt> = self.journal.rows(
            "SELECT attempt, ended_at, counted, agent FROM attempts WHERE ended_at >= ?1",
            [self.cursor],
            |row| row.try_into(),
        )?;
        paid.retain(|(.., agent)| !self.but.contains(&agent.as_str()));
        let Some(latest) = paid.iter().map(|(_, at, ..)| *at).max() else { return Ok(()) };
        self.write(&paid).map_err(|error| failure(&self.file, error))?;
        self.cursor = latest;
        Ok(())
    }

    fn write(&mut self, paid: &[PaidAttempt]) -> rusqlite::Result<()> {
        let transaction = self.user.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let insert = "INSERT OR IGNORE INTO spent VALUES (?1, ?2, ?3, ?4)";
        for (attempt, at, counted, _) in paid {
            let row = params![attempt, at, self.repository, counted];
            transaction.prepare_cached(insert)?.execute(row)?;
        }
        transaction.commit()
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

fn failure(file: &Path, problem: impl ToString) -> Problem {
    Problem::UserCosts { path: file.display().to_string(), problem: problem.to_string() }
}

#[cfg(test)]
mod tests;
