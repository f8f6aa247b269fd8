//! Escalations, well-formed and malformed.

use crate::model::EscalationKind::{Deviation, Stuck, Unstated};
use crate::model::{Escalation, EscalationKind, StoryId};

use super::super::*;

fn escalation(text: &str) -> Escalation {
    let mut scanner = Scanner::new(
        &StoryId::try_from("US-001").unwrap(),
        crate::model::CompletionMarkers::default(),
        0,
    );
    scanner.push(text);
    scanner.finish().escalation.unwrap()
}

struct Expected {
    kind: EscalationKind,
    summary: &'static str,
    context: &'static str,
    options: &'static [&'static str],
    question: &'static str,
    unread: Option<&'static str>,
}

const EMPTY: Expected =
    Expected { kind: Unstated, summary: "", context: "", options: &[], question: "", unread: None };

fn check(text: &str, expected: &Expected) {
    let expected = Escalation {
        kind: expected.kind,
        summary: expected.summary.to_owned(),
        context: expected.context.to_owned(),
        options: expected.options.iter().map(|option| (*option).to_owned()).collect(),
        question: expected.question.to_owned(),
        unread: expected.unread.map(str::to_owned),
    };
    assert_eq!(escalation(text), expected, "{text}");
}

#[test]
fn a_complete_block_is_read() {
    let text = "\
I need help.
<escalate type=\"deviation\">
<summary> The API is gone </summary>
<context>
It answers 404:
```
</summary> <promise>DONE</promise>
```
since May.
</context>
<options>
1. Use v2
2) Drop the story,
   and say so
</options>
<question>Which one?</question>
</escalate>
Thanks.";
    let expected = Expected {
        kind: Deviation,
        summary: "The API is gone",
        context: "It answers 404:\n```\n</summary> <promise>DONE</promise>\n```\nsince May.",
        options: &["Use v2", "Drop the story, and say so"],
        question: "Which one?",
        unread: None,
    };
    check(text, &expected);
    check(&text.replace('\n', "\r\n"), &expected);
    check(&text.replace("</escalate>", ""), &Expected { unread: Some("Thanks."), ..expected });
}

#[test]
fn the_kind_is_read_in_any_spelling() {
    for (tag, kind) in [
        ("<escalate type=\"stuck\">", Stuck),
        ("<escalate type='stuck'>", Stuck),
        ("<escalate type=stuck>", Stuck),
        ("<escalate type=“stuck”>", Stuck),
        ("<escalate  TYPE = \" Stuck \" >", Stuck),
        ("<ESCALATE type=\"deviation\" id=\"3\">", Deviation),
        ("<escalate\n  type=\"deviation\"\n>", Deviation),
        ("<escalate type=\"stuck\"", Stuck),
        ("<escalate>", Unstated),
        ("<escalate/>", Unstated),
    ] {
        let text = format!("{tag}\n<summary>s</summary>\n</escalate>");
        check(&text, &Expected { kind, summary: "s", ..EMPTY });
    }
}

#[test]
fn an_unreadable_tag_is_kept() {
    for tag in [
        "<escalate type=\"panic\">",
        "<escalate type=\"\">",
        "<escalate kind=\"stuck\">",
        "<escalate stuck>",
        "<escalate type=\"stuck|deviation\">",
    ] {
        let escalation = escalation(&format!("{tag}<summary>s</summary></escalate>"));
        assert_eq!((escalation.kind, escalation.unread.as_deref()), (Unstated, Some(tag)));
    }
}

#[test]
fn a_malformed_body_is_read_as_far_as_possible() {
    let base = Expected { kind: Stuck, summary: "s", ..EMPTY };
    for (body, expected) in [
        ("<summary>s", Expected { ..base }),
        ("<Summary >s</SUMMARY>", Expected { ..base }),
        ("<question>q</question><summary>s</summary>", Expected { question: "q", ..base }),
        ("<summary>s<context>c<question>q", Expected { context: "c", question: "q", ..base }),
        (
            "<summary>s\n<context>c</context>\n</summary>",
            Expected { context: "c", unread: Some("</summary>"), ..base },
        ),
        ("x <summary>s</summary> y\nz", Expected { unread: Some("x\ny\nz"), ..base }),
        (
            "<summary>s</summary><summary>t</summary>",
            Expected { unread: Some("<summary>t</summary>"), ..base },
        ),
        ("<summary>s</summary><why>w</why>", Expected { unread: Some("<why>w</why>"), ..base }),
        (
            "<summary>s</summary><context>a <question> b</context>",
            Expected { context: "a <question> b", ..base },
        ),
        (
            "<summary>s</summary><context>\n<details>\n<summary>log</summary>\n</details>\n</context>",
            Expected { context: "<details>\n<summary>log</summary>\n</details>", ..base },
        ),
        (
            "<summary>s<context>c</summary></context>",
            Expected { summary: "s<context>c", unread: Some("</context>"), ..base },
        ),
    ] {
        check(&format!("<escalate type=\"stuck\">{body}</escalate>"), &expected);
        check(&format!("<escalate type=\"stuck\">\n{body}\n"), &expected);
    }
}

