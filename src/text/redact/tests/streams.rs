//! The result is the same for every chunking.

use std::sync::Arc;

use proptest::prelude::*;

use super::super::lookahead::REACH;
use super::super::{Redactor, SecretRules};
use super::{hex, in_chunks, mixed, rules};

const VALUE: &str = "hunter2\"hunter2\nhunter2";

fn the_rules() -> Arc<SecretRules> {
    rules(&[("MY_TOKEN", VALUE), ("MY_KEY", "hunter2\"hun")])
}

/// Pieces of secrets, so that many texts are one or nearly one.
fn piece() -> impl Strategy<Value = String> {
    let fixed = [
        "sk-",
        "ant-",
        "ghp_",
        "AKIA",
        "eyJ",
        ".eyJ",
        "Bearer ",
        "Basic ",
        "://",
        "user:",
        "@h",
        "BEGIN ",
        "RSA ",
        "PRIVATE KEY-----",
        "-----",
        "-----END ",
        "\\n",
        "\n",
        "\\",
        "\"",
        " ",
        "12\t",
        "→",
        "Proc-Type: 4",
        "aws_secret_access_key",
        "=",
        "SG.",
        ".",
        "hunter2",
        "\"hun",
        "ter2",
        "AccountKey=",
        "dXNlcjpwYXNzd29yZA==",
        "\u{1b}[0m",
        "task",
    ];
    prop_oneof![
        4 => prop::sample::select(fixed.to_vec()).prop_map(str::to_owned),
        2 => (1usize..90).prop_map(mixed),
        1 => (1usize..70).prop_map(hex),
        1 => (500usize..520).prop_map(mixed),
    ]
}

proptest! {
    #[test]
    fn chunking_makes_no_difference(
        pieces in prop::collection::vec(piece(), 1..14),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let text = pieces.concat();
        let bytes = text.as_bytes();
        let rules = the_rules();
        let whole = in_chunks(&rules, [bytes]);
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let chunks = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]);
        prop_assert_eq!(in_chunks(&rules, chunks), whole.clone());
        prop_assert_eq!(in_chunks(&rules, bytes.chunks(1)), whole.clone());
        // UTF-8 stays UTF-8.
        prop_assert!(String::from_utf8(whole).is_ok());
    }

    #[test]
    fn any_bytes_are_accepted(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let rules = the_rules();
        prop_assert_eq!(in_chunks(&rules, [&bytes[..]]), in_chunks(&rules, bytes.chunks(1)));
    }

    #[test]
    fn held_back_bytes_are_bounded(pieces in prop::collection::vec(piece(), 1..30)) {
        let mut redactor = Redactor::new(the_rules());
        let mut out = Vec::new();
        for byte in pieces.concat().bytes() {
            redactor.push(&[byte], &mut out);
            prop_assert!(redactor.held.len() <= 2 * REACH, "{}", redactor.held.len());
        }
    }
}

#[test]
fn a_secret_split_into_two_chunks_is_redacted() {
    let rules = the_rules();
    for secret in [format!("ghp_{}", mixed(36)), VALUE.to_owned()] {
        let text = format!("before {secret} after");
        for cut in 0..=text.len() {
            let (head, tail) = text.as_bytes().split_at(cut);
            let found = String::from_utf8(in_chunks(&rules, [head, tail])).unwrap();
            assert!(
                found.starts_with("before [redacted:") && found.ends_with("] after"),
                "{found}"
            );
        }
    }
}

#[test]
fn a_complete_line_is_not_held_back() {
    for line in [
        "Task US-001 complete\n",
        "{\"type\":\"result\"}\n",
        "see https://example.org\n",
        "Bearer token\n",
        "sk-ant-\n",
        "-----BEGIN CERTIFICATE-----\n",
        "hunter2\n",
    ] {
        let mut redactor = Redactor::new(the_rules());
        let mut out = Vec::new();
        redactor.push(line.as_bytes(), &mut out);
        assert_eq!(String::from_utf8_lossy(&out), line);
    }
}
