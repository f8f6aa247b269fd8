//! Reads one attempt's output: bytes, lines, events, and what they add up to; in bounded memory.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::model::{
    AgentSignals, CompletionMarkers, ContextUsage, CostCertainty, EndedBy, Exit, ModelUse, Outcome,
    StoryId, Usage,
};
use crate::text::signals::Scanner;

use super::event::{AgentEnd, AgentEvent, AgentIdentity, Decoder, ProcessEnd};
use super::lines::Lines;
use super::plain::Echo;
use super::usage::Consumption;

/// How much of the end of plain output and of standard error is kept at least.
const LAST_WORDS: usize = 4 * 1024;
/// A line with bytes that are no text is copied to be read up to this length.
const LONGEST_LOSSY: usize = 1024 * 1024;
/// How many different tools are told apart.
const MAX_DENIED: usize = 32;

/// Hears every event right before it is counted.
pub type EventListener<'a> = &'a mut dyn FnMut(&AgentEvent<'_>);

pub struct StreamReader {
    lines: Lines,
    contents: Contents,
    anything: bool,
}

/// What the lines held so far.
struct Contents {
    decoder: Box<dyn Decoder>,
    /// The main agent's text out of events.
    scanner: Scanner,
    events: EventSum,
    plain: PlainText,
}

/// What the events add up to.
#[derive(Default)]
struct EventSum {
    /// There was an event, so whatever is none is not the agent's own text.
    any: bool,
    consumption: Consumption,
    identity: Option<AgentIdentity>,
    denied: BTreeMap<String, u32>,
    background: usize,
    /// A turn began, and its end is not in yet.
    in_turn: bool,
    has_ended: bool,
    /// The end of the main agent's last text, and of the last turn's.
    last_said: String,
    result_text: String,
}

/// Everything that is no event, in case it is a plain-text agent.
struct PlainText {
    scanner: Scanner,
    echo: Echo,
    /// The end of it, and of standard error.
    last_words: Vec<u8>,
}

/// What one attempt's output amounts to.
#[derive(Debug)]
pub struct AgentReport {
    pub outcome: Outcome,
    pub signals: AgentSignals,
    pub usage: Usage,
    pub models: Vec<ModelUse>,
    /// How much of its cost it could say.
    pub known: CostCertainty,
    /// A subscription pays and not the dollar, if it can be told.
    pub subscription: Option<bool>,
    pub started: Option<AgentIdentity>,
    /// How full its context was at last, if it said so.
    pub context: Option<ContextUsage>,
    /// What it was not allowed to do, as the rule that would allow it, and how often it tried.
    pub denied: BTreeMap<String, u32>,
    /// What it said last, at least its end.
    pub final_text: String,
}

impl StreamReader {
    pub fn new(decoder: Box<dyn Decoder>, story: &StoryId, prompt: &str) -> Self {
        Self::with_markers(decoder, story, CompletionMarkers::default(), 0, prompt)
    }

    /// With the human's own signs of completion, after so many of their stages.
    pub fn with_markers(
        decoder: Box<dyn Decoder>,
        story: &StoryId,
        markers: CompletionMarkers,
        reached: usize,
        prompt: &str,
    ) -> Self {
        let scanner = || Scanner::with_markers(story, markers.clone(), reached);
        Self {
            lines: Lines::default(),
            contents: Contents {
                decoder,
                scanner: scanner(),
                events: EventSum::default(),
                plain: PlainText {
                    scanner: scanner(),
                    echo: Echo::new(prompt),
                    last_words: Vec::new(),
                },
            },
            anything: false,
        }
    }

    pub fn push(&mut self, chunk: &[u8], heard: EventListener<'_>) {
        self.anything |= !chunk.is_empty();
        self.lines.push(chunk, |line| self.contents.line(line, heard));
    }

    pub fn push_stderr(&mut self, chunk: &[u8]) {
        self.anything = true;
        self.contents.plain.keep(chunk);
    }

    /// Something came, on either channel.
    pub fn has_begun(&self) -> bool {
        self.anything
    }

    pub fn has_result(&self) -> bool {
        self.contents.events.has_ended
    }

    /// How many tasks are known to run in the background.
    pub fn background_tasks(&self) -> usize {
        self.contents.events.background
    }

    /// More can come of it by itself: from the background, or from the turn that the agent begins
    /// when a task there has ended.
    pub fn is_at_work(&self) -> bool {
        self.contents.events.in_turn || self.background_tasks() > 0
    }

    /// The agent tries again what cannot succeed.
    pub fn is_hopeless(&self) -> bool {
        self.contents.decoder.hopeless().is_some()
    }

    /// The output is over, and so is the process.
    pub fn finish(
        mut self,
        exit: &Exit,
        ended_by: Option<EndedBy>,
        heard: EventListener<'_>,
    ) -> AgentReport {
        let mut contents = self.contents;
        self.lines.finish(|line| contents.line(line, heard));
        let Contents { decoder, scanner, mut events, mut plain } = contents;
        plain.finish();
        let end = ProcessEnd {
            exit,
            ended_by,
            structured: events.any,
            last_words: &last_line(&plain.last_words),
        };
        let (scanner, final_text) = match events.any {
            true => (scanner, events.final_text()),
            false => (plain.scanner, String::from_utf8_lossy(&plain.last_words).into_owned()),
        };
        AgentReport {
            outcome: end.outcome(decoder.as_ref()),
            signals: scanner.finish(),
            usage: events.consumption.usage(),
            known: events.consumption.certainty(events.in_turn),
            subscription: events.consumption.subscription,
            context: events.consumption.context(),
            models: events.consumption.models,
            started: events.identity,
            denied: events.denied,
            final_text,
        }
    }
}

impl Contents {
    fn line(&mut self, line: &[u8], heard: EventListener<'_>) {
        let text = readable(line);
        let Self { decoder, scanner, events, .. } = self;
        let is_event = decoder.line(&text, &mut |event| {
            heard(&event);
            events.take(event, scanner);
        });
        events.any |= is_event;
        if !events.any {
            self.plain.line(&text, heard);
        }
    }
}

impl EventSum {
    fn take(&mut self, event: AgentEvent<'_>, scanner: &mut Scanner) {
        match event {
            AgentEvent::Started(identity) => {
                self.in_turn = true;
                self.identity = Some(identity);
            }
            AgentEvent::Said(text) => {
                scanner.push(text);
                scanner.end_message();
                end_of(text, LAST_WORDS).clone_into(&mut self.last_said);
            }
            AgentEvent::Doing(_) => {}
            AgentEvent::Usage(update) => self.consumption.add(update),
            AgentEvent::Denied(rule) => self.deny(rule),
            AgentEvent::Background(tasks) => self.background = tasks,
            AgentEvent::Ended(end) => self.end_turn(*end),
        }
    }

    fn end_turn(&mut self, mut end: AgentEnd) {
        self.in_turn = false;
        self.has_ended = true;
        end_of(&end.text, LAST_WORDS).clone_into(&mut self.result_text);
        let denied = std::mem::take(&mut end.denied);
        self.consumption.end_turn(end);
        if !denied.is_empty() {
            // It knows more than the events that came before it.
            self.denied.clear();
            denied.into_iter().for_each(|rule| self.deny(rule));
        }
    }

    fn deny(&mut self, rule: String) {
        if self.denied.len() < MAX_DENIED {
            *self.denied.entry(rule).or_default() += 1;
        }
    }

    fn final_text(&mut self) -> String {
        let said = [&mut self.result_text, &mut self.last_said];
        let text = said.into_iter().find(|text| !text.trim().is_empty());
        text.map(std::mem::take).unwrap_or_default()
    }
}

impl PlainText {
    fn line(&mut self, text: &str, heard: EventListener<'_>) {
        self.keep(text.as_bytes());
        self.keep(b"\n");
        let Self { scanner, echo, .. } = self;
        echo.push(text, |line| {
            scan_line(scanner, line);
            heard(&AgentEvent::Said(line));
        });
    }

    fn finish(&mut self) {
        let Self { scanner, echo, .. } = self;
        echo.finish(|line| scan_line(scanner, line));
    }

    fn keep(&mut self, words: &[u8]) {
        let words = words.get(words.len().saturating_sub(LAST_WORDS)..).unwrap_or(words);
        self.last_words.extend_from_slice(words);
        // Not for every short line: what is drained moves all the rest.
        if self.last_words.len() > 2 * LAST_WORDS {
            self.last_words.drain(..self.last_words.len() - LAST_WORDS);
        }
    }
}

/// Far faster than the lossy way, which nearly no line needs. A very long line is only read up to
/// what is no text, such as the half of a character where it was cut: a copy of it would cost as
/// much memory again.
fn readable(line: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(line) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) if line.len() <= LONGEST_LOSSY => String::from_utf8_lossy(line),
        Err(bad) => {
            let text = line.get(..bad.valid_up_to()).map(std::str::from_utf8);
            Cow::Borrowed(text.and_then(Result::ok).unwrap_or_default())
        }
    }
}

