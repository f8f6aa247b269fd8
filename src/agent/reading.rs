//! What was read of one attempt, line by line, in bounded memory.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::core::event::Usage;
use crate::core::handoff::Context;
use crate::core::id::StoryId;
use crate::core::outcome::{AUTHENTICATION_FAILED, Seen};
use crate::core::signal::{Scanner, Signals, Signs};
use crate::core::spending::{Known, ModelUse};

use super::background::Background;
use super::consumption::Consumption;
use super::decode::{Login, News, Told, decode};
use super::echo::Echo;
use super::lines::Lines;

/// How much of the end of plain output and of standard error is kept at least.
const LAST_WORDS: usize = 4 * 1024;
/// A line with bytes that are no text is copied to be read up to this length.
const LONGEST_LOSSY: usize = 1024 * 1024;
/// How many different tools are told apart.
const MAX_DENIED: usize = 32;

pub struct Reading {
    lines: Lines,
    /// The main agent's text out of events.
    structured: Scanner,
    /// Everything that is no event, in case it is a plain-text agent.
    plain: Scanner,
    echo: Echo,
    seen: Seen,
    consumption: Consumption,
    started: Option<Started>,
    login: Login,
    /// How often in a row the login was refused, and tried again.
    refused: u32,
    denied: BTreeMap<String, u32>,
    background: Background,
    /// A turn began, and its result is not in yet.
    in_turn: bool,
    last_words: Vec<u8>,
    /// The main agent's last text, at most its end.
    last_said: String,
    /// Tokens that were in the agent's context when it last said something.
    context_used: u64,
    /// Of the model that said it.
    context_window: u64,
    anything: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Started {
    pub version: Option<String>,
    pub model: Option<String>,
}

/// What the attempt amounts to, once its output is over.
#[derive(Debug)]
pub struct Read {
    pub signals: Signals,
    pub seen: Seen,
    pub usage: Usage,
    pub models: Vec<ModelUse>,
    /// How much of its cost it could say.
    pub known: Known,
    /// A subscription pays and not the dollar, if it can be told.
    pub subscription: Option<bool>,
    pub started: Option<Started>,
    /// How full its context was at last, if it said so.
    pub context: Option<Context>,
    /// What it was not allowed to do, as the rule that would allow it, and how often it tried.
    pub denied: BTreeMap<String, u32>,
    /// What it said last, at least its end.
    pub final_text: String,
}

/// For the live display.
#[derive(Debug, PartialEq, Eq)]
pub enum Heard<'a> {
    Doing(&'a str),
    Said(&'a str),
}

impl Reading {
    pub fn new(story: &StoryId, prompt: &str) -> Self {
        Self::listening(story, Signs::default(), 0, prompt)
    }

    /// With the human's own signs of completion, after so many of their stages.
    pub fn listening(story: &StoryId, signs: Signs, reached: usize, prompt: &str) -> Self {
        Self {
            lines: Lines::default(),
            structured: Scanner::listening(story, signs.clone(), reached),
            plain: Scanner::listening(story, signs, reached),
            echo: Echo::new(prompt),
            seen: Seen::default(),
            consumption: Consumption::default(),
            started: None,
            login: Login::default(),
            refused: 0,
            denied: BTreeMap::new(),
            background: Background::default(),
            in_turn: false,
            last_words: Vec::new(),
            last_said: String::new(),
            context_used: 0,
            context_window: 0,
            anything: false,
        }
    }

    pub fn push(&mut self, chunk: &[u8], heard: &mut dyn FnMut(Heard<'_>)) {
        self.anything |= !chunk.is_empty();
        let mut lines = std::mem::take(&mut self.lines);
        lines.push(chunk, |line| self.line(line, heard));
        self.lines = lines;
    }

    pub fn push_stderr(&mut self, chunk: &[u8]) {
        self.keep_last_words(chunk);
    }

    /// Something came, on either channel.
    pub fn has_begun(&self) -> bool {
        self.anything
    }

    pub fn has_result(&self) -> bool {
        self.seen.result.is_some()
    }

    /// How many tasks are known to run in the background.
    pub fn background_tasks(&self) -> usize {
        self.background.count()
    }

    /// More can come of it by itself: from the background, or from the turn that the CLI begins
    /// when a task there has ended.
    pub fn is_at_work(&self) -> bool {
        self.in_turn || self.background_tasks() > 0
    }

    /// The CLI tries again what cannot succeed: a login that is refused. One that can be renewed
    /// is, but only after the first refusal was told.
    pub fn is_hopeless(&self) -> bool {
        let refusals = match self.login {
            Login::Key => 1,
            Login::Renewable => 2,
        };
        self.refused >= refusals
    }

    pub fn finish(mut self, heard: &mut dyn FnMut(Heard<'_>)) -> Read {
        let mut lines = std::mem::take(&mut self.lines);
        lines.finish(|line| self.line(line, heard));
        let plain = &mut self.plain;
        self.echo.finish(|line| say_line(plain, line));
        self.seen.last_words = last_line(&self.last_words);
        let final_text = self.final_text();
        let known = self.consumption.known(self.in_turn);
        let (used, window) = (self.context_used, self.context_window);
        let context = (used > 0 && window > 0).then_some(Context { used, window });
        let scanner = if self.seen.structured { self.structured } else { self.plain };
        Read {
            signals: scanner.finish(),
            seen: self.seen,
            usage: self.consumption.usage(),
            known,
            subscription: self.consumption.subscription,
            models: self.consumption.models,
            started: self.started,
            context,
            denied: self.denied,
            final_text,
        }
    }

    fn final_text(&mut self) -> String {
        if !self.seen.structured {
            return String::from_utf8_lossy(&self.last_words).into_owned();
        }
        let result = self.seen.result.as_ref().map(|result| end_of(&result.text, LAST_WORDS));
        match result.filter(|text| !text.trim().is_empty()) {
            Some(text) => text.to_owned(),
            None => std::mem::take(&mut self.last_said),
        }
    }

    fn line(&mut self, line: &[u8], heard: &mut dyn FnMut(Heard<'_>)) {
        let text = readable(line);
        match decode(&text) {
            Some(told) => self.told(told, heard),
            None => self.plain_line(&text, heard),
        }
    }

    fn plain_line(&mut self, text: &str, heard: &mut dyn FnMut(Heard<'_>)) {
        if self.seen.structured {
            return;
        }
        self.keep_last_words(text.as_bytes());
        self.keep_last_words(b"\n");
        let plain = &mut self.plain;
        self.echo.push(text, |line| {
            say_line(plain, line);
            heard(Heard::Said(line));
        });
    }

    fn told(&mut self, told: Told, heard: &mut dyn FnMut(Heard<'_>)) {
        self.seen.structured = true;
        self.seen.retrying = None;
        self.consumption.note(told.used);
        self.context_used = told.context.unwrap_or(self.context_used);
        for text in &told.said {
            self.structured.push(text);
            self.structured.end_message();
            end_of(text, LAST_WORDS).clone_into(&mut self.last_said);
            heard(Heard::Said(text));
        }
        for doing in &told.doing {
            heard(Heard::Doing(doing));
        }
        match told.news {
            Some(news) => self.news(news),
            None if told.said.is_empty() && told.doing.is_empty() => {}
            None => self.refused = 0,
        }
    }

    fn news(&mut self, news: News) {
        let is_refusal = matches!(&news, News::Retry(e) if e.error == AUTHENTICATION_FAILED);
        self.refused = if is_refusal { self.refused + 1 } else { 0 };
        match news {
            News::Started { version, model, login } => {
                self.login = login;
                // A new turn: what failed before it did not end the process.
                self.seen.api_error = None;
                self.in_turn = true;
                self.started = Some(Started { version, model });
            }
            News::Retry(error) => self.seen.retrying = Some(error),
            News::ApiError(error) => self.seen.api_error = Some(error),
            News::Limited { resets_at } => self.seen.limit_resets_at = resets_at,
            News::Denied { tool } => self.deny(tool),
            News::Task(news) => self.background.take(news),
            News::Result { seen, usage, models, window, denied } => {
                self.context_window = window;
                self.in_turn = false;
                self.seen.result = Some(*seen);
                self.consumption.end_turn(usage, models);
                if !denied.is_empty() {
                    // It knows more than the events that came before it.
                    self.denied.clear();
                    denied.into_iter().for_each(|rule| self.deny(rule));
                }
            }
        }
    }

    fn deny(&mut self, rule: String) {
        if self.denied.len() < MAX_DENIED {
            *self.denied.entry(rule).or_default() += 1;
        }
    }

    fn keep_last_words(&mut self, words: &[u8]) {
        self.anything = true;
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

fn say_line(scanner: &mut Scanner, line: &str) {
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
