//! Secrets that only the words before them show: `password = …`, `"client_secret": "…"`,
//! `Authorization: …`, `curl -u user:…`, netrc.
//!
//! Such words stand in every program, so the value must look like a secret ([`super::value`]).

use super::lookahead::{ByteClass, Lookahead, Match, More, REACH, SecretRange};
use super::value::{is_secret, is_written_out};

const QUOTE: ByteClass = |byte| matches!(byte, b'"' | b'\'' | b'`' | b'\\');
const BLANK: ByteClass = |byte| matches!(byte, b' ' | b'\t');
const SIGN: ByteClass = |byte| matches!(byte, b':' | b'=' | b'>' | b'?');
const LETTER: ByteClass = |byte| byte.is_ascii_alphabetic();
const IN_QUOTES: ByteClass = |byte| byte > b' ' && byte != 127 && !QUOTE(byte);
const BARE: ByteClass = |byte| IN_QUOTES(byte) && !b",;&|()[]{}<>".contains(&byte);
const USER: ByteClass = |byte| BARE(byte) && byte != b':';

/// Levels of quotes in JSON inside JSON, and blanks that line up a table.
const MARKS: usize = 16;
const LONGEST_USER: usize = 128;

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
    let Some(from) = after_sign(ahead, name)? else { return Ok(None) };
    let value = Place::at(ahead, from)?.map(|place| place.value(ahead)).transpose()?;
    Ok(value.flatten().and_then(Value::if_secret))
}

/// Behind `=`, `:`, `=>`, `:=` and the like. The name may be quoted, or a key in brackets.
fn after_sign(ahead: Lookahead<'_>, name: usize) -> Result<Option<usize>, More> {
    let end = ahead.run(name, QUOTE, MARKS)?;
    let end = if ahead.at(end)? == Some(b']') { end + 1 } else { end };
    let blank = ahead.run(end, BLANK, MARKS)?;
    let sign = ahead.run(blank, SIGN, 4)?;
    let value = ahead.run(sign, BLANK, MARKS)?;
    let gives = match ahead.part(blank, sign) {
        // Not in a path or a resource's name: `secret::Key`, `arn:aws:…:secret:name`.
        b"::" => false,
        b":" => value > sign || ahead.is(value, QUOTE)?,
        sign => sign.contains(&b'=') || sign.contains(&b':'),
    };
    Ok(gives.then_some(value))
}

/// With or without the name of a scheme. Bearer and Basic have their own rules.
pub fn authorization(ahead: Lookahead<'_>, name: usize) -> Match {
    let Some(place) = after_sign(ahead, name)? else { return Ok(None) };
    let Some(place) = Place::at(ahead, place)? else { return Ok(None) };
    let scheme = ahead.run(place.from, LETTER, MARKS)?;
    let from = if ahead.at(scheme)? == Some(b' ') { scheme + 1 } else { place.from };
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

/// `login USER password PASSWORD`, on one line or several.
pub fn netrc(ahead: Lookahead<'_>, login: usize) -> Match {
    let user = gap(ahead, login)?;
    let user_end = ahead.run(user, USER, LONGEST_USER)?;
    let word = gap(ahead, user_end)?;
    let is_login = user_end > user && word > user_end;
    if !is_login || !ahead.has(word, b"password")? {
        return Ok(None);
    }
    let end = word + b"password".len();
    let from = gap(ahead, end)?;
    let value = Place { from, is_quoted: false }.value(ahead)?;
    let value = value.filter(|value| from > end && is_written_out(value.text));
    Ok(value.map(|value| value.range))
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
