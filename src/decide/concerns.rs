//! Changes that could make an agent's own work look done.

use crate::decide::weigh::Gates;
use crate::model::{
    Backlog, ChangeKind, CompletionMarkers, Concern, Escalation, EscalationKind, Gate, HeldChange,
    RunMarkers, Story, StoryId, shorten,
};

/// Stories that existed when an attempt began.
pub fn removed_stories(before: &[StoryId], backlog: &Backlog) -> Vec<StoryId> {
    // Nearly always the same ones in the same order, which is much faster to see.
    if before.iter().eq(backlog.stories.iter().map(|story| &story.id)) {
        return Vec::new();
    }
    before.iter().filter(|id| backlog.story(id).is_none()).cloned().collect()
}

/// What differs in the backlog that decides what counts as done and what may run: stories that are gone,
/// their order, criteria, gates and markers, and which project it is: in another one a new run begins.
/// Marks are compared with the journal, and new stories are work, not an excuse. `own`: the story that
/// was at work.
pub fn of_backlog(before: &Backlog, now: &Backlog, own: Option<&StoryId>) -> Vec<Concern> {
    let mut found = Vec::new();
    if (&before.project, &before.description) != (&now.project, &now.description) {
        let lines = |one: &Backlog| vec![one.project.clone(), one.description.clone()];
        let what = "the project's name or description changed".to_owned();
        found.push(Concern { what, diff: diff(&lines(before), &lines(now)) });
    }
    for (place, story) in before.stories.iter().enumerate() {
        let same_place = now.stories.get(place).filter(|other| other.id == story.id);
        match same_place.or_else(|| now.story(&story.id)) {
            Some(other) => of_edited(story, other, own == Some(&story.id), &mut found),
            None => found.push(Concern {
                what: format!("{} disappeared from the backlog", story.id),
                diff: format!("- {}: {}", story.id, story.title),
            }),
        }
    }
    found.extend(of_order(before, now));
    found
}

fn of_edited(before: &Story, now: &Story, is_own: bool, found: &mut Vec<Concern>) {
    let whose = |what| match is_own {
        true => format!("its {what} changed"),
        false => format!("the {what} of {} changed", before.id),
    };
    let mut compare = |what, before: Vec<String>, now: Vec<String>| {
        found.push(Concern { what: whose(what), diff: diff(&before, &now) });
    };
    if before.criteria != now.criteria {
        compare("criteria", before.criteria.clone(), now.criteria.clone());
    }
    if before.verify != now.verify {
        compare("gates", gate_lines(&before.verify), gate_lines(&now.verify));
    }
    if before.markers != now.markers {
        compare("completion markers", marker_lines(&before.markers), marker_lines(&now.markers));
    }
    let lines = |one: Option<String>| Vec::from_iter(one);
    let priorities = |one: &Story| lines(one.priority.map(|number| number.to_string()));
    if before.priority != now.priority {
        compare("priority", priorities(before), priorities(now));
    }
    if before.depends_on != now.depends_on {
        let ids = |one: &Story| one.depends_on.iter().map(ToString::to_string).collect();
        compare("dependencies", ids(before), ids(now));
    }
    let limits = |one: &Story| lines(one.max_attempts.map(|number| number.to_string()));
    if before.max_attempts != now.max_attempts {
        compare("max_attempts", limits(before), limits(now));
    }
}

/// Of the stories that are in both.
fn of_order(before: &Backlog, now: &Backlog) -> Option<Concern> {
    let ids = |one: &Backlog, other: &Backlog| -> Vec<StoryId> {
        let both = one.stories.iter().filter(|story| other.story(&story.id).is_some());
        both.map(|story| story.id.clone()).collect()
    };
    let (old, new) = (ids(before, now), ids(now, before));
    let listed = |ids: &[StoryId]| ids.iter().map(StoryId::as_str).collect::<Vec<_>>().join(", ");
    (old != new).then(|| Concern {
        what: "the order of the stories changed".to_owned(),
        diff: format!("- {}\n+ {}", listed(&old), listed(&new)),
    })
}

/// What the human changed about the story itself since the run's start: its gates and markers in
/// force are those from then.
pub fn of_story(story: &Story, gates: &Gates, markers: &RunMarkers) -> Vec<Concern> {
    let gates = gates.of_story(&story.id);
    let gates = (gates != story.verify).then(|| Concern {
        what: "its gates changed (those of the run's start were run)".to_owned(),
        diff: diff(&gate_lines(gates), &gate_lines(&story.verify)),
    });
    let markers = markers.of.get(&story.id).filter(|before| **before != story.markers);
    let markers = markers.map(|before| Concern {
        what: "its completion markers changed".to_owned(),
        diff: diff(&marker_lines(before), &marker_lines(&story.markers)),
    });
    gates.into_iter().chain(markers).collect()
}

