//! Turns one attempt's output into an agent report, in bounded memory.

use std::borrow::Cow;
use std::collections::BTreeMap;

use memchr::memchr;

use crate::model::{
    AgentSignals, ContextUsage, CostCertainty, EndedBy, Exit, ModelUse, Outcome, Usage,
};
use crate::text::signals::Scanner;

use super::backend::{
    AgentEnd, AgentEvent, AgentIdentity, Decoder, EndOrder, EventListener, UsageUpdate, detail,
};
use super::plain::{EchoFilter, PlainText, TAIL};

/// A longer line is cut here: its rest is skipped.
const MAX_LINE: usize = 64 * 1024 * 1024;
const MAX_ERROR_LINE: usize = 64 * 1024;
/// What the buffer of lines may keep allocated between two of them.
const KEEP: usize = 1024 * 1024;
/// The longest line, in bytes, that is copied to replace bytes that are not text.
const LONGEST_LOSSY: usize = 1024 * 1024;
/// The most tools to count denials of.
const MAX_DENIED: usize = 32;

pub struct StreamReader {
    lines: Lines<MAX_LINE>,
    error_lines: Lines<MAX_ERROR_LINE>,
    decoder: Box<dyn Decoder>,
    /// Reads the main agent's text in events.
    scanner: Scanner,
    events: EventSum,
    plain: PlainText,
    has_begun: bool,
    order: Option<EndOrder>,
}

/// What the events add up to.
#[derive(Default)]
struct EventSum {
    /// There was an event, so anything else is not the agent's own text.
    any: bool,
    identity: AgentIdentity,
    /// A turn began and has not ended yet.
    in_turn: bool,
    /// How the last turn ended.
    result: Option<Result<(), Outcome>>,
    /// What the updates add up to.
    used: Usage,
    /// As the last turn's end has it, which counts everything up to it.
    stated: Option<Usage>,
    models: Vec<ModelUse>,
    subscription: Option<bool>,
    context: ContextUsage,
    denied: BTreeMap<String, u32>,
    background: usize,
    /// The end of the main agent's last text, and of the last turn's.
    last_said: String,
    result_text: String,
    /// Not yet written to the agent.
    replies: String,
}

/// The summary of one attempt's output.
#[derive(Debug)]
pub struct AgentReport {
    pub outcome: Outcome,
    pub signals: AgentSignals,
    pub usage: Usage,
    pub models: Vec<ModelUse>,
    /// How much of its cost it reported.
    pub certainty: CostCertainty,
    /// Whether a subscription pays. None: unknown.
    pub subscription: Option<bool>,
    pub identity: AgentIdentity,
    /// How full its context was at the end. None: not reported.
    pub context: Option<ContextUsage>,
    /// Denied tool calls: the rule that would allow each, and how often it was denied.
    pub denied: BTreeMap<String, u32>,
    /// Its last text, at least the end of it.
    pub final_text: String,
}

impl StreamReader {
    /// Events and plain text each have their own scanner, because only one of them counts.
    pub fn new(decoder: Box<dyn Decoder>, scanner: impl Fn() -> Scanner, prompt: &str) -> Self {
        let echo = EchoFilter::new(prompt);
        Self {
            lines: Lines::default(),
            error_lines: Lines::default(),
            decoder,
            scanner: scanner(),
            events: EventSum::default(),
            plain: PlainText { scanner: scanner(), echo, printed: Vec::new() },
            has_begun: false,
            order: None,
        }
    }

    /// Calls `tell` with every event before it is counted.
    pub fn push(&mut self, chunk: &[u8], tell: EventListener<'_>) {
        self.has_begun |= !chunk.is_empty();
        let mut lines = std::mem::take(&mut self.lines);
        lines.push(chunk, |line| self.line(line, tell));
        self.lines = lines;
    }

    pub fn push_stderr(&mut self, chunk: &[u8], tell: EventListener<'_>) {
        self.has_begun = true;
        self.plain.keep(chunk);
        let mut lines = std::mem::take(&mut self.error_lines);
        lines.push(chunk, |line| self.error_line(line, tell));
        self.error_lines = lines;
    }

    pub fn message(&mut self, text: &str) {
        let Self { decoder, scanner, events, .. } = self;
        decoder.message(text, &mut |event| events.add(event, scanner));
    }

    /// What to write to the agent since the last call.
    pub fn take_replies(&mut self) -> String {
        std::mem::take(&mut self.events.replies)
    }

    /// It has printed something, on either channel.
    pub fn has_begun(&self) -> bool {
        self.has_begun
    }

    pub fn has_result(&self) -> bool {
        self.events.result.is_some()
    }

