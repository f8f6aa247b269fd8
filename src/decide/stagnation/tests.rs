use std::num::NonZeroU32;

use crate::decide::next::decide;
use crate::decide::samples::{History, attended, backlog, failed, id, policy, story};
use crate::decide::situation::{Action, Observed};
use crate::model::{Answer, Cause, Event, ServiceFault, Verdict};
use crate::state::Stagnation;

use super::*;

const UNTOUCHED: Footprint = Footprint {
    changed: Some(false),
    committed: false,
    only_tests: false,
    said: String::new(),
    likeness: 0.0,
};
const EDITED: Footprint = Footprint {
    changed: Some(true),
    committed: false,
    only_tests: false,
    said: String::new(),
    likeness: 0.0,
};
const TESTS: Footprint = Footprint {
    changed: Some(true),
    committed: false,
    only_tests: true,
    said: String::new(),
    likeness: 0.0,
};
const LONG: &str = "I looked at the login page and at everything that it calls. It still fails, and \
                    I do not know why it does. I shall look at it again next time.";

/// What is asked about A next, if anything is.
fn asked(history: &History) -> Option<String> {
    let many = NonZeroU32::new(99).unwrap();
    asked_by(history, &Policy { max_attempts: many, ..attended() })
}

fn asked_by(history: &History, policy: &Policy) -> Option<String> {
    let stories = backlog([story("A"), story("B")]);
    match decide(&history.state, &stories, policy, &Observed::default()) {
        Action::Raise { story, question } if story == id("A") => Some(question.summary),
        _ => None,
    }
}

fn told(history: &History) -> Option<String> {
    history.of("A").stagnation.remark()
}

fn often(history: History, times: u32, verdict: &Verdict, footprint: &Footprint) -> History {
    (0..times).fold(history, |history, _| history.left("A", verdict.clone(), footprint.clone()))
}

/// What an attempt at A that says this leaves.
fn says(history: &History, text: &str, footprint: &Footprint) -> Footprint {
    let said = normalized(text);
    let likeness = most_alike(&said, &history.of("A").stagnation.said);
    Footprint { said, likeness, ..footprint.clone() }
}

fn said(history: History, text: &str, footprint: &Footprint) -> History {
    let footprint = says(&history, text, footprint);
    history.left("A", Verdict::Progress, footprint)
}

#[test]
fn two_iterations_without_changes_are_mentioned_and_three_become_a_question() {
    let nothing = failed("nothing was done");
    let idle = |times| often(History::new(), times, &nothing, &UNTOUCHED);
    let fault = Verdict::NotTheStory { fault: ServiceFault::Outage, error: "o".into() };
    let question = Some("3 iterations in a row changed nothing".to_owned());
    for (case, history, tells, asks) in [
        ("one", idle(1), false, None),
        ("two", idle(2), true, None),
        ("three", idle(3), true, question.clone()),
        ("different errors", idle(2).left("A", failed("x"), UNTOUCHED), true, question.clone()),
        ("a claim that a gate rejected", idle(2).left("A", Verdict::Done, UNTOUCHED), true, None),
        ("the third one edits", idle(2).left("A", failed("x"), EDITED), false, None),
        ("an edit between", idle(2).left("A", Verdict::Progress, EDITED), false, None),
        ("a service fault between", idle(2).tried("A", fault.clone()), true, None),
        (
            "three with a bad day",
            idle(2).tried("A", fault).left("A", nothing.clone(), UNTOUCHED),
            true,
            question,
        ),
        ("interrupted", idle(2).left("A", Verdict::Interrupted, UNTOUCHED), true, None),
        (
            "nobody looked",
            often(History::new(), 2, &failed("x"), &Footprint::default()),
            false,
            None,
        ),
        ("the human had a say", idle(3).raised("A").answered("A", Answer::Retry), false, None),
        ("another story's", idle(2).left("B", nothing.clone(), UNTOUCHED), true, None),
    ] {
        assert_eq!(told(&history).is_some(), tells, "{case}: {:?}", told(&history));
        assert_eq!(asked(&history), asks, "{case}");
    }
}

#[test]
fn a_claim_with_nothing_to_show_changed_nothing() {
    let rejected = |history: History| {
        history.left("A", Verdict::Done, Footprint::default()).then(Event::ClaimRejected {
            story: id("A"),
            error: "unfounded".into(),
            fingerprint: "unfounded".into(),
            unfounded: true,
        })
    };
    let once = rejected(History::new());
    assert_eq!(told(&once), None);
    assert!(told(&rejected(once)).is_some());
}

#[test]
fn the_same_error_three_times_is_a_question_in_turn_too() {
    let errors = |names: &str| {
        names.chars().fold(History::new(), |history, name| match name {
            '+' => history.left("A", Verdict::Progress, EDITED),
            'o' => history.returning("A", Cause::FreshStart).returned("A", Some("r")),
            name => history.left("A", failed(&name.to_string()), EDITED),
        })
    };
    for (names, asks) in [
        ("aa", None),
        ("aaa", Some("the same error 3 times in a row: a")),
        ("aba", None),
        ("abab", Some("two errors alternate; the latest: b")),
        ("abba", None),
        ("abac", None),
        ("abaca", Some("the same error 3 times: a")),
        ("abcabc", None),
        ("abcabca", Some("the same error 3 times: a")),
        ("aa+a", None),
        ("aba+b", None),
        ("aaoa", Some("the same error 3 times in a row: a")),
        ("abcde", None),
    ] {
        let policy = Policy { max_attempts: NonZeroU32::new(99).unwrap(), ..attended() };
        assert_eq!(asked_by(&errors(names), &policy).as_deref(), asks, "{names}");
    }
    let patient = Policy { stuck_threshold: NonZeroU32::new(4).unwrap(), ..attended() };
    assert_eq!(asked_by(&errors("aaa"), &patient), None);
    assert_eq!(asked_by(&errors("abab"), &patient), None);
}

