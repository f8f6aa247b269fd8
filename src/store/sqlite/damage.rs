//! Detects a damaged journal and renames it.
//!
//! SQLite notices some damage by itself, and most if it checks every page. It cannot notice a
//! changed byte inside a value, which would be a false fact: so each event has a checksum, which
//! covers the one of the event before it. That shows accidents and simple tampering; the checksum
//! is no secret, so a program that knows ralph can write a journal that looks right.
//!
//! Events of a run are in SQLite's log until its process ends, and a truncated log looks like one
//! that ended there. So the number of the newest event is also in a file next to the database: if
//! the database has only lower numbers, events are missing.

use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use rusqlite::ffi::SQLITE_ERROR;
use rusqlite::{Connection, Error, ErrorCode};

use crate::files::atomic::{keep_private, naming};
use crate::files::nofollow;
use crate::store::{Problem, Result};

use super::Database;

const MARK: &str = ".corrupt-";
const NEWEST: &str = "-newest";
const LONGEST_LINE: u64 = 100;
/// The database and the files next to it.
const PARTS: [&str; 5] = ["", "-wal", "-shm", "-journal", NEWEST];

pub fn reading(error: Error) -> Problem {
    if is_damage(&error) { Problem::Damaged(error.to_string()) } else { Problem::Read(error) }
}

pub fn writing(error: Error) -> Problem {
    if is_damage(&error) { Problem::Damaged(error.to_string()) } else { Problem::Write(error) }
}

fn is_damage(error: &Error) -> bool {
    match error {
        Error::SqliteFailure(failure, _) => {
            matches!(failure.code, ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)
                || failure.extended_code == SQLITE_ERROR
        }
        // The tables are, and contain, only what this program put there.
        Error::FromSqlConversionFailure(..)
        | Error::InvalidColumnType(..)
        | Error::IntegralValueOutOfRange(..)
        | Error::Utf8Error(..)
        | Error::SqlInputError { .. } => true,
        _ => false,
    }
}

impl Database {
    /// Checks every page, and that the newest event is there.
    pub fn check(&self, newest: i64) -> Result<()> {
        let pages: Vec<String> = self.rows("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
        if pages != ["ok"] {
            return Err(Problem::Damaged(pages.concat()).into());
        }
        let last = "SELECT COALESCE(MAX(seq), 0) FROM events";
        let last: i64 = self.rows(last, [], |row| row.get(0))?.pop().unwrap_or_default();
        if last < newest {
            return Err(Problem::Damaged(format!("{} events are missing", newest - last)).into());
        }
        Ok(())
    }
}

/// All that the database consists of.
const NAMES: [&str; 13] = [
    "attempts",
    "attempts_by_end",
    "attempts_by_run",
    "events",
    "events_by_scope",
    "questions",
    "questions_by_story",
    "remembered",
    "runs",
    "snapshots",
    "trust",
    "usage",
    "wishes",
];

/// A table, index, trigger or view that no ralph of this version made.
pub fn foreign(connection: &Connection) -> rusqlite::Result<Option<String>> {
    let mut query = connection.prepare_cached("SELECT type, name FROM sqlite_master")?;
    let mut rows = query.query([])?;
    while let Some(row) = rows.next()? {
        let (kind, name): (String, String) = (row.get(0)?, row.get(1)?);
        let is_known = NAMES.contains(&name.as_str()) || name.starts_with("sqlite_");
        if !is_known || !matches!(kind.as_str(), "table" | "index") {
            return Ok(Some(name));
        }
    }
    Ok(None)
}

/// FNV-1a over the parts, each with its length.
pub fn sum(parts: &[&str]) -> i64 {
    let step = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    let add = |sum: u64, part: &&str| {
        let length = (part.len() as u64).to_le_bytes();
        part.as_bytes().iter().fold(length.iter().fold(sum, step), step)
    };
    parts.iter().fold(0xcbf2_9ce4_8422_2325, add).cast_signed()
}

/// A file next to the database.
pub fn with_suffix(database: &Path, suffix: &str) -> PathBuf {
    let mut path = database.as_os_str().to_owned();
    path.push(suffix);
    path.into()
}

/// Keeps a damaged journal under another name, so that the next one is new. Returns its path.
pub fn rename_damaged(path: &Path, at: i64) -> io::Result<PathBuf> {
    let kept = PathBuf::from(format!("{}{MARK}{at}", path.display()));
    for part in PARTS {
        let old = with_suffix(path, part);
        match nofollow::rename(&old, &with_suffix(&kept, part)) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(naming(&old)(error)),
            _ => {}
        }
    }
    Ok(kept)
}

