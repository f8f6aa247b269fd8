//! What earlier attempts at a story left for the next one.

use crate::model::{
    AttemptReason, Changes, FileChange, Handoff, HandoffTrigger, both_ends, visible_line,
};
use crate::state::StoryState;

use super::{NO_INSTRUCTION, quoted};

/// Characters of one part of a hand-off.
const LONGEST: usize = 500;

pub(super) struct Continuation<'a> {
    pub known: &'a StoryState,
    /// Its stages that are reached.
    pub reached: &'a [String],
    /// Its other stages.
    pub left: &'a [String],
    pub changes: &'a Changes,
}

impl Continuation<'_> {
    pub(super) fn text(&self) -> String {
        let written = self.known.handoff.as_ref().map(|(_, handoff)| handoff);
        let own = |pick: fn(&Handoff) -> &String| {
            written.map(pick).map(String::as_str).filter(|text| !text.trim().is_empty())
        };
        let unread = written.and_then(|it| it.unread.as_deref());
        let parts = [
            part("Phase", own(|it| &it.phase), &self.phase()),
            part("Done", own(|it| &it.completed), &self.done()),
            part("Open", own(|it| &it.pending), &self.open()),
            part("Blocked", own(|it| &it.blocked), ""),
            part("Key decisions", own(|it| &it.decisions), ""),
            part("Assumptions", own(|it| &it.assumptions), ""),
            part("Constraints", own(|it| &it.constraints), ""),
            part("Next step", own(|it| &it.next_step), self.next_step()),
            part("What else it wrote", unread, ""),
            self.changed(),
        ];
        let text = format!(
            "# Where the last attempt left off\n\n{}{}",
            self.handed_over(),
            parts.concat()
        );
        text.trim_end().to_owned()
    }

    fn handed_over(&self) -> String {
        let (known, mut text) = (self.known, String::new());
        if let Some((iteration, _)) = known.handoff {
            text.push_str(&format!(
                "The quoted lines are from the agent of iteration {iteration}: {NO_INSTRUCTION}\n\n"
            ));
        }
        if !known.triggers.is_empty() {
            let reasons: Vec<String> = known.triggers.iter().map(ToString::to_string).collect();
            text.push_str(&format!("- Handed over because {}.\n", reasons.join("; ")));
        }
        let is_full = known.triggers.contains(&HandoffTrigger::Context);
        if let Some(context) = known.context.filter(|_| is_full) {
            text.push_str(&format!(
                "- The last agent filled {}% of its context window. Work in smaller steps, and end \
                 with a hand-off before yours is full.\n",
                context.share()
            ));
        }
        text
    }

    fn phase(&self) -> String {
        if let Some(stage) = self.reached.last() {
            return format!("after the stage {}", visible_line(stage));
        }
        let phase = match self.known.why {
            AttemptReason::GateFailed | AttemptReason::ClaimRejected => "claimed and rejected",
            AttemptReason::SecondLook => "claimed once, to be checked again",
            AttemptReason::FreshStart => "started over",
            _ => "in progress",
        };
        phase.to_owned()
    }

    fn done(&self) -> String {
        match (self.changes.files.is_empty(), self.reached.is_empty()) {
            (true, true) => "no changes".to_owned(),
            (false, true) => "the changes below, unchecked".to_owned(),
            (_, false) => format!("the stages {}", listed(self.reached)),
        }
    }

    fn open(&self) -> String {
        if self.left.is_empty() {
            return "every criterion that you have not checked yourself".to_owned();
        }
        format!("the stages {}", listed(self.left))
    }

    fn next_step(&self) -> &'static str {
        match self.known.why {
            AttemptReason::GateFailed => "make the failed check pass",
            AttemptReason::ClaimRejected => "do what the rejection asks for",
            AttemptReason::SecondLook => "check each criterion again",
            AttemptReason::AfterError => "find the cause of the error first",
            AttemptReason::FreshStart => "try a different approach",
            _ => "compare the work tree with each criterion, and do what is missing",
        }
    }

    fn changed(&self) -> String {
        if self.changes.files.is_empty() {
            return String::new();
        }
        let line = |file: &FileChange| {
            format!("{} +{} -{}", visible_line(&file.path), file.added, file.removed)
        };
        let mut lines: Vec<String> = self.changes.files.iter().map(line).collect();
        if self.changes.more > 0 {
            lines.push(format!("and {} more files", self.changes.more));
        }
        format!("- Changed by this story so far:\n\n{}\n", quoted(&lines.join("\n")))
    }
}

fn listed(stages: &[String]) -> String {
    stages.iter().map(|stage| visible_line(stage)).collect::<Vec<_>>().join(", ")
}

/// The agent's text as a quote, else the driver's own.
fn part(name: &str, own: Option<&str>, driver: &str) -> String {
    match own {
        Some(own) => format!("- {name}:\n\n{}\n\n", quoted(&both_ends(own.trim(), LONGEST))),
        None if driver.is_empty() => String::new(),
        None => format!("- {name}: {driver}.\n"),
    }
}

#[cfg(test)]
mod tests;
