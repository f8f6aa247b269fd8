//! The log of an agent or of gates: never larger than its limit, whatever they print.
//!
//! Up to the limit it is a plain file. Beyond it the first half stays and the second half is a ring
//! buffer. One marker before the ring says how much was left out, and another follows the newest
//! byte, so the log of a killed driver is readable. When the log is finished, the ring is rotated
//! in place.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// The markers must fit.
const SMALLEST: u64 = 1024;
/// The length of every `left_out`.
const MARKER: u64 = 64;
const SEAM: &[u8] = "\n… newest output ends here; older output follows …\n".as_bytes();

/// Appending never fails: the first error is kept for the end, and nothing more is written.
pub struct Log {
    file: io::Result<File>,
    ring: Ring,
}

/// Which bytes go where.
struct Ring {
    limit: u64,
    /// The place of the next byte.
    at: u64,
    /// Bytes that were appended so far.
    total: u64,
    has_wrapped: bool,
}

impl Log {
    /// In an empty file.
    pub fn new(file: io::Result<File>, limit: u64) -> Self {
        let ring = Ring { limit: limit.max(SMALLEST), at: 0, total: 0, has_wrapped: false };
        Self { file, ring }
    }

    pub fn append(&mut self, bytes: &[u8]) {
        if let Ok(file) = &self.file
            && let Err(error) = self.ring.write(file, bytes)
        {
            self.file = Err(error);
        }
    }

    /// Puts the log in order. The error is the first one.
    pub fn finish(self) -> io::Result<()> {
        let file = self.file?;
        if self.ring.has_wrapped { self.ring.unroll(&file) } else { Ok(()) }
    }
}

impl Ring {
    fn write(&mut self, file: &File, bytes: &[u8]) -> io::Result<()> {
        self.total += bytes.len() as u64;
        let mut rest = bytes;
        while !rest.is_empty() {
            if self.at == self.limit {
                self.has_wrapped = true;
                self.at = self.start();
            }
            let room = usize::try_from(self.limit - self.at).unwrap_or(usize::MAX);
            let (now, later) = rest.split_at(rest.len().min(room));
            file.write_all_at(now, self.at)?;
            self.at += now.len() as u64;
            rest = later;
        }
        if self.has_wrapped { self.write_markers(file) } else { Ok(()) }
    }

    fn write_markers(&self, file: &File) -> io::Result<()> {
        let seam = usize::try_from(self.seam_end() - self.at).unwrap_or_default();
        file.write_all_at(SEAM.get(..seam).unwrap_or(SEAM), self.at)?;
        let kept = (self.at - self.start()) + (self.limit - self.seam_end());
        let head = self.limit / 2;
        file.write_all_at(left_out(self.total - head - kept).as_bytes(), head)
    }

    /// Newest, seam, oldest → oldest, newest.
    fn unroll(&self, file: &File) -> io::Result<()> {
        let newest = self.seam_end() - self.start();
        rotate_left(file, self.start()..self.limit, newest, BLOCK)?;
        file.set_len(self.limit - (self.seam_end() - self.at))
    }

    fn start(&self) -> u64 {
        self.limit / 2 + MARKER
    }

    /// At the end of the file the seam is cut off: nothing follows that it would separate.
    fn seam_end(&self) -> u64 {
        (self.at + SEAM.len() as u64).min(self.limit)
    }
}

/// A line of the same length for every number.
fn left_out(bytes: u64) -> String {
    let text = format!("… {bytes} bytes left out …");
    format!("\n{text:<58}\n")
}

/// Held in memory at a time.
const BLOCK: usize = 1024 * 1024;

/// Puts the first `first` bytes of a stretch behind the others, in the file itself: a copy would
/// need space that a limited log does not have. Memory is bounded, and every byte moves a few times
/// at most.
fn rotate_left(file: &File, stretch: Range<u64>, first: u64, block: usize) -> io::Result<()> {
    let Range { mut start, end } = stretch;
    let mut middle = start + first;
    // Equal lengths are exchanged from the front until one part is small enough to be held.
    while (middle - start).min(end - middle) > block as u64 {
        let length = (middle - start).min(end - middle);
        for (offset, size) in pieces(length, block) {
            let (one, other) = (start + offset, middle + offset);
            let (a, b) = (read_at(file, one, size)?, read_at(file, other, size)?);
            file.write_all_at(&b, one)?;
            file.write_all_at(&a, other)?;
        }
        start += length;
        if start == middle {
            middle += length;
        }
    }
    let (left, right) = (middle - start, end - middle);
    if left <= right {
        let held = read_at(file, start, left)?;
        shift(file, middle..end, start, block)?;
        file.write_all_at(&held, start + right)
    } else {
        let held = read_at(file, middle, right)?;
        shift(file, start..middle, start + right, block)?;
        file.write_all_at(&held, start)
    }
}

