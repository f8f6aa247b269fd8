//! What the attempts of this repository cost, and what all of the user's runs cost.
//!
//! The user's costs are one small file in the state folder. It copies from the journal what it lacks,
//! attempt by attempt, so a crash between the two loses nothing and nothing counts twice. That needs
//! four syncs, so a thread does it; only a daily budget of the user makes the run wait for it.

use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, OpenFlags, Row, TransactionBehavior, params};

use crate::model::{Usage, Usd};
use crate::store::files::{ensure_private, private_folder};
use crate::store::{Problem, StoreError};

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
    pub fn spent_since(&self, at: i64) -> Result<Usd, StoreError> {
        let sum = "SELECT COALESCE(SUM(counted), 0) FROM attempts WHERE ended_at >= ?1";
        Ok(self.0.rows(sum, [at], |row| row.get(0).map(usd))?.pop().unwrap_or_default())
    }

    /// Every attempt of a run, or of the repository, oldest first.
    pub fn attempts(&self, run: Option<&str>) -> Result<Vec<AttemptCosts>, StoreError> {
        let select = select(
            "COALESCE(SUM(u.input), 0), COALESCE(SUM(u.output), 0),
             COALESCE(SUM(u.cache_read), 0), COALESCE(SUM(u.cache_write), 0), a.counted, ''",
            "LEFT JOIN usage u USING (attempt) WHERE (?1 IS NULL OR a.run = ?1)
             GROUP BY a.attempt",
        );
        self.0.rows(&select, [run], AttemptCosts::of)
    }

    /// The same, with a row for each model that an attempt used.
    pub fn by_model(&self, run: Option<&str>) -> Result<Vec<AttemptCosts>, StoreError> {
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
/// The agent whose costs are invented.
const MOCK: &str = "mock";
/// How far back attempts are looked for that a crash kept from the file.
const LOOK_BACK_MS: i64 = 7 * 24 * 60 * 60 * 1000;
/// Runs of other work trees may record an earlier end later than one that is known.
const OVERLAP_MS: i64 = 60 * 60 * 1000;

/// So that the next agent, which is about to start, need not wait for the same disk.
const LATER: Duration = Duration::from_millis(100);

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
    jobs: Option<Sender<CopyJob>>,
    thread: Option<JoinHandle<()>>,
    /// Of jobs in the background.
    problems: Receiver<StoreError>,
}

/// None: copy what is new, a little later.
type CopyJob = Option<Box<dyn FnOnce(Result<&mut CostCopy, StoreError>) + Send>>;

impl UserCosts {
    /// The environment names no folder for it.
    pub fn no_folder() -> StoreError {
        failure(Path::new("XDG_STATE_HOME"), "neither this nor HOME is set to a folder").into()
    }

    /// `repository`: the name of the journal's repository in the file.
    pub(in crate::store) fn open(
        folder: &Path,
        journal: &Path,
        repository: String,
    ) -> Result<Self, StoreError> {
        let (file, journal) = (folder.join(FILE), journal.to_owned());
        let failed = |error: io::Error| failure(&file, error);
        private_folder(folder).and_then(|()| ensure_private(&file)).map_err(failed)?;
        let (jobs, received) = channel::<CopyJob>();
        let thread = std::thread::Builder::new().name("user costs".to_owned());
        let (own, (sender, problems)) = (file.clone(), channel());
        let open = move || CostCopy::open(&own, &journal, &repository);
        let thread = thread.spawn(move || work(&received, &sender, open));
        let thread = Some(thread.map_err(failed)?);
        Ok(Self { jobs: Some(jobs), thread, problems })
    }

    /// Copies attempts that ended, in the background. The error is one of an earlier time.
    pub fn take_over(&self) -> Result<(), StoreError> {
        self.send(None);
        self.problems.try_recv().map_or(Ok(()), Err)
    }

    /// The same, done when it returns.
    pub fn take_over_now(&self) -> Result<(), StoreError> {
        self.ask(CostCopy::take_over)
    }

    pub fn spent_since(&self, at: i64) -> Result<Usd, StoreError> {
        self.ask(move |copy| {
            Ok(sum_since(&copy.user, at).map_err(|error| failure(&copy.file, error))?)
        })
    }

    fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&mut CostCopy) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, answer) = channel();
        self.send(Some(Box::new(move |copy| drop(reply.send(copy.and_then(question))))));
        let gone = |_| Err(failure(Path::new(FILE), "the thread that writes it has ended").into());
        answer.recv().unwrap_or_else(gone)
    }

    fn send(&self, job: CopyJob) {
        if let Some(jobs) = &self.jobs {
            // Without the thread there is no answer, and `ask` reports that.
            let _ = jobs.send(job);
        }
    }
}

impl Drop for UserCosts {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The thread's work, until there is nobody to ask it.
fn work(
    jobs: &Receiver<CopyJob>,
    problems: &Sender<StoreError>,
    open: impl Fn() -> Result<CostCopy, StoreError>,
) {
    let (mut copy, mut due): (Option<CostCopy>, Option<Instant>) = (None, None);
    loop {
        let job = match due.map(|due| due.saturating_duration_since(Instant::now())) {
            // Even if more is asked than can be answered: `recv_timeout` would return that first.
            Some(Duration::ZERO) => Err(RecvTimeoutError::Timeout),
            Some(wait) => jobs.recv_timeout(wait),
            None => jobs.recv().map_err(RecvTimeoutError::from),
        };
        let (slot, open) = (&mut copy, &open);
        let opened = move || match slot {
            Some(copy) => Ok(copy),
            none => open().map(|new| none.insert(new)),
        };
        match job {
            Ok(Some(job)) => job(opened()),
            Ok(None) => _ = due.get_or_insert_with(|| Instant::now() + LATER),
            Err(end) => {
                let copied = due.take().map(|_| opened().and_then(CostCopy::take_over));
                if let Some(Err(error)) = copied {
                    let _ = problems.send(error);
                }
                if end == RecvTimeoutError::Disconnected {
                    return;
                }
            }
        }
    }
}

/// The thread's side: the journal, and the user's file.
struct CostCopy {
    file: PathBuf,
    repository: String,
    user: Connection,
    journal: Database,
    /// The latest end that was copied.
    cursor: i64,
}

impl CostCopy {
    fn open(file: &Path, journal: &Path, repository: &str) -> Result<Self, StoreError> {
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
        Ok(Self { file, repository, user, journal, cursor })
    }

    fn take_over(&mut self) -> Result<(), StoreError> {
        let paid: Vec<(String, i64, i64)> = self.journal.rows(
            "SELECT attempt, ended_at, counted FROM attempts WHERE ended_at >= ?1 AND agent <> ?2",
            params![self.cursor, MOCK],
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
        )?;
        let Some(latest) = paid.iter().map(|(_, at, _)| *at).max() else { return Ok(()) };
        self.write(&paid).map_err(|error| failure(&self.file, error))?;
        self.cursor = latest;
        Ok(())
    }

    fn write(&mut self, paid: &[(String, i64, i64)]) -> rusqlite::Result<()> {
        let transaction = self.user.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let insert = "INSERT OR IGNORE INTO spent VALUES (?1, ?2, ?3, ?4)";
        for (attempt, at, counted) in paid {
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