    /// More may come by itself: from a task in the background, or from the turn that the agent
    /// begins when such a task has ended.
    pub fn is_at_work(&self) -> bool {
        self.events.in_turn || self.events.background > 0
    }

    /// The agent's retries cannot succeed.
    pub fn is_hopeless(&self) -> bool {
        self.decoder.hopeless().is_some()
    }

    /// The agent is ordered to end. The first order counts; returns whether this is the first.
    pub fn end(&mut self, why: EndedBy) -> bool {
        let is_first = self.order.is_none();
        if is_first {
            let (result, hopeless) = (self.events.result.clone(), self.decoder.hopeless());
            self.order = Some(EndOrder { why, result, hopeless });
        }
        is_first
    }

    /// Why we ended it, if we did.
    pub fn ended_by(&self) -> Option<EndedBy> {
        self.order.as_ref().map(|order| order.why)
    }

    /// The output is over, and so is the process.
    pub fn finish(mut self, exit: &Exit, tell: EventListener<'_>) -> AgentReport {
        std::mem::take(&mut self.lines).finish(|line| self.line(line, tell));
        std::mem::take(&mut self.error_lines).finish(|line| self.error_line(line, tell));
        if !self.events.any {
            self.plain.finish(tell);
        }
        let outcome = self.outcome(exit);
        let Self { scanner, events, plain, .. } = self;
        AgentReport {
            outcome,
            final_text: if events.any { events.final_text() } else { plain.tail() },
            signals: if events.any { scanner } else { plain.scanner }.finish(),
            usage: events.usage(),
            certainty: events.certainty(),
            subscription: events.subscription,
            context: Some(events.context).filter(|it| it.used > 0 && it.window > 0),
            models: events.models,
            identity: events.identity,
            denied: events.denied,
        }
    }

    /// The part of the classification that is the same for all agents.
    fn outcome(&self, exit: &Exit) -> Outcome {
        if let Exit::NotSpawned { error } = exit {
            return Outcome::SpawnFailed { detail: detail(error) };
        }
        match (&self.order, &self.events.result) {
            (Some(order), last) => order.outcome(last.as_ref()),
            (None, Some(Err(failed))) => failed.clone(),
            (None, Some(Ok(()))) if *exit == Exit::Code(0) => Outcome::Completed,
            (None, _) => self.without_result(exit),
        }
    }

    fn without_result(&self, exit: &Exit) -> Outcome {
        let printed = self.plain.tail();
        // Errors are at the end.
        let last_line = printed.lines().rev().find(|line| !line.trim().is_empty());
        let words = detail(last_line.unwrap_or_default());
        let code = match exit {
            Exit::Signal(signal) => return Outcome::KilledBySomeoneElse { signal: *signal },
            Exit::Code(0) if !self.events.any => return Outcome::Completed,
            Exit::Code(code) => *code,
            _ => return Outcome::NoResult { detail: words },
        };
        let own = self.decoder.of_exit_code(code).filter(|_| self.events.any);
        own.unwrap_or_else(|| Outcome::NoResult { detail: ended_with(code, words) })
    }

    fn line(&mut self, line: &[u8], tell: EventListener<'_>) {
        let text = readable(line);
        let Self { decoder, scanner, events, .. } = self;
        let is_event = decoder.line(&text, &mut |event| {
            tell(event);
            events.add(event, scanner);
        });
        events.any |= is_event;
        if !events.any {
            self.plain.line(&text, tell);
        }
    }

    fn error_line(&mut self, line: &[u8], tell: EventListener<'_>) {
        let Self { decoder, scanner, events, .. } = self;
        decoder.error_line(&readable(line), &mut |event| {
            tell(event);
            events.add(event, scanner);
        });
    }
}

impl EventSum {
    fn add(&mut self, event: &AgentEvent<'_>, scanner: &mut Scanner) {
        match event {
            AgentEvent::Started(identity) => {
                self.in_turn = true;
                self.identity = identity.clone();
            }
            AgentEvent::Said(text) => {
                scanner.push(text);
                scanner.end_message();
                end_of(text).clone_into(&mut self.last_said);
            }
            AgentEvent::Doing(..) => {}
            AgentEvent::Usage(update) => self.update(update),
            AgentEvent::Denied(rule) => self.deny(rule),
            AgentEvent::Background(tasks) => self.background = *tasks,
            AgentEvent::Ended(end) => self.end_turn(end),
            AgentEvent::Reply(text) => self.replies.push_str(text),
        }
    }

    fn update(&mut self, update: &UsageUpdate) {
        self.used.add(&update.used);
        self.subscription = update.subscription.or(self.subscription);
        self.context.used = update.context.unwrap_or(self.context.used);
        self.context.window = update.window.unwrap_or(self.context.window);
    }

