//! Which work only reads the human's files, and for how long: a process may leave it at any time.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Almost every scan ends before.
const LONG: Duration = Duration::from_secs(1);

/// When each began, of all threads.
static READING: Mutex<Vec<Instant>> = Mutex::new(Vec::new());

/// Until it is dropped.
pub(super) struct Reading(Instant);

impl Reading {
    pub fn begin() -> Self {
        let began = Instant::now();
        all().push(began);
        Self(began)
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        let mut all = all();
        if let Some(at) = all.iter().position(|began| *began == self.0) {
            all.swap_remove(at);
        }
    }
}

pub fn has_lasted() -> bool {
    all().iter().any(|began| began.elapsed() >= LONG)
}

fn all() -> MutexGuard<'static, Vec<Instant>> {
    READING.lock().unwrap_or_else(PoisonError::into_inner)
}
