//! Snapshots of the work tree: `ralph log`, `diff`, `restore` and `checkpoint`.

use std::fmt::Write;
use std::io::{self, IsTerminal};
use std::path::{Component, Path, PathBuf};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Value, json};

use crate::files::follow;
use crate::model::{StoryId, visible_line};
use crate::ports::Clock;
use crate::store::prd::PrdFile;
use crate::ui::{self, UiOptions};
use crate::workspace::{Restored, SnapshotKind, SnapshotRef, WorkTree};

use super::error::{CommandError, Result};
use super::place::{find_story, history, place_of, refuse_supervised, store_of, take_lease};
use super::setup::with_own_setup;
use super::terminal::{listed, print, print_bytes, print_json};
use super::undo::closing_of;

const HEADING: [&str; 7] = ["N", "When", "What", "Story", "Run", "Files", ""];
const FIGURES: [bool; 7] = [true, false, false, false, false, true, false];

pub fn log(json: bool, clock: &Clock) -> Result<()> {
    let tree = tree_here()?;
    let row = |snapshot| Ok((tree.files_of(&snapshot)?, snapshot));
    let rows: Vec<_> = tree.snapshots()?.into_iter().map(row).collect::<Result<_>>()?;
    if json {
        let entries = rows.iter().map(|(files, snapshot)| as_json(snapshot, *files));
        return print_json(&entries.collect());
    }
    if rows.is_empty() {
        return print("no snapshots yet\n");
    }
    let mut lines = vec![HEADING.map(str::to_owned)];
    lines.extend(rows.iter().map(|(files, snapshot)| cells(snapshot, *files, &clock.zone)));
    print(&format!("{}\n", ui::table(&lines, FIGURES).join("\n")))
}

fn tree_here() -> Result<WorkTree> {
    Ok(WorkTree::look(&std::env::current_dir()?)?)
}

fn cells(snapshot: &SnapshotRef, files: usize, zone: &TimeZone) -> [String; 7] {
    let dash = || "-".to_owned();
    // The columns say everything about other snapshots.
    let kind = snapshot.kind;
    let is_checkpoint = kind == SnapshotKind::Checkpoint;
    [
        snapshot.number.to_string(),
        ui::date_and_time(snapshot.at.saturating_mul(1000), zone),
        // The glossary's word; the stored one stays as it is.
        if kind == SnapshotKind::Shelved { "shelved".to_owned() } else { kind.word() },
        snapshot.story.as_ref().map_or_else(dash, ToString::to_string),
        snapshot.run.as_deref().map_or_else(dash, |run| visible_line(&ui::short_run(run))),
        files.to_string(),
        if is_checkpoint { visible_line(&snapshot.subject) } else { String::new() },
    ]
}

fn as_json(snapshot: &SnapshotRef, files: usize) -> Value {
    json!({
        "number": snapshot.number,
        "kind": snapshot.kind,
        "at": Timestamp::from_second(snapshot.at).ok().map(|time| time.to_string()),
        "run": snapshot.run,
        "backlog": snapshot.backlog,
        "work_tree": snapshot.work_tree,
        "story": snapshot.story,
        "iteration": snapshot.iteration,
        "files": files,
        "subject": snapshot.subject,
        "ref": snapshot.reference,
        "commit": snapshot.commit,
    })
}

/// `what`: a number of `ralph log`, or a story of the backlog.
pub fn diff(what: &str, prd: &Path, look: &UiOptions) -> Result<()> {
    let tree = tree_here()?;
    let patch = match what.parse::<u64>() {
        Ok(number) => tree.diff_of(&tree.find_snapshot(number)?)?,
        Err(_) => diff_of_story(&tree, what, prd)?,
    };
    let is_terminal = io::stdout().is_terminal();
    let colors = ui::colors(look.color, is_terminal, ui::env_var);
    if is_terminal || colors { print(&ui::diff(&patch, colors)) } else { print_bytes(&patch) }
}

