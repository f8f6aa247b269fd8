//! Decides on a claim: the gates that it must pass, and the evidence that they and the driver give.

use std::collections::{BTreeMap, BTreeSet};

use crate::decide::judge::fingerprint;
use crate::model::{
    Backlog, Concern, Escalation, EscalationKind, EvidenceItem, Gate, GateReport, Recheck, StoryId,
    shorten,
};

/// How often in a row the gates of a claim run again because the branch moved.
const MOST_OUTDATED: u32 = 3;

/// The gates of a run, as of its start.
#[derive(Clone, Debug, Default)]
pub struct Gates {
    /// For every story.
    pub all: Vec<Gate>,
    pub of: BTreeMap<StoryId, Vec<Gate>>,
    pub recheck: Recheck,
    /// Do not run them: a dry run has no code to check.
    pub dry: bool,
}

/// A gate that a claim must pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Due<'a> {
    pub gate: &'a Gate,
    /// The closed story that it is run again for.
    pub guards: Option<StoryId>,
}

impl Gates {
    pub fn is_empty(&self) -> bool {
        self.all.is_empty() && self.of.values().all(Vec::is_empty)
    }

    /// Of ralph.toml and of all stories, whatever runs now.
    pub fn every(&self) -> impl Iterator<Item = &Gate> {
        self.all.iter().chain(self.of.values().flatten())
    }

    pub fn of_story(&self, story: &StoryId) -> &[Gate] {
        self.of.get(story).map_or(&[], Vec::as_slice)
    }

    /// The gates for a story's claim: its own first, each once, or once for each story.
    pub fn due(
        &self,
        story: &StoryId,
        backlog: &Backlog,
        is_each: impl Fn(&Gate) -> bool,
    ) -> Vec<Due<'_>> {
        let each: BTreeSet<&Gate> = self.every().filter(|gate| is_each(gate)).collect();
        let own = self.all.iter().chain(self.of_story(story)).map(|gate| (gate, None));
        let closed = self.rechecked(backlog).filter(|other| *other != story);
        let again = closed.flat_map(|other| {
            let all = self.all.iter().filter(|gate| each.contains(gate));
            let known = self.of.get_key_value(other);
            let all = all.map(move |gate| (gate, Some(other)));
            let of = known.into_iter().flat_map(|(_, gates)| gates);
            all.chain(of.map(move |gate| (gate, Some(other))))
        });
        let mut seen = BTreeSet::new();
        let due = own.chain(again).filter(|_| !self.dry).filter_map(|(gate, guards)| {
            let each_story = each.contains(gate);
            let runs_for = each_story.then(|| guards.unwrap_or(story).clone());
            let guards = guards.cloned();
            seen.insert((gate, runs_for)).then_some(Due { gate, guards })
        });
        due.collect()
    }

    pub fn is_any_due(&self, story: &StoryId, backlog: &Backlog) -> bool {
        let mut again = self.rechecked(backlog).map(|other| self.of_story(other));
        let has_own = !self.all.is_empty() || !self.of_story(story).is_empty();
        !self.dry && (has_own || again.any(|gates| !gates.is_empty()))
    }

    /// The closed stories whose gates run again.
    fn rechecked<'b>(&self, backlog: &'b Backlog) -> impl Iterator<Item = &'b StoryId> {
        let is_wanted = self.recheck == Recheck::All;
        let closed = backlog.stories.iter().filter(move |story| is_wanted && story.passes);
        closed.map(|story| &story.id)
    }
}

/// The facts about one claim.
pub struct Findings<'a> {
    pub story: &'a StoryId,
    pub items: &'a [EvidenceItem],
    /// The work tree differs from the story's base.
    pub changed: bool,
    /// A gate of the story's failed at its base and passes now.
    pub turned_green: bool,
    /// Earlier claims of the story without any change.
    pub unfounded: u32,
    /// Changes that a human must see before the claim counts.
    pub concerns: &'a [Concern],
    /// Two claims are required, and this is the first.
    pub first_of_two: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Weighed {
    /// Done.
    Accepted,
    /// Not done; the next attempt gets the error. `unfounded`: nothing changed.
    Rejected { error: String, fingerprint: String, unfounded: bool },
    /// It may be true; the next attempt checks again.
    LookAgain,
    /// The human decides.
    Doubtful { question: Escalation },
}

pub fn weigh(findings: &Findings<'_>) -> Weighed {
    let gates = findings.items.iter().map(|EvidenceItem::Gate(report)| report);
    if let Some(failed) = gates.clone().find(|report| report.counts_against()) {
        return rejected(failed);
    }
    if !findings.concerns.is_empty() {
        return Weighed::Doubtful { question: tampered(findings) };
    }
    let has_gates = gates.count() > 0;
    if findings.changed {
        let is_enough = has_gates || !findings.first_of_two;
        return if is_enough { Weighed::Accepted } else { Weighed::LookAgain };
    }
    if findings.turned_green {
        return Weighed::Accepted;
    }
    if findings.unfounded == 0 {
        unfounded(has_gates)
    } else {
        unfounded_again(findings.story, has_gates)
    }
}

