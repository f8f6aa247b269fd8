//! How long agents and gates worked.

use crate::model::{AttemptEnded, Event, EvidenceItem, Verdict};

/// Measured by clocks that stand still while the machine sleeps. Waits and the time between two
/// processes of a run do not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkTime {
    pub agents_ms: u64,
    pub gates_ms: u64,
    /// Iterations that count for the average.
    pub iterations: u32,
    pub iterations_ms: u64,
}

impl WorkTime {
    pub fn apply(&mut self, event: &Event) {
        match event {
            Event::AttemptEnded(end) => self.note_attempt(end),
            Event::ClaimChecked { items, .. } => {
                self.gates_ms +=
                    items.iter().map(|EvidenceItem::Gate(one)| one.elapsed_ms).sum::<u64>();
            }
            Event::BaselineTaken { reports } => {
                self.gates_ms += reports.iter().map(|report| report.elapsed_ms).sum::<u64>();
            }
            _ => {}
        }
    }

    fn note_attempt(&mut self, end: &AttemptEnded) {
        self.agents_ms = self.agents_ms.saturating_add(end.elapsed_ms);
        let is_whole = !matches!(
            end.verdict,
            Verdict::NotTheStory { .. } | Verdict::PromptTooLong { .. } | Verdict::Interrupted
        );
        if is_whole {
            self.iterations += 1;
            self.iterations_ms = self.iterations_ms.saturating_add(end.elapsed_ms);
        }
    }

    pub fn ms(&self) -> u64 {
        self.agents_ms.saturating_add(self.gates_ms)
    }
}
