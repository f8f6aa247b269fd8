//! Durations as text.

use std::time::Duration;

pub const A_TIME: &str = "a time such as `10m` or `90s`, at most 30 days";
const LONGEST: Duration = Duration::from_hours(30 * 24);

/// `90s`, `10m`, `1h 30m`. None if it is invalid, zero or too long.
pub fn duration(text: &str) -> Option<Duration> {
    let span: jiff::SignedDuration = text.trim().parse().ok()?;
    let duration = Duration::try_from(span).ok()?;
    (!duration.is_zero() && duration <= LONGEST).then_some(duration)
}
