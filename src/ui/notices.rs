//! What people should know that is no fact of the run.

use super::figures::stories;
use super::line::{Line, Text, Tone};
use crate::core::text::visible_line;
use crate::engine::ports::Notice;

pub fn lines(notice: &Notice) -> Vec<Line> {
    match notice {
        Notice::BacklogBroken { problem } => {
            warning(&format!("the backlog cannot be used; its last good version serves\n{problem}"))
        }
        Notice::BacklogUsableAgain => info("The backlog can be used again."),
        Notice::BacklogNotCommitted { path, why } => warning(&format!(
            "{} is written but not committed: {why}",
            visible_line(&path.to_string_lossy())
        )),
        Notice::FalsePromise { remaining } => warning(&format!(
            "the agent promised that the whole backlog is done, but {} left",
            are(*remaining)
        )),
        Notice::OtherClaims { ids } => warning(&format!(
            "the agent also calls {} complete; only the current story counts",
            listed(ids)
        )),
        Notice::MarksPutBack { ids } => {
            let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
            warning(&format!(
                "the marks of {} were changed during the attempt and are put back; if one of \
                 them is right, set it yourself after the run: `ralph mark {} pass`",
                listed(&ids),
                ids.first().map_or("STORY", String::as_str)
            ))
        }
        Notice::Info(text) => info(text),
        Notice::Warning(text) => warning(text),
    }
}

/// What `--quiet` shows too.
pub fn is_warning(notice: &Notice) -> bool {
    !matches!(notice, Notice::BacklogUsableAgain | Notice::Info(_))
}

fn listed(ids: &[String]) -> String {
    let ids: Vec<String> = ids.iter().map(|id| visible_line(id)).collect();
    ids.join(", ")
}

fn are(count: usize) -> String {
    format!("{} {}", stories(count), if count == 1 { "is" } else { "are" })
}

fn warning(text: &str) -> Vec<Line> {
    labelled(Text::new().with(Tone::Warning, "warning: "), text)
}

fn info(text: &str) -> Vec<Line> {
    labelled(Text::new(), text)
}

/// Further lines are indented.
fn labelled(label: Text, text: &str) -> Vec<Line> {
    let mut rest = text.trim_end().split('\n');
    let first = label.plain(rest.next().unwrap_or_default());
    let more = rest.map(|line| Text::new().plain(format!("  {line}")));
    std::iter::once(first).chain(more).map(Line::from).collect()
}
