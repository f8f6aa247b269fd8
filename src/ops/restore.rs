//! `ralph restore` and `ralph checkpoint`.

use std::fmt::Write;
use std::path::{Component, Path, PathBuf};

use crate::model::visible_line;
use crate::workspace::{Kept, Recalled, WorkTree};

use super::error::CommandError;
use super::log::time;
use super::output::print;
use super::place::{store_of, take_lease};

/// Files that are named; the rest is counted.
const MOST_NAMED: usize = 20;

/// No paths: the whole work tree.
pub fn restore(number: u64, paths: &[PathBuf]) -> Result<(), CommandError> {
    let here = std::env::current_dir()?;
    let tree = WorkTree::look(&here)?;
    tree.require_identity()?;
    let kept = tree.kept_as(number)?;
    let inside = |path: &PathBuf| inside(tree.root(), &here.canonicalize()?, path);
    let paths = paths.iter().map(inside).collect::<Result<Vec<_>, _>>()?;
    let _lease = take_lease(&store_of(&tree))?;
    tree.remove_own_locks()?;
    let except = tree.backlogs_of_runs()?;
    let report = match tree.recall(&kept, &paths, &except)? {
        None => format!("nothing to restore: the files are already as in {}\n", kept.number),
        Some(recalled) => told(&kept, &recalled),
    };
    print(&report)
}

fn told(kept: &Kept, recalled: &Recalled) -> String {
    let count = recalled.files.len();
    let files = if count == 1 { "1 file".to_owned() } else { format!("{count} files") };
    let when = time(kept.at).map(|time| time.strftime(" (%Y-%m-%d %H:%M:%S)").to_string());
    let mut text = format!("restored {files} from {}{}:\n", kept.number, when.unwrap_or_default());
    for path in recalled.files.iter().take(MOST_NAMED) {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "  {}", visible_line(&path.to_string_lossy()));
    }
    if count > MOST_NAMED {
        let _ = writeln!(text, "  and {} more", count - MOST_NAMED);
    }
    let _ = writeln!(text, "undo this with `ralph restore {}`", recalled.checkpoint.number);
    text
}

pub fn checkpoint(message: Option<&str>) -> Result<(), CommandError> {
    let tree = WorkTree::look(&std::env::current_dir()?)?;
    tree.require_identity()?;
    let text = message.map_or("by hand", str::trim);
    if text.is_empty() {
        let why = "the message of `-m` is empty";
        return Err(CommandError::Refused(why.to_owned()));
    }
    let kept = tree.checkpoint(text)?;
    let number = kept.number;
    print(&format!("saved as {number}; restore it with `ralph restore {number}`\n"))
}

/// Relative to the root, by its letters alone: what is to be brought back need not be there, and
/// a link in its place must not lead elsewhere.
fn inside(root: &Path, here: &Path, path: &Path) -> Result<PathBuf, CommandError> {
    let mut clean = PathBuf::new();
    for part in here.join(path).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                clean.pop();
            }
            part => clean.push(part),
        }
    }
    let outside = || {
        let shown = visible_line(&path.to_string_lossy());
        CommandError::Refused(format!("`{shown}` is outside the work tree {}", root.display()))
    };
    clean.strip_prefix(root).map(Path::to_owned).map_err(|_| outside())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_taken_from_where_the_user_stands() {
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
