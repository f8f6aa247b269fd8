//! Private key blocks.

use super::{mixed, redacted, row};

const LEFT: &str =
    "-----BEGIN RSA PRIVATE KEY-----[redacted:private-key]-----END RSA PRIVATE KEY-----";

fn lines() -> Vec<String> {
    let mut lines = vec!["-----BEGIN RSA PRIVATE KEY-----".to_owned()];
    lines.extend((0..12).map(|n| row(&mixed(33), 64 - n % 2)));
    lines.extend(["q7Rt2W==".to_owned(), "-----END RSA PRIVATE KEY-----".to_owned()]);
    lines
}

#[test]
fn a_key_block_is_redacted_with_any_line_end() {
    for end in ["\n", "\r\n", r"\n", r"\r\n", r"\\n", r"\\\\n", "\n> ", "\n    ", r"\n    \t"] {
        let text = format!("before {} after", lines().join(end));
        assert_eq!(redacted(&text), format!("before {LEFT} after"), "{end:?}");
    }
}

#[test]
fn a_key_block_with_line_numbers_is_redacted() {
    for gutter in ["→", "\t", ": ", " | ", r"\t"] {
        let numbered = |(n, line): (usize, &String)| format!("{:>6}{gutter}{line}", n + 1);
        let text: Vec<String> = lines().iter().enumerate().map(numbered).collect();
        for end in ["\n", r"\n"] {
            let found = redacted(&text.join(end));
            assert!(found.contains(LEFT), "{gutter} {found}");
        }
    }
}

#[test]
fn key_blocks_of_other_kinds_and_with_headers_are_redacted() {
    let body = mixed(64);
    for (kind, header) in [
        ("EC ", ""),
        ("OPENSSH ", ""),
        ("ENCRYPTED ", ""),
        ("RSA ", "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0123\n\n"),
    ] {
        let text = format!(
            "-----BEGIN {kind}PRIVATE KEY-----\n{header}{body}\n{body}\n-----END {kind}PRIVATE KEY-----\n"
        );
        let found = redacted(&text);
        assert!(found.contains("[redacted:private-key]") && !found.contains(&body), "{found}");
    }
    let text = format!(
        "-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: X\n\n{body}\n=q7Rt\n-----END PGP PRIVATE KEY BLOCK-----"
    );
    assert!(!redacted(&text).contains("q7Rt"));
}

#[test]
fn a_key_block_without_an_end_keeps_the_text_after_it() {
    let body = mixed(64);
    for (text, left) in [
        (
            format!("-----BEGIN PRIVATE KEY-----\n{body}\n{body}\nTask US-001 complete\n"),
            "-----BEGIN PRIVATE KEY-----[redacted:private-key]\nTask US-001 complete\n",
        ),
        (
            format!(r#"{{"text":"-----BEGIN PRIVATE KEY-----\n{body}\n","type":"assistant"}}"#),
            r#"{"text":"-----BEGIN PRIVATE KEY-----[redacted:private-key]\n","type":"assistant"}"#,
        ),
        (
            format!(r#"{{"text":"-----BEGIN PRIVATE KEY-----\n{body}"}}"#),
            r#"{"text":"-----BEGIN PRIVATE KEY-----[redacted:private-key]"}"#,
        ),
    ] {
        assert_eq!(redacted(&text), left);
    }
}
