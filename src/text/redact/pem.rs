//! Blocks of private keys: `-----BEGIN … PRIVATE KEY-----` to `-----END …`.
//!
//! They span lines, as line feeds or, inside JSON, as `\n`, `\\n` and so on, maybe with
//! line numbers. The two lines around the block stay. A block without an end must not
//! redact what follows, so every word has to look like key material.

use super::lookahead::{Lookahead, Match, More, REACH, SecretRange, SecretRest, Swallowed, base64};

/// The longest gap between two words of a block.
const GAP: usize = 64;
/// A shorter word may be ordinary text; only the last of a block is shorter.
const WORD: usize = 16;
/// The longest line of `Name: value` before the key.
const HEADER: usize = 160;
const HEADERS: [&[u8]; 5] = [b"Proc-Type:", b"DEK-Info:", b"Version:", b"Comment:", b"Hash:"];
const RULE: &[u8] = b"-----";

/// After `BEGIN `: the rest of the line, and the key.
pub fn begin(ahead: Lookahead<'_>, start: usize) -> Match {
    const NAMES: [&[u8]; 2] = [b"PRIVATE KEY-----", b"PRIVATE KEY BLOCK-----"];
    let mut place = start;
    loop {
        for name in NAMES {
            if ahead.has(place, name)? {
                let from = place + name.len();
                let is_one = !next(ahead.from(from))?.is_over;
                let rest = Some(SecretRest::KeyBlock);
                return Ok(is_one.then_some(SecretRange { from, to: from, rest }));
            }
        }
        // `RSA `, `EC `, `OPENSSH `, `ENCRYPTED `
        let end = ahead.run(place, |byte| byte.is_ascii_uppercase(), 16)?;
        if end == place || place > start || ahead.at(end)? != Some(b' ') {
            return Ok(None);
        }
        place = end + 1;
    }
}

/// Key material up to here, or the end of the block.
pub fn next(ahead: Lookahead<'_>) -> Result<Swallowed, More> {
    let from = gap(ahead, 0)?;
    if ahead.has(from, RULE)? {
        return Ok(Swallowed { length: from, is_over: true });
    }
    for name in HEADERS {
        if ahead.has(from, name)? {
            let is_value = |byte: u8| byte >= b' ' && byte != b'\\' && byte != b'"';
            let length = ahead.run(from, is_value, HEADER)?;
            return Ok(Swallowed { length, is_over: false });
        }
    }
    let to = ahead.run(from, base64, REACH)?;
    if to - from >= WORD {
        return Ok(Swallowed { length: to, is_over: false });
    }
    let after = gap(ahead, to)?;
    let is_last = to > from && ahead.has(after, RULE)?;
    Ok(Swallowed { length: if is_last { after } else { 0 }, is_over: true })
}

/// Skips everything between two words: blanks, line ends in any spelling, line numbers.
fn gap(ahead: Lookahead<'_>, start: usize) -> Result<usize, More> {
    let mut place = start;
    while place - start < GAP {
        let length = separator(ahead, place)?;
        let length = if length == 0 { line_number(ahead, place)? } else { length };
        if length == 0 {
            break;
        }
        place += length;
    }
    Ok(place)
}

fn separator(ahead: Lookahead<'_>, place: usize) -> Result<usize, More> {
    const ARROW: &[u8] = "→".as_bytes();
    Ok(match ahead.at(place)? {
        Some(b' ' | b'\t' | b'\r' | b'\n' | b'|' | b'>' | b':' | b',' | b'\'') => 1,
        Some(b'\\') => {
            let escaped = ahead.run(place, |byte| byte == b'\\', GAP)?;
            let is_escape = ahead.is(escaped, |byte| b"nrt\"'".contains(&byte))?;
            if is_escape { escaped + 1 - place } else { 0 }
        }
        Some(byte) if ARROW.first() == Some(&byte) && ahead.has(place, ARROW)? => ARROW.len(),
        _ => 0,
    })
}

/// Digits before a separator.
fn line_number(ahead: Lookahead<'_>, place: usize) -> Result<usize, More> {
    let end = ahead.run(place, |byte| byte.is_ascii_digit(), 7)?;
    let is_one = (1..7).contains(&(end - place)) && separator(ahead, end)? > 0;
    Ok(if is_one { end - place } else { 0 })
}
