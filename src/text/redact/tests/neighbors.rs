//! Ordinary output of agents, which must be kept.

use std::path::Path;

use super::{hex, in_chunks, mixed, redacted, row, rules};

#[test]
fn ordinary_output_is_kept() {
    let picture = format!("data:image/png;base64,iVBORw0KGgo{}", row(&mixed(64), 4000));
    for text in [
        "Task US-001 complete",
        "<promise>DONE</promise>",
        &format!("commit {}", hex(40)),
        &format!("sha256:{}", row(&hex(16), 64)),
        "550e8400-e29b-41d4-a716-446655440000 019a8b0c-0000-7000-8000-000000000000",
        "integrity sha512-z1Xa7Kb2Lc3Md4Ne5Of6Pg7Qh8Ri9Sj0Tk1Ul2Vm3Wn4Xo5Yp6Zq7==",
        &picture,
        "a task-list, a risk-based desk-0123456789abcdef0123456789abcdef0123",
        "scikit-learn, sk-learn, disk-usage-report-2026-11-16T10-00-00",
        "toolu_01A09q90qw90lq917835lq9 msg_01XFDUDYJgAACzvnptvVoYEL req_011CQabcdefghijklmnopqr",
        "https://example.org/a?b=c#d http://[::1]:8080/ ssh://git@github.com/a/b.git",
        "git@github.com:owner/repo.git mailto:a:b@example.org",
        "The bearer of this letter. Basic knowledge: Basic auth is basic.",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
        "-----------------------------------------------------------------",
        "let header = \"-----BEGIN PRIVATE KEY-----\";",
        "eyJhbGciOiJIUzI1NiJ9 is base64 of a header and no token",
        "",
    ] {
        assert_eq!(redacted(text), text);
    }
}

#[test]
fn recordings_of_real_agents_are_kept() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/recordings");
    let rules = rules(&[]);
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let bytes = std::fs::read(&path).unwrap();
        seen += bytes.len();
        assert!(in_chunks(&rules, [&bytes[..]]) == bytes, "{}", path.display());
    }
    assert!(seen > 500_000, "{seen} bytes of recordings");
}
