//! Secrets that only the words before them show: `password = …`, `"client_secret": "…"`,
//! `Authorization: …`, `curl -u user:…`, netrc.
//!
//! Such words stand in every program, so the value must look like a secret ([`super::value`]).

use super::environment::is_secret_name;
use super::lookahead::{ByteClass, Lookahead, Match, More, REACH, SecretRange};
use super::value::{is_password, is_secret, is_written_out};

const QUOTE: ByteClass = |byte| matches!(byte, b'"' | b'\'' | b'`' | b'\\');
const BLANK: ByteClass = |byte| matches!(byte, b' ' | b'\t');
const SIGN: ByteClass = |byte| matches!(byte, b':' | b'=' | b'>' | b'?');
const LETTER: ByteClass = |byte| byte.is_ascii_alphabetic();
const IN_QUOTES: ByteClass = |byte| byte > b' ' && byte != 127 && !QUOTE(byte);
const BARE: ByteClass = |byte| IN_QUOTES(byte) && !b",;&|()[]{}<>".contains(&byte);
const UPPER: ByteClass = |byte| byte.is_ascii_uppercase();
const DIGIT: ByteClass = |byte| byte.is_ascii_digit();
const NAME: ByteClass = |byte| byte.is_ascii_alphanumeric() || byte == b'_';
const TYPE: ByteClass = |byte| NAME(byte) || b"&'<>[]. |?:".contains(&byte);
/// Or of a colored text.
const LINE_END: ByteClass = |byte| matches!(byte, b'\n' | b'\r' | 0x1b);
const USER: ByteClass = |byte| BARE(byte) && byte != b':';

/// Levels of quotes in JSON inside JSON, and blanks that line up a table.
const MARKS: usize = 16;
const LONGEST_USER: usize = 128;
const LONGEST_TYPE: usize = 32;

/// What a key or a token is called that may be known.
#[rustfmt::skip]
const PUBLIC: [&str; 17] = [
    "PUBLIC", "PUBLISHABLE", "CACHE", "IDEMPOTENCY", "PRIMARY", "FOREIGN", "PARTITION", "SORT",
    "STORAGE", "SITE", "HOT", "INDEX", "ROW", "next_page", "page", "continuation", "sync",
];
/// How a secret's name continues, after a dash or an underscore.
#[rustfmt::skip]
const ENDINGS: [&[u8]; 18] = [
    b"BASE", b"PRODUCTION", b"PROD", b"STAGING", b"STAGE", b"DEV", b"TEST", b"LIVE", b"MAIN",
    b"OLD", b"NEW", b"NEXT", b"PREVIOUS", b"PREV", b"CURRENT", b"SECONDARY", b"BACKUP", b"V",
];

/// Where a value begins, and what it consists of.
struct Place {
    from: usize,
    is_quoted: bool,
}

impl Place {
    /// At or behind quotes. None at an escape, such as that of a line end.
    fn at(ahead: Lookahead<'_>, place: usize) -> Result<Option<Self>, More> {
        let from = ahead.run(place, QUOTE, MARKS)?;
        let is_escape = from > place && ahead.at(from - 1)? == Some(b'\\');
        Ok((!is_escape).then_some(Self { from, is_quoted: from > place }))
    }

    fn class(&self) -> ByteClass {
        if self.is_quoted { IN_QUOTES } else { BARE }
    }

    /// The value, unless it is a part of a longer text or of an expression.
    fn value<'a>(&self, ahead: Lookahead<'a>) -> Result<Option<Value<'a>>, More> {
        let to = ahead.run(self.from, self.class(), REACH)?;
        let next = ahead.at(to)?;
        let is_whole = to - self.from >= REACH
            || if self.is_quoted {
                next.is_none_or(QUOTE)
            } else {
                next.is_none_or(|byte| !b"([{<".contains(&byte))
            };
        let range = SecretRange::with_run(self.from, self.from, to, self.class());
        Ok(is_whole.then(|| Value { text: ahead.part(self.from, to), to, range }))
    }
}

struct Value<'a> {
    text: &'a [u8],
    to: usize,
    range: SecretRange,
}

impl Value<'_> {
    fn if_secret(self) -> Option<SecretRange> {
        is_secret(self.text).then_some(self.range)
    }
}

/// A value that a sign gives to the name before it.
pub fn assigned(ahead: Lookahead<'_>, name: usize) -> Match {
    if ahead.is_behind(&PUBLIC) {
        return Ok(None);
    }
    let Some(from) = after_sign(ahead, name)? else { return Ok(None) };
    let value = Place::at(ahead, from)?.map(|place| place.value(ahead)).transpose()?;
    Ok(value.flatten().and_then(Value::if_secret))
}

/// In an environment or a list of settings only data can stand: `DB_PASSWORD=…`, `password: …`. There
/// a password need not look random, but in small letters it needs a digit: texts have such lines too.
pub fn password(ahead: Lookahead<'_>, name: usize) -> Match {
    let is_small = !ahead.is(name - 1, UPPER)?;
    let is_one = |value: &Value<'_>| !is_small || value.text.iter().any(u8::is_ascii_digit);
    match assigned(ahead, name)? {
        None => Ok(listed(ahead, name, is_small)?.filter(is_one).map(|value| value.range)),
        found => Ok(found),
    }
}

