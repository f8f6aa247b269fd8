//! A journal whose bytes are not what was written.
//!
//! SQLite notices some of it by itself, and most when it is asked to look at every page. What it
//! cannot notice is a changed byte inside a value, and one of those would be a fact that never was:
//! so each event is written with a sum of its own.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::{Error, ErrorCode};

use super::JournalError;
use super::newest::{self, Newest};
use super::schema::connect;
use crate::store::room::naming;

const MARK: &str = ".corrupt-";
/// The database, and what is kept beside it.
const PARTS: [&str; 4] = ["", "-wal", "-shm", newest::ENDING];

impl JournalError {
    pub(in crate::store) fn reading(error: Error) -> Self {
        if is_damage(&error) { Self::Damaged(error.to_string()) } else { Self::Read(error) }
    }

    pub(in crate::store) fn writing(error: Error) -> Self {
        if is_damage(&error) { Self::Damaged(error.to_string()) } else { Self::Write(error) }
    }
}

pub(super) fn is_damage(error: &Error) -> bool {
    match error {
        Error::SqliteFailure(failure, _) => {
            matches!(failure.code, ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)
        }
        // Tables that this program made hold what it put there.
        Error::FromSqlConversionFailure(..)
        | Error::InvalidColumnType(..)
        | Error::IntegralValueOutOfRange(..)
        | Error::Utf8Error(..)
        | Error::SqlInputError { .. } => true,
        _ => false,
    }
}

/// Looks at every page, and for the newest event: one that cannot be found any more is as bad as
/// one that never was.
pub fn require_whole(path: &Path) -> Result<(), JournalError> {
    let newest = Newest::beside(path).read().unwrap_or_default();
    if !path.exists() && newest == 0 {
        return Ok(());
    }
    let connection = connect(path)?;
    let pages: String = connection
        .query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))
        .map_err(JournalError::reading)?;
    if pages != "ok" {
        return Err(JournalError::Damaged(pages));
    }
    let found: i64 = connection
        .query_row("SELECT COALESCE(MAX(seq), 0) FROM events", [], |row| row.get(0))
        .map_err(JournalError::reading)?;
    if found < newest {
        return Err(JournalError::Damaged(format!("{} events are missing", newest - found)));
    }
    Ok(())
}

/// FNV-1a over the parts, each with its length.
pub(super) fn sum(parts: &[&str]) -> i64 {
    let bytes = |part: &&str| {
        let length = (part.len() as u64).to_le_bytes();
        length.into_iter().chain(part.bytes()).collect::<Vec<u8>>()
    };
    let step = |sum: u64, byte: u8| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    parts.iter().flat_map(bytes).fold(0xcbf2_9ce4_8422_2325, step).cast_signed()
}

/// Keeps a damaged journal under another name, so that the next is a new one. Where it is now.
pub fn set_aside(path: &Path, at: i64) -> io::Result<PathBuf> {
    let kept = |part: &str| PathBuf::from(format!("{}{MARK}{at}{part}", path.display()));
    for part in PARTS {
        let mut name = OsString::from(path);
        name.push(part);
        let name = PathBuf::from(name);
        match fs::rename(&name, kept(part)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(naming(&name)(error));
            }
            _ => {}
        }
    }
    Ok(kept(""))
}

/// The journal before this one was damaged.
pub fn was_set_aside(path: &Path) -> bool {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return false };
    let start = format!("{}{MARK}", name.to_string_lossy());
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.into_iter().any(|entry| entry.file_name().to_string_lossy().starts_with(&start))
}

#[cfg(test)]
mod tests {
    use std::ops::RangeInclusive;

    use super::super::{Journal, Scope, SqliteJournal};
    use super::*;
    use crate::core::event::{Event, Recorded, StoryClosed};
    use crate::core::id::StoryId;

    fn scope() -> Scope {
        Scope { backlog: "PRD.json".to_owned(), work_tree: String::new() }
    }

    fn closed(story: &str) -> Event {
        let story = StoryId::try_from(story).unwrap();
        Event::StoryClosed(StoryClosed { attempt: "a".to_owned(), story, commit: "c".to_owned() })
    }

    /// As small as SQLite makes one, so that every byte can have its turn.
    fn small(path: &Path, events: RangeInclusive<i64>) -> SqliteJournal {
        let connection = rusqlite::Connection::open(path).unwrap();
        connection.execute_batch("PRAGMA page_size = 512; VACUUM;").unwrap();
        drop(connection);
        let mut journal = SqliteJournal::open(path, scope()).unwrap();
        for number in events {
            journal.append("r", number, &[closed(&format!("US-00{number}"))]).unwrap();
        }
        journal
    }

    /// Where the system has such a folder: thousands of databases need no disk.
    fn in_memory() -> tempfile::TempDir {
        tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
    }

    /// The database and its log after five events, as a run reads them.
    fn read([database, log]: [&[u8]; 2]) -> Result<Vec<Recorded>, JournalError> {
        let folder = in_memory();
        let path = folder.path().join("journal.db");
        fs::write(&path, database).unwrap();
        fs::write(folder.path().join("journal.db-wal"), log).unwrap();
        Newest::beside(&path).note(5);
        require_whole(&path)?;
        SqliteJournal::open(&path, scope()).and_then(|journal| Ok(journal.read(0)?.0))
    }

    /// At every byte in turn, the file with a bit of it flipped, and what is before it alone.
    fn spoilt(whole: &[u8]) -> impl Iterator<Item = (usize, Vec<u8>)> {
        (0..whole.len()).flat_map(|at| {
            let mut flipped = whole.to_vec();
            flipped[at] ^= 1 << (at % 8);
            [(at, flipped), (at, whole[..at].to_vec())]
        })
    }

    /// Whatever is read is all that was written.
    #[test]
    fn no_byte_that_is_flipped_or_missing_makes_or_hides_a_fact() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.db");
        drop(small(&path, 1..=3));
        let journal = small(&path, 4..=5);
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
    fn a_journal_that_is_gone_is_missed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.db");
        require_whole(&path).unwrap();
        drop(small(&path, 1..=3));
        require_whole(&path).unwrap();
        fs::remove_file(&path).unwrap();
        assert!(matches!(require_whole(&path), Err(JournalError::Damaged(_))));
        set_aside(&path, 7).unwrap();
        require_whole(&path).unwrap();
    }

    #[test]
    fn a_changed_value_is_damage_and_not_a_fact() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.db");
        drop(small(&path, 1..=3));
        let connection = rusqlite::Connection::open(&path).unwrap();
        let change = "UPDATE events SET payload = replace(payload, 'US-002', 'US-009')";
        connection.execute(change, []).unwrap();
        drop(connection);
        let journal = SqliteJournal::open(&path, scope()).unwrap();
        assert!(matches!(journal.read(0), Err(JournalError::Damaged(_))));
    }

    #[test]
    fn a_damaged_journal_is_kept_whole_beside_the_new_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.db");
        for part in PARTS {
            fs::write(format!("{}{part}", path.display()), format!("bad{part}")).unwrap();
        }
        assert!(!was_set_aside(&path));
        let kept = set_aside(&path, 7).unwrap();
        assert_eq!(kept, folder.path().join("journal.db.corrupt-7"));
        assert_eq!(fs::read_to_string(&kept).unwrap(), "bad");
        assert_eq!(fs::read_to_string(format!("{}-wal", kept.display())).unwrap(), "bad-wal");
        assert!(was_set_aside(&path) && !path.exists());
    }
}
