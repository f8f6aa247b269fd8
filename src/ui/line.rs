//! Lines of output before they have a look: words and roles, no escapes.

use crate::core::signal::Escalation;
use crate::engine::ports::Wait;

/// What a piece of text is for; the printer knows the colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    Normal,
    Good,
    Bad,
    Warning,
    Question,
    Strong,
    Dim,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Line {
    Blank,
    /// A heading over the whole width.
    Rule(String),
    Text(Text),
    /// The agent begins; a live display shows it moving instead.
    Running {
        at: i64,
        agent: String,
        /// What is probably still to come, for the moving line.
        to_go: Option<String>,
        /// The run's, when it is not well; for the moving line.
        health: Option<&'static str>,
    },
    /// The run waits; a live display counts down as well.
    Waiting(Wait),
    /// An open question in full, in a box.
    Question {
        heading: String,
        escalation: Escalation,
    },
}

/// One line of text, with the time in front where it has one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Text {
    pub at: Option<i64>,
    pub parts: Vec<(Tone, String)>,
}

impl Text {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn at(at: i64) -> Self {
        Self { at: Some(at), parts: Vec::new() }
    }

    /// Content may be anything: whoever shows the line makes it harmless.
    pub fn with(mut self, tone: Tone, content: impl Into<String>) -> Self {
        self.parts.push((tone, content.into()));
        self
    }

    pub fn plain(self, content: impl Into<String>) -> Self {
        self.with(Tone::Normal, content)
    }

    /// Figures at the end of a line: ` · 12s · $0.31`.
    pub fn figures(self, figures: impl IntoIterator<Item = String>) -> Self {
        figures.into_iter().fold(self, |text, figure| text.with(Tone::Dim, format!(" · {figure}")))
    }
}

impl From<Text> for Line {
    fn from(text: Text) -> Self {
        Self::Text(text)
    }
}
