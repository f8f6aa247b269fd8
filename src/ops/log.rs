//! `ralph log`: what is kept, for people or as JSON.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Value, json};

use crate::model::visible_line;
use crate::ui;
use crate::workspace::{Kept, Kind, WorkTree};

use super::error::CommandError;
use super::output::{print, table};

pub fn log(json: bool) -> Result<(), CommandError> {
    let tree = WorkTree::look(&std::env::current_dir()?)?;
    let kept = tree.kept()?;
    let files = kept.iter().map(|kept| tree.files_of(kept)).collect::<Result<Vec<_>, _>>()?;
    let rows: Vec<(&Kept, usize)> = kept.iter().zip(files).collect();
    let text = if json {
        let entries: Vec<Value> = rows.iter().map(|(kept, files)| as_json(kept, *files)).collect();
        format!("{:#}\n", Value::Array(entries))
    } else {
        as_text(&rows)
    };
    print(&text)
}

fn as_text(rows: &[(&Kept, usize)]) -> String {
    if rows.is_empty() {
        return "no snapshots yet\n".to_owned();
    }
    let heading = ["N", "When", "What", "Story", "Run", "Files"].map(str::to_owned);
    let mut lines = vec![(heading, String::new())];
    lines.extend(rows.iter().map(|(kept, files)| (cells(kept, *files), remark(kept))));
    table(&lines, [true, false, false, false, false, true])
}

fn cells(kept: &Kept, files: usize) -> [String; 6] {
    let dash = || "-".to_owned();
    [
        kept.number.to_string(),
        time(kept.at).map_or_else(dash, |time| time.strftime("%Y-%m-%d %H:%M:%S").to_string()),
        kept.kind.word().to_owned(),
        kept.story.as_ref().map_or_else(dash, ToString::to_string),
        kept.run.as_deref().map_or_else(dash, |run| visible_line(&ui::short_run(run))),
        files.to_string(),
    ]
}

/// Only a checkpoint has something to say that the columns do not.
fn remark(kept: &Kept) -> String {
    if kept.kind == Kind::Checkpoint { visible_line(&kept.subject) } else { String::new() }
}

/// When it was kept, for people.
pub fn time(at: i64) -> Option<jiff::Zoned> {
    Some(Timestamp::from_second(at).ok()?.to_zoned(TimeZone::system()))
}

fn as_json(kept: &Kept, files: usize) -> Value {
    let at = Timestamp::from_second(kept.at).ok().map(|time| time.to_string());
    json!({
        "number": kept.number,
        "kind": kept.kind.word(),
        "at": at,
        "run": kept.run,
        "backlog": kept.backlog,
        "work_tree": kept.work_tree,
        "story": kept.story,
        "iteration": kept.iteration,
        "files": files,
        "subject": kept.subject,
        "ref": kept.reference,
        "commit": kept.commit(),
    })
}
