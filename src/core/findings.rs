//! What an interrupted run left behind, and what becomes of it: for the human, in a few lines.

use super::id::StoryId;
use super::state::{RunState, StoryState};

/// More would be a list to read, not a few lines.
const MOST: usize = 6;

/// Of the state before the run goes on.
pub fn findings(state: &RunState) -> Vec<String> {
    let stories = state.stories.iter();
    let mut found: Vec<String> = std::iter::once(how_it_ended(state))
        .chain(stories.filter_map(|(id, known)| left_behind(state, id, known)))
        .collect();
    let more = found.len().saturating_sub(MOST);
    if more > 0 {
        found.truncate(MOST);
        found.push(format!("and {more} more; `ralph status` lists every story"));
    }
    found
}

fn how_it_ended(state: &RunState) -> String {
    let how = if state.cut_off {
        "the process before this one died"
    } else {
        "the process before this one was interrupted"
    };
    match state.in_flight.values().next() {
        Some(attempt) => format!("{how} in iteration {}, on {}", attempt.iteration, attempt.story),
        None => format!("{how}, no agent was at work"),
    }
}

fn left_behind(state: &RunState, id: &StoryId, known: &StoryState) -> Option<String> {
    Some(if known.closing.is_some() {
        format!("{id} was accepted: its commit is looked for, and made if it is not there")
    } else if known.skip_wanted {
        format!("{id} is to be skipped: that comes first")
    } else if known.question.is_some() {
        format!("{id} has a question: it is asked again")
    } else if known.claim.is_some() {
        format!("{id} was claimed to be done: the claim is checked")
    } else if state.in_tree.as_ref() == Some(id) {
        format!("unfinished work on {id} is in the tree: its next attempt goes on with it")
    } else if let Some(reference) = &known.set_aside {
        format!("work on {id} is kept at `{reference}`: its next attempt brings it back")
    } else {
        return None;
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::event::{Answer, Event};
    use crate::core::tests::History;
    use crate::core::verdict::Verdict;

    #[test]
    fn each_state_of_a_story_says_what_happens_next() {
        let new = History::new;
        let interrupted = Event::RunInterrupted { signal: 2 };
        for (history, expected) in [
            (new().then(Event::RunContinued), vec!["died, no agent was at work"]),
            (new().started("A"), vec!["died in iteration 1, on A", "work on A is in the tree"]),
            (
                new().tried("A", Verdict::Progress).then(interrupted),
                vec!["was interrupted, no agent", "work on A is in the tree"],
            ),
            (new().tried("A", Verdict::Done), vec!["died", "A was claimed to be done"]),
            (
                new().tried("A", Verdict::Done).planned("A"),
                vec!["died", "A was accepted: its commit is looked for"],
            ),
            (new().tried("A", Verdict::Done).planned("A").closed("A"), vec!["died"]),
            (new().raised("A"), vec!["died", "A has a question"]),
            (new().raised("A").answered("A", Answer::Skip), vec!["died", "A is to be skipped"]),
            (new().set_aside("A", Some("refs/A/1")), vec!["died", "A is kept at `refs/A/1`"]),
        ] {
            let found = findings(&history.state);
            assert_eq!(found.len(), expected.len(), "{found:?}");
            for (line, part) in found.iter().zip(expected) {
                assert!(line.contains(part), "`{part}` is not in `{line}`");
            }
        }
    }

    #[test]
    fn it_stays_a_few_lines() {
        let keep = |history: History, n: u32| history.set_aside(&format!("S{n}"), Some("refs/x"));
        let found = findings(&(1..=40).fold(History::new(), keep).state);
        assert_eq!(found.len(), MOST + 1);
        assert!(found[MOST].starts_with("and 35 more"), "{found:?}");
    }
}
