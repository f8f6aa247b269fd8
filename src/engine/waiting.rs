//! Waiting for the service: a limit's end, the end of an outage.

use std::time::Duration;

use jiff::{Timestamp, tz::TimeZone};
use tokio::time::sleep;

use super::Engine;
use super::ports::Notice;

/// The machine may have slept meanwhile, so the clock on the wall is looked at again and again.
const LOOK: Duration = Duration::from_secs(1);

impl Engine {
    pub(super) async fn wait_until(&mut self, at: i64, now: i64) {
        if self.told_wait != Some(at) {
            self.told_wait = Some(at);
            let why = self.state.trouble.as_ref().map_or("", |row| row.error.as_str());
            let text = format!("{why}; waiting until {}", clock_time(at));
            self.notice(Notice::Warning(text));
        }
        let left = Duration::from_millis(u64::try_from(at - now).unwrap_or_default());
        tokio::select! {
            () = sleep(left.min(LOOK)) => {}
            signal = self.signals.next() => self.take_signal(signal),
        }
    }
}

/// With its day, because a limit may last for a week.
fn clock_time(at: i64) -> String {
    let time = Timestamp::from_millisecond(at).unwrap_or(Timestamp::UNIX_EPOCH);
    time.to_zoned(TimeZone::system()).strftime("%a %H:%M:%S").to_string()
}
