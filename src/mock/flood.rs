//! More output than anybody wants to read.

use std::io::{self, Write};

use serde_json::json;

use super::stream::{Stream, tool_result};

const MEGABYTE: u64 = 1_000_000;
const CHUNK: usize = 50_000;
/// Where the chunks go in an event; nothing else in it looks like this.
const GAP: &str = "@@flood@@";

/// `megabytes` of tool results, in lines of about 50 kB.
pub fn lines<W: Write>(stream: &mut Stream<W>, megabytes: u64) -> io::Result<()> {
    for _ in 0..megabytes.saturating_mul(MEGABYTE) / CHUNK as u64 {
        result_of(stream, 1)?;
    }
    Ok(())
}

/// One tool result of `megabytes`.
pub fn one_line<W: Write>(stream: &mut Stream<W>, megabytes: u64) -> io::Result<()> {
    result_of(stream, megabytes.saturating_mul(MEGABYTE) / CHUNK as u64)
}

fn result_of<W: Write>(stream: &mut Stream<W>, chunks: u64) -> io::Result<()> {
    let chunk = [b'x'; CHUNK];
    let (before, after) = around_the_gap(stream);
    stream.bytes(before.as_bytes())?;
    for _ in 0..chunks {
        stream.bytes(&chunk)?;
    }
    stream.line(after.as_bytes())
}

fn around_the_gap<W: Write>(stream: &mut Stream<W>) -> (String, String) {
    if stream.is_plain() {
        return Default::default();
    }
    let mut event = tool_result("toolu_mock_flood", &Ok(GAP.to_owned()));
    // The text stands once in the message; a second copy would double the flood.
    event["tool_use_result"] = json!("");
    let text = event.to_string();
    let (before, after) = text.split_once(GAP).unwrap_or_default();
    (before.to_owned(), after.to_owned())
}
