//! What gates said last about the state that the branch has now.

use std::collections::BTreeMap;

use crate::model::{Event, EvidenceItem, GateReport, StoryId};

/// By a gate's command and the closed story that it was run again for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GateResults(BTreeMap<(String, Option<StoryId>), LastResult>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct LastResult {
    /// None: two gates have the same command, and not the same result.
    passed: Option<bool>,
    elapsed_ms: u64,
}

impl GateResults {
    pub fn apply(&mut self, event: &Event) {
        if let Event::BaselineTaken { reports } = event {
            self.take(reports.iter());
        }
    }

    /// The work that the evidence is about is on the branch.
    pub fn closed(&mut self, story: &StoryId, evidence: &[EvidenceItem]) {
        let reports = || evidence.iter().map(|EvidenceItem::Gate(report)| report);
        self.take(reports());
        let own = reports().filter(|report| report.guards.is_none());
        let own: Vec<GateReport> = own
            .map(|report| GateReport { guards: Some(story.clone()), ..report.clone() })
            .collect();
        self.take(own.iter());
    }

    fn take<'a>(&mut self, reports: impl Iterator<Item = &'a GateReport>) {
        let mut found = BTreeMap::new();
        for report in reports {
            let (passed, elapsed_ms) = (Some(report.passed()), report.elapsed_ms);
            let known = found
                .entry((report.gate.clone(), report.guards.clone()))
                .or_insert(LastResult { passed, elapsed_ms });
            known.passed = known.passed.filter(|_| known.passed == passed);
            known.elapsed_ms = known.elapsed_ms.max(elapsed_ms);
        }
        self.0.extend(found);
    }

    pub fn was_red(&self, gate: &str, guards: Option<&StoryId>) -> bool {
        self.of(gate, guards).is_some_and(|known| known.passed == Some(false))
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
    fn the_last_look_at_the_branch_counts() {
        let mut results = GateResults::default();
        assert!(!results.was_red("g", None), "it is not known");
        let reports = vec![report("g", None, false), report("h", None, true)];
        results.apply(&Event::BaselineTaken { reports });
        assert!(results.was_red("g", None) && !results.was_red("h", None));
        assert!(!results.was_red("g", Some(&id("A"))), "another story's");
        let items = [report("g", None, true), report("old", Some("B"), false)];
        results.closed(&id("A"), &items.map(EvidenceItem::Gate));
        assert!(!results.was_red("g", None) && !results.was_red("g", Some(&id("A"))));
        assert!(results.was_red("old", Some(&id("B"))));
        assert_eq!(results.last_ms("g", Some(&id("A"))), Some(1));
        assert_eq!(results.last_ms("g", Some(&id("B"))), None);
    }

    #[test]
    fn two_gates_with_one_command_are_known_if_they_agree() {
        for (results, is_red) in [([false, false], true), ([false, true], false)] {
            let reports = results.map(|passes| report("npm test", None, passes)).to_vec();
            let mut results = GateResults::default();
            results.apply(&Event::BaselineTaken { reports });
            assert_eq!(results.was_red("npm test", None), is_red);
        }
    }
}
