//! The line about an agent's own commits that one commit took the place of.

use crate::model::{CommitsReplaced, Unclean, WhyUnclean, visible_line};

use super::figures::counted;
use super::look::{Line, TextLine, Tone};

pub fn line(at: i64, replaced: &CommitsReplaced) -> Line {
    let CommitsReplaced { story, commits, unclean, kept } = replaced;
    let without: Vec<String> = unclean.iter().map(unclean_part).collect();
    let own = counted(*commits, "commit");
    let text =
        format!("{story}: replaced {own} of the agent by one without {}", without.join(", "));
    let which = if replaced.has_secret() { "those without secrets are" } else { "kept" };
    let kept = kept.as_ref().map(|kept| format!("{which} at {kept}"));
    TextLine::at(at).with(Tone::Warning, text).figures(kept).into()
}

fn unclean_part(one: &Unclean) -> String {
    let path = visible_line(&one.path);
    let what = match one.why {
        WhyUnclean::Users => format!("your {path}"),
        WhyUnclean::Secret if path.is_empty() => "a secret in a message".to_owned(),
        WhyUnclean::Secret => format!("a secret in {path}"),
        WhyUnclean::Held => format!("the changed {path}"),
        WhyUnclean::TooLarge => format!("{path} (too large)"),
        WhyUnclean::Repository => format!("the repository {path}"),
        WhyUnclean::Name => format!("{path} (`never_commit`)"),
    };
    let more = if one.files > 1 { format!(" and {} more", one.files - 1) } else { String::new() };
    format!("{what}{more}")
}