/// The same for `SESSION_SECRET=…`. In small letters it may be the name of a secret.
pub fn secret(ahead: Lookahead<'_>, name: usize) -> Match {
    match assigned(ahead, name)? {
        None if ahead.is(name - 1, UPPER)? => {
            Ok(listed(ahead, name, false)?.map(|value| value.range))
        }
        found => Ok(found),
    }
}

/// A password behind `=` without blanks, or behind `: ` at the end of its line; `to_end`: behind `=` too.
fn listed(ahead: Lookahead<'_>, name: usize, to_end: bool) -> Result<Option<Value<'_>>, More> {
    let end = after_name(ahead, name)?;
    let is_equal = ahead.at(end)? == Some(b'=');
    let from = ahead.run(end + 1, BLANK, 1)?;
    let is_listed = ahead.at(end)? == Some(b':') && from > end + 1;
    if !(is_listed || is_equal && from == end + 1) {
        return Ok(None);
    }
    let value = Place::at(ahead, from)?.map(|place| place.value(ahead)).transpose()?;
    let Some(value) = value.flatten().filter(|value| is_password(value.text)) else {
        return Ok(None);
    };
    let after = ahead.run(value.to, QUOTE, MARKS)?;
    let is_escape = ahead.part(value.to, after).ends_with(b"\\");
    let is_line = is_escape || ahead.at(after)?.is_none_or(LINE_END);
    Ok((is_line || is_equal && !to_end).then_some(value))
}

/// `ENV API_KEY value`, as Dockerfiles and shells have it. They also have `ENV API_KEY=value`.
pub fn variable(ahead: Lookahead<'_>, command: usize) -> Match {
    let end = ahead.run(command, NAME, LONGEST_USER)?;
    let from = ahead.run(end, BLANK, MARKS)?;
    let name = String::from_utf8_lossy(ahead.part(command, end));
    if from == end || !is_secret_name(&name) {
        return Ok(None);
    }
    let value = Place::at(ahead, from)?.map(|place| place.value(ahead)).transpose()?;
    Ok(value.flatten().and_then(Value::if_secret))
}

/// The end of a name that continues: `SECRET_KEY_BASE`, `PASSWORD1`.
fn after_name(ahead: Lookahead<'_>, name: usize) -> Result<usize, More> {
    let mut end = ahead.run(name, DIGIT, 3)?;
    if ahead.is(end, |byte| matches!(byte, b'_' | b'-'))? {
        let word = ahead.run(end + 1, |byte| byte.is_ascii_alphabetic(), MARKS)?;
        let part = ahead.part(end + 1, word);
        let after = ahead.run(word, DIGIT, 3)?;
        let is_known = ENDINGS.iter().any(|known| part.eq_ignore_ascii_case(known));
        let is_number = word == end + 1 && after > word;
        if is_known || is_number {
            end = after;
        }
    }
    Ok(end)
}

/// Behind `=`, `:`, `=>`, `:=` and the like. The name may be quoted, or a key in brackets.
fn after_sign(ahead: Lookahead<'_>, name: usize) -> Result<Option<usize>, More> {
    let name = after_name(ahead, name)?;
    // `${NAME:-value}`.
    if ahead.has(name, b":-")? {
        return Ok(Some(name + 2));
    }
    let end = ahead.run(name, QUOTE, MARKS)?;
    let end = if ahead.at(end)? == Some(b']') { end + 1 } else { end };
    let end = after_pair(ahead, name)?.unwrap_or(end);
    let blank = ahead.run(end, BLANK, MARKS)?;
    let sign = ahead.run(blank, SIGN, 4)?;
    let value = ahead.run(sign, BLANK, MARKS)?;
    if let Some(value) = after_type(ahead, blank, value)? {
        return Ok(Some(value));
    }
    let gives = match ahead.part(blank, sign) {
        // Not in a path or a resource's name: `secret::Key`, `arn:aws:…:secret:name`.
        b"::" => false,
        b":" => value > sign || ahead.is(value, QUOTE)?,
        sign => sign.contains(&b'=') || sign.contains(&b':'),
    };
    Ok(gives.then_some(value))
}

/// In a list of names and values the sign is after `value`: `name: API_KEY`, `value: …`.
fn after_pair(ahead: Lookahead<'_>, name: usize) -> Result<Option<usize>, More> {
    let mut end = ahead.run(name, QUOTE, MARKS)?;
    // These belong to what follows.
    while end > name && ahead.at(end - 1)? == Some(b'\\') {
        end -= 1;
    }
    let comma = if ahead.at(end)? == Some(b',') { end + 1 } else { end };
    let next = gap(ahead, comma)?;
    let word = ahead.run(next, QUOTE, MARKS)?;
    let is_pair = word > end && ahead.has(word, b"value")?;
    let value = ahead.run(word + b"value".len(), QUOTE, MARKS)?;
    Ok(is_pair.then_some(value))
}

/// Behind a type, where programs have one: `: &str = "…"`.
fn after_type(ahead: Lookahead<'_>, sign: usize, from: usize) -> Result<Option<usize>, More> {
    if ahead.at(sign)? != Some(b':') || from == sign + 1 {
        return Ok(None);
    }
    let end = ahead.run(from, TYPE, LONGEST_TYPE)?;
    let is_type = end > from + 1 && ahead.has(end, b"= ")? && ahead.part(end - 1, end) == b" ";
    let value = ahead.run(end + 1, BLANK, MARKS)?;
    Ok((is_type && ahead.is(value, QUOTE)?).then_some(value))
}

/// With or without the name of a scheme. Bearer and Basic have their own rules.
pub fn authorization(ahead: Lookahead<'_>, name: usize) -> Match {
    let Some(place) = after_sign(ahead, name)? else { return Ok(None) };
    let Some(place) = Place::at(ahead, place)? else { return Ok(None) };
    let scheme = ahead.run(place.from, LETTER, MARKS)?;
    let mut from = if ahead.at(scheme)? == Some(b' ') { scheme + 1 } else { place.from };
    if ahead.has(from, b"token=")? {
        from = ahead.run(from + b"token=".len(), QUOTE, MARKS)?;
    }
    let is_known = [b"bearer".as_slice(), b"basic"];
    if is_known.iter().any(|known| ahead.part(place.from, scheme).eq_ignore_ascii_case(known)) {
        return Ok(None);
    }
    Ok(Place { from, ..place }.value(ahead)?.and_then(Value::if_secret))
}

/// `-u user:PASSWORD` before an address, or with a password that looks like one: other programs have
/// this option too.
pub fn curl_user(ahead: Lookahead<'_>, option: usize) -> Match {
    let Some(place) = Place::at(ahead, ahead.run(option, BLANK, MARKS)?)? else { return Ok(None) };
    let colon = ahead.run(place.from, USER, LONGEST_USER)?;
    if colon == place.from || ahead.at(colon)? != Some(b':') {
        return Ok(None);
    }
    let Some(value) = (Place { from: colon + 1, ..place }).value(ahead)? else { return Ok(None) };
    let after = ahead.run(value.to, QUOTE, MARKS)?;
    let after = ahead.run(after, BLANK, MARKS)?;
    let address = ahead.run(after, QUOTE, MARKS)?;
    let is_one = ahead.has(address, b"http")? && is_written_out(value.text);
    Ok(if is_one { Some(value.range) } else { value.if_secret() })
}

/// `login USER password PASSWORD`, on one line or several, with an account between them or none.
pub fn netrc(ahead: Lookahead<'_>, login: usize) -> Match {
    let Some(mut word) = after_word(ahead, login)? else { return Ok(None) };
    if ahead.has(word, ACCOUNT)? {
        let Some(next) = after_word(ahead, word + ACCOUNT.len())? else { return Ok(None) };
        word = next;
    }
    Ok(netrc_password(ahead, word)?.map(|value| value.range))
}

/// `machine HOST password PASSWORD login USER`.
pub fn netrc_machine(ahead: Lookahead<'_>, machine: usize) -> Match {
    let Some(mut word) = after_word(ahead, machine)? else { return Ok(None) };
    if ahead.has(word, ACCOUNT)? {
        let Some(next) = after_word(ahead, word + ACCOUNT.len())? else { return Ok(None) };
        word = next;
    }
    let Some(value) = netrc_password(ahead, word)? else { return Ok(None) };
    let next = gap(ahead, value.to)?;
    let is_entry = ahead.has(next, b"login")? || ahead.has(next, ACCOUNT)?;
    Ok(is_entry.then_some(value.range))
}

const ACCOUNT: &[u8] = b"account";

/// The next word behind this one.
fn after_word(ahead: Lookahead<'_>, from: usize) -> Result<Option<usize>, More> {
    let start = gap(ahead, from)?;
    let end = ahead.run(start, USER, LONGEST_USER)?;
    let next = gap(ahead, end)?;
    Ok((end > start && next > end).then_some(next))
}

fn netrc_password<'a>(ahead: Lookahead<'a>, word: usize) -> Result<Option<Value<'a>>, More> {
    if !ahead.has(word, b"password")? {
        return Ok(None);
    }
    let end = word + b"password".len();
    let from = gap(ahead, end)?;
    let value = Place { from, is_quoted: false }.value(ahead)?;
    Ok(value.filter(|value| from > end && is_written_out(value.text)))
}

/// The end of blanks and line ends, also of those that JSON escapes.
fn gap(ahead: Lookahead<'_>, from: usize) -> Result<usize, More> {
    let mut end = from;
    while end - from < MARKS {
        let plain = ahead.run(end, |byte| BLANK(byte) || matches!(byte, b'\r' | b'\n'), MARKS)?;
        let slashes = ahead.run(plain, |byte| byte == b'\\', MARKS)?;
        let is_escape =
            slashes > plain && ahead.is(slashes, |byte| matches!(byte, b'n' | b'r' | b't'))?;
        if plain == end && !is_escape {
            break;
        }
        end = if is_escape { slashes + 1 } else { plain };
    }
    Ok(end)
}