    fn end_turn(&mut self, end: &AgentEnd) {
        self.in_turn = false;
        self.result = Some(end.result.clone());
        self.stated.clone_from(&end.usage);
        self.models.clone_from(&end.models);
        end_of(&end.text).clone_into(&mut self.result_text);
        if !end.denied.is_empty() {
            // It knows more than the events before it.
            self.denied.clear();
            end.denied.iter().for_each(|rule| self.deny(rule));
        }
    }

    fn deny(&mut self, rule: &str) {
        if let Some(count) = self.denied.get_mut(rule) {
            *count += 1;
        } else if self.denied.len() < MAX_DENIED {
            self.denied.insert(rule.to_owned(), 1);
        }
    }

    fn usage(&self) -> Usage {
        let stated = self.stated.as_ref().unwrap_or(&self.used);
        Usage { tool_calls: self.used.tool_calls, ..stated.clone() }
    }

    fn certainty(&self) -> CostCertainty {
        match self.result {
            _ if self.in_turn => CostCertainty::Part,
            Some(_) => CostCertainty::Whole,
            // No request is made before the first turn.
            None => CostCertainty::Nothing,
        }
    }

    fn final_text(&self) -> String {
        let texts = [&self.result_text, &self.last_said];
        texts.into_iter().find(|text| !text.trim().is_empty()).cloned().unwrap_or_default()
    }
}

fn ended_with(code: i32, words: String) -> String {
    let end = match code {
        0 => "the agent ended without a result".to_owned(),
        code => format!("the agent ended with exit code {code}"),
    };
    if words.is_empty() { end } else { format!("{end}: {words}") }
}

/// Splits bytes into lines, independent of their chunks, in bounded memory.
#[derive(Default)]
struct Lines<const MOST: usize> {
    /// The start of a line whose end has not come yet.
    pending: Vec<u8>,
    /// The current line is over the cap, and its start was passed on already.
    cut: bool,
}

impl<const MOST: usize> Lines<MOST> {
    /// Calls `each` with every complete line, without its line end.
    fn push(&mut self, chunk: &[u8], mut each: impl FnMut(&[u8])) {
        let mut rest = chunk;
        while let Some(end) = memchr(b'\n', rest) {
            let (line, after) = rest.split_at(end);
            self.complete(line, &mut each);
            rest = after.get(1..).unwrap_or_default();
        }
        self.hold(rest, &mut each);
    }

    /// The output is over: a rest without a line end is a line too.
    fn finish(self, mut each: impl FnMut(&[u8])) {
        if !self.cut && !self.pending.is_empty() {
            each(trim_cr(&self.pending));
        }
    }

    fn complete(&mut self, tail: &[u8], each: &mut impl FnMut(&[u8])) {
        if self.cut {
            self.cut = false;
        } else if self.pending.is_empty() {
            each(trim_cr(tail));
        } else {
            self.hold(tail, each);
            if !std::mem::take(&mut self.cut) {
                each(trim_cr(&self.pending));
            }
        }
        self.pending.clear();
        self.pending.shrink_to(KEEP);
    }

    fn hold(&mut self, part: &[u8], each: &mut impl FnMut(&[u8])) {
        if self.cut {
            return;
        }
        let room = MOST - self.pending.len();
        let (fits, over) = part.split_at(part.len().min(room));
        self.pending.extend_from_slice(fits);
        if !over.is_empty() {
            each(&self.pending);
            self.cut = true;
            self.pending = Vec::new();
        }
    }
}

