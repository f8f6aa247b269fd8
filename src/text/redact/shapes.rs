//! Credentials that are more than a prefix and a run of bytes.

use super::ahead::{Ahead, More, REACH};
use super::pattern::{Hit, Rest, is_varied};
use super::patterns::{alphanumeric, base64, word_or_dash};

type Looked = Result<Option<Hit>, More>;

/// Header and payload are JSON objects; the rest is part of it.
pub fn jwt(ahead: Ahead<'_>, start: usize) -> Looked {
    const PAYLOAD: usize = 12;
    let header = ahead.run(start, word_or_dash, REACH)?;
    if header - start < 7 || !ahead.has(header, b".eyJ")? {
        return Ok(None);
    }
    let payload = ahead.run(header + 1, word_or_dash, PAYLOAD)?;
    let is_one = payload - header > PAYLOAD;
    let rest = Some(Rest::Run(|byte| word_or_dash(byte) || byte == b'.'));
    Ok(is_one.then_some(Hit { from: 0, to: payload, rest }))
}

/// The word before it stays.
pub fn bearer(ahead: Ahead<'_>, start: usize) -> Looked {
    let token = |byte| base64(byte) || matches!(byte, b'-' | b'.' | b'_' | b'~');
    let end = ahead.run(start, token, REACH)?;
    let is_one = end - start >= 16 && is_no_word(ahead.part(start, end));
    Ok(is_one.then(|| Hit::with_run(start, start, end, token)))
}

/// `Bearer authentication-scheme` and `Bearer TokenProvider` are words.
fn is_no_word(bytes: &[u8]) -> bool {
    let rises =
        |pair: &&[u8]| matches!(pair, [a, b] if a.is_ascii_lowercase() && b.is_ascii_uppercase());
    bytes.iter().any(u8::is_ascii_digit) || bytes.windows(2).filter(rises).count() > 3
}

/// It must decode to `user:password`, so `Basic functionality` is not one.
pub fn basic(ahead: Ahead<'_>, start: usize) -> Looked {
    let end = ahead.run(start, base64, REACH)?;
    let meant = decoded(ahead.part(start, end));
    let is_one = end - start >= 8
        && meant.contains(&b':')
        && meant.iter().all(|byte| matches!(byte, b' '..=b'~'));
    Ok(is_one.then(|| Hit::with_run(start, start, end, base64)))
}

/// Lenient about leftover bits.
fn decoded(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let (mut bits, mut count) = (0u32, 0);
    for sextet in text.iter().filter_map(|byte| sextet(*byte)) {
        bits = bits << 6 | u32::from(sextet);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
            bits &= (1 << count) - 1;
        }
    }
    bytes
}

fn sextet(byte: u8) -> Option<u8> {
    match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    }
}

/// `scheme://user:PASSWORD@host`; a variable or placeholder is not a password.
pub fn url_password(ahead: Ahead<'_>, start: usize) -> Looked {
    let user = |byte: u8| password_byte(byte) && byte != b':';
    let colon = ahead.run(start, user, 128)?;
    if ahead.at(colon)? != Some(b':') {
        return Ok(None);
    }
    let from = colon + 1;
    if ahead.is(from, |byte| b"$<{[*".contains(&byte))? {
        return Ok(None);
    }
    let to = ahead.run(from, password_byte, 256)?;
    let has_host = ahead.at(to)? == Some(b'@')
        && ahead.is(to + 1, |byte| byte.is_ascii_alphanumeric() || b"[$".contains(&byte))?;
    Ok((has_host && to - from >= 3).then(|| Hit::part(from, to)))
}

fn password_byte(byte: u8) -> bool {
    byte > b' ' && byte != 127 && !b"/?#@\"'<>\\`".contains(&byte)
}

/// Forty arbitrary bytes, recognised by the name before them.
pub fn aws_secret(ahead: Ahead<'_>, start: usize) -> Looked {
    let between = |byte: u8| b" =:\"'\\\t".contains(&byte);
    let from = ahead.run(start, between, 24)?;
    let to = ahead.run(from, base64, 41)?;
    let is_one = from > start && to - from == 40 && is_varied(ahead.part(from, to));
    Ok(is_one.then(|| Hit::part(from, to)))
}

/// 64 bytes as base64; the name before them stays.
pub fn azure_key(ahead: Ahead<'_>, start: usize) -> Looked {
    let to = ahead.run(start, base64, 89)?;
    let is_one = to - start == 88 && is_varied(ahead.part(start, to));
    Ok(is_one.then(|| Hit::part(start, to)))
}

/// `cio` is in too many words to be a start; the text before it stays.
pub fn crates_io(ahead: Ahead<'_>, start: usize) -> Looked {
    let to = ahead.run(start, alphanumeric, 33)?;
    let is_one = to - start == 32 && is_varied(ahead.part(start, to));
    Ok(is_one.then(|| Hit::part(1, to)))
}

/// `SG.` and two parts of known length.
pub fn sendgrid(ahead: Ahead<'_>, start: usize) -> Looked {
    let first = ahead.run(start, word_or_dash, 23)?;
    if first - start != 22 || ahead.at(first)? != Some(b'.') {
        return Ok(None);
    }
    let end = ahead.run(first + 1, word_or_dash, 44)?;
    Ok((end - first == 44).then(|| Hit::all(end)))
}
