//! The person at the terminal: a question in a box, and a menu under it.
//!
//! Owns the terminal only while it asks, and gives it back as it was.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use jiff::tz::TimeZone;

use super::choices::{Choice, Item, choose, items};
use super::conversation::Conversation;
use super::figures::duration;
use super::line::{Line, Text, Tone};
use super::look::Look;
use super::printer::{ColorChoice, colors, env_var};
use super::{display, guidance, hurry, tty};
use crate::core::backlog::Story;
use crate::core::event::Answer;
use crate::core::signal::Escalation;
use crate::core::text::visible_line;
use crate::engine::ports::{Asked, Human};

pub struct TerminalHuman {
    look: Look,
    withdrawn: AtomicBool,
}

impl TerminalHuman {
    pub fn new(color: ColorChoice) -> Self {
        let colors = colors(color, true, env_var);
        let look = Look { colors, columns: None, zone: TimeZone::system() };
        Self { look, withdrawn: AtomicBool::new(false) }
    }

    /// A menu can be shown and keys can be read. False in the background.
    pub fn is_there() -> bool {
        tty::is_there()
    }

    /// The terminal is the conversation's until it ends.
    pub(super) fn converse<T>(
        &self,
        patience: Duration,
        talk: impl FnOnce(&mut Conversation<'_>) -> Result<T, Asked>,
    ) -> Result<T, Asked> {
        if !tty::is_there() {
            return Err(Asked::NobodyThere);
        }
        // Given back after the conversation's end: the last declared is dropped first.
        let _held = display::hold(patience, &self.withdrawn)?;
        let mut conversation = Conversation::start(self.look.clone(), patience, &self.withdrawn)?;
        talk(&mut conversation)
    }
}

impl Human for TerminalHuman {
    fn ask(&self, story: &Story, question: &Escalation, patience: Duration) -> Asked {
        self.converse(patience, |conversation| {
            show(conversation, story, question, patience);
            answer(conversation, question)
        })
        .map_or_else(|asked| asked, Asked::Answered)
    }

    fn hurries(&self, over: &AtomicBool) -> bool {
        hurry::wanted(over)
    }

    fn withdraw(&self) {
        self.withdrawn.store(true, Ordering::SeqCst);
    }

    fn come_back(&self) {
        self.withdrawn.store(false, Ordering::SeqCst);
    }
}

fn answer(conversation: &mut Conversation<'_>, question: &Escalation) -> Result<Answer, Asked> {
    let items = items(question);
    loop {
        let item = choose(conversation, &items)?;
        conversation.print(&chosen(item));
        match &item.choice {
            Choice::Answer(answer) => return Ok(answer.clone()),
            Choice::Write => {
                if let Some(text) = guidance::write(conversation)? {
                    show_back(conversation, &text);
                    return Ok(Answer::Guidance { text });
                }
            }
        }
    }
}

fn show(conversation: &Conversation<'_>, story: &Story, question: &Escalation, patience: Duration) {
    let heading = format!("{} {}", story.id, visible_line(&story.title));
    conversation.print(&Line::Blank);
    conversation.print(&Line::Question { heading, escalation: question.clone() });
    let wait = format!("Waits {} for an answer, then goes on with other stories.", time(patience));
    conversation.print(&Text::new().with(Tone::Dim, wait).into());
}

pub(super) fn chosen<C>(item: &Item<C>) -> Line {
    Text::new().with(Tone::Question, "› ").plain(item.text()).into()
}

fn show_back(conversation: &Conversation<'_>, text: &str) {
    conversation.print(&Text::new().with(Tone::Dim, "The agent will read:").into());
    for line in text.lines() {
        conversation.print(&Text::new().plain(format!("  {line}")).into());
    }
}

/// `10 minutes`, or as exact as it is.
pub(super) fn time(patience: Duration) -> String {
    match (patience.as_secs() / 60, patience.as_secs() % 60) {
        (1, 0) => "1 minute".to_owned(),
        (minutes @ 2..=120, 0) => format!("{minutes} minutes"),
        _ => duration(u64::try_from(patience.as_millis()).unwrap_or(u64::MAX)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_reads_well() {
        for (seconds, shown) in
            [(600, "10 minutes"), (60, "1 minute"), (90, "1m30s"), (5, "5s"), (36_000, "10h00m")]
        {
            assert_eq!(time(Duration::from_secs(seconds)), shown);
        }
    }
}