/// An unfinished story's changes, a closed story's commits, else the newest snapshot of its work.
fn diff_of_story(tree: &WorkTree, what: &str, prd: &Path) -> Result<Vec<u8>> {
    let neither = |_| CommandError::NeitherNumberNorStory(visible_line(what));
    let story = StoryId::try_from(what).map_err(neither)?;
    let loaded = PrdFile::new(prd).load()?;
    let place = place_of(tree, prd)?;
    let known = history(&store_of(tree), &place)?;
    if let Some(base) = known.state.story(&story).and_then(|known| known.base()) {
        return Ok(tree.diff_since(base)?);
    }
    let closing = closing_of(tree, &known.events, &story, &visible_line(&place.name))?;
    if let Some(closing) = closing.filter(|closing| !closing.is_undone) {
        return Ok(tree.diff_of_closing(&closing)?);
    }
    let is_work = |snapshot: &&SnapshotRef| {
        snapshot.story.as_ref() == Some(&story) && snapshot.kind != SnapshotKind::Snapshot
    };
    if let Some(snapshot) = tree.snapshots()?.iter().rev().find(is_work) {
        return Ok(tree.diff_of(snapshot)?);
    }
    find_story(&loaded.backlog, &story)?;
    Err(CommandError::NothingOf(story))
}

/// No paths: the whole work tree.
pub fn restore(number: u64, paths: &[PathBuf], clock: &Clock) -> Result<()> {
    let here = std::env::current_dir()?;
    let tree = WorkTree::look(&here)?;
    refuse_supervised("`ralph restore`", &tree)?;
    let store = store_of(&tree);
    let _lease = take_lease(&store, clock)?;
    let tree = with_own_setup(tree, &here, &store)?;
    tree.require_identity()?;
    let snapshot = tree.find_snapshot(number)?;
    let inside = |path: &PathBuf| inside(tree.root(), &follow::real(&here)?, path);
    let paths = paths.iter().map(inside).collect::<Result<Vec<_>, _>>()?;
    tree.remove_own_locks()?;
    let except = tree.backlogs_of_runs()?;
    print(&match tree.restore(&snapshot, &paths, &except)? {
        None => format!("nothing to restore: the files are the same as in {number}\n"),
        Some(done) => restored(&snapshot, &done, &clock.zone),
    })
}

fn restored(snapshot: &SnapshotRef, done: &Restored, zone: &TimeZone) -> String {
    let when = ui::date_and_time(snapshot.at.saturating_mul(1000), zone);
    let (files, number) = (ui::counted(done.files.len(), "file"), snapshot.number);
    let mut text = format!("restored {files} from {number} ({when}):\n");
    for line in listed(&done.files) {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "  {line}");
    }
    let _ = writeln!(text, "undo this with `ralph restore {}`", done.checkpoint.number);
    text
}

/// Relative to the root. Purely lexical: the file need not exist, and links are not followed.
fn inside(root: &Path, here: &Path, path: &Path) -> Result<PathBuf> {
    let mut clean = PathBuf::new();
    for part in here.join(path).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(clean.pop()),
            part => clean.push(part),
        }
    }
    clean.strip_prefix(root).map(Path::to_owned).map_err(|_| {
        let (path, root) = (ui::shown(path), root.display());
        CommandError::Refused(format!("`{path}` is outside the work tree {root}"))
    })
}

pub fn checkpoint(message: Option<&str>, clock: &Clock) -> Result<()> {
    let (here, tree) = (std::env::current_dir()?, tree_here()?);
    refuse_supervised("`ralph checkpoint`", &tree)?;
    let store = store_of(&tree);
    // An active run has its own guard.
    let (tree, lease) = match take_lease(&store, clock) {
        Ok(lease) => (with_own_setup(tree, &here, &store)?, Some(lease)),
        Err(error) if error.is_held_lease() => (tree, None),
        Err(error) => return Err(error),
    };
    tree.require_identity()?;
    let text = message.map_or("manual checkpoint", str::trim);
    if text.is_empty() {
        return Err(CommandError::Refused("the message of `-m` is empty".to_owned()));
    }
    // Notes and locks of killed processes; a run in this work tree removes its own.
    if lease.is_some() {
        tree.remove_noted_locks()?;
    }
    let number = tree.checkpoint(text)?.number;
    drop(lease);
    print(&format!("saved snapshot {number}; restore it with `ralph restore {number}`\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_relative_to_the_current_folder() {
        let (root, here) = (Path::new("/r"), Path::new("/r/src"));
        for (given, found) in [
            ("a.rs", Some("src/a.rs")),
            ("./a.rs", Some("src/a.rs")),
            ("../docs", Some("docs")),
            ("..", Some("")),
            ("/r/x", Some("x")),
            ("../../x", None),
            ("/elsewhere", None),
        ] {
            let path = inside(root, here, Path::new(given)).ok();
            assert_eq!(path, found.map(PathBuf::from), "{given}");
        }
    }
}
