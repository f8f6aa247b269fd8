//! An agent that is heard and gets nowhere: reminded, asked about, ended.
//!
//! All times are how long the attempt has been awake: what a machine slept does not count.

use std::time::Duration;

/// How long is too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// Without any progress; None: nobody looks.
    pub stuck_after: Option<Duration>,
    /// From the reminder to the question.
    pub ask_after: Duration,
    /// From the question to the end.
    pub answer: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            stuck_after: Some(Duration::from_mins(30)),
            ask_after: Duration::from_mins(10),
            answer: Duration::from_mins(15),
        }
    }
}

/// What is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rung {
    Nudge,
    Ask,
    Terminate,
}

/// Where one attempt stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ladder {
    /// The last progress, or the last time it was given more.
    since: Duration,
    last: Option<(Rung, Duration)>,
}

impl Ladder {
    pub fn due(&self, awake: Duration, patience: &Patience) -> Option<Rung> {
        let over = |from: Duration, limit: Duration| awake.saturating_sub(from) >= limit;
        match self.last {
            None => {
                let limit = patience.stuck_after?;
                over(self.since, limit).then_some(Rung::Nudge)
            }
            Some((Rung::Nudge, at)) => over(at, patience.ask_after).then_some(Rung::Ask),
            Some((Rung::Ask, at)) => over(at, patience.answer).then_some(Rung::Terminate),
            Some((Rung::Terminate, _)) => None,
        }
    }

    /// It got on, or the human gives it more time: all is forgotten.
    pub fn calm(&mut self, awake: Duration) {
        if !matches!(self.last, Some((Rung::Terminate, _))) {
            *self = Self { since: awake, last: None };
        }
    }

    pub fn climb(&mut self, rung: Rung, awake: Duration) {
        self.last = Some((rung, awake));
    }

    pub fn is_calm(&self) -> bool {
        self.last.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn minutes(count: u64) -> Duration {
        Duration::from_mins(count)
    }

    #[test]
    fn a_reminder_a_question_an_end() {
        let patience = Patience::default();
        let mut ladder = Ladder::default();
        for (at, rung) in [(30, Rung::Nudge), (40, Rung::Ask), (55, Rung::Terminate)] {
            let before = minutes(at) - Duration::from_millis(1);
            assert_eq!(ladder.due(before, &patience), None, "{at}");
            assert_eq!(ladder.due(minutes(at), &patience), Some(rung), "{at}");
            ladder.climb(rung, minutes(at));
            assert!(!ladder.is_calm());
        }
        assert_eq!(ladder.due(minutes(10_000), &patience), None, "once is enough");
        ladder.calm(minutes(56));
        assert_eq!(ladder.due(minutes(10_000), &patience), None, "it is ended already");
    }

    #[test]
    fn progress_and_more_time_begin_anew() {
        let patience = Patience::default();
        for rung in [None, Some(Rung::Nudge), Some(Rung::Ask)] {
            let mut ladder = Ladder::default();
            if let Some(rung) = rung {
                ladder.climb(rung, minutes(31));
            }
            ladder.calm(minutes(35));
            assert!(ladder.is_calm(), "{rung:?}");
            assert_eq!(ladder.due(minutes(64), &patience), None, "{rung:?}");
            assert_eq!(ladder.due(minutes(65), &patience), Some(Rung::Nudge), "{rung:?}");
        }
    }

    #[test]
    fn it_can_be_switched_off() {
        let patience = Patience { stuck_after: None, ..Patience::default() };
        assert_eq!(Ladder::default().due(minutes(10_000), &patience), None);
    }
}