#[test]
fn a_repeated_text_is_mentioned_and_then_becomes_a_question() {
    let other = "The login works now. The logout is next: it leaves the session's file behind, \
                 and nobody has looked into that yet.";
    let new = History::new;
    let first = || said(new(), LONG, &EDITED);
    let twice = || said(first(), LONG, &EDITED);
    let committed = Footprint { committed: true, ..EDITED };
    let loops = Some("the agents keep ending with the same text, without a commit".to_owned());
    let five_others = |history| {
        ["one", "two", "three", "four", "five"]
            .iter()
            .fold(history, |history, word| said(history, &word.repeat(40), &EDITED))
    };
    for (case, history, tells, asks) in [
        ("the first time", first(), false, None),
        ("the second time", twice(), true, None),
        ("the third time", said(twice(), LONG, &EDITED), true, loops.clone()),
        ("with other numbers", said(first(), &format!("{LONG} 7"), &EDITED), true, None),
        ("another text", said(first(), other, &EDITED), false, None),
        ("another text between", said(said(twice(), other, &EDITED), LONG, &EDITED), true, None),
        (
            "two in turn",
            said(said(said(first(), other, &EDITED), LONG, &EDITED), other, &EDITED),
            true,
            loops,
        ),
        ("five others between", said(five_others(first()), LONG, &EDITED), false, None),
        (
            "healthy: it commits every time",
            said(said(said(first(), LONG, &committed), LONG, &committed), LONG, &committed),
            false,
            None,
        ),
        (
            "a few words and files that change",
            said(said(said(new(), "Not yet.", &EDITED), "Not yet.", &EDITED), "Not yet.", &EDITED),
            false,
            None,
        ),
        (
            "a few words and nothing else",
            said(said(new(), "Not yet.", &UNTOUCHED), "Not yet.", &UNTOUCHED),
            true,
            None,
        ),
        ("silence", said(said(said(new(), "", &EDITED), "", &EDITED), "", &EDITED), false, None),
        ("the human had a say", twice().raised("A").answered("A", Answer::Retry), false, None),
    ] {
        assert_eq!(told(&history).is_some(), tells, "{case}: {:?}", told(&history));
        assert_eq!(asked(&history), asks, "{case}");
    }
}

#[test]
fn three_finished_stories_with_the_same_text_are_not_stuck() {
    let names = ["A", "B", "C"];
    let finished = names.iter().fold(History::new(), |history, name| {
        let footprint = says(&history, LONG, &Footprint::default());
        history.left(name, Verdict::Done, footprint).planned(name).closed(name)
    });
    for name in names {
        assert_eq!(finished.of(name).stagnation, Stagnation::default(), "{name}");
    }
    assert_eq!(finished.state.breaker, crate::state::Breaker::default());
}

#[test]
fn three_iterations_on_tests_alone_are_mentioned_and_the_fourth_becomes_a_question() {
    let tests = |times| often(History::new(), times, &Verdict::Progress, &TESTS);
    for (case, history, tells, asks) in [
        ("two", tests(2), false, None),
        ("three", tests(3), true, None),
        ("four", tests(4), true, Some("4 iterations in a row touched only tests".to_owned())),
        ("code between", tests(2).left("A", Verdict::Progress, EDITED), false, None),
        ("code after", tests(3).left("A", Verdict::Progress, EDITED), false, None),
        ("nothing between", tests(2).left("A", failed("x"), UNTOUCHED), false, None),
        ("nothing after", tests(3).left("A", failed("x"), UNTOUCHED), true, None),
    ] {
        assert_eq!(told(&history).is_some(), tells, "{case}");
        assert_eq!(asked(&history), asks, "{case}");
    }
}

#[test]
fn a_story_may_have_its_own_number_of_attempts() {
    let tried = |times| often(History::new(), times, &Verdict::Progress, &EDITED);
    let stories = |most| backlog([Story { max_attempts: NonZeroU32::new(most), ..story("A") }]);
    let asks = |history: &History, most| {
        let next = decide(&history.state, &stories(most), &policy(), &Observed::default());
        matches!(next, Action::Raise { .. })
    };
    assert!(!asks(&tried(1), 2) && asks(&tried(2), 2));
    assert!(!asks(&tried(5), 7) && asks(&tried(7), 7));
    assert!(!asks(&tried(4), 0) && asks(&tried(5), 0), "else it is the run's");
}

#[test]
fn the_question_says_what_was_tried() {
    let kept = |reference: &str| Event::AttemptKept {
        story: id("A"),
        reference: reference.into(),
        changes: "1 file, +1 -0".into(),
    };
    let history = History::new()
        .left("A", failed("no such file"), EDITED)
        .then(kept("refs/1"))
        .left("A", failed("no such column"), EDITED)
        .then(kept("refs/2"));
    let policy = Policy { max_attempts: NonZeroU32::new(2).unwrap(), ..policy() };
    let question = question(&story("A"), &history.of("A"), &policy).unwrap();
    assert_eq!(question.summary, "not complete after 2 attempts");
    let expected = "no such column\n\nWhat was tried:\n- no such file (refs/1, 1 file, +1 -0)\n\
                    - no such column (refs/2, 1 file, +1 -0)";
    assert_eq!(question.context, expected);
}

mod footprint {
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
        let before = VecDeque::from([normalized("I finished 12 tests of the parser.")]);
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
    fn tests_are_recognized_by_their_names() {
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
