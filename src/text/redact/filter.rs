//! Finds the few places where a secret may begin, fast.
//!
//! Every other place is enough: a start of four bytes is found by its first three bytes
//! or, one place further, by its last three. A hit is checked again with all four. Both
//! checks use hash tables, so there are false positives but no misses.

/// The last bytes of a text, fewer than this, cannot be checked.
pub const WIDTH: usize = 5;

type Table = Box<[bool; 1 << 16]>;

pub struct Filter {
    /// Three adjacent bytes of the first four of a start.
    threes: Table,
    /// The first four bytes of a start.
    fours: Table,
}

impl Filter {
    /// Of starts with three bytes or more.
    pub fn new<'a>(starts: impl Iterator<Item = &'a [u8]>) -> Self {
        let (mut threes, mut fours) = (Box::new([false; 1 << 16]), Box::new([false; 1 << 16]));
        for start in starts {
            let &[a, b, c, ref rest @ ..] = start else { continue };
            // After a start of three bytes, any byte that is not blank.
            for d in rest.first().map_or(b'!'..=b'~', |d| *d..=*d) {
                threes[hash_of_three([a, b, c, 0])] = true;
                threes[hash_of_three([b, c, d, 0])] = true;
                fours[hash([a, b, c, d])] = true;
            }
        }
        Self { threes, fours }
    }

    /// The first place at or after `from` whose four bytes may begin a secret.
    pub fn next(&self, bytes: &[u8], from: usize) -> Option<usize> {
        let mut at = from;
        loop {
            let twos = bytes.get(at..)?.as_chunks().0;
            let mut places = twos.array_windows().map(|[[a, b], [c, d]]| [*a, *b, *c, *d]);
            at += 2 * places.position(|four| self.threes[hash_of_three(four)])?;
            let found = [at.wrapping_sub(1), at].into_iter().find(|place| {
                let four = bytes.get(*place..).and_then(<[u8]>::first_chunk);
                *place >= from && four.is_some_and(|four| self.fours[hash(*four)])
            });
            if found.is_some() {
                return found;
            }
            at += 2;
        }
    }
}

fn hash(bytes: [u8; 4]) -> usize {
    (u32::from_le_bytes(bytes).wrapping_mul(0x9E37_79B1) >> 16) as usize
}

/// Four are read at once; the last does not count.
fn hash_of_three(bytes: [u8; 4]) -> usize {
    ((u32::from_le_bytes(bytes) << 8).wrapping_mul(0x9E37_79B1) >> 16) as usize
}