/// A story that only the trailers of a commit call closed: its gates decide, else the human.
pub fn weigh_confirmation(story: &StoryId, items: &[EvidenceItem]) -> Weighed {
    let mut reports = items.iter().map(|EvidenceItem::Gate(report)| report);
    if let Some(failed) = reports.clone().find(|report| !report.passed()) {
        return rejected(failed);
    }
    if reports.any(|report| report.guards.is_none()) {
        return Weighed::Accepted;
    }
    let summary = format!("{story} has a closing commit, but the journal that confirms it is lost");
    let context = "An agent can make such a commit too, and the story has no gate to check it.";
    Weighed::Doubtful { question: claim_question(story, summary, context.to_owned()) }
}

/// Of a story that only a commit of its skip mark calls skipped: the human decides.
pub fn lost_skip(story: &StoryId) -> Escalation {
    let summary =
        format!("{story} was skipped by its commit, but the journal that confirms it is lost");
    let context = "An agent can make such a commit too.".to_owned();
    let (kind, question) = (EscalationKind::Stuck, format!("Skip {story}?"));
    Escalation { kind, summary, context, options: Vec::new(), question, unread: None }
}

/// A gate of the story's that failed at its base and passes now. A gate that passed there, or ran at
/// another state, proves nothing. `red`: those that failed there.
pub fn turned_green<'a>(items: &'a [EvidenceItem], red: &[String]) -> Option<&'a str> {
    let reports = items.iter().map(|EvidenceItem::Gate(report)| report);
    let mut own = reports.filter(|report| report.guards.is_none() && report.passed());
    own.find(|report| red.contains(&report.gate)).map(|report| report.gate.as_str())
}

fn unfounded(has_gates: bool) -> Weighed {
    let what = match has_gates {
        true => {
            "nothing changed and nothing turned green: no file differs from before the story, \
                 and no gate that failed then passes now"
        }
        false => "the claim has no changes, and there is no gate to check it",
    };
    let error = format!(
        "{what}; do the work, or show with a test or a file that it was already done, or escalate"
    );
    let fingerprint = fingerprint("unfounded", &error);
    Weighed::Rejected { error, fingerprint, unfounded: true }
}

fn unfounded_again(story: &StoryId, has_gates: bool) -> Weighed {
    let (what, context) = match has_gates {
        true => (
            "nothing changed and nothing turned green",
            "No file differs from before the story. Its gates pass, but none of them is known to \
             have failed before.",
        ),
        false => (
            "nothing changed",
            "No file changed since the story began, and there is no gate to check the claim.",
        ),
    };
    let summary = format!("the agent claims {story} again, but {what}");
    Weighed::Doubtful { question: claim_question(story, summary, context.to_owned()) }
}

/// What happens if a story cannot be committed because of its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// The next attempt gets the error and may fix it.
    Told { error: String },
    /// The human decides.
    Asked { question: Escalation },
}

/// The agent gets one chance to fix it. `refusals`: earlier ones; `beyond_it`: no agent can fix
/// it.
pub fn weigh_content(story: &StoryId, why: &str, refusals: u32, beyond_it: bool) -> Unfit {
    if refusals == 0 && !beyond_it {
        return Unfit::Told { error: format!("it cannot be committed: {why}") };
    }
    let summary = format!("{story} is complete, but cannot be committed: {why}");
    let context = "If you accept it, ralph commits it as it is, including your edits in the same \
                   files, but without files that need a filter: commit those yourself. Or fix the \
                   problem and retry.";
    let mut question = claim_question(story, summary, format!("{why}\n\n{context}"));
    question.kind = EscalationKind::Commit;
    Unfit::Asked { question }
}

fn rejected(failed: &GateReport) -> Weighed {
    let mut error = failed.describe();
    if let Some(story) = &failed.guards {
        error = format!("this work breaks the closed story {story}: {error}");
    }
    let fingerprint = fingerprint("gate", &format!("{} {}", failed.gate, failing_line(failed)));
    if !failed.tail.trim().is_empty() {
        error.push_str("\nThe end of its output:\n");
        error.push_str(failed.tail.trim_end());
    }
    Weighed::Rejected { error, fingerprint, unfounded: false }
}

/// The line that identifies a failure: the first that mentions one, else the last.
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
    let diff = |concern: &Concern| format!("{}\n{}", concern.what, concern.diff.trim_end());
    let diffs: Vec<String> = findings.concerns.iter().map(diff).collect();
    let story = findings.story;
    let summary = format!("the agent claims {story}, but {}", whats.join("; "));
    claim_question(story, summary, diffs.join("\n\n"))
}

/// The branch moved while its gates ran, so they would run again. None: they may.
pub fn weigh_outdated(story: &StoryId, times: u32) -> Option<Escalation> {
    let summary = format!("the branch moved each of {times} times that the gates of {story} ran");
    let context = "Something commits whenever the gates run: a gate or a tool that removes \
                   `GIT_REFLOG_ACTION` from its environment, or you. If you accept the claim, ralph \
                   closes the story as it is now.";
    (times > MOST_OUTDATED).then(|| claim_question(story, summary, context.to_owned()))
}

fn claim_question(story: &StoryId, summary: String, context: String) -> Escalation {
    let (kind, options) = (EscalationKind::Claim, Vec::new());
    let (summary, question) = (shorten(&summary, 300), format!("Is {story} done?"));
    Escalation { kind, summary, context, options, question, unread: None }
}

#[cfg(test)]
mod tests;
