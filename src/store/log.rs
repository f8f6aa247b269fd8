//! The log of one iteration: never larger than its limit, whatever the agent prints.
//!
//! Up to the limit it is a plain file. From there on its first half stays as it is
//! and the rest is a ring: what is new overwrites what is oldest there. In front of
//! the ring stands how much was left out, and behind the newest byte where it ends,
//! so that the file of a driver that was killed can be read as it is. When the log
//! is finished, the ring is put in order.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::files::private_file;

/// So that the marks find room beside what they mark.
const SMALLEST: u64 = 1024;
/// As long as every `left_out`.
const MARK: u64 = 64;
const SEAM: &[u8] = "\n… the newest ends here, below is what came before it …\n".as_bytes();

/// Never fails whoever writes: what went wrong first is kept to be told, and nothing more is
/// written.
pub struct Log {
    file: Option<File>,
    problem: Option<io::Error>,
    limit: u64,
    /// Where the next byte goes.
    at: u64,
    /// Everything that was ever appended.
    total: u64,
    is_ring: bool,
}

impl Log {
    pub fn create(path: &Path, limit: u64) -> Self {
        let (file, problem) = match private_file(path) {
            Ok(file) => (Some(file), None),
            Err(error) => (None, Some(error)),
        };
        Self { file, problem, limit: limit.max(SMALLEST), at: 0, total: 0, is_ring: false }
    }

    pub fn append(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        self.attempt(|log, file| log.write(file, bytes));
    }

    /// Puts the log in order, and says what went wrong with it, if anything did.
    pub fn finish(mut self) -> Result<(), io::Error> {
        if self.is_ring {
            self.attempt(|log, file| log.unroll(file));
        }
        self.problem.map_or(Ok(()), Err)
    }

    fn attempt(&mut self, work: impl FnOnce(&mut Self, &File) -> io::Result<()>) {
        let Some(file) = self.file.take() else { return };
        match work(self, &file) {
            Ok(()) => self.file = Some(file),
            Err(error) => self.problem = Some(error),
        }
    }

    fn write(&mut self, file: &File, bytes: &[u8]) -> io::Result<()> {
        let mut rest = bytes;
        while !rest.is_empty() {
            if self.at == self.limit {
                self.is_ring = true;
                self.at = self.ring_start();
            }
            let room = usize::try_from(self.limit - self.at).unwrap_or(usize::MAX);
            let (now, later) = rest.split_at(rest.len().min(room));
            file.write_all_at(now, self.at)?;
            self.at += now.len() as u64;
            rest = later;
        }
        if self.is_ring { self.write_marks(file) } else { Ok(()) }
    }

    fn write_marks(&self, file: &File) -> io::Result<()> {
        let seam = usize::try_from(self.seam_end() - self.at).unwrap_or_default();
        file.write_all_at(SEAM.get(..seam).unwrap_or(SEAM), self.at)?;
        let kept = (self.at - self.ring_start()) + (self.limit - self.seam_end());
        file.write_all_at(left_out(self.total - self.head() - kept).as_bytes(), self.head())
    }

    /// Newest, seam, oldest → oldest, newest.
    fn unroll(&self, file: &File) -> io::Result<()> {
        let newest = self.seam_end() - self.ring_start();
        rotate_left(file, self.ring_start()..self.limit, newest)?;
        file.set_len(self.limit - (self.seam_end() - self.at))
    }

    fn head(&self) -> u64 {
        self.limit / 2
    }

    fn ring_start(&self) -> u64 {
        self.head() + MARK
    }

    /// At the end of the file there may be no room for all of it, and nothing behind it to mark.
    fn seam_end(&self) -> u64 {
        (self.at + SEAM.len() as u64).min(self.limit)
    }
}

/// A line of its own, of one length for every number.
fn left_out(bytes: u64) -> String {
    let text = format!("… {bytes} bytes were left out here …");
    format!("\n{text:<58}\n")
}

/// What is held in memory at a time.
const BLOCK: usize = 1024 * 1024;

/// Puts the first `first` bytes of a stretch behind the others, in the file itself: a copy would
/// need the room that a capped log does not have. Memory is bounded, and every byte is moved a few
/// times at most.
fn rotate_left(file: &File, stretch: Range<u64>, first: u64) -> io::Result<()> {
    rotate_by(file, stretch, first, BLOCK)
}

fn rotate_by(file: &File, stretch: Range<u64>, first: u64, block: usize) -> io::Result<()> {
    let (mut start, mut left) = (stretch.start, first);
    let mut right = stretch.end - stretch.start - first;
    let small = block as u64;
    // Equal lengths are exchanged from the front until one part is small enough to be held.
    while left > small && right > small {
        let length = left.min(right);
        exchange(file, start, start + left, length, block)?;
        start += length;
        if left <= right {
            right -= length;
        } else {
            left -= length;
        }
    }
    if left <= right {
        let held = read_at(file, start, left)?;
        move_down(file, start + left..start + left + right, left, block)?;
        file.write_all_at(&held, start + right)
    } else {
        let held = read_at(file, start + left, right)?;
        move_up(file, start..start + left, right, block)?;
        file.write_all_at(&held, start)
    }
}

fn exchange(file: &File, one: u64, other: u64, length: u64, block: usize) -> io::Result<()> {
    for (offset, size) in pieces(length, block) {
        let (a, b) = (read_at(file, one + offset, size)?, read_at(file, other + offset, size)?);
        file.write_all_at(&b, one + offset)?;
        file.write_all_at(&a, other + offset)?;
    }
    Ok(())
}

