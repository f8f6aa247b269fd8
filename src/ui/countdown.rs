//! How long the run still waits, in words.

use jiff::tz::TimeZone;

use super::figures::{clock, whole_seconds};
use crate::core::pause::WaitFor;
use crate::engine::ports::Wait;

/// `Waiting for the usage limit · 4h12m left, until Tue 03:10 · Enter tries now`, short enough for
/// 80 columns.
pub fn text(wait: &Wait, keys: bool, now: i64, zone: &TimeZone) -> String {
    let what = match wait.what {
        WaitFor::Limit => "the usage limit",
        WaitFor::Service => "the service",
        WaitFor::Retry => "the next try",
        WaitFor::CoolDown => "the pause to end",
        WaitFor::Budget => "the budget",
    };
    let ms = u64::try_from(wait.until.saturating_sub(now)).unwrap_or_default();
    let left = whole_seconds(ms.div_ceil(1000));
    let until = clock(wait.until, zone, "%a %H:%M");
    let hint = if keys { " · Enter tries now" } else { "" };
    format!("Waiting for {what} · {left} left, until {until}{hint}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::wrap::width;

    /// A Thursday.
    const UNTIL: i64 = (3 * 3600 + 10 * 60) * 1000;

    fn show(what: WaitFor, left_ms: i64, keys: bool) -> String {
        let wait = Wait { what, error: "e".into(), until: UNTIL };
        text(&wait, keys, UNTIL - left_ms, &TimeZone::UTC)
    }

    #[test]
    fn a_wait_says_for_what_how_long_and_how_to_end_it() {
        for (what, left_ms, keys, shown) in [
            (
                WaitFor::Limit,
                (4 * 60 + 12) * 60_000,
                true,
                "Waiting for the usage limit · 4h12m left, until Thu 03:10 · Enter tries now",
            ),
            (
                WaitFor::Limit,
                61_001,
                false,
                "Waiting for the usage limit · 1m02s left, until Thu 03:10",
            ),
            (WaitFor::Service, 1, false, "Waiting for the service · 1s left, until Thu 03:10"),
            (WaitFor::Retry, 0, false, "Waiting for the next try · 0s left, until Thu 03:10"),
            (
                WaitFor::CoolDown,
                -5_000,
                false,
                "Waiting for the pause to end · 0s left, until Thu 03:10",
            ),
        ] {
            assert_eq!(show(what, left_ms, keys), shown);
        }
        for (what, hours) in [(WaitFor::Limit, 8 * 24), (WaitFor::Budget, 1)] {
            let longest = show(what, hours * 3_600_000, true);
            assert!(width(&longest) <= 77, "it does not fit into 80 columns: {longest}");
        }
    }
}