fn scan_line(scanner: &mut Scanner, line: &str) {
    scanner.push(line);
    scanner.push("\n");
}

/// The last so many bytes, or a little more.
fn end_of(text: &str, most: usize) -> &str {
    let start = (0..=text.len().saturating_sub(most)).rev().find(|at| text.is_char_boundary(*at));
    text.get(start.unwrap_or_default()..).unwrap_or(text)
}

/// The last line that says something: errors stand at the end.
fn last_line(words: &[u8]) -> String {
    let text = String::from_utf8_lossy(words);
    text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_short_lines_are_copied_to_be_read() {
        assert!(matches!(readable(b"Task"), Cow::Borrowed("Task")));
        assert_eq!(readable(b"a\xffb\xc3"), "a\u{fffd}b\u{fffd}");
        let long = |end: &[u8]| [&vec![b'x'; LONGEST_LOSSY][..], end].concat();
        for (end, length) in [(&b""[..], 0), (b"\xc3", 0), (b"\xff more", 0), ("é".as_bytes(), 2)]
        {
            let line = long(end);
            let read = readable(&line);
            assert!(matches!(read, Cow::Borrowed(_)), "{end:?}");
            assert_eq!(read.len(), LONGEST_LOSSY + length, "{end:?}");
        }
    }
}