#[test]
fn a_missing_summary_is_the_first_line() {
    for (body, summary, unread) in [
        ("", "<escalate type=\"stuck\">", None),
        ("\n\n", "<escalate type=\"stuck\">", None),
        ("\n I am lost.\nReally.\n", "I am lost.", Some("I am lost.\nReally.")),
        ("\n<why>\nno key\n</why>\n", "no key", Some("<why>\nno key\n</why>")),
        ("\n<why/>\n", "<why/>", Some("<why/>")),
    ] {
        let text = format!("<escalate type=\"stuck\">{body}</escalate>");
        check(&text, &Expected { kind: Stuck, summary, unread, ..EMPTY });
    }
    let text = "<escalate><context>c\nd</context><question>q?</question></escalate>";
    check(text, &Expected { summary: "q?", context: "c\nd", question: "q?", ..EMPTY });
    let long = escalation(&format!("<escalate>\n{}", "ü".repeat(5000)));
    assert_eq!(long.summary, "ü".repeat(200));
}

#[test]
fn an_opening_tag_without_its_end_ends_with_its_line() {
    let text = "<escalate type=\"stuck\"\nShall a -> b stay?\n</escalate>";
    let line = "Shall a -> b stay?";
    check(text, &Expected { kind: Stuck, summary: line, unread: Some(line), ..EMPTY });
}

#[test]
fn options_are_read_in_any_form() {
    for (list, options, unread) in [
        ("1. a\n2. b", &["a", "b"][..], None),
        ("1) a\n2) b", &["a", "b"], None),
        ("- a\n- b", &["a", "b"], None),
        ("\n\n  1. a\n\n  2. b\n", &["a", "b"], None),
        ("1. a\nmore\n\nof it\n2. b", &["a more of it", "b"], None),
        ("1. a\n   - x\n   - y\n2. b", &["a - x - y", "b"], None),
        ("1. a\n- x\n2. b", &["a - x", "b"], None),
        ("- a\n    - x\n- b", &["a - x", "b"], None),
        ("1.\na\n2.\nb", &["a", "b"], None),
        ("1. a 2. b 3. c", &["a", "b", "c"], None),
        ("1) a 2) b", &["a", "b"], None),
        ("1.\n2.", &[], None),
        ("Either:\n1. a", &["a"], Some("Either:")),
        ("this or that", &[], Some("this or that")),
        ("1.5 times\n-x", &[], Some("1.5 times\n-x")),
        ("1. costs 1.5 or 2.5", &["costs 1.5 or 2.5"], None),
    ] {
        let text = format!("<escalate><summary>s</summary><options>{list}</options></escalate>");
        check(&text, &Expected { summary: "s", options, unread, ..EMPTY });
    }
}

#[test]
fn options_after_the_ninth_are_unread() {
    let list: String = (1..=11).map(|n| format!("{n}. o{n}\n")).collect();
    let escalation = escalation(&format!("<escalate><options>\n{list}</options></escalate>"));
    assert_eq!(escalation.options.len(), 9);
    assert_eq!(escalation.options.last().unwrap(), "o9");
    assert_eq!(escalation.unread.as_deref(), Some("10. o10\n11. o11"));
}

#[test]
fn a_long_block_is_cut_at_its_end() {
    let lines = "é line\n".repeat(20_000);
    let escalation = escalation(&format!(
        "<escalate><summary>s</summary><context>\n{lines}</context></escalate>"
    ));
    assert_eq!(escalation.summary, "s");
    assert!(escalation.context.starts_with("é line\né line"));
    assert!((60 * 1024..=64 * 1024).contains(&escalation.context.len()));
}