/// Moves a part of the file, beginning at the side where nothing unmoved is overwritten.
fn shift(file: &File, part: Range<u64>, to: u64, block: usize) -> io::Result<()> {
    for (offset, size) in pieces(part.end - part.start, block) {
        let from = if to < part.start { part.start + offset } else { part.end - offset - size };
        let piece = read_at(file, from, size)?;
        file.write_all_at(&piece, from - part.start + to)?;
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
    use std::path::PathBuf;

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

        fn path(&self) -> PathBuf {
            self.folder.path().join("log")
        }

        fn log(&self) -> Log {
            Log::new(
                File::options()
                    .read(true)
                    .write(true)
                    .create(true)
                    .truncate(true)
                    .open(self.path()),
                LIMIT,
            )
        }

        fn on_disk(&self) -> Vec<u8> {
            fs::read(self.path()).unwrap()
        }

        /// Head and tail of the output, with as much left out between them as the marker says.
        fn is_told_by(&self, bytes: &[u8]) {
            let text = std::str::from_utf8(bytes).unwrap();
            let (head, rest) = text.split_once("\n… ").expect("a marker");
            let (number, rest) = rest.split_once(" bytes left out …").unwrap();
            let (_, tail) = rest.split_once('\n').unwrap();
            assert_eq!(head.as_bytes(), &self.said[..head.len()]);
            assert_eq!(head.len() as u64, LIMIT / 2);
            assert!(self.said.ends_with(tail.as_bytes()), "{tail}");
            let number: usize = number.parse().unwrap();
            assert_eq!(head.len() + number + tail.len(), self.said.len());
            let markers = usize::try_from(MARKER).unwrap() + SEAM.len();
            assert!(tail.len() >= usize::try_from(LIMIT / 2).unwrap() - markers, "{}", tail.len());
        }
    }

    #[test]
    fn up_to_the_limit_the_log_is_the_output() {
        for length in [0, 1, 700, 1024] {
            let sample = Sample::new(length);
            let mut log = sample.log();
            sample.said.chunks(100).for_each(|chunk| log.append(chunk));
            log.finish().unwrap();
            assert_eq!(sample.on_disk(), sample.said);
        }
    }

    #[test]
    fn every_marker_has_the_same_length() {
        for bytes in [0, 7, 123_456_789, u64::MAX] {
            assert_eq!(left_out(bytes).len() as u64, MARKER, "{bytes}");
        }
    }

    #[test]
    fn the_log_of_a_killed_driver_says_how_to_read_it() {
        let sample = Sample::new(2000);
        let mut log = sample.log();
        sample.said.chunks(100).for_each(|chunk| log.append(chunk));
        let left = sample.on_disk();
        drop(log);
        let text = std::str::from_utf8(&left).unwrap();
        let (newest, before) = text.split_once(std::str::from_utf8(SEAM).unwrap()).unwrap();
        let (head, newest) = newest.split_once(" bytes left out …").unwrap();
        assert!(head.contains("\n… "), "{head}");
        let newest = newest.split_once('\n').unwrap().1;
        assert!(sample.said.ends_with(newest.as_bytes()));
        let in_order = format!("{before}{newest}");
        assert!(sample.said.ends_with(in_order.as_bytes()), "{in_order}");
    }

    #[test]
    fn the_first_write_error_is_returned_at_the_end() {
        // Always there, and always full.
        let mut log = Log::new(File::options().write(true).open("/dev/full"), LIMIT);
        log.append(b"lost");
        log.append(b"lost too");
        assert_eq!(log.finish().unwrap_err().kind(), io::ErrorKind::StorageFull);
        let log = Log::new(File::open("/nowhere/at/all"), LIMIT);
        assert_eq!(log.finish().unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    proptest! {
        #[test]
        fn a_long_log_loses_its_middle_and_keeps_to_its_limit(
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
    fn a_stretch_is_rotated_like_a_slice() {
        let file = tempfile::tempfile().unwrap();
        for length in 0..40_u8 {
            for first in 0..=length {
                let mut bytes: Vec<u8> = (0..length + 6).collect();
                file.write_all_at(&bytes, 0).unwrap();
                let stretch = 3..3 + u64::from(length);
                rotate_left(&file, stretch, u64::from(first), 4).unwrap();
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
