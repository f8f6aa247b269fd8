//! The number of the newest event, in a file beside the database.
//!
//! Events of a run lie in SQLite's log until its process ends, and a log that was cut off looks
//! like one that ended there. So what was committed is counted a second time, after the commit: a
//! number that the database does not reach means that events are missing.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use super::damage::sum;
use crate::store::room::keep_private;

pub(super) const ENDING: &str = "-newest";

pub(super) struct Newest {
    path: PathBuf,
}

impl Newest {
    pub fn beside(database: &Path) -> Self {
        let mut path = database.as_os_str().to_owned();
        path.push(ENDING);
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
    use super::*;

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
