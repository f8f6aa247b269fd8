//! Times, costs, sizes and ids in short form.

use std::fmt::Display;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::decide::figures::Forecast;

/// `0.4s`, `12s`, `1m22s`, `2h05m`.
pub fn duration(ms: u64) -> String {
    let seconds = ms / 1000;
    match seconds {
        0 => format!("0.{}s", ms / 100),
        1..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h{:02}m", seconds / 3600, seconds % 3600 / 60),
    }
}

/// As `duration`, where parts of a second do not matter: `0s`.
pub fn whole_seconds(seconds: u64) -> String {
    if seconds == 0 { "0s".to_owned() } else { duration(seconds.saturating_mul(1000)) }
}

/// `10 minutes`; `1m30s` if it is not whole minutes.
pub fn patience_in_words(patience: Duration) -> String {
    match (patience.as_secs() / 60, patience.as_secs() % 60) {
        (1, 0) => "1 minute".to_owned(),
        (minutes @ 2..=120, 0) => format!("{minutes} minutes"),
        _ => duration(crate::model::millis(patience)),
    }
}

/// `17 B`, `1.5 MB`, `12 GB`.
pub fn size(bytes: u64) -> String {
    scaled(bytes, &[(" TB", 12), (" GB", 9), (" MB", 6), (" kB", 3)], 10)
        .unwrap_or_else(|| format!("{bytes} B"))
}

/// `950`, `12.3k`, `4.5M`.
pub fn count(number: u64) -> String {
    scaled(number, &[("G", 9), ("M", 6), ("k", 3)], 100).unwrap_or_else(|| number.to_string())
}

/// In the largest unit that fits (units are powers of ten), with tenths below `exact`.
fn scaled(number: u64, units: &[(&str, u32)], exact: u64) -> Option<String> {
    let mut factors = units.iter().map(|(unit, power)| (unit, 10_u64.pow(*power)));
    let (unit, factor) = factors.find(|(_, factor)| number >= *factor)?;
    Some(match (number / factor, number % factor * 10 / factor) {
        (whole, tenths @ 1..) if whole < exact => format!("{whole}.{tenths}{unit}"),
        (whole, _) => format!("{whole}{unit}"),
    })
}

/// A time in a `strftime` format.
pub fn clock(at: i64, zone: &TimeZone, shape: &str) -> String {
    match Timestamp::from_millisecond(at) {
        Ok(time) => time.to_zoned(zone.clone()).strftime(shape).to_string(),
        Err(_) => "--:--:--".to_owned(),
    }
}

/// `2026-03-10 03:10:07`.
pub fn date_and_time(at: i64, zone: &TimeZone) -> String {
    clock(at, zone, "%Y-%m-%d %H:%M:%S")
}

/// With the day, because a limit may last for a week: `Tue 03:10:07`.
pub fn day_and_time(at: i64, zone: &TimeZone) -> String {
    clock(at, zone, "%a %H:%M:%S")
}

/// `$0.31`, `$12.40`, `<$0.01`. None when nothing was spent, or the cost is unknown.
pub fn cost(usd: Option<f64>) -> Option<String> {
    let usd = usd.filter(|usd| *usd > 0.0)?;
    Some(if usd < 0.01 { "<$0.01".to_owned() } else { format!("${usd:.2}") })
}

/// `about $1.20–$2.40 and 12m00s–25m00s to go`.
pub fn to_go(forecast: &Forecast) -> String {
    let time = range(forecast.time_ms, duration);
    match forecast.cost {
        Some(cost) => format!("about {} and {time} to go", range(cost, |usd| usd.to_string())),
        None => format!("about {time} to go"),
    }
}

/// `$1.20–$2.40 to go`, for the live line.
pub fn to_go_in_short(forecast: &Forecast) -> String {
    let what = match forecast.cost {
        Some(cost) => range(cost, |usd| usd.to_string()),
        None => range(forecast.time_ms, duration),
    };
    format!("{what} to go")
}

fn range<T>((low, high): (T, T), show: impl Fn(T) -> String) -> String {
    let (low, high) = (show(low), show(high));
    if low == high { low } else { format!("{low}–{high}") }
}

pub fn short_commit(commit: &str) -> String {
    commit.chars().take(7).collect()
}

/// The first group of a run's UUID.
pub fn short_run(run: &str) -> String {
    run.chars().take_while(|c| *c != '-').take(8).collect()
}

