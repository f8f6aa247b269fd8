//! Agent events: an agent's output in the same form for all agents, and the end of its process.

use crate::model::{EndedBy, Exit, ModelUse, Outcome, StepKind, Usage, shorten, visible_line};

/// The longest `detail` of an error, in characters.
const MAX_DETAIL: usize = 400;

/// A fact in one line of output. Most lines have none.
#[derive(Debug)]
pub enum AgentEvent<'a> {
    /// A turn begins: from here to its end, requests may cost. A format without such a line begins
    /// its turn with its first line.
    Started(AgentIdentity),
    /// A whole message of the main agent's own text.
    Said(&'a str),
    /// What it does now, in one line; with the command, if it runs one.
    Doing(StepKind, &'a str),
    Usage(UsageUpdate),
    /// It was not allowed to do something: the rule that would allow it.
    Denied(&'a str),
    /// How many of its tasks run in the background.
    Background(usize),
    /// The turn is over.
    Ended(&'a AgentEnd),
}

pub type EventListener<'a> = &'a mut dyn FnMut(&AgentEvent<'_>);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentIdentity {
    pub version: Option<String>,
    pub model: Option<String>,
}

/// What one line says about usage.
#[derive(Debug, Default)]
pub struct UsageUpdate {
    /// Used since the last update, by sub-agents too.
    pub used: Usage,
    /// Tokens in the main agent's context.
    pub context: Option<u64>,
    /// Tokens that the context can hold.
    pub window: Option<u64>,
    /// A subscription pays; false: the dollar does.
    pub subscription: Option<bool>,
}

/// An agent's report at the end of a turn, about all of its turns.
#[derive(Clone, Debug)]
pub struct AgentEnd {
    /// How the turn ended. The agent's own text never decides it.
    pub result: Result<(), Outcome>,
    /// Its last message, or its error.
    pub text: String,
    /// None: the updates add up to it.
    pub usage: Option<Usage>,
    pub models: Vec<ModelUse>,
    /// Every call that was denied, as the rule that would allow it.
    pub denied: Vec<String>,
}

/// The protocol of one attempt: decodes output lines and encodes messages.
pub trait Decoder: Send {
    /// False when the line is not of this format: then it is plain text.
    fn line(&mut self, line: &str, tell: EventListener<'_>) -> bool;

    /// A message to the agent, as the agent reads it.
    fn message(&mut self, text: &str) -> String {
        format!("{text}\n")
    }

    /// Why the agent's retries cannot succeed, such as a login that is refused.
    fn hopeless(&self) -> Option<Outcome> {
        None
    }

    /// What this exit code means to this agent, beyond failure.
    fn of_exit_code(&self, _code: i32) -> Option<Outcome> {
        None
    }
}

/// Our order to end an agent.
pub struct EndOrder {
    pub why: EndedBy,
    /// How the last turn before it ended, if one had ended.
    pub result: Option<Result<(), Outcome>>,
    /// What the decoder knew about retries by then.
    pub hopeless: Option<Outcome>,
}

impl EndOrder {
    /// Only a result from before the order completes an attempt: an agent may answer a signal with
    /// a result and exit code 0.
    fn outcome(&self, last: Option<&Result<(), Outcome>>) -> Outcome {
        let in_time = self.result.as_ref();
        match (self.why, in_time.or(last)) {
            _ if in_time == Some(&Ok(())) => Outcome::Completed,
            (EndedBy::FirstEventTimeout, _) => Outcome::FirstEventTimeout,
            (EndedBy::IdleTimeout, _) => Outcome::IdleTimeout,
            (EndedBy::IterationTimeout, _) => Outcome::IterationTimeout,
            (EndedBy::Human, _) => Outcome::EndedByUs,
            (EndedBy::Stuck, _) => Outcome::Stuck,
            (EndedBy::AfterResult | EndedBy::HopelessRetry, Some(Err(failed))) => failed.clone(),
            (EndedBy::AfterResult | EndedBy::HopelessRetry, _) => {
                self.hopeless.clone().unwrap_or(Outcome::EndedByUs)
            }
        }
    }
}

/// How an agent's process ended.
pub struct ProcessEnd<'a> {
    pub exit: &'a Exit,
    /// Ours to end, if we gave one.
    pub order: Option<&'a EndOrder>,
    /// How the last turn ended, if one has ended.
    pub result: Option<Result<(), Outcome>>,
    /// Its output was events, not plain text.
    pub structured: bool,
    /// The last line of standard error or of plain text.
    pub last_words: &'a str,
}

impl ProcessEnd<'_> {
    /// The part of the classification that is the same for all agents.
    pub fn outcome(self, decoder: &dyn Decoder) -> Outcome {
        if let Exit::NotSpawned { error } = self.exit {
            return Outcome::SpawnFailed { detail: detail(error) };
        }
        match (self.order, &self.result) {
            (Some(order), last) => order.outcome(last.as_ref()),
            (None, Some(Err(failed))) => failed.clone(),
            (None, Some(Ok(()))) if *self.exit == Exit::Code(0) => Outcome::Completed,
            (None, _) => self.without_result(decoder),
        }
    }

    fn without_result(&self, decoder: &dyn Decoder) -> Outcome {
        let code = match self.exit {
            Exit::Signal(signal) => return Outcome::KilledBySomeoneElse { signal: *signal },
            Exit::Code(0) if !self.structured => return Outcome::Completed,
            Exit::Code(code) => *code,
            _ => return Outcome::NoResult { detail: detail(self.last_words) },
        };
        let own = decoder.of_exit_code(code).filter(|_| self.structured);
        own.unwrap_or_else(|| Outcome::NoResult { detail: ended_with(code, self.last_words) })
    }
}

fn ended_with(code: i32, last_words: &str) -> String {
    let end = match code {
        0 => "the agent ended without a result".to_owned(),
        code => format!("the agent ended with exit code {code}"),
    };
    match detail(last_words) {
        words if words.is_empty() => end,
        words => format!("{end}: {words}"),
    }
}

/// An error's text: one visible line of bounded length.
pub fn detail(text: &str) -> String {
    shorten(&visible_line(text), MAX_DETAIL)
}
