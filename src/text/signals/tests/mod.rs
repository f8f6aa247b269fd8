//! The module as its users see it: text in, signals out.

mod corpus;
mod escalations;
mod handoffs;
mod markers;

use proptest::prelude::*;

use crate::model::{AgentSignals, StoryId};

use super::*;
use corpus::{
    CLAIMS, CLAIMS_IN_CONTEXT, ESCALATIONS, MENTIONS, NOTHING, OTHER_STORIES, OTHERS, PROMISES,
    RETRACTIONS,
};

fn scan_for(story: &str, text: &str) -> AgentSignals {
    let mut scanner = Scanner::new(
        &StoryId::try_from(story).unwrap(),
        crate::model::CompletionMarkers::default(),
        0,
    );
    scanner.push(text);
    scanner.finish()
}

fn scan(text: &str) -> AgentSignals {
    scan_for("US-001", text)
}

fn claimed() -> AgentSignals {
    AgentSignals { claims_story: true, ..AgentSignals::default() }
}

fn check_all<'a>(texts: impl IntoIterator<Item = &'a str>, expected: &AgentSignals) {
    let wrong: Vec<_> = texts.into_iter().filter(|text| scan(text) != *expected).collect();
    assert!(wrong.is_empty(), "expected {expected:?} of {wrong:#?}");
}

fn check_wrapped(before: &str, after: &str, expected: &AgentSignals) {
    let texts: Vec<String> = CLAIMS.iter().map(|claim| format!("{before}{claim}{after}")).collect();
    check_all(texts.iter().map(String::as_str), expected);
}

#[test]
fn the_corpus_is_large_and_has_no_duplicates() {
    let near_misses = NOTHING.len() + RETRACTIONS.len();
    assert!(CLAIMS.len() >= 80, "{}", CLAIMS.len());
    assert!(near_misses >= 140, "{near_misses}");
    let mut all: Vec<_> =
        CLAIMS.iter().chain(CLAIMS_IN_CONTEXT).chain(NOTHING).chain(PROMISES).collect();
    all.sort_unstable();
    assert!(all.windows(2).all(|pair| pair[0] != pair[1]), "a case stands twice");
}

#[test]
fn claims_are_found_in_any_decoration() {
    check_all(CLAIMS.iter().chain(CLAIMS_IN_CONTEXT).copied(), &claimed());
}

#[test]
fn near_misses_are_no_signals() {
    check_all(NOTHING.iter().copied(), &AgentSignals::default());
}

#[test]
fn claims_in_code_quotes_and_comments_are_ignored() {
    let nothing = AgentSignals::default();
    for (before, after) in [
        ("```\n", "\n```"),
        ("~~~~ text\n", "\n~~~\n~~~~"),
        ("<!--\n", "\n-->"),
        ("<!-- ", " -->"),
        ("> ", ""),
        ("    ", ""),
        ("\t", ""),
        ("I would say ", ""),
        ("", " if it were true"),
        ("", "?"),
    ] {
        check_wrapped(before, after, &nothing);
    }
}

#[test]
fn claims_are_found_between_other_lines() {
    for (before, after) in [
        ("So.\n\n", "\n\nBye."),
        ("Task US-001 is not complete\r\n", "\r\n"),
        ("```\nx\n```\n", "\n```\nTask US-001 is not complete\n```"),
        ("> quote\n\n", "\n> Task US-001 is not complete"),
    ] {
        check_wrapped(before, after, &claimed());
    }
}

#[test]
fn a_retracted_claim_is_no_claim() {
    for line in RETRACTIONS {
        check_all([*line], &AgentSignals::default());
        let after = format!("Task US-001 complete\n{line}\n");
        check_all([after.as_str()], &AgentSignals::default());
        check_all([format!("{after}Task US-001 complete").as_str()], &claimed());
    }
}

#[test]
fn a_mention_does_not_retract_a_claim() {
    for line in MENTIONS {
        check_all([format!("Task US-001 complete\n{line}\n").as_str()], &claimed());
        check_all([*line], &AgentSignals::default());
    }
}

#[test]
fn claims_of_other_stories_are_reported_as_written() {
    for (text, ids) in OTHERS {
        let claims_others = ids.iter().map(|id| (*id).to_owned()).collect();
        check_all([*text], &AgentSignals { claims_others, ..AgentSignals::default() });
    }
}

#[test]
fn at_most_sixteen_other_stories_are_reported() {
    let text: String = (0..40).map(|n| format!("Task US-{n:04} done\n")).collect();
    let others = scan(&text).claims_others;
    assert_eq!(others.len(), 16);
    assert_eq!(others.last().unwrap(), "US-0015");
}

#[test]
fn an_id_must_match_as_a_whole() {
    for (story, line, claims) in OTHER_STORIES {
        assert_eq!(scan_for(story, line).claims_story, *claims, "{story}: {line}");
    }
}

#[test]
fn promises_are_found() {
    check_all(
        PROMISES.iter().copied(),
        &AgentSignals { promises_all: true, ..AgentSignals::default() },
    );
}

