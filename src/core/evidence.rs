//! What the driver finds out itself about a claim, and what follows from it.
//!
//! A claim is a request. The evidence is a list of items that the driver
//! gathered; weighing it is pure.

use serde::{Deserialize, Serialize};

use super::id::StoryId;
use super::signal::{Escalation, EscalationKind};
use super::text::{shorten, visible_line};
use super::verdict::fingerprint;

/// How much of the end of a gate's output goes into the journal and the next prompt, in bytes.
pub const TAIL: usize = 2048;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "item", rename_all = "snake_case")]
pub enum Item {
    Gate(GateReport),
}

/// How one gate went.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateReport {
    /// The command as people name it.
    pub gate: String,
    /// The closed story that it belongs to, when it was run again for that one's sake.
    #[serde(default)]
    pub guards: Option<StoryId>,
    pub end: GateEnd,
    pub elapsed_ms: u64,
    /// The end of what it printed.
    pub tail: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "end", rename_all = "snake_case")]
pub enum GateEnd {
    Passed,
    Failed { code: i32 },
    Killed { signal: i32 },
    TimedOut,
    NotStarted { error: String },
}

impl GateReport {
    pub fn passed(&self) -> bool {
        self.end == GateEnd::Passed
    }

    /// `cargo test failed with exit code 101`.
    pub fn describe(&self) -> String {
        let gate = &self.gate;
        match &self.end {
            GateEnd::Passed => format!("`{gate}` passed"),
            GateEnd::Failed { code: code @ (126 | 127) } => {
                format!("`{gate}` could not be run (exit code {code})")
            }
            GateEnd::Failed { code } => format!("`{gate}` failed with exit code {code}"),
            GateEnd::Killed { signal } => format!("`{gate}` was killed by signal {signal}"),
            GateEnd::TimedOut => format!("`{gate}` did not end in its time"),
            GateEnd::NotStarted { error } => {
                format!("`{gate}` could not be started: {}", visible_line(error))
            }
        }
    }

    /// Nothing about the work: the command itself is not there.
    pub fn cannot_run(&self) -> bool {
        matches!(self.end, GateEnd::NotStarted { .. } | GateEnd::Failed { code: 126 | 127 })
    }
}

/// Everything that bears on one claim.
pub struct Findings<'a> {
    pub story: &'a StoryId,
    pub items: &'a [Item],
    /// Tree or branch differ from the story's base.
    pub changed: bool,
    /// How often the story was claimed without anything to show for it.
    pub unfounded: u32,
    /// What changed meanwhile that a human should look at before the claim counts.
    pub concerns: &'a [Concern],
    /// Two claims are wanted, and this is the first.
    pub first_of_two: bool,
}

/// Something that an agent could use to make its own work look done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Concern {
    /// One line: what changed.
    pub what: String,
    /// How it differs, as text.
    pub diff: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Weighed {
    Accepted,
    /// Not done; the next attempt is told why. `unfounded`: it had nothing to show.
    Rejected {
        error: String,
        fingerprint: String,
        unfounded: bool,
    },
    /// It may be true; the next attempt looks again before it counts.
    LookAgain,
    /// Only the human can tell.
    Doubtful {
        question: Escalation,
    },
}

pub fn weigh(findings: &Findings<'_>) -> Weighed {
    let gates = findings.items.iter().map(|Item::Gate(report)| report);
    if let Some(failed) = gates.clone().find(|report| !report.passed()) {
        return rejected(failed);
    }
    if !findings.concerns.is_empty() {
        return Weighed::Doubtful { question: tampered(findings) };
    }
    let has_gates = gates.count() > 0;
    if has_gates || (findings.changed && !findings.first_of_two) {
        return Weighed::Accepted;
    }
    if findings.changed {
        return Weighed::LookAgain;
    }
    if findings.unfounded == 0 {
        let error = "it was claimed complete, but nothing changed for it and there is no gate \
                     that could show it; do the work, or show with a test or a file that it was \
                     already done, or escalate";
        let fingerprint = fingerprint("unfounded", error);
        return Weighed::Rejected { error: error.to_owned(), fingerprint, unfounded: true };
    }
    Weighed::Doubtful { question: nothing_to_show(findings.story) }
}

/// What follows when a story cannot be committed for what is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// The next attempt is told and may mend it.
    Told { error: String },
    /// Only the human can tell.
    Asked { question: Escalation },
}

/// The agent gets one chance to mend it. `refusals`: how often it was told before; `beyond_it`: no
/// agent can mend it.
pub fn weigh_content(story: &StoryId, why: &str, refusals: u32, beyond_it: bool) -> Unfit {
    if refusals == 0 && !beyond_it {
        return Unfit::Told { error: format!("it cannot be committed: {why}") };
    }
    let summary = format!("{story} is complete, and it cannot be committed: {why}");
    let context = "Accept it, and it is committed as it is, edits of yours in the same files \
                   included; files that go through a filter are left out, for you to commit with \
                   git. Or change what is in the way and retry.";
    let mut question = claim_question(story, summary, format!("{why}\n\n{context}"));
    question.kind = EscalationKind::Commit;
    Unfit::Asked { question }
}

fn rejected(failed: &GateReport) -> Weighed {
    let mut error = failed.describe();
    if let Some(story) = &failed.guards {
        error = format!("this work breaks {story}, which was complete: {error}");
    }
    let fingerprint = fingerprint("gate", &format!("{} {}", failed.gate, failing_line(failed)));
    if !failed.tail.trim().is_empty() {
        error.push_str("\nThe end of its output:\n");
        error.push_str(failed.tail.trim_end());
    }
    Weighed::Rejected { error, fingerprint, unfounded: false }
}

/// The line that tells one failure from another: the first that speaks of one, else the last.
fn failing_line(report: &GateReport) -> &str {
    let speaks = |line: &&str| {
        let line = line.to_ascii_lowercase();
        ["error", "fail", "panic", "exception", "assert"].iter().any(|word| line.contains(word))
    };
    let lines = || report.tail.lines().filter(|line| !line.trim().is_empty());
    lines().find(speaks).or_else(|| lines().next_back()).unwrap_or_default()
}

fn tampered(findings: &Findings<'_>) -> Escalation {
    let whats: Vec<&str> = findings.concerns.iter().map(|concern| concern.what.as_str()).collect();
    let diffs: Vec<String> = findings
        .concerns
        .iter()
        .map(|concern| format!("{}\n{}", concern.what, concern.diff.trim_end()))
        .collect();
    let story = findings.story;
    let summary = format!("{story} is claimed complete, and {}", whats.join("; "));
    claim_question(story, summary, diffs.join("\n\n"))
}

fn nothing_to_show(story: &StoryId) -> Escalation {
    let summary = format!("{story} is claimed complete again, and nothing changed for it");
    let context = "The agent says it is done. No file changed since the story began, and no gate \
                   can show whether it is true.";
    claim_question(story, summary, context.to_owned())
}

fn claim_question(story: &StoryId, summary: String, context: String) -> Escalation {
    Escalation {
        kind: EscalationKind::Claim,
        summary: shorten(&summary, 300),
        context,
        options: Vec::new(),
        question: format!("Is {story} done?"),
        unread: None,
    }
}

#[cfg(test)]
mod tests;
