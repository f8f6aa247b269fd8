//! Hand-offs, well-formed and malformed.

use crate::model::{AgentSignals, Handoff, StoryId};

use super::super::*;

fn scan(text: &str) -> AgentSignals {
    let mut scanner = Scanner::new(
        &StoryId::try_from("US-001").unwrap(),
        crate::model::CompletionMarkers::default(),
        0,
    );
    scanner.push(text);
    scanner.finish()
}

const WHOLE: &str = "\
I stop here.
<handoff>
<phase> testing </phase>
<completed>
- the parser
- its tests
</completed>
<pending>the README</pending>
<blocked>the API key: nobody gave one</blocked>
<decisions>v2 of the API, because v1 ends in May</decisions>
<assumptions>UTF-8 only</assumptions>
<constraints>no new dependency</constraints>
<next_step>write the README</next_step>
</handoff>
Bye.
";

#[test]
fn a_complete_block_is_read() {
    let expected = Handoff {
        phase: "testing".into(),
        completed: "- the parser\n- its tests".into(),
        pending: "the README".into(),
        blocked: "the API key: nobody gave one".into(),
        decisions: "v2 of the API, because v1 ends in May".into(),
        assumptions: "UTF-8 only".into(),
        constraints: "no new dependency".into(),
        next_step: "write the README".into(),
        unread: None,
    };
    assert_eq!(
        scan(WHOLE),
        AgentSignals { handoff: Some(expected.clone()), ..AgentSignals::default() }
    );
    assert_eq!(scan(&WHOLE.replace('\n', "\r\n")).handoff, Some(expected));
}

#[test]
fn a_malformed_hand_off_keeps_its_text() {
    for (text, next_step, unread) in [
        ("<handoff>", "", None),
        ("<handoff\n", "", None),
        ("<handoff>\nJust go on.\n", "", Some("Just go on.")),
        ("<HANDOFF reason=\"time\">\n<Next-Step>go on</handoff>", "go on", None),
        (
            "<handoff><next>a</next><next step>b</next step></handoff>",
            "a",
            Some("<next step>b</next step>"),
        ),
        ("<handoff><why>w</why><next_step>n", "n", Some("<why>w</why>")),
        ("   <handoff>x</handoff>", "", Some("x")),
    ] {
        let handoff = scan(text).handoff.unwrap();
        assert_eq!(handoff.next_step, next_step, "{text}");
        assert_eq!(handoff.unread.as_deref(), unread, "{text}");
    }
}

#[test]
fn hand_offs_in_code_quotes_and_comments_are_ignored() {
    for text in [
        "```\n<handoff>x</handoff>\n```",
        "> <handoff>x</handoff>",
        "    <handoff>x</handoff>",
        "I end with <handoff>x</handoff>",
        "<!--\n<handoff>x</handoff>\n-->",
        "<handoffs>x</handoffs>",
        "<hand-off>x</hand-off>",
    ] {
        assert_eq!(scan(text), AgentSignals::default(), "{text}");
    }
}

#[test]
fn a_hand_off_hides_claims_but_not_escalations() {
    let inside = "<handoff>\nTask US-001 complete\n<promise>DONE</promise>\n</handoff>";
    let signals = scan(inside);
    assert!(!signals.claims_story && !signals.promises_all && signals.escalation.is_none());
    let open = "<handoff>\nx\n<escalate type=\"stuck\">\n<summary>s</summary>\n</escalate>\n";
    let signals = scan(open);
    assert_eq!(signals.escalation.unwrap().summary, "s");
    assert_eq!(signals.handoff.unwrap().unread.as_deref(), Some("x"));
    let after = scan(&format!("{WHOLE}\nTask US-001 complete\n"));
    assert!(after.claims_story && after.handoff.is_some());
}

#[test]
fn the_last_hand_off_counts() {
    let text = "<handoff><phase>a</phase></handoff>\n<handoff><phase>b</phase></handoff>";
    assert_eq!(scan(text).handoff.unwrap().phase, "b");
}

#[test]
fn signals_without_a_hand_off_can_be_read() {
    let old = r#"{"claims_story":true,"claims_others":[],"promises_all":false,"escalation":null}"#;
    let read: AgentSignals = serde_json::from_str(old).unwrap();
    assert_eq!(read, AgentSignals { claims_story: true, ..AgentSignals::default() });
}
