//! Whether a value with a secret's name is one, or stands for one.
//!
//! Programs, their tests and their manuals are full of `password = get_password()`,
//! `"password": "Passwort"`, `API_KEY=your-key-here` and `password: "Test1234!"`.

use super::environment::is_path;

/// Shorter ones are not worth a question.
const LEAST: usize = 8;
/// What is left of a password without its common words.
const LEAST_LEFT: usize = 4;

/// Words that placeholders and passwords of tests consist of. Longer ones come first.
#[rustfmt::skip]
const STAND_INS: &[&str] = &[
    "placeholder", "development", "passphrase", "localhost", "undefined", "anonymous", "something",
    "0123456789", "123456789", "1234567890", "changeit", "changeme", "password", "passwort",
    "postgres", "redacted", "required", "12345678", "1234567", "example", "replace", "battery",
    "correct", "default", "welcome", "letmein", "invalid", "staple", "abcdef", "secret", "passwd",
    "sample", "insert", "apikey", "change", "string", "qwerty", "strong", "hidden", "client",
    "server", "public", "123456", "dummy", "token", "value", "admin", "guest", "login", "horse",
    "wrong", "right", "valid", "local", "super", "mysql", "redis", "12345", "fake",
    "mock", "test", "demo", "user", "root", "pass", "pwd", "weak", "your", "here", "this", "some",
    "none", "null", "true", "1234", "key", "foo", "bar", "baz", "abc", "xyz", "new", "old", "not",
    "the", "api", "dev", "xxx", "123", "my",
];

/// It looks random, as what a generator made, or a password with digits and signs.
pub fn is_secret(value: &[u8]) -> bool {
    let text = String::from_utf8_lossy(value);
    text.chars().count() >= LEAST
        && !stands_for_another(&text)
        && left(&text) >= LEAST
        && text.split(['/', '.', ':']).any(looks_random)
}

/// It is no variable, template or placeholder: where nothing but a password can stand.
pub fn is_written_out(value: &[u8]) -> bool {
    let text = String::from_utf8_lossy(value);
    !stands_for_another(&text) && left(&text) >= LEAST_LEFT
}

/// Names of resources, and keys that everybody may know.
const PUBLIC: [&str; 3] = ["arn:", "pk_live_", "pk_test_"];

/// A variable, a template, a path, an address, an example.
fn stands_for_another(text: &str) -> bool {
    let has_pair = |open, close| {
        text.split_once(open).is_some_and(|(_, rest): (_, &str)| rest.contains::<char>(close))
    };
    text.starts_with(['$', '<', '{', '[', '%', '(', '*'])
        || PUBLIC.iter().any(|start| text.starts_with(start))
        || text.contains("EXAMPLE")
        || ["${", "$(", "%s", "%d", "://"].iter().any(|part| text.contains(part))
        || has_pair('{', '}')
        || has_pair('<', '>')
        || is_path(text)
}

/// It may be a password of words, where only data can stand: no label, no constant and no part of a
/// program.
pub fn is_password(value: &[u8]) -> bool {
    let text = String::from_utf8_lossy(value);
    let is_plain = text.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.'));
    let has_digit = text.contains(|c: char| c.is_ascii_digit());
    let begins_small = text.starts_with(|c: char| c.is_lowercase());
    let is_code = is_plain && text.contains(['.', '_']) || is_plain && !has_digit && !begins_small;
    let rises = text.chars().skip(1).any(|c| c.is_uppercase());
    let is_name = is_plain && !has_digit && rises;
    text.chars().count() >= LEAST && is_written_out(value) && !is_code && !is_name
}

/// How many letters and digits are no part of a stand-in's words.
fn left(text: &str) -> usize {
    let plain = |c: char| match c.to_ascii_lowercase() {
        '0' => 'o',
        '1' => 'i',
        '3' => 'e',
        '4' | '@' => 'a',
        '5' | '$' => 's',
        other => other,
    };
    let lower = without_words(text.to_ascii_lowercase());
    let meant = without_words(lower.chars().map(plain).collect());
    meant.chars().filter(|c| c.is_alphanumeric()).count()
}

fn without_words(text: String) -> String {
    STAND_INS.iter().fold(text, |text, word| match text.contains(word) {
        // Not the empty text: what is around it must not become another word.
        true => text.replace(word, " "),
        false => text,
    })
}

/// Digits among letters in several places, or letters, digits and a sign.
fn looks_random(text: &str) -> bool {
    let bytes = text.as_bytes();
    let has = |class: fn(&u8) -> bool| bytes.iter().any(class);
    let changes = bytes.array_windows().filter(|[a, b]| {
        (a.is_ascii_digit() && b.is_ascii_alphabetic())
            || (a.is_ascii_alphabetic() && b.is_ascii_digit())
    });
    let rises =
        bytes.array_windows().filter(|[a, b]| a.is_ascii_lowercase() && b.is_ascii_uppercase());
    let is_sign = |byte: &u8| byte.is_ascii_punctuation() && !b"-_,".contains(byte);
    let changes = changes.count();
    changes >= 3
        || (changes >= 1 && rises.count() >= 3)
        || (has(is_sign) && has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic))
}
