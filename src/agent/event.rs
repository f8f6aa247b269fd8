//! What any agent's output says, in one vocabulary, and what its end amounts to.

use crate::model::{EndedBy, Exit, ModelUse, Outcome, Usage, shorten, visible_line};

/// The longest `detail` that is kept of an error.
const MAX_DETAIL: usize = 400;

/// One thing that a line says. Most lines say nothing that matters here.
#[derive(Debug, PartialEq)]
pub enum AgentEvent<'a> {
    /// A turn begins: from here on, until its end, requests may cost.
    Started(AgentIdentity),
    /// A whole message of the main agent's own text.
    Said(&'a str),
    /// What it does now, in one line.
    Doing(&'a str),
    Usage(UsageUpdate),
    /// It was not allowed to do something: the rule that would allow it.
    Denied(String),
    /// So many of its tasks run in the background.
    Background(usize),
    /// The turn is over.
    Ended(Box<AgentEnd>),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentIdentity {
    pub version: Option<String>,
    pub model: Option<String>,
}

/// What one line says of what was used.
#[derive(Debug, Default, PartialEq)]
pub struct UsageUpdate {
    /// Of sub-agents too.
    pub tool_calls: u64,
    pub request: Option<RequestUsage>,
    /// Tokens in the main agent's context.
    pub context: Option<u64>,
    /// A subscription pays for it; false: the dollar does.
    pub subscription: Option<bool>,
}

/// A request to the model. Every part of its answer may repeat it.
#[derive(Debug, PartialEq)]
pub struct RequestUsage {
    /// The answer's id.
    pub message: String,
    pub usage: Usage,
}

impl UsageUpdate {
    pub fn paid_by_subscription(pays: bool) -> Self {
        Self { subscription: Some(pays), ..Self::default() }
    }
}

/// What an agent says at the end of a turn about all of its turns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentEnd {
    /// Its last message, or its error.
    pub text: String,
    pub usage: Usage,
    pub models: Vec<ModelUse>,
    /// Tokens that the main model's context can hold; 0: it does not say.
    pub window: u64,
    /// Every call that was denied, as the rule that would allow it.
    pub denied: Vec<String>,
}

pub type Listener<'a> = &'a mut dyn FnMut(AgentEvent<'_>);

/// Reads one attempt's output, line by line, and says how it ended. Only structure counts: what an
/// agent says, reads or quotes never decides how it ended.
pub trait Decoder: Send {
    /// False when the line is not of this format: then it is plain text.
    fn line(&mut self, line: &str, tell: Listener<'_>) -> bool;

    /// How the last turn ended, if one has ended.
    fn result(&self) -> Option<Result<(), Outcome>>;

    /// What the agent tries again that cannot succeed, such as a login that is refused.
    fn hopeless(&self) -> Option<Outcome> {
        None
    }

    /// What this exit code means to this agent, beyond failure.
    fn of_exit_code(&self, _code: i32) -> Option<Outcome> {
        None
    }
}

/// What is known of the end beside what the decoder read.
pub struct ProcessEnd<'a> {
    pub exit: &'a Exit,
    /// Why we ended it, if we did.
    pub ended_by: Option<EndedBy>,
    /// It spoke in events, not in plain text.
    pub structured: bool,
    /// The last line that it wrote to standard error, or in plain text.
    pub last_words: &'a str,
}

impl ProcessEnd<'_> {
    /// The part of the classification that is the same for all agents.
    pub fn outcome(self, decoder: &dyn Decoder) -> Outcome {
        if let Exit::NotSpawned { error } = self.exit {
            return Outcome::SpawnFailed { detail: detail(error) };
        }
        let result = decoder.result();
        match (self.ended_by, result) {
            (Some(EndedBy::FirstEventTimeout), _) => Outcome::FirstEventTimeout,
            (Some(EndedBy::IdleTimeout), _) => Outcome::IdleTimeout,
            (Some(EndedBy::IterationTimeout), _) => Outcome::IterationTimeout,
            // A result that was in before our order counts.
            (Some(_), Some(Ok(()))) => Outcome::Completed,
            (Some(EndedBy::Human), _) => Outcome::EndedByUs,
            (Some(EndedBy::Stuck), _) => Outcome::Stuck,
            (Some(EndedBy::AfterResult | EndedBy::HopelessRetry) | None, Some(Err(failed))) => {
                failed
            }
            (Some(EndedBy::AfterResult), None) => Outcome::EndedByUs,
            (Some(EndedBy::HopelessRetry), None) => {
                decoder.hopeless().unwrap_or(Outcome::EndedByUs)
            }
            (None, Some(Ok(()))) if *self.exit == Exit::Code(0) => Outcome::Completed,
            (None, _) => self.without_result(decoder),
        }
    }

    fn without_result(&self, decoder: &dyn Decoder) -> Outcome {
        let code = match self.exit {
            Exit::Signal(signal) => return Outcome::KilledBySomeoneElse { signal: *signal },
            Exit::Code(code) => *code,
            _ => return Outcome::NoResult { detail: detail(self.last_words) },
        };
        if !self.structured && code == 0 {
            return Outcome::Completed;
        }
        let own = decoder.of_exit_code(code).filter(|_| self.structured);
        own.unwrap_or_else(|| Outcome::NoResult { detail: ended_with(code, self.last_words) })
    }
}

fn ended_with(code: i32, last_words: &str) -> String {
    let words = detail(last_words);
    match (code, words.is_empty()) {
        (0, true) => "the agent ended without a result".to_owned(),
        (0, false) => format!("the agent ended without a result: {words}"),
        (_, true) => format!("the agent ended with exit code {code}"),
        (_, false) => format!("the agent ended with exit code {code}: {words}"),
    }
}

/// An error's text, as it is kept: one visible line of bounded length.
pub fn detail(text: &str) -> String {
    shorten(&visible_line(text), MAX_DETAIL)
}