/// `1 file`, `5 files`.
pub fn counted<N: Display + PartialEq + From<u8>>(count: N, what: &str) -> String {
    if count == N::from(1) { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// `1 story`, `5 stories`.
pub fn stories(count: usize) -> String {
    if count == 1 { "1 story".to_owned() } else { format!("{count} stories") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Usd;

    #[test]
    fn times_before_1970_are_shown_and_impossible_ones_are_not() {
        for (at, shown) in [
            (-1, "1969-12-31 23:59:59"),
            (0, "1970-01-01 00:00:00"),
            (i64::MIN, "--:--:--"),
            (i64::MAX, "--:--:--"),
        ] {
            assert_eq!(date_and_time(at, &TimeZone::UTC), shown);
        }
    }

    #[test]
    fn durations_are_short() {
        for (ms, shown) in [
            (0, "0.0s"),
            (437, "0.4s"),
            (999, "0.9s"),
            (1_000, "1s"),
            (12_999, "12s"),
            (59_999, "59s"),
            (60_000, "1m00s"),
            (82_000, "1m22s"),
            (3_599_999, "59m59s"),
            (3_600_000, "1h00m"),
            (7_500_000, "2h05m"),
            (360_000_000, "100h00m"),
        ] {
            assert_eq!(duration(ms), shown);
        }
    }

    #[test]
    fn a_time_is_shown_whatever_the_clock_said() {
        for (at, shown) in [
            (-1, "1969-12-31 23:59:59"),
            (0, "1970-01-01 00:00:00"),
            (i64::MIN, "--:--:--"),
            (i64::MAX, "--:--:--"),
        ] {
            assert_eq!(date_and_time(at, &TimeZone::UTC), shown);
        }
    }

    #[test]
    fn a_patience_of_whole_minutes_is_in_words() {
        for (seconds, shown) in
            [(600, "10 minutes"), (60, "1 minute"), (90, "1m30s"), (5, "5s"), (36_000, "10h00m")]
        {
            assert_eq!(patience_in_words(Duration::from_secs(seconds)), shown);
        }
    }

    #[test]
    fn sizes_are_short_and_never_rounded_up() {
        for (bytes, shown) in [
            (0, "0 B"),
            (999, "999 B"),
            (1_000, "1 kB"),
            (1_590_000, "1.5 MB"),
            (999_999_999, "999 MB"),
            (1_000_000_000, "1 GB"),
            (12_900_000_000, "12 GB"),
            (900_000_000_000_000, "900 TB"),
        ] {
            assert_eq!(size(bytes), shown);
        }
    }

    #[test]
    fn costs_are_in_cents() {
        for (usd, shown) in [
            (None, None),
            (Some(0.0), None),
            (Some(0.000_4), Some("<$0.01")),
            (Some(0.01), Some("$0.01")),
            (Some(0.312), Some("$0.31")),
            (Some(12.4), Some("$12.40")),
        ] {
            assert_eq!(cost(usd).as_deref(), shown);
        }
    }

    #[test]
    fn forecasts_are_ranges() {
        let usd = Usd::of;
        for (cost, time_ms, shown) in [
            (
                Some((usd(1.2), usd(2.4))),
                (720_000, 1_500_000),
                "about $1.20–$2.40 and 12m00s–25m00s to go",
            ),
            (Some((usd(3.0), usd(3.0))), (1_000, 1_000), "about $3.00 and 1s to go"),
            (None, (60_000, 7_500_000), "about 1m00s–2h05m to go"),
        ] {
            assert_eq!(to_go(&Forecast { cost, time_ms }), shown);
        }
    }

    #[test]
    fn large_counts_are_short() {
        for (number, shown) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1k"),
            (1_299, "1.2k"),
            (123_456, "123k"),
            (4_567_890, "4.5M"),
            (2_000_000_000, "2G"),
        ] {
            assert_eq!(count(number), shown);
        }
    }

    #[test]
    fn times_have_their_day() {
        let east = TimeZone::fixed(jiff::tz::offset(2));
        assert_eq!(day_and_time(11_407_000, &TimeZone::UTC), "Thu 03:10:07");
        assert_eq!(day_and_time(82_800_000, &east), "Fri 01:00:00");
        assert_eq!(day_and_time(i64::MAX, &east), "--:--:--");
    }

    #[test]
    fn ids_are_cut_by_characters() {
        assert_eq!(short_commit("3f2a9c1d0e"), "3f2a9c1");
        assert_eq!(short_commit("漢"), "漢");
        assert_eq!(short_run("0199a8b0-5c1d-7000-8000-000000000000"), "0199a8b0");
        assert_eq!((stories(1).as_str(), stories(2).as_str()), ("1 story", "2 stories"));
    }
}
