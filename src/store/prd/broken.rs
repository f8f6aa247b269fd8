//! Versions of PRD.json that were broken and are kept beside it.

use std::path::{Path, PathBuf};

use crate::files::nofollow;

/// Between the file's name and a time.
const BROKEN: &str = ".broken-";

pub fn broken_name(path: &Path, at: i64) -> PathBuf {
    path.with_file_name(format!("{}{at}", beginning(path)))
}

/// All of them, of a backlog in a work tree: no commit has them.
pub fn broken_beside(root: &Path, backlog: &Path) -> Vec<PathBuf> {
    let Some(folder) = backlog.parent() else { return Vec::new() };
    let Ok(entries) = nofollow::list(&root.join(folder)) else { return Vec::new() };
    let names = entries.into_iter().map(|entry| entry.name);
    let begin = beginning(backlog);
    let broken = names.filter(|name| name.to_string_lossy().starts_with(&begin));
    broken.map(|name| folder.join(name)).collect()
}

fn beginning(path: &Path) -> String {
    format!("{}{BROKEN}", path.file_name().unwrap_or_default().to_string_lossy())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn broken_versions_are_found_beside_the_file() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("sub")).unwrap();
        let backlog = Path::new("sub/PRD.json");
        let broken = broken_name(backlog, 7);
        assert_eq!(broken, Path::new("sub/PRD.json.broken-7"));
        for path in [backlog, &broken, Path::new("PRD.json.broken-8")] {
            fs::write(folder.path().join(path), "").unwrap();
        }
        assert_eq!(broken_beside(folder.path(), backlog), [broken]);
    }
}
