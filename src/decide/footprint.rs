//! What an attempt left, as far as progress can be told by it.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use crate::model::Footprint;
use crate::text::similarity::{most_alike, normalised};
use crate::text::test_paths::is_test;

/// What an attempt is measured by.
pub struct FootprintFacts<'a> {
    /// Files that differ after it; None: not checked.
    pub paths: Option<&'a [PathBuf]>,
    /// The branch has other commits.
    pub committed: bool,
    /// Marks that an agent sets are reverted, so a change of the backlog is no work.
    pub backlog: Option<&'a Path>,
    /// The story's own text is another one.
    pub story_changed: bool,
    /// The agent's final text; empty if it did not end normally.
    pub said: &'a str,
    /// What earlier attempts at the story said, normalised.
    pub before: Option<&'a VecDeque<String>>,
}

impl FootprintFacts<'_> {
    pub fn footprint(&self) -> Footprint {
        let said = normalised(self.said);
        let likeness = most_alike(&said, self.before.into_iter().flatten());
        let Some(paths) = self.paths else {
            return Footprint { said, likeness, ..Footprint::default() };
        };
        let is_work = |path: &&PathBuf| Some(path.as_path()) != self.backlog;
        let work: Vec<&PathBuf> = paths.iter().filter(is_work).collect();
        let only_tests = work.iter().all(|path| is_test(&path.to_string_lossy()));
        Footprint {
            changed: Some(self.committed || !work.is_empty() || self.story_changed),
            committed: self.committed,
            only_tests: only_tests && !work.is_empty(),
            said,
            likeness,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn footprint(committed: bool, paths: &[&str], story_changed: bool) -> Footprint {
        let paths: Vec<PathBuf> = paths.iter().map(PathBuf::from).collect();
        let (paths, backlog) = (Some(paths.as_slice()), Some(Path::new("PRD.json")));
        FootprintFacts { paths, committed, backlog, story_changed, said: "", before: None }
            .footprint()
    }

    #[test]
    fn marks_are_no_work_and_a_commit_or_another_story_is() {
        for (committed, paths, story_changed, expected) in [
            (false, &[][..], false, (Some(false), false)),
            (false, &["PRD.json"], false, (Some(false), false)),
            (false, &["PRD.json", "a.rs"], false, (Some(true), false)),
            (false, &["tests/a.rs", "PRD.json"], false, (Some(true), true)),
            (false, &["tests/a.rs", "src/a.rs"], false, (Some(true), false)),
            (true, &[], false, (Some(true), false)),
            (false, &["PRD.json"], true, (Some(true), false)),
        ] {
            let found = footprint(committed, paths, story_changed);
            assert_eq!((found.changed, found.only_tests), expected, "{paths:?}");
        }
    }

    #[test]
    fn an_unchecked_tree_says_nothing_and_texts_are_compared() {
        let before = VecDeque::from([normalised("I finished 12 tests of the parser.")]);
        let facts = FootprintFacts {
            paths: None,
            committed: false,
            backlog: None,
            story_changed: false,
            said: "I finished 13 tests of the parser.",
            before: Some(&before),
        };
        let found = facts.footprint();
        assert_eq!((found.changed, found.likeness), (None, 1.0));
    }
}
