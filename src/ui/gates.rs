//! What gates said: before any work, and for a claim.

use crate::model::{EvidenceItem, GateReport, StoryId};
use crate::ports::View;

use super::events::good;
use super::figures::duration;
use super::look::{Line, TextLine, Tone, labeled};

/// A first look at a story is not told: it says something only with the story's claim.
pub fn baseline(at: i64, reports: &[GateReport], story: Option<&StoryId>) -> Vec<Line> {
    let reports = reports.iter().filter(|_| story.is_none());
    reports.map(|report| gate(at, report, true)).collect()
}

/// What was red before the story is told once: each later claim finds it too.
pub fn checked(at: i64, items: &[EvidenceItem], view: View<'_>) -> Vec<Line> {
    let reports = items.iter().map(|EvidenceItem::Gate(report)| report);
    let news = reports.filter(|report| !view.state.gate_results.is_known_red(report));
    news.map(|report| gate(at, report, false)).collect()
}

fn gate(at: i64, report: &GateReport, is_baseline: bool) -> Line {
    let told = report.describe();
    let text = if report.passed() {
        good(at, told)
    } else if !is_baseline {
        labeled(at, Tone::Bad, "✗ ", told)
    } else if report.cannot_run() {
        TextLine::at(at).with(Tone::Bad, format!("✗ {told}"))
    } else {
        TextLine::at(at).plain(format!("○ {told}, before any work"))
    };
    text.figures([duration(report.elapsed_ms)]).into()
}
