//! Secrets of the environment: which variables hold them, and how their values are spelled.

/// Words that make a name secret. Whole words: not `KEYBOARD`, `AUTHOR`, `MONKEY`.
#[rustfmt::skip]
const SECRET_WORDS: [&str; 14] = [
    "KEY", "APIKEY", "TOKEN", "SECRET", "SECRETS", "PASS", "PWD", "CREDENTIAL", "CREDENTIALS",
    "CREDS", "AUTH", "OAUTH", "JWT", "PAT",
];

/// Long enough to match at the end of a longer word: `PGPASSWORD`.
const SECRET_ENDINGS: [&str; 6] = ["PASSWORD", "PASSWD", "PASSPHRASE", "SECRET", "TOKEN", "APIKEY"];

/// Names with these endings describe a secret instead of holding it: `SSH_AUTH_SOCK`.
#[rustfmt::skip]
const ABOUT_A_SECRET: [&str; 25] = [
    "SOCK", "SOCKET", "FILE", "PATH", "DIR", "HOME", "URL", "URI", "ENDPOINT", "HOST", "PORT",
    "TYPE", "METHOD", "MODE", "PROVIDER", "HELPER", "NAME", "USER", "USERNAME", "EMAIL", "TTL",
    "TIMEOUT", "LIMIT", "EXPIRY", "ALGORITHM",
];

/// Common words are not redacted, because that would damage every text: placeholder values, and
/// the words that agents and ralph exchange.
#[rustfmt::skip]
const KNOWN_TO_ALL: [&str; 25] = [
    "password", "passw0rd", "changeme", "postgres", "username", "anonymous", "localhost",
    "undefined", "disabled", "required", "optional", "keychain", "keyring", "credential",
    "development", "production", "placeholder", "interactive", "complete", "escalate",
    "question", "deviation", "assistant", "tool_use", "tool_result",
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

pub fn is_secret_name(name: &str) -> bool {
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
pub fn is_path(value: &str) -> bool {
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

/// The spellings of a value in an agent's output, without duplicates.
///
/// Events are JSON, and a tool's result may be JSON inside JSON; serializers differ in what they
/// escape. Most values have one spelling.
pub fn spellings(value: &str) -> Vec<String> {
    // JavaScript and serde_json, Python, PHP, Go.
    let json = in_json(value);
    let ascii = escaped(&json, |c| !c.is_ascii());
    let slashed = ascii.replace('/', "\\/");
    let web = escaped(&json, |c| matches!(c, '<' | '>' | '&'));
    let mut all = vec![value.to_owned(), in_url(value)];
    for once in [json, ascii, slashed, web] {
        all.push(in_json(&once));
        all.push(once);
    }
    all.sort_unstable();
    all.dedup();
    all
}

fn in_json(value: &str) -> String {
    let quoted = serde_json::Value::from(value).to_string();
    quoted.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(value).to_owned()
}

fn escaped(text: &str, which: fn(char) -> bool) -> String {
    let escape = |c: char| match which(c) {
        true => c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect(),
        false => c.to_string(),
    };
    text.chars().map(escape).collect()
}

fn in_url(value: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let spell = |byte| if is_plain(byte) { (byte as char).into() } else { format!("%{byte:02X}") };
    value.bytes().map(spell).collect()
}
