//! Faults of the service in a row, per agent.

use std::collections::BTreeMap;

use crate::model::{Event, OnLimit, ServiceFault, StopReason, Verdict, Wait, WaitFor};
use crate::state::attempts::InFlight;

const SECOND: i64 = 1000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;

/// A limit's end is believed if it is a minute to eight days ahead.
const SHORTEST_LIMIT: i64 = MINUTE;
const LONGEST_LIMIT: i64 = 8 * 24 * HOUR;
/// For a limit without an end time.
const UNSTATED_LIMIT: i64 = 15 * MINUTE;
/// Spreads retries of many users.
const JITTER: i64 = 30 * SECOND;
/// Failures in a row that are retried soon and do not count as iterations.
const SOON: u32 = 10;
const LATER: i64 = 5 * MINUTE;
const LONGEST_OUTAGE: i64 = 2 * HOUR;
/// Agents in a row without any output.
const MOST_SILENT: u32 = 3;

/// The same fault in consecutive attempts.
#[derive(Clone, Debug, PartialEq)]
pub struct FaultStreak {
    pub fault: ServiceFault,
    pub error: String,
    pub count: u32,
    pub first_at: i64,
    pub last_at: i64,
    /// The human skipped the wait after the last one.
    pub cut_short: bool,
    /// Attempts that the run had started at the last one.
    wave: u32,
}

/// Fault streaks by agent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Service(BTreeMap<String, FaultStreak>);

impl Service {
    /// Returns whether the attempt counts as an iteration. `started`: attempts of the run so far.
    pub fn ended(&mut self, flight: &InFlight, started: u32, verdict: &Verdict, at: i64) -> bool {
        let agent = &flight.start.agent;
        match verdict {
            Verdict::NotTheStory { fault, error } => {
                let streak = match self.0.remove(agent) {
                    Some(streak) if streak.covers(flight, fault) => streak,
                    before => FaultStreak::after(before, fault, error, at),
                };
                let streak = FaultStreak { wave: started, ..streak };
                let counts = streak.counts();
                self.0.insert(agent.clone(), streak);
                counts
            }
            Verdict::Interrupted => true,
            _ => {
                self.0.retain(|name, streak| name != agent || flight.number <= streak.wave);
                !matches!(verdict, Verdict::PromptTooLong { .. })
            }
        }
    }

    pub fn apply(&mut self, event: &Event) {
        if *event == Event::WaitCutShort {
            self.0.values_mut().for_each(|streak| streak.cut_short = true);
        }
    }

    /// An agent's current faults.
    pub fn streak(&self, agent: &str) -> Option<&FaultStreak> {
        self.0.get(agent)
    }

    pub fn longest_wait(&self, on_limit: OnLimit, now: i64) -> Option<Wait> {
        let waits = self.0.values().filter_map(|streak| streak.wait(on_limit, now));
        waits.max_by_key(|wait| wait.until)
    }
}

impl FaultStreak {
    /// Whether the attempt started before the last fault: then it counts only if its fault is more
    /// severe.
    fn covers(&self, flight: &InFlight, fault: &ServiceFault) -> bool {
        flight.number <= self.wave && fault.gravity() <= self.fault.gravity()
    }

    pub fn after(before: Option<Self>, fault: &ServiceFault, error: &str, at: i64) -> Self {
        let before = before.filter(|streak| streak.fault.gravity() == fault.gravity());
        let (count, first_at) = before.map_or((0, at), |streak| (streak.count, streak.first_at));
        let (fault, error, count) = (fault.clone(), error.to_owned(), count + 1);
        Self { fault, error, count, first_at, last_at: at, cut_short: false, wave: 0 }
    }

    /// In a long outage, failed attempts count as iterations.
    pub fn counts(&self) -> bool {
        self.fault == ServiceFault::Outage && self.count > SOON
    }

