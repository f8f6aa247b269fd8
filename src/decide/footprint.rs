//! What an attempt left, as far as progress can be told by it.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use crate::model::Footprint;
use crate::text::similarity::{most_alike, normalised};

/// Folders of tests.
const TEST_FOLDERS: [&str; 8] =
    ["__tests__", "__mocks__", "__snapshots__", "spec", "specs", "test", "testdata", "tests"];

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
    /// What earlier attempts at the story said, normalized.
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

/// By its name, in the conventions of common languages.
fn is_test(path: &str) -> bool {
    let path = path.to_lowercase();
    let mut parts = path.split('/').rev();
    let name = parts.next().unwrap_or_default();
    parts.any(|folder| TEST_FOLDERS.contains(&folder)) || is_test_name(name)
}

fn is_test_name(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default();
    let has_ending = name.split('.').skip(1).any(|part| ["test", "spec", "snap"].contains(&part));
    let has_word = stem.split(['_', '-']).any(|part| ["test", "tests", "spec"].contains(&part));
    has_ending || has_word || stem == "conftest" || is_class_of_tests(name, stem)
}

/// `LoginTest.java`, `LoginTests.cs`: languages with a class per file.
fn is_class_of_tests(name: &str, stem: &str) -> bool {
    let ending = name.rsplit('.').next().unwrap_or_default();
    ["java", "kt", "scala", "groovy", "cs", "swift", "php"].contains(&ending)
        && (stem.ends_with("test") || stem.ends_with("tests"))
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

    #[test]
    fn tests_are_recognised_by_their_names() {
        for path in [
            "tests/it/run.rs",
            "src/core/tests/mod.rs",
            "src/state/tests.rs",
            "pkg/login_test.go",
            "test_login.py",
            "web/src/login.test.tsx",
            "web/src/login.spec.ts",
            "web/__tests__/login.js",
            "web/__snapshots__/a.snap",
            "spec/login_spec.rb",
            "app/src/test/java/Login.java",
            "app/LoginTest.java",
            "App.Tests/LoginTests.cs",
            "conftest.py",
        ] {
            assert!(is_test(path), "{path}");
        }
        for path in [
            "src/login.rs",
            "src/latest.rs",
            "src/contest.java.txt",
            "src/attest.py",
            "docs/testing.md",
            "src/inspector.rs",
            "README.md",
            "",
        ] {
            assert!(!is_test(path), "{path}");
        }
    }
}