/// An earlier journal was damaged.
pub fn was_damaged(path: &Path) -> bool {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return false };
    let start = format!("{}{MARK}", name.to_string_lossy());
    let entries = nofollow::list(folder).unwrap_or_default();
    entries.iter().any(|entry| entry.name.to_string_lossy().starts_with(&start))
}

/// The file with the number of the newest event.
pub struct Newest(PathBuf);

impl Newest {
    pub fn of(database: &Path) -> Self {
        Self(with_suffix(database, NEWEST))
    }

    /// Always of the same length and written at once, so a kill leaves the old or the new one. Not
    /// synced: without it, less damage is noticed.
    pub fn note(&self, seq: i64) {
        let _ = keep_private(&self.0).and_then(|mut file| file.write_all(line(seq).as_bytes()));
    }

    /// None: unknown or damaged.
    pub fn read(&self) -> Option<i64> {
        let text = nofollow::read_text(&self.0, LONGEST_LINE).ok()?;
        let seq = text.split(' ').next()?.parse().ok()?;
        (text == line(seq)).then_some(seq)
    }
}

fn line(seq: i64) -> String {
    let number = format!("{seq:020}");
    let sum = sum(&[&number]).cast_unsigned();
    format!("{number} {sum:016x}\n")
}

#[cfg(test)]
mod tests {
    use std::ops::RangeInclusive;

    use std::fs;

    use super::*;
    use crate::model::{Event, Recorded, StoryClosed, StoryId};
    use crate::store::{Journal, Store, StoreCheck, StorePlace};

    const PRD: &str = "PRD.json";

    fn store_in(folder: &Path) -> Store {
        Store::new(StorePlace::in_folder(folder))
    }

    fn closed(story: &str) -> Event {
        let story = StoryId::try_from(story).unwrap();
        Event::StoryClosed(StoryClosed {
            attempt: "a".to_owned(),
            story,
            commit: "c".to_owned(),
            change: None,
        })
    }

    /// As small as SQLite makes one, so that every byte can be tried.
    fn small(folder: &Path, events: RangeInclusive<i64>) -> impl Journal + use<> {
        let connection = Connection::open(folder.join("journal.db")).unwrap();
        connection.execute_batch("PRAGMA page_size = 512; VACUUM;").unwrap();
        drop(connection);
        let mut journal = store_in(folder).journal(PRD).unwrap();
        for number in events {
            journal.append("r", number, &[closed(&format!("US-00{number}"))]).unwrap();
        }
        journal
    }

    /// If the system has such a folder, thousands of databases need no disk.
    fn in_memory() -> tempfile::TempDir {
        tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
    }

    /// The database and its log after five events, as a run reads them.
    fn read([database, log]: [&[u8]; 2]) -> Result<Vec<Recorded>> {
        let folder = in_memory();
        let path = folder.path().join("journal.db");
        fs::write(&path, database).unwrap();
        fs::write(folder.path().join("journal.db-wal"), log).unwrap();
        Newest::of(&path).note(5);
        let store = store_in(folder.path());
        store.start_check()?.finish()?;
        Ok(store.journal(PRD)?.read(0)?.0)
    }

    /// For bytes all over the file, other ones each time, or for all of them: the file with a bit
    /// flipped, and the file cut off there.
    fn spoilt(whole: &[u8]) -> impl Iterator<Item = (usize, Vec<u8>)> {
        let is_all = std::env::var("RALPH_FAULTS").is_ok_and(|which| which == "all");
        let apart = if is_all { 1 } else { 8 };
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        let first = now.subsec_micros() as usize % apart;
        (first..whole.len()).step_by(apart).flat_map(move |at| {
            let mut flipped = whole.to_vec();
            flipped[at] ^= 1 << (at / apart % 8);
            [(at, flipped), (at, whole[..at].to_vec())]
        })
    }