    /// Why no retry would help, or comes too late.
    pub fn stop(&self, on_limit: OnLimit) -> Option<StopReason> {
        let error = self.error.clone();
        let outage = self.last_at - self.first_at;
        match self.fault {
            _ if self.cut_short => None,
            ServiceFault::Account => Some(StopReason::AccountTrouble { error }),
            ServiceFault::Setup => Some(StopReason::AgentUnusable { error }),
            ServiceFault::Limit { resets_at } if on_limit == OnLimit::Stop => {
                Some(StopReason::UsageLimit { resets_at, error })
            }
            ServiceFault::Silence if self.count < MOST_SILENT => None,
            ServiceFault::Outage if outage <= LONGEST_OUTAGE => None,
            ServiceFault::Silence | ServiceFault::Outage => Some(StopReason::ServiceDown { error }),
            ServiceFault::Limit { .. } => None,
        }
    }

    /// Until the next retry.
    pub fn wait(&self, on_limit: OnLimit, now: i64) -> Option<Wait> {
        if self.cut_short || self.stop(on_limit).is_some() {
            return None;
        }
        let (what, until) = match self.fault {
            ServiceFault::Limit { resets_at } => (WaitFor::Limit, self.limit_ends(resets_at)),
            _ if self.counts() => (WaitFor::Service, self.last_at + LATER),
            _ => (WaitFor::Service, self.last_at + back_off(self.count)),
        };
        (now < until).then(|| Wait { what, error: self.error.clone(), until })
    }

    fn limit_ends(&self, resets_at: Option<i64>) -> i64 {
        let stated = resets_at.map(|seconds| seconds.saturating_mul(SECOND));
        let ends = stated.unwrap_or(self.last_at + UNSTATED_LIMIT);
        let believed = ends.clamp(self.last_at + SHORTEST_LIMIT, self.last_at + LONGEST_LIMIT);
        believed + self.last_at.rem_euclid(JITTER)
    }
}

