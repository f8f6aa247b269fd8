//! Changes of an attempt that could make its own work look done.

use crate::decide::weigh::Gates;
use crate::model::{Backlog, CompletionMarkers, Concern, Gate, RunMarkers, Story, StoryId};

/// Stories that existed when an attempt began.
pub fn removed_stories(before: &[StoryId], backlog: &Backlog) -> Vec<StoryId> {
    // Nearly always the same ones in the same order, which is much faster to see.
    if before.iter().eq(backlog.stories.iter().map(|story| &story.id)) {
        return Vec::new();
    }
    before.iter().filter(|id| backlog.story(id).is_none()).cloned().collect()
}

pub fn of_removed(gone: &[StoryId]) -> Option<Concern> {
    let names = gone.iter().map(StoryId::as_str).collect::<Vec<_>>().join(", ");
    let what = format!("{names} disappeared from the backlog");
    let diff: Vec<String> = gone.iter().map(|id| format!("- {id}")).collect();
    (!gone.is_empty()).then(|| Concern { what, diff: diff.join("\n") })
}

/// What changed about the story itself. Its criteria are compared with those of its first attempt,
/// so that no attempt can prepare them for the next; gates and markers with those of the run's start.
pub fn of_story(
    story: &Story,
    criteria: Option<&Vec<String>>,
    gates: &Gates,
    markers: &RunMarkers,
) -> Vec<Concern> {
    let gates = gates.of_story(&story.id);
    let criteria = criteria.filter(|before| **before != story.criteria).map(|before| Concern {
        what: "its criteria changed".to_owned(),
        diff: diff(before, &story.criteria),
    });
    let gates = (gates != story.verify).then(|| Concern {
        what: "its gates changed (those of the run's start were run)".to_owned(),
        diff: diff(&gate_lines(gates), &gate_lines(&story.verify)),
    });
    let markers = markers.of.get(&story.id).filter(|before| **before != story.markers);
    let markers = markers.map(|before| Concern {
        what: "its completion markers changed".to_owned(),
        diff: diff(&marker_lines(before), &marker_lines(&story.markers)),
    });
    criteria.into_iter().chain(gates).chain(markers).collect()
}

fn gate_lines(gates: &[Gate]) -> Vec<String> {
    gates.iter().map(ToString::to_string).collect()
}

fn marker_lines(markers: &CompletionMarkers) -> Vec<String> {
    let CompletionMarkers { promise, signals, stages } = markers;
    promise.iter().chain(signals).chain(stages).cloned().collect()
}

fn diff(before: &[String], now: &[String]) -> String {
    let gone = before.iter().filter(|line| !now.contains(line)).map(|line| format!("- {line}"));
    let new = now.iter().filter(|line| !before.contains(line)).map(|line| format!("+ {line}"));
    gone.chain(new).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::samples::{id, story};

    #[test]
    fn a_story_is_compared_with_what_it_was() {
        let (mut now, mut gates, mut markers) =
            (story("A"), Gates::default(), RunMarkers::default());
        let criteria = now.criteria.clone();
        let whats = |now: &Story, gates: &Gates, markers: &RunMarkers| -> Vec<String> {
            let found = of_story(now, Some(&criteria), gates, markers);
            found.into_iter().map(|one| format!("{}: {}", one.what, one.diff)).collect()
        };
        assert_eq!(whats(&now, &gates, &markers), [""; 0]);
        now.criteria = vec!["easier".to_owned()];
        gates.of.insert(id("A"), vec![Gate::shell("cargo test")]);
        let before = CompletionMarkers { stages: vec!["BUILT".into()], ..Default::default() };
        markers.of.insert(id("A"), before);
        let found = whats(&now, &gates, &markers);
        assert!(found[0].contains("criteria") && found[0].contains("+ easier"), "{found:?}");
        assert!(found[1].contains("gates") && found[1].contains("- cargo test"), "{found:?}");
        assert!(found[2].contains("markers") && found[2].contains("- BUILT"), "{found:?}");
    }
}