fn move_down(file: &File, part: Range<u64>, by: u64, block: usize) -> io::Result<()> {
    for (offset, size) in pieces(part.end - part.start, block) {
        let piece = read_at(file, part.start + offset, size)?;
        file.write_all_at(&piece, part.start + offset - by)?;
    }
    Ok(())
}

/// From the end, so that nothing is overwritten before it was moved.
fn move_up(file: &File, part: Range<u64>, by: u64, block: usize) -> io::Result<()> {
    for (offset, size) in pieces(part.end - part.start, block) {
        let from = part.end - offset - size;
        let piece = read_at(file, from, size)?;
        file.write_all_at(&piece, from + by)?;
    }
    Ok(())
}

/// Offset and size of each block of a length.
fn pieces(length: u64, block: usize) -> impl Iterator<Item = (u64, u64)> {
    (0..length).step_by(block).map(move |offset| (offset, (length - offset).min(block as u64)))
}

fn read_at(file: &File, at: u64, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(length).map_err(io::Error::other)?];
    file.read_exact_at(&mut bytes, at)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::fs;

    const LIMIT: u64 = SMALLEST;

    struct Sample {
        folder: tempfile::TempDir,
        said: Vec<u8>,
    }

    impl Sample {
        fn new(length: usize) -> Self {
            let said = (0..length).map(|number| b'a' + u8::try_from(number % 23).unwrap());
            Self { folder: tempfile::tempdir().unwrap(), said: said.collect() }
        }

        fn log(&self) -> Log {
            Log::create(&self.folder.path().join("log"), LIMIT)
        }

        fn on_disk(&self) -> Vec<u8> {
            fs::read(self.folder.path().join("log")).unwrap()
        }

        /// Head and tail of what was said, with as much left out between as the mark says.
        fn is_told_by(&self, bytes: &[u8]) {
            let text = std::str::from_utf8(bytes).unwrap();
            let (head, rest) = text.split_once("\n… ").expect("a mark");
            let (number, rest) = rest.split_once(" bytes were left out here …").unwrap();
            let (_, tail) = rest.split_once('\n').unwrap();
            assert_eq!(head.as_bytes(), &self.said[..head.len()]);
            assert_eq!(head.len() as u64, LIMIT / 2);
            assert!(self.said.ends_with(tail.as_bytes()), "{tail}");
            let number: usize = number.parse().unwrap();
            assert_eq!(head.len() + number + tail.len(), self.said.len());
            let marks = usize::try_from(MARK).unwrap() + SEAM.len();
            assert!(tail.len() >= usize::try_from(LIMIT / 2).unwrap() - marks, "{}", tail.len());
        }
    }

    #[test]
    fn up_to_the_limit_it_is_what_was_said() {
        for length in [0, 1, 700, 1024] {
            let sample = Sample::new(length);
            let mut log = sample.log();
            sample.said.chunks(100).for_each(|chunk| log.append(chunk));
            log.finish().unwrap();
            assert_eq!(sample.on_disk(), sample.said);
        }
    }

    #[test]
    fn every_mark_is_as_long_as_its_place() {
        for bytes in [0, 7, 123_456_789, u64::MAX] {
            assert_eq!(left_out(bytes).len() as u64, MARK, "{bytes}");
        }
    }

    #[test]
    fn what_a_killed_driver_leaves_says_how_to_read_it() {
        let sample = Sample::new(2000);
        let mut log = sample.log();
        sample.said.chunks(100).for_each(|chunk| log.append(chunk));
        let left = sample.on_disk();
        drop(log);
        let text = std::str::from_utf8(&left).unwrap();
        let (newest, before) = text.split_once(std::str::from_utf8(SEAM).unwrap()).unwrap();
        let (head, newest) = newest.split_once(" bytes were left out here …").unwrap();
        assert!(head.contains("\n… "), "{head}");
        let newest = newest.split_once('\n').unwrap().1;
        assert!(sample.said.ends_with(newest.as_bytes()));
        let in_order = format!("{before}{newest}");
        assert!(sample.said.ends_with(in_order.as_bytes()), "{in_order}");
    }

    #[test]
    fn what_cannot_be_written_is_told_at_the_end() {
        // Always there, and always full.
        let mut log = Log::create(Path::new("/dev/full"), LIMIT);
        log.append(b"lost");
        log.append(b"lost too");
        assert_eq!(log.finish().unwrap_err().kind(), io::ErrorKind::StorageFull);
        let log = Log::create(Path::new("/nowhere/at/all"), LIMIT);
        assert_eq!(log.finish().unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    proptest! {
        #[test]
        fn the_middle_is_cut_and_the_disk_is_spared(
            length in 1025_usize..6000,
            chunk in 1_usize..1500,
        ) {
            let sample = Sample::new(length);
            let mut log = sample.log();
            for chunk in sample.said.chunks(chunk) {
                log.append(chunk);
                prop_assert!(sample.on_disk().len() as u64 <= LIMIT);
            }
            log.finish().unwrap();
            sample.is_told_by(&sample.on_disk());
        }
    }

    #[test]
    fn a_stretch_is_rotated_as_a_slice_is() {
        let file = tempfile::tempfile().unwrap();
        for length in 0..40_u8 {
            for first in 0..=length {
                let mut bytes: Vec<u8> = (0..length + 6).collect();
                file.write_all_at(&bytes, 0).unwrap();
                let stretch = 3..3 + u64::from(length);
                rotate_by(&file, stretch, u64::from(first), 4).unwrap();
                bytes[3..3 + usize::from(length)].rotate_left(usize::from(first));
                assert_eq!(
                    read_at(&file, 0, bytes.len() as u64).unwrap(),
                    bytes,
                    "{length} {first}"
                );
            }
        }
    }
}