/// min(2^n, 60) seconds.
fn back_off(count: u32) -> i64 {
    2_i64.checked_pow(count).map_or(60, |seconds| seconds.min(60)) * SECOND
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_800_000_000_000;

    fn row(fault: ServiceFault, times: u32, apart: i64) -> FaultStreak {
        let mut row = None;
        for n in 0..i64::from(times) {
            row = Some(FaultStreak::after(row, &fault, "e", NOW + n * apart));
        }
        row.unwrap()
    }

    fn wait(row: &FaultStreak) -> i64 {
        assert_eq!(row.stop(OnLimit::Wait), None);
        row.wait(OnLimit::Wait, row.last_at).unwrap().until - row.last_at
    }

    /// The run stops, and does not wait as well.
    fn stop(row: &FaultStreak, on_limit: OnLimit) -> Option<StopReason> {
        assert_eq!(row.wait(on_limit, NOW), None);
        row.stop(on_limit)
    }

    #[test]
    fn an_outage_is_tried_again_soon_then_later_then_never() {
        for (times, seconds) in [(1, 2), (2, 4), (5, 32), (6, 60), (10, 60), (11, 300), (20, 300)] {
            let row = row(ServiceFault::Outage, times, SECOND);
            assert_eq!(wait(&row), seconds * SECOND, "{times}");
            assert_eq!(row.counts(), times > 10, "{times}");
        }
        let long = row(ServiceFault::Outage, 30, 5 * MINUTE);
        let down = StopReason::ServiceDown { error: "e".into() };
        assert_eq!(stop(&long, OnLimit::Wait), Some(down));
        let just_not = row(ServiceFault::Outage, 25, 5 * MINUTE);
        assert_eq!(wait(&just_not), 5 * MINUTE);
    }

    #[test]
    fn a_wait_ends() {
        let row = row(ServiceFault::Outage, 1, 0);
        assert_eq!(row.stop(OnLimit::Wait), None);
        assert_eq!(row.wait(OnLimit::Wait, NOW + 2 * SECOND), None);
        assert!(row.wait(OnLimit::Wait, NOW + SECOND).is_some());
    }

    #[test]
    fn a_limit_is_waited_for_as_far_as_it_can_be_believed() {
        let jitter = NOW.rem_euclid(JITTER);
        for (resets_in, waits) in [
            (Some(5 * HOUR), 5 * HOUR),
            (Some(-HOUR), MINUTE),
            (Some(0), MINUTE),
            (Some(9 * 24 * HOUR), 8 * 24 * HOUR),
            (None, 15 * MINUTE),
        ] {
            let resets_at = resets_in.map(|time| (NOW + time) / SECOND);
            let row = row(ServiceFault::Limit { resets_at }, 1, 0);
            assert_eq!(wait(&row), waits + jitter, "{resets_in:?}");
        }
        let endless = row(ServiceFault::Limit { resets_at: Some(i64::MAX) }, 1, 0);
        assert_eq!(wait(&endless), 8 * 24 * HOUR + jitter);
    }

    #[test]
    fn a_human_can_want_to_stop_at_a_limit() {
        let row = row(ServiceFault::Limit { resets_at: Some(7) }, 1, 0);
        let limit = StopReason::UsageLimit { resets_at: Some(7), error: "e".into() };
        assert_eq!(stop(&row, OnLimit::Stop), Some(limit));
    }

    #[test]
    fn three_silent_agents_are_enough() {
        assert_eq!(wait(&row(ServiceFault::Silence, 2, 0)), 4 * SECOND);
        let down = StopReason::ServiceDown { error: "e".into() };
        assert_eq!(stop(&row(ServiceFault::Silence, 3, 0), OnLimit::Wait), Some(down));
    }

    #[test]
    fn a_fault_that_no_wait_can_fix_stops_the_run_at_once() {
        let account = stop(&row(ServiceFault::Account, 1, 0), OnLimit::Wait);
        assert_eq!(account, Some(StopReason::AccountTrouble { error: "e".into() }));
        let setup = stop(&row(ServiceFault::Setup, 1, 0), OnLimit::Wait);
        assert_eq!(setup, Some(StopReason::AgentUnusable { error: "e".into() }));
    }

    #[test]
    fn of_one_wave_the_gravest_fault_stays() {
        let start = serde_json::from_str(
            r#"{"attempt": "a", "iteration": 1, "role": "implement", "story": "A", "title": "",
                "agent": "agent", "base": {"commit": null, "tree": ""}, "guided": false}"#,
        );
        let start: crate::model::AttemptStarted = start.unwrap();
        let start = |number| InFlight { start: start.clone(), number };
        let failing = |fault| Verdict::NotTheStory { fault, error: "e".into() };
        let limit = || failing(ServiceFault::Limit { resets_at: None });
        let outage = || failing(ServiceFault::Outage);
        for (first, second) in [(limit(), outage()), (outage(), limit())] {
            let mut service = Service::default();
            service.ended(&start(1), 2, &first, NOW);
            service.ended(&start(2), 2, &second, NOW + 1);
            let streak = service.streak("agent").unwrap();
            assert!(matches!(streak.fault, ServiceFault::Limit { .. }), "{streak:?}");
            assert_eq!(streak.count, 1);
        }
    }

    #[test]
    fn an_interrupted_attempt_ends_no_streak() {
        let start: crate::model::AttemptStarted = serde_json::from_str(
            r#"{"attempt": "a", "iteration": 1, "role": "implement", "story": "A", "title": "",
                "agent": "agent", "base": {"commit": null, "tree": ""}, "guided": false}"#,
        )
        .unwrap();
        let flight = |number| InFlight { start: start.clone(), number };
        let outage = Verdict::NotTheStory { fault: ServiceFault::Outage, error: "e".into() };
        let mut service = Service::default();
        service.ended(&flight(1), 1, &outage, NOW);
        service.ended(&flight(2), 2, &Verdict::Interrupted, NOW + 1);
        assert_eq!(service.streak("agent").map(|streak| streak.count), Some(1));
        service.ended(&flight(3), 3, &Verdict::Progress, NOW + 2);
        assert_eq!(service.streak("agent"), None);
    }

    #[test]
    fn another_fault_begins_another_streak() {
        let silent = row(ServiceFault::Silence, 2, 0);
        let outage = FaultStreak::after(Some(silent), &ServiceFault::Outage, "o", NOW);
        assert_eq!((outage.count, outage.error.as_str()), (1, "o"));
    }
}