    /// Either reading fails, or all events are read.
    #[test]
    fn no_flipped_or_missing_byte_makes_or_hides_an_event() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.db");
        drop(small(folder.path(), 1..=3));
        let journal = small(folder.path(), 4..=5);
        let written = journal.read(0).unwrap().0;
        let database = fs::read(&path).unwrap();
        let log = fs::read(folder.path().join("journal.db-wal")).unwrap();
        drop(journal);
        let whole = fs::read(&path).unwrap();
        assert_eq!(read([&database, &log]).unwrap(), written);
        let flipped_or_cut = spoilt(&whole).map(|(at, bytes)| (at, [bytes, Vec::new()]));
        let with_a_log = spoilt(&log).map(|(at, bytes)| (at, [database.clone(), bytes]));
        for (at, [database, log]) in flipped_or_cut.chain(with_a_log) {
            if let Ok(events) = read([&database, &log]) {
                assert_eq!(events, written, "at {at} of {} and {}", database.len(), log.len());
            }
        }
    }

    #[test]
    fn a_missing_journal_is_damage() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.db");
        store_in(folder.path()).start_check().unwrap().finish().unwrap();
        drop(small(folder.path(), 1..=3));
        store_in(folder.path()).start_check().unwrap().finish().unwrap();
        fs::remove_file(&path).unwrap();
        let store = store_in(folder.path());
        assert!(store.start_check().and_then(StoreCheck::finish).unwrap_err().is_damage());
        store.rename_damaged(7).unwrap();
        store.start_check().unwrap().finish().unwrap();
    }

    #[test]
    fn a_changed_value_is_damage() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.db");
        drop(small(folder.path(), 1..=3));
        let connection = Connection::open(&path).unwrap();
        let change = "UPDATE events SET payload = replace(payload, 'US-002', 'US-009')";
        connection.execute(change, []).unwrap();
        drop(connection);
        let journal = store_in(folder.path()).journal(PRD).unwrap();
        assert!(journal.read(0).unwrap_err().is_damage());
    }

    /// A trigger would write what an agent wants with the driver's own statements.
    #[test]
    fn what_no_ralph_made_is_damage_and_does_nothing() {
        for planted in [
            "CREATE TRIGGER t AFTER INSERT ON events BEGIN DELETE FROM trust; END",
            "CREATE VIEW v AS SELECT * FROM trust",
            "CREATE TABLE other (x)",
            "CREATE INDEX i ON trust (text)",
        ] {
            let folder = tempfile::tempdir().unwrap();
            let mut journal = small(folder.path(), 1..=1);
            let store = store_in(folder.path());
            let answers = store.answers().unwrap();
            answers.trust(1, [("gate", "true")].into_iter()).unwrap();
            Connection::open(folder.path().join("journal.db"))
                .unwrap()
                .execute(planted, [])
                .unwrap();
            journal.append("r", 2, &[closed("US-002")]).unwrap();
            assert!(answers.all().unwrap().is_trusted("gate", "true"), "{planted}");
            let opened = store_in(folder.path()).journal(PRD);
            assert!(opened.err().is_some_and(|error| error.is_damage()), "{planted}");
        }
    }

    #[test]
    fn a_damaged_journal_is_kept_with_all_its_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.db");
        for part in PARTS {
            fs::write(format!("{}{part}", path.display()), format!("bad{part}")).unwrap();
        }
        assert!(!was_damaged(&path));
        let kept = rename_damaged(&path, 7).unwrap();
        assert_eq!(kept, folder.path().join("journal.db.corrupt-7"));
        assert_eq!(fs::read_to_string(&kept).unwrap(), "bad");
        assert_eq!(fs::read_to_string(format!("{}-wal", kept.display())).unwrap(), "bad-wal");
        assert!(was_damaged(&path) && !path.exists());
    }

    #[test]
    fn a_damaged_number_is_not_trusted() {
        let folder = tempfile::tempdir().unwrap();
        let newest = Newest::of(&folder.path().join("journal.db"));
        assert_eq!(newest.read(), None);
        for seq in [12, 7, 1_234_567] {
            newest.note(seq);
            assert_eq!(newest.read(), Some(seq));
        }
        let whole = fs::read(&newest.0).unwrap();
        for at in 0..whole.len() {
            let mut flipped = whole.clone();
            flipped[at] ^= 1;
            for bytes in [&flipped[..], &whole[..at]] {
                fs::write(&newest.0, bytes).unwrap();
                assert_eq!(newest.read(), None, "byte {at}");
            }
        }
    }
}