fn trim_cr(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Nearly all lines are valid and need no copy. A very long line is only read up to the first byte
/// that is not text, such as half of a character where it was cut: a copy would double the memory.
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

/// The end of a text.
fn end_of(text: &str) -> &str {
    let from = text.floor_char_boundary(text.len().saturating_sub(TAIL));
    text.get(from..).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::StoryId;

    /// An agent that reports the usage of each step, and no total.
    struct StepDecoder;

    impl Decoder for StepDecoder {
        fn line(&mut self, line: &str, tell: EventListener<'_>) -> bool {
            let step = || UsageUpdate {
                used: Usage { cost_usd: Some(0.5), output_tokens: 10, ..Usage::default() },
                context: Some(7),
                window: Some(100),
                subscription: None,
            };
            let end = || AgentEnd {
                result: Ok(()),
                text: "done".into(),
                usage: None,
                models: Vec::new(),
                denied: Vec::new(),
            };
            match line {
                "start" => tell(&AgentEvent::Started(AgentIdentity::default())),
                "step" => tell(&AgentEvent::Usage(step())),
                "end" => tell(&AgentEvent::Ended(&end())),
                _ => return false,
            }
            true
        }

        fn message(&mut self, _text: &str, _tell: EventListener<'_>) {}
    }

    #[test]
    fn updates_add_up_if_the_end_of_a_turn_has_no_usage() {
        for (output, certainty, final_text) in [
            ("start\nstep\nstep\nend\n", CostCertainty::Whole, "done"),
            ("start\nstep\nstep\n", CostCertainty::Part, ""),
        ] {
            let story = StoryId::try_from("US-001").unwrap();
            let scanner = || Scanner::new(&story, crate::model::CompletionMarkers::default(), 0);
            let mut reader = StreamReader::new(Box::new(StepDecoder), scanner, "");
            reader.push(output.as_bytes(), &mut |_| {});
            let report = reader.finish(&Exit::Code(0), &mut |_| {});
            let usage = (report.usage.cost_usd, report.usage.output_tokens);
            assert_eq!((usage, report.certainty), ((Some(1.0), 20), certainty));
            assert_eq!(report.context, Some(ContextUsage { used: 7, window: 100 }));
            assert_eq!(report.final_text, final_text);
        }
    }

    #[test]
    fn listeners_hear_a_last_line_that_is_also_in_the_prompt() {
        let decoder = crate::agent::any_decoder();
        let story = StoryId::try_from("US-001").unwrap();
        let scanner = || Scanner::new(&story, crate::model::CompletionMarkers::default(), 0);
        let mut reader = StreamReader::new(decoder, scanner, "Say:\nTask US-001 complete\n");
        let mut said = Vec::new();
        let mut listen = |event: &AgentEvent<'_>| {
            if let AgentEvent::Said(text) = event {
                said.push((*text).to_owned());
            }
        };
        reader.push(b"Done.\nTask US-001 complete\n", &mut listen);
        let report = reader.finish(&Exit::Code(0), &mut listen);
        assert!(report.signals.claims_story);
        assert_eq!(said, ["Done.", "Task US-001 complete"]);
    }

    #[test]
    fn denials_of_known_tools_are_counted_when_the_list_is_full() {
        let mut events = EventSum::default();
        for number in 0..2 * MAX_DENIED {
            events.deny(&format!("Tool{number}"));
            events.deny("Tool0");
        }
        assert_eq!(events.denied.len(), MAX_DENIED);
        assert_eq!(events.denied.get("Tool0"), Some(&65));
    }

    #[test]
    fn long_lines_are_not_copied() {
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

    fn lines_of(chunks: &[&[u8]]) -> Vec<Vec<u8>> {
        let mut lines = Lines::<MAX_LINE>::default();
        let mut seen = Vec::new();
        for chunk in chunks {
            lines.push(chunk, |line| seen.push(line.to_vec()));
        }
        lines.finish(|line| seen.push(line.to_vec()));
        seen
    }

    #[test]
    fn line_ends_are_removed() {
        assert_eq!(lines_of(&[b"a\r\nb\n\nc"]), [&b"a"[..], b"b", b"", b"c"]);
        assert_eq!(lines_of(&[b"a", b"\r", b"\n", b"\0b\n"]), [&b"a"[..], b"\0b"]);
    }

    #[test]
    fn a_line_over_the_cap_is_cut_and_the_next_one_is_read() {
        let chunk = vec![b'x'; 1024 * 1024];
        let mut lines = Lines::<MAX_LINE>::default();
        let mut lengths = Vec::new();
        for _ in 0..(MAX_LINE / chunk.len() + 3) {
            lines.push(&chunk, |line| lengths.push(line.len()));
        }
        lines.push(b"tail\nnext\n", |line| lengths.push(line.len()));
        assert_eq!(lengths, [MAX_LINE, 4]);
        assert!(lines.pending.capacity() <= KEEP);
    }

    #[test]
    fn a_line_of_standard_error_is_cut_at_a_lower_cap() {
        let mut lines = Lines::<MAX_ERROR_LINE>::default();
        let mut lengths = Vec::new();
        for _ in 0..9 {
            lines.push(&[b'x'; MAX_ERROR_LINE / 4], |line| lengths.push(line.len()));
        }
        lines.push(b"\nnext\n", |line| lengths.push(line.len()));
        assert_eq!(lengths, [MAX_ERROR_LINE, 4]);
    }

    proptest! {
        #[test]
        fn chunks_make_no_difference(text in "[ab\r\n]{0,40}", cuts in prop::collection::vec(0usize..40, 0..6)) {
            let bytes = text.as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().filter(|cut| *cut <= bytes.len()).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let chunks: Vec<&[u8]> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
            prop_assert_eq!(lines_of(&chunks), lines_of(&[bytes]));
        }
    }
}
