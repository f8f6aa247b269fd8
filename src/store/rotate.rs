//! Exchanges the two parts of a stretch of a file, in the file itself.
//!
//! A copy beside it would need the room that a capped log does not have. Memory is
//! bounded, and every byte is moved a few times at most.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// What is held in memory at a time.
const BLOCK: usize = 1024 * 1024;

/// Puts the first `first` bytes of the stretch behind the others.
pub fn rotate_left(file: &File, stretch: Range<u64>, first: u64) -> io::Result<()> {
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
        let held = read(file, start, left)?;
        move_down(file, start + left..start + left + right, left, block)?;
        file.write_all_at(&held, start + right)
    } else {
        let held = read(file, start + left, right)?;
        move_up(file, start..start + left, right, block)?;
        file.write_all_at(&held, start)
    }
}

fn exchange(file: &File, one: u64, other: u64, length: u64, block: usize) -> io::Result<()> {
    for (offset, size) in pieces(length, block) {
        let (a, b) = (read(file, one + offset, size)?, read(file, other + offset, size)?);
        file.write_all_at(&b, one + offset)?;
        file.write_all_at(&a, other + offset)?;
    }
    Ok(())
}

fn move_down(file: &File, part: Range<u64>, by: u64, block: usize) -> io::Result<()> {
    for (offset, size) in pieces(part.end - part.start, block) {
        let piece = read(file, part.start + offset, size)?;
        file.write_all_at(&piece, part.start + offset - by)?;
    }
    Ok(())
}

/// From the end, so that nothing is overwritten before it was moved.
fn move_up(file: &File, part: Range<u64>, by: u64, block: usize) -> io::Result<()> {
    for (offset, size) in pieces(part.end - part.start, block) {
        let from = part.end - offset - size;
        let piece = read(file, from, size)?;
        file.write_all_at(&piece, from + by)?;
    }
    Ok(())
}

/// Offset and size of each block of a length.
fn pieces(length: u64, block: usize) -> impl Iterator<Item = (u64, u64)> {
    (0..length).step_by(block).map(move |offset| (offset, (length - offset).min(block as u64)))
}

fn read(file: &File, at: u64, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(length).map_err(io::Error::other)?];
    file.read_exact_at(&mut bytes, at)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_does_what_a_slice_does() {
        let file = tempfile::tempfile().unwrap();
        for length in 0..40_u8 {
            for first in 0..=length {
                let mut bytes: Vec<u8> = (0..length + 6).collect();
                file.write_all_at(&bytes, 0).unwrap();
                let stretch = 3..3 + u64::from(length);
                rotate_by(&file, stretch, u64::from(first), 4).unwrap();
                bytes[3..3 + usize::from(length)].rotate_left(usize::from(first));
                assert_eq!(read(&file, 0, bytes.len() as u64).unwrap(), bytes, "{length} {first}");
            }
        }
    }
}
