//! A journal whose bytes are not what was written.
//!
//! SQLite notices some of it by itself, and most when it is asked to look at every page. What it
//! cannot notice is a changed byte inside a value, and one of those would be a fact that never was:
//! so each event is written with a sum of its own.
//!
//! Events of a run lie in SQLite's log until its process ends, and a log that was cut off looks
//! like one that ended there. So the number of the newest event is written a second time, to a
//! file beside the database: a number that the database does not reach means that events are
//! missing.

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::{fs, io};

use rusqlite::{Connection, Error, ErrorCode};

use crate::store::error::{Problem, StoreError};
use crate::store::files::{keep_private, naming};

const MARK: &str = ".corrupt-";
const NEWEST: &str = "-newest";
/// The database, and what is kept beside it.
const PARTS: [&str; 4] = ["", "-wal", "-shm", NEWEST];

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
pub fn check(connection: &Connection, newest: i64) -> Result<(), StoreError> {
    let pages: String =
        connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0)).map_err(reading)?;
    if pages != "ok" {
        return Err(Problem::Damaged(pages).into());
    }
    let found: i64 = connection
        .query_row("SELECT COALESCE(MAX(seq), 0) FROM events", [], |row| row.get(0))
        .map_err(reading)?;
    if found < newest {
        return Err(Problem::Damaged(format!("{} events are missing", newest - found)).into());
    }
    Ok(())
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

/// The file with the number of the newest event.
pub struct Newest {
    path: PathBuf,
}

impl Newest {
    pub fn beside(database: &Path) -> Self {
        let mut path = database.as_os_str().to_owned();
        path.push(NEWEST);
        Self { path: path.into() }
    }

    /// Always of the same length and written at once, so that a kill leaves the old or the new one.
    /// Not synced, and without it there is only less to notice.
    pub fn note(&self, seq: i64) {
        let _ = keep_private(&self.path).and_then(|mut file| file.write_all(line(seq).as_bytes()));
    }

    /// None: not known, or not to be believed.
    pub fn read(&self) -> Option<i64> {
        let text = fs::read_to_string(&self.path).ok()?;
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

    use super::*;
    use crate::model::{Event, Recorded, StoryClosed, StoryId};
    use crate::store::{Journal, SqliteJournal, Store, StorePlace};

    const PRD: &str = "PRD.json";

    fn store_in(folder: &Path) -> Store {
        Store::new(StorePlace::in_folder(folder))
    }

    fn closed(story: &str) -> Event {
        let story = StoryId::try_from(story).unwrap();
        Event::StoryClosed(StoryClosed { attempt: "a".to_owned(), story, commit: "c".to_owned() })
    }

    /// As small as SQLite makes one, so that every byte can have its turn.
    fn small(folder: &Path, events: RangeInclusive<i64>) -> SqliteJournal {
        let connection = Connection::open(folder.join("journal.db")).unwrap();
        connection.execute_batch("PRAGMA page_size = 512; VACUUM;").unwrap();
        drop(connection);
        let mut journal = store_in(folder).journal(PRD).unwrap();
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
    fn read([database, log]: [&[u8]; 2]) -> Result<Vec<Recorded>, StoreError> {
        let folder = in_memory();
        let path = folder.path().join("journal.db");
        fs::write(&path, database).unwrap();
        fs::write(folder.path().join("journal.db-wal"), log).unwrap();
        Newest::beside(&path).note(5);
        let store = store_in(folder.path());
        store.check()?;
        Ok(store.journal(PRD)?.read(0)?.0)
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
    fn a_journal_that_is_gone_is_missed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.db");
        store_in(folder.path()).check().unwrap();
        drop(small(folder.path(), 1..=3));
        store_in(folder.path()).check().unwrap();
        fs::remove_file(&path).unwrap();
        let store = store_in(folder.path());
        assert!(store.check().unwrap_err().is_damage());
        store.set_aside(7).unwrap();
        store.check().unwrap();
    }

    #[test]
    fn a_changed_value_is_damage_and_not_a_fact() {
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

    #[test]
    fn a_number_is_read_back_and_a_spoilt_one_is_not_believed() {
        let folder = tempfile::tempdir().unwrap();
        let newest = Newest::beside(&folder.path().join("journal.db"));
        assert_eq!(newest.read(), None);
        for seq in [12, 7, 1_234_567] {
            newest.note(seq);
            assert_eq!(newest.read(), Some(seq));
        }
        let whole = fs::read(&newest.path).unwrap();
        for at in 0..whole.len() {
            let mut flipped = whole.clone();
            flipped[at] ^= 1;
            for bytes in [&flipped[..], &whole[..at]] {
                fs::write(&newest.path, bytes).unwrap();
                assert_eq!(newest.read(), None, "byte {at}");
            }
        }
    }
}
