//! What gates said last, and about which state.

use std::collections::BTreeMap;

use crate::model::{Base, Event, EvidenceItem, GateReport, StoryId};

/// By a gate's command and the closed story that it was run again for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GateResults(BTreeMap<(String, Option<StoryId>), LastResult>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct LastResult {
    /// None: two gates have the same command, and not the same result.
    passed: Option<bool>,
    elapsed_ms: u64,
    /// The work tree that it is about; None: it is not known.
    at: Option<Base>,
    /// How many claims found that it failed before their story.
    found_red: u32,
}

impl GateResults {
    pub fn apply(&mut self, event: &Event) {
        match event {
            Event::BaselineTaken { reports, at, .. } => self.take(reports.iter(), at.as_ref()),
            Event::ClaimChecked { items, .. } => {
                let reports = items.iter().map(|EvidenceItem::Gate(report)| report);
                reports
                    .filter(|report| report.was_red_before())
                    .for_each(|red| self.found_red(red));
            }
            _ => {}
        }
    }

    fn found_red(&mut self, report: &GateReport) {
        let elapsed_ms = report.elapsed_ms;
        let known = self
            .0
            .entry((report.gate.clone(), report.guards.clone()))
            .or_insert(LastResult { passed: None, elapsed_ms, at: None, found_red: 0 });
        known.passed = Some(false);
        known.found_red += 1;
    }

    /// More than one claim found that it failed before its story.
    pub fn is_known_red(&self, report: &GateReport) -> bool {
        let known = self.of(&report.gate, report.guards.as_ref());
        report.was_red_before() && known.is_some_and(|known| known.found_red > 1)
    }

    /// The work that the evidence is about is on the branch.
    pub fn closed(&mut self, story: &StoryId, evidence: &[EvidenceItem], at: Option<&Base>) {
        let reports = || evidence.iter().map(|EvidenceItem::Gate(report)| report);
        self.take(reports(), at);
        let own = reports().filter(|report| report.guards.is_none());
        let own: Vec<GateReport> = own
            .map(|report| GateReport { guards: Some(story.clone()), ..report.clone() })
            .collect();
        self.take(own.iter(), at);
    }

    fn take<'a>(&mut self, reports: impl Iterator<Item = &'a GateReport>, at: Option<&Base>) {
        let mut found = BTreeMap::new();
        for report in reports {
            let (passed, elapsed_ms) = (Some(report.passed()), report.elapsed_ms);
            let before = self.of(&report.gate, report.guards.as_ref());
            let found_red = before.map_or(0, |before| before.found_red);
            let known = found
                .entry((report.gate.clone(), report.guards.clone()))
                .or_insert(LastResult { passed, elapsed_ms, at: at.cloned(), found_red });
            known.passed = known.passed.filter(|_| known.passed == passed);
            known.elapsed_ms = known.elapsed_ms.max(elapsed_ms);
        }
        self.0.extend(found);
    }

    /// The work tree that a gate failed on when it ran last.
    pub fn red_at(&self, gate: &str, guards: Option<&StoryId>) -> Option<&Base> {
        let known = self.of(gate, guards).filter(|known| known.passed == Some(false))?;
        known.at.as_ref()
    }

    /// Gates of closed stories that failed when they ran last, without blame of a later story.
    pub fn red_again(&self) -> impl Iterator<Item = (&StoryId, &str)> {
        let red = self.0.iter().filter(|(_, known)| known.passed == Some(false));
        red.filter_map(|((gate, guards), _)| Some((guards.as_ref()?, gate.as_str())))
    }

    /// How long it took.
    pub fn last_ms(&self, gate: &str, guards: Option<&StoryId>) -> Option<u64> {
        self.of(gate, guards).map(|known| known.elapsed_ms)
    }

    fn of(&self, gate: &str, guards: Option<&StoryId>) -> Option<&LastResult> {
        self.0.get(&(gate.to_owned(), guards.cloned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::GateEnd;

    fn id(text: &str) -> StoryId {
        StoryId::try_from(text).unwrap()
    }

    fn report(gate: &str, guards: Option<&str>, passes: bool) -> GateReport {
        let end = if passes { GateEnd::Passed } else { GateEnd::Failed { code: 1 } };
        let (gate, tail) = (gate.to_owned(), String::new());
        GateReport { gate, guards: guards.map(id), end, elapsed_ms: 1, tail }
    }

    #[test]
    fn the_last_look_counts_for_the_state_that_it_saw() {
        let at = |tree: &str| Some(Base { commit: None, tree: tree.to_owned() });
        let mut results = GateResults::default();
        assert_eq!(results.red_at("g", None), None, "it is not known");
        let reports = vec![report("g", None, false), report("h", None, true)];
        results.apply(&Event::BaselineTaken { reports: reports.clone(), at: at("1"), story: None });
        assert_eq!(results.red_at("g", None), at("1").as_ref());
        assert_eq!(results.red_at("h", None), None);
        assert_eq!(results.red_at("g", Some(&id("A"))), None, "another story's");
        let items = [report("g", None, true), report("old", Some("B"), false)];
        results.closed(&id("A"), &items.map(EvidenceItem::Gate), at("2").as_ref());
        let red = [None, Some(&id("A"))].map(|guards| results.red_at("g", guards));
        assert_eq!(red, [None, None]);
        assert_eq!(results.red_at("old", Some(&id("B"))), at("2").as_ref());
        assert_eq!(results.last_ms("g", Some(&id("A"))), Some(1));
        assert_eq!(results.last_ms("g", Some(&id("B"))), None);
        results.apply(&Event::BaselineTaken { reports, at: None, story: None });
        assert_eq!(results.red_at("g", None), None, "an earlier version did not record where");
    }

    #[test]
    fn two_gates_with_one_command_are_known_if_they_agree() {
        let at = Some(Base { commit: None, tree: String::new() });
        for (results, is_red) in [([false, false], true), ([false, true], false)] {
            let reports = results.map(|passes| report("npm test", None, passes)).to_vec();
            let mut results = GateResults::default();
            results.apply(&Event::BaselineTaken { reports, at: at.clone(), story: None });
            assert_eq!(results.red_at("npm test", None).is_some(), is_red);
        }
    }
}
