//! Which environment variables hold secrets: by name, with exceptions by value.

/// Words that make a name secret. Whole words: not `KEYBOARD`, `AUTHOR`, `MONKEY`.
const SECRET_WORDS: [&str; 14] = [
    "KEY",
    "APIKEY",
    "TOKEN",
    "SECRET",
    "SECRETS",
    "PASS",
    "PWD",
    "CREDENTIAL",
    "CREDENTIALS",
    "CREDS",
    "AUTH",
    "OAUTH",
    "JWT",
    "PAT",
];

/// Long enough to match at the end of a longer word: `PGPASSWORD`.
const SECRET_ENDINGS: [&str; 6] = ["PASSWORD", "PASSWD", "PASSPHRASE", "SECRET", "TOKEN", "APIKEY"];

/// Names with these endings describe a secret instead of holding it: `SSH_AUTH_SOCK`.
const ABOUT_A_SECRET: [&str; 25] = [
    "SOCK",
    "SOCKET",
    "FILE",
    "PATH",
    "DIR",
    "HOME",
    "URL",
    "URI",
    "ENDPOINT",
    "HOST",
    "PORT",
    "TYPE",
    "METHOD",
    "MODE",
    "PROVIDER",
    "HELPER",
    "NAME",
    "USER",
    "USERNAME",
    "EMAIL",
    "TTL",
    "TIMEOUT",
    "LIMIT",
    "EXPIRY",
    "ALGORITHM",
];

/// Common words are not redacted, because that would damage every text: placeholder values, and
/// the words that agents and ralph exchange.
const KNOWN_TO_ALL: [&str; 25] = [
    "password",
    "passw0rd",
    "changeme",
    "postgres",
    "username",
    "anonymous",
    "localhost",
    "undefined",
    "disabled",
    "required",
    "optional",
    "keychain",
    "keyring",
    "credential",
    "development",
    "production",
    "placeholder",
    "interactive",
    "complete",
    "escalate",
    "question",
    "deviation",
    "assistant",
    "tool_use",
    "tool_result",
];

/// Shorter values would match everywhere.
const LEAST: usize = 8;

/// The value, if it is a secret.
pub fn secret<'a>(name: &str, value: &'a str) -> Option<&'a str> {
    let value = value.trim();
    let is_one = value.chars().count() >= LEAST
        && is_secret_name(name)
        && !KNOWN_TO_ALL.iter().any(|word| value.eq_ignore_ascii_case(word))
        && !is_path(value);
    is_one.then_some(value)
}

/// The name, as it appears in a marker.
pub fn shown(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.chars().map(|c| if is_plain(c) { c } else { '_' }).collect()
}

fn is_secret_name(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    if matches!(upper.as_str(), "PWD" | "OLDPWD") {
        return false;
    }
    let words = || {
        let words = upper.split(|c: char| !c.is_ascii_alphanumeric());
        words.map(|word| word.trim_end_matches(|c: char| c.is_ascii_digit()))
    };
    let is_about = words().next_back().is_some_and(|word| ABOUT_A_SECRET.contains(&word));
    !is_about && words().any(is_secret_word)
}

fn is_secret_word(word: &str) -> bool {
    SECRET_WORDS.contains(&word) || SECRET_ENDINGS.iter().any(|ending| word.ends_with(ending))
}

/// `GOOGLE_APPLICATION_CREDENTIALS` is a path. Base64 may begin with a slash too, so a path must
/// consist of words.
fn is_path(value: &str) -> bool {
    let begins = ["/", "./", "../", "~/"].iter().any(|start| value.starts_with(start));
    let parts = || value.split(|c: char| !c.is_ascii_alphanumeric());
    begins && !value.contains(['+', '=', '\n']) && !parts().any(is_random)
}

fn is_random(part: &str) -> bool {
    let has = |class: fn(&u8) -> bool| part.bytes().any(|byte| class(&byte));
    part.len() >= 14
        && has(u8::is_ascii_digit)
        && has(u8::is_ascii_uppercase)
        && has(u8::is_ascii_lowercase)
}
