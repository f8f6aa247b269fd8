//! The prompt, in layers: instructions, story, state of the run, what earlier agents left,
//! guidance, and the contract of how to finish.
//!
//! The human's text is never cut. Text from agents and commands is limited and marked as data.

mod briefing;
mod continuation;
mod contract;
mod data;
mod lessons;
mod reasons;

use std::fmt::Write;

use crate::model::{AttemptReason, MemoryLimits, Story, shorten, visible, visible_line};
use crate::state::{FailedAttempt, Memory};

pub use briefing::Briefing;
pub use continuation::Continuation;
pub use contract::{Contract, TEMPLATE as CONTRACT};

/// Failed attempts in a prompt, the newest.
const MOST_TRIED: usize = 6;
const LONGEST_ERROR: usize = 300;

pub struct Prompt<'a> {
    /// PROMPT.md.
    pub instructions: &'a str,
    pub story: &'a Story,
    pub standing: Standing<'a>,
    /// What earlier attempts at this story left, if there were any.
    pub continuation: Option<Continuation<'a>>,
    pub memory: &'a Memory,
    pub limits: &'a MemoryLimits,
    /// The end of the agents' own notes.
    pub notes: Option<&'a str>,
    /// The human's guidance, oldest first.
    pub guidance: &'a [String],
    pub contract: Contract<'a>,
}

/// A part of the prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    pub name: &'static str,
    pub text: String,
}

/// The state of the run.
pub struct Standing<'a> {
    pub iteration: u32,
    pub max_iterations: Option<u32>,
    /// Counted from 1.
    pub attempt: u32,
    pub stories_done: usize,
    pub stories: usize,
    /// Stories left, this one included.
    pub remaining: usize,
    /// Why this attempt is made.
    pub why: AttemptReason,
    pub last_error: Option<&'a str>,
    /// Unfinished work on this story is in the tree.
    pub work_in_tree: bool,
    /// Earlier work on this story that conflicts with the tree.
    pub kept_at: Option<&'a str>,
    /// A message that the last agent could not receive.
    pub reminder: Option<&'a str>,
    /// Failed attempts before the last fresh start, oldest first.
    pub tried: &'a [FailedAttempt],
    /// A warning about missing progress.
    pub remark: Option<&'a str>,
}

impl Prompt<'_> {
    /// The layers that are not empty, in order.
    pub fn layers(&self) -> Vec<Layer> {
        let last_error = self.standing.last_error;
        let lessons = lessons::layers(self.memory, self.limits, last_error);
        let layer = |name, text: String| Layer { name, text };
        let mut layers = vec![
            layer("instructions", self.instructions.trim_end().to_owned()),
            layer("story", story(self.story)),
            layer("standing", standing(&self.standing)),
            layer(
                "hand-off",
                self.continuation.as_ref().map(Continuation::text).unwrap_or_default(),
            ),
        ];
        layers.extend(lessons);
        layers.extend([
            layer("scratchpad", self.notes.map(notes).unwrap_or_default()),
            layer("guidance", guidance(self.guidance)),
            layer("contract", self.contract.text(self.story, self.standing.remaining)),
        ]);
        layers.retain(|layer| !layer.text.is_empty());
        layers
    }

    pub fn text(&self) -> String {
        joined(&self.layers())
    }
}

/// The whole prompt.
pub fn joined(layers: &[Layer]) -> String {
    let parts = layers.iter().map(|layer| format!("{}\n", layer.text));
    parts.collect::<Vec<_>>().join("\n")
}

fn notes(notes: &str) -> String {
    let quoted = data::quoted(notes);
    if quoted.is_empty() {
        return quoted;
    }
    format!(
        "# The end of .ralph/scratchpad.md\n\nNotes of the agents before you: {}\n\n{quoted}",
        data::NO_INSTRUCTION
    )
}

fn story(story: &Story) -> String {
    let mut text = format!("# Your story: {}\n\n{}\n", story.id, story.title.trim());
    if !story.description.trim().is_empty() {
        add(&mut text, format_args!("\n{}\n", story.description.trim()));
    }
    if !story.criteria.is_empty() {
        text.push_str("\nIt is done when all of this is true:\n\n");
        for criterion in &story.criteria {
            add(&mut text, format_args!("- {}\n", criterion.trim()));
        }
    }
    text.trim_end().to_owned()
}

fn standing(standing: &Standing<'_>) -> String {
    let of = standing.max_iterations.map(|most| format!(" of at most {most}")).unwrap_or_default();
    let mut text = format!(
        "# Where the run stands\n\n- Iteration {}{of}, attempt {} at this story.\n\
         - {} of {} stories are complete. Work on this one only.\n",
        standing.iteration, standing.attempt, standing.stories_done, standing.stories,
    );
    add(&mut text, format_args!("- Why you run: {}\n", reasons::told(standing.why)));
    if let Some(near) = reasons::limit_near(standing.iteration, standing.max_iterations) {
        add(&mut text, format_args!("- {near}\n"));
    }
    if standing.work_in_tree {
        text.push_str("- Earlier attempts' work is in the work tree: look at it first.\n");
    }
    if let Some(reference) = standing.kept_at {
        add(
            &mut text,
            format_args!(
                "- Earlier work on this story conflicts with the branch. It is kept at \
                 `{reference}`; `git diff HEAD...{reference}` shows it.\n"
            ),
        );
    }
    text.push_str(&tried(standing.tried));
    if let Some(reminder) = standing.reminder {
        add(
            &mut text,
            format_args!("- A message that the last agent did not receive: {reminder}\n"),
        );
    }
    if let Some(remark) = standing.remark {
        add(&mut text, format_args!("- {remark}\n"));
    }
    if let Some(error) = standing.last_error {
        let error = visible(error.trim());
        let (first, rest) = error.split_once('\n').unwrap_or((&error, ""));
        add(&mut text, format_args!("- The last attempt failed: {first}\n"));
        for line in rest.lines() {
            // Indented, to mark it as output and not as instructions.
            add(&mut text, format_args!("      {line}\n"));
        }
    }
    text.trim_end().to_owned()
}

/// What was tried before.
fn tried(tried: &[FailedAttempt]) -> String {
    let mut text = String::new();
    if tried.is_empty() {
        return text;
    }
    text.push_str(
        "- Earlier attempts failed, and the work tree is back where the story began. Do not repeat \
         them. Their work is kept; `git diff HEAD...REF` shows it:\n",
    );
    for attempt in tried.iter().skip(tried.len().saturating_sub(MOST_TRIED)) {
        let error = shorten(&visible_line(&attempt.error), LONGEST_ERROR);
        let kept = match (&attempt.reference, &attempt.changes) {
            (Some(reference), Some(changes)) => format!("`{reference}` ({changes}): "),
            (Some(reference), None) => format!("`{reference}`: "),
            (None, _) => "nothing changed: ".to_owned(),
        };
        add(&mut text, format_args!("  - {kept}{error}\n"));
    }
    text
}

fn guidance(guidance: &[String]) -> String {
    if guidance.is_empty() {
        return String::new();
    }
    let said: Vec<&str> = guidance.iter().map(|text| text.trim()).collect();
    format!("# Guidance from the human\n\n{}", said.join("\n\n"))
}

fn add(text: &mut String, more: std::fmt::Arguments<'_>) {
    // Writing to a String cannot fail.
    let _ = text.write_fmt(more);
}

#[cfg(test)]
mod tests;