#[test]
fn an_escalation_hides_the_signals_inside_it() {
    for text in ESCALATIONS {
        let signals = scan(text);
        assert!(signals.escalation.is_some(), "{text}");
        assert_eq!(AgentSignals { escalation: None, ..signals }, AgentSignals::default(), "{text}");
    }
}

#[test]
fn a_claim_next_to_an_escalation_is_found() {
    let block = "<escalate type=\"stuck\">\n<summary>x</summary>\n</escalate>";
    for text in [format!("Task US-001 done\n{block}"), format!("{block}\nTask US-001 done")] {
        let signals = scan(&text);
        assert!(signals.claims_story && signals.escalation.is_some(), "{text}");
    }
}

#[test]
fn the_first_escalation_counts() {
    let text =
        "<escalate><summary>a</summary></escalate>\n<escalate><summary>b</summary></escalate>";
    assert_eq!(scan(text).escalation.unwrap().summary, "a");
}

#[test]
fn the_end_of_a_message_closes_open_blocks() {
    for open in ["```", "- ~~~", "<!-- x", "say <!--", "<escalate type=\"stuck\">", "x"] {
        let mut scanner = Scanner::new(
            &StoryId::try_from("US-001").unwrap(),
            crate::model::CompletionMarkers::default(),
            0,
        );
        scanner.push(open);
        scanner.end_message();
        scanner.push("Task US-001 complete");
        assert!(scanner.finish().claims_story, "{open}");
    }
}

#[test]
fn a_line_over_the_limit_is_ignored() {
    let long = format!("Task US-001 complete{}", " ".repeat(64 * 1024));
    assert_eq!(scan(&long), AgentSignals::default());
    assert!(scan(&format!("{long}\nTask US-001 complete")).claims_story);
    let fits = format!("Task US-001 complete{}", " ".repeat(64 * 1024 - 20));
    assert!(scan(&fits).claims_story);
}

#[test]
fn memory_is_bounded() {
    for start in ["", "<escalate>\n", "```\n", "<!-- "] {
        let mut scanner = Scanner::new(
            &StoryId::try_from("US-001").unwrap(),
            crate::model::CompletionMarkers::default(),
            0,
        );
        scanner.push(start);
        for chunk in ["é".repeat(500), "x".repeat(7777), "</escalat".repeat(100_000)] {
            for _ in 0..(4 << 20) / chunk.len() {
                scanner.push(&chunk);
                assert!(scanner.buffered() <= 128 * 1024, "{}", scanner.buffered());
            }
        }
        for _ in 0..100 {
            scanner.push(&format!("{}\n", "y".repeat(10_000)));
            assert!(scanner.buffered() <= 128 * 1024, "{}", scanner.buffered());
        }
    }
}

#[test]
fn a_long_line_that_repeats_the_id_is_only_a_mention() {
    for story in ["US-001", "a"] {
        let line = format!("task {story} ").repeat(64 * 1024 / (story.len() + 6));
        let signals = scan_for(story, &format!("Task {story} complete\n{line}\n"));
        assert!(signals.claims_story);
    }
}

fn fragment() -> impl Strategy<Value = String> {
    let fixed = prop::sample::select(vec![
        "\n",
        "\r\n",
        "\r",
        " ",
        "    ",
        "\t",
        "```",
        "~~~",
        "`",
        "> ",
        "- ",
        "**",
        "<!--",
        "-->",
        "<!-->",
        "Task US-001 complete",
        "Task US-001 is not complete",
        "Task `US-002` done",
        "Task",
        "US-001",
        "complete",
        "<promise>DONE</promise>",
        "<promise>",
        "DONE",
        "<escalate type=\"stuck\">",
        "<escalate",
        "</escalate>",
        "<summary>",
        "</summary>",
        "<options>",
        "1. a",
        "</options>",
        "é",
        "✅",
        "👩‍💻",
        "\u{2028}",
        "\0",
        ".",
        "?",
    ]);
    prop_oneof![
        24 => fixed.prop_map(str::to_owned),
        8 => Just("\n".to_owned()),
        4 => any::<String>(),
        1 => (0usize..3).prop_map(|n| "é".repeat(32 * 1024 - 1 + n)),
    ]
}

fn chunked(text: &str, lengths: &[usize]) -> AgentSignals {
    let mut scanner = Scanner::new(
        &StoryId::try_from("US-001").unwrap(),
        crate::model::CompletionMarkers::default(),
        0,
    );
    let mut lengths = lengths.iter().cycle();
    let mut chars = text.chars().peekable();
    while chars.peek().is_some() {
        let chunk: String = chars.by_ref().take(*lengths.next().unwrap()).collect();
        scanner.push(&chunk);
    }
    scanner.finish()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn chunking_makes_no_difference(
        fragments in prop::collection::vec(fragment(), 0..24),
        lengths in prop::collection::vec(1usize..40, 1..8),
    ) {
        let text = fragments.concat();
        prop_assert_eq!(chunked(&text, &lengths), scan(&text));
        prop_assert_eq!(chunked(&text, &[1]), scan(&text));
    }
}
