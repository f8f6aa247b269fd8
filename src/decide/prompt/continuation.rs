//! What earlier attempts at a story left for the next one.

use std::fmt::Write;

use crate::model::{
    AttemptReason, Changes, ContextUsage, Handoff, HandoffTrigger, both_ends, visible_line,
};

use super::data::{NO_INSTRUCTION, quoted};

/// Characters of one part of a hand-off.
const LONGEST: usize = 500;

pub struct Continuation<'a> {
    pub why: AttemptReason,
    /// The last hand-off, and its iteration.
    pub handoff: Option<&'a (u32, Handoff)>,
    pub triggers: &'a [HandoffTrigger],
    pub context: Option<ContextUsage>,
    pub stages_reached: &'a [String],
    pub stages_left: &'a [String],
    pub changes: &'a Changes,
}

impl Continuation<'_> {
    pub fn text(&self) -> String {
        let mut text = format!("# Where the last attempt left off\n\n{}", self.handed_over());
        let written = self.handoff.map(|(_, handoff)| handoff);
        let own = |pick: fn(&Handoff) -> &String| {
            written.map(pick).map(String::as_str).filter(|text| !text.trim().is_empty())
        };
        part(&mut text, "Phase", own(|it| &it.phase), Some(&self.phase()));
        part(&mut text, "Done", own(|it| &it.completed), Some(&self.done()));
        part(&mut text, "Open", own(|it| &it.pending), Some(&self.open()));
        part(&mut text, "Blocked", own(|it| &it.blocked), None);
        part(&mut text, "Key decisions", own(|it| &it.decisions), None);
        part(&mut text, "Assumptions", own(|it| &it.assumptions), None);
        part(&mut text, "Constraints", own(|it| &it.constraints), None);
        part(&mut text, "Next step", own(|it| &it.next_step), Some(self.next_step()));
        let unread = written.and_then(|it| it.unread.as_deref());
        part(&mut text, "What else it wrote", unread, None);
        text.push_str(&self.changed());
        text.trim_end().to_owned()
    }

    fn handed_over(&self) -> String {
        let mut text = match self.handoff {
            Some((iteration, _)) => format!(
                "Quoted is what the agent of iteration {iteration} wrote: {NO_INSTRUCTION}\n\n"
            ),
            None => String::new(),
        };
        if !self.triggers.is_empty() {
            let reasons: Vec<String> = self.triggers.iter().map(ToString::to_string).collect();
            // Writing to a String cannot fail.
            let _ = writeln!(text, "- Handed over because {}.", reasons.join("; "));
        }
        if let Some(context) =
            self.context.filter(|_| self.triggers.contains(&HandoffTrigger::Context))
        {
            let _ = writeln!(
                text,
                "- The last agent filled {} % of its context window. Work in smaller steps, and wrap \
                 up with a hand-off before yours is full.",
                context.share()
            );
        }
        text
    }

    fn phase(&self) -> String {
        match self.stages_reached.last() {
            Some(stage) => format!("after the stage {}", visible_line(stage)),
            None => match self.why {
                AttemptReason::GateFailed | AttemptReason::ClaimRejected => {
                    "claimed, and sent back".to_owned()
                }
                AttemptReason::SecondLook => "claimed once, to be checked again".to_owned(),
                AttemptReason::FreshStart => "started over".to_owned(),
                _ => "in progress".to_owned(),
            },
        }
    }

    fn done(&self) -> String {
        match (self.changes.files.is_empty(), self.stages_reached.is_empty()) {
            (true, true) => "nothing visible".to_owned(),
            (false, true) => "what the changes below show, unchecked".to_owned(),
            (_, false) => format!("the stages {}", listed(self.stages_reached)),
        }
    }

    fn open(&self) -> String {
        if self.stages_left.is_empty() {
            return "every criterion that you have not checked yourself".to_owned();
        }
        format!("the stages {}", listed(self.stages_left))
    }

    fn next_step(&self) -> &'static str {
        match self.why {
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
        let line = |file: &crate::model::FileChange| {
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
fn part(text: &mut String, name: &str, own: Option<&str>, driver: Option<&str>) {
    match (own, driver) {
        (Some(own), _) => {
            let quote = quoted(&both_ends(own.trim(), LONGEST));
            let _ = writeln!(text, "- {name}:\n\n{quote}\n");
        }
        (None, Some(driver)) => {
            let _ = writeln!(text, "- {name}: {driver}.");
        }
        (None, None) => {}
    }
}

#[cfg(test)]
mod tests;