/// Asks what becomes of the changes that an attempt or a gate of the story made.
pub fn question(story: &StoryId, held: &[HeldChange]) -> Option<Escalation> {
    let whats: Vec<&str> = held.iter().map(|change| change.what.as_str()).collect();
    let first = whats.first()?;
    let more = match whats.len() {
        1 => String::new(),
        count => format!(", and {} more", count - 1),
    };
    let of_backlog = held.iter().any(|change| change.of == ChangeKind::Backlog);
    let changed = if of_backlog { "what counts as done" } else { "what needs your approval" };
    let summary = format!("work on {story} changed {changed}: {first}{more}");
    let one = |change: &HeldChange| {
        let kept = change.changed.as_ref().map(|kept| format!("\n(the changed version: {kept})"));
        let diff = change.diff.trim_end();
        // Each change of the backlog has its own heading in the diff.
        let heading = match change.of {
            ChangeKind::Backlog => String::new(),
            ChangeKind::File => format!("{}\n", change.what),
        };
        format!("{heading}{diff}{}", kept.unwrap_or_default())
    };
    let context = held.iter().map(one).collect::<Vec<_>>().join("\n\n");
    Some(Escalation {
        kind: EscalationKind::Change,
        summary: shorten(&summary, 300),
        context,
        options: Vec::new(),
        question: "The original is back. Shall it stay, or is the change wanted?".to_owned(),
        unread: None,
    })
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
    use std::num::NonZeroU32;

    use super::*;
    use crate::decide::samples::{id, story};

    #[test]
    fn a_story_is_compared_with_what_it_was_at_the_runs_start() {
        let (mut now, mut gates, mut markers) =
            (story("A"), Gates::default(), RunMarkers::default());
        let whats = |now: &Story, gates: &Gates, markers: &RunMarkers| -> Vec<String> {
            let found = of_story(now, gates, markers);
            found.into_iter().map(|one| format!("{}: {}", one.what, one.diff)).collect()
        };
        assert_eq!(whats(&now, &gates, &markers), [""; 0]);
        now.criteria = vec!["the human's".to_owned()];
        gates.of.insert(id("A"), vec![Gate::shell("cargo test")]);
        let before = CompletionMarkers { stages: vec!["BUILT".into()], ..Default::default() };
        markers.of.insert(id("A"), before);
        let found = whats(&now, &gates, &markers);
        assert!(found[0].contains("gates") && found[0].contains("- cargo test"), "{found:?}");
        assert!(found[1].contains("markers") && found[1].contains("- BUILT"), "{found:?}");
    }

    type Edit = fn(&mut Vec<Story>);

    #[test]
    fn a_backlog_is_compared_with_what_it_was() {
        let edits: [(&str, Edit, &str, &str); 13] = [
            ("nothing", |_| {}, "", ""),
            ("marks", |all| all[1].passes = true, "", ""),
            ("a title", |all| all[1].title = "other".into(), "", ""),
            ("a new story", |all| all.insert(0, story("N")), "", ""),
            ("gone", |all| drop(all.remove(1)), "B disappeared", "- B: "),
            ("renamed", |all| all[1].id = id("X"), "B disappeared", "- B: "),
            ("own", |all| all[0].criteria.clear(), "its criteria changed", "- It works"),
            (
                "another's",
                |all| all[2].verify.push(Gate::shell("true")),
                "the gates of C changed",
                "+ true",
            ),
            ("priority", |all| all[1].priority = Some(1.0), "the priority of B changed", "+ 1"),
            ("own priority", |all| all[0].priority = Some(0.5), "its priority changed", "+ 0.5"),
            (
                "a dependency",
                |all| all[2].depends_on.push(id("A")),
                "the dependencies of C changed",
                "+ A",
            ),
            (
                "more attempts",
                |all| all[0].max_attempts = NonZeroU32::new(9),
                "its max_attempts changed",
                "+ 9",
            ),
            ("order", |all| all.swap(0, 2), "the order", "- A, B, C\n+ C, B, A"),
        ];
        let backlog = |stories| Backlog::new("p".into(), "d".into(), stories);
        for (case, edit, what, diff) in edits {
            let before = backlog(vec![story("A"), story("B"), story("C")]);
            let mut stories = before.stories.clone();
            edit(&mut stories);
            let found = of_backlog(&before, &backlog(stories), Some(&id("A")));
            assert_eq!(found.is_empty(), what.is_empty(), "{case}: {found:?}");
            let is_said = |one: &Concern| one.what.contains(what) && one.diff.contains(diff);
            assert!(found.iter().all(is_said), "{case}: {found:?}");
        }
    }

    #[test]
    fn a_question_has_one_heading_for_each_change() {
        let change = |of, what: &str, diff: &str| HeldChange {
            of,
            path: what.to_owned(),
            what: what.to_owned(),
            diff: diff.to_owned(),
            before: None,
            changed: None,
            hash: None,
        };
        let backlog = change(ChangeKind::Backlog, "x; y", "x\n- a\ny\n+ b\n");
        let file = change(ChangeKind::File, "`f` changed", "+ c\n");
        let asked = question(&id("A"), &[backlog, file]).unwrap();
        assert_eq!(asked.context, "x\n- a\ny\n+ b\n\n`f` changed\n+ c");
    }
}
