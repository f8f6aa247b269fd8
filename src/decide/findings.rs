//! What an interrupted run left, and what happens next.

use crate::model::{Resumed, StoryId};
use crate::state::{RunState, Stage, StoryState};

/// The most lines.
const MOST: usize = 6;

/// `state` is the one before the run continues.
pub fn findings(state: &RunState) -> Vec<Resumed> {
    let attempt = state.attempts.iter().next();
    let attempt = attempt.map(|flight| (flight.start.iteration, flight.start.story.clone()));
    let mut found = vec![Resumed::After { died: state.cut_off, attempt }];
    found.extend(state.stories.iter().filter_map(|(id, known)| left_behind(state, id, known)));
    let more = found.len().saturating_sub(MOST);
    if more > 0 {
        found.truncate(MOST);
        found.push(Resumed::More { count: more });
    }
    found
}

fn left_behind(state: &RunState, id: &StoryId, known: &StoryState) -> Option<Resumed> {
    let story = id.clone();
    Some(match &known.stage {
        Stage::Accepted { .. } => Resumed::Accepted(story),
        Stage::Skipping => Resumed::ToSkip(story),
        Stage::Asking { .. } => Resumed::Question(story),
        Stage::Claimed(_) => Resumed::Claimed(story),
        _ if state.lanes.of(id).is_some() => Resumed::InTree(story),
        _ => Resumed::Shelved { story, reference: known.work.shelved()?.to_owned() },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::samples::History;
    use crate::model::{Answer, Event, Verdict};

    #[test]
    fn each_state_of_a_story_says_what_happens_next() {
        let new = History::new;
        let interrupted = Event::RunInterrupted { signal: 2 };
        let story = || StoryId::try_from("A").unwrap();
        let after = |died, attempt| Resumed::After { died, attempt };
        let died = || after(true, None);
        let shelved = Resumed::Shelved { story: story(), reference: "refs/A/1".into() };
        for (history, expected) in [
            (new().then(Event::RunContinued), vec![died()]),
            (new().started("A"), vec![after(true, Some((1, story()))), Resumed::InTree(story())]),
            (
                new().tried("A", Verdict::Progress).then(interrupted),
                vec![after(false, None), Resumed::InTree(story())],
            ),
            (new().tried("A", Verdict::Done), vec![died(), Resumed::Claimed(story())]),
            (
                new().tried("A", Verdict::Done).planned("A"),
                vec![died(), Resumed::Accepted(story())],
            ),
            (new().tried("A", Verdict::Done).planned("A").closed("A"), vec![died()]),
            (new().raised("A"), vec![died(), Resumed::Question(story())]),
            (new().raised("A").answered("A", Answer::Skip), vec![died(), Resumed::ToSkip(story())]),
            (new().shelved("A", Some("refs/A/1")), vec![died(), shelved]),
        ] {
            assert_eq!(findings(&history.state), expected);
        }
    }

    #[test]
    fn it_stays_a_few_lines() {
        let keep = |history: History, n: u32| history.shelved(&format!("S{n}"), Some("refs/x"));
        let found = findings(&(1..=40).fold(History::new(), keep).state);
        assert_eq!(found.len(), MOST + 1);
        assert_eq!(found[MOST], Resumed::More { count: 35 });
    }
}
