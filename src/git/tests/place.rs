use std::path::PathBuf;

use super::sandbox::Sandbox;
use crate::git::Place;

#[test]
fn tells_where_a_path_stands() {
    let repo = Sandbox::new();
    repo.write(".gitignore", "*.log\nout/\n").write("tracked.log", "t\n");
    repo.git(["add", "-f", "tracked.log"]);
    repo.git(["init", "-q", "nested"]);
    repo.link("link", "docs/c").link("away", "/etc/hostname");
    let tree = repo.open();
    let inside = |path: &str| Place::Inside(PathBuf::from(path));
    let ignored = |path: &str| Place::Ignored(PathBuf::from(path));
    let rows = [
        ("a", inside("a")),
        ("docs/../a", inside("a")),
        ("docs/not-yet", inside("docs/not-yet")),
        ("link", inside("docs/c")),
        ("tracked.log", inside("tracked.log")),
        ("x.log", ignored("x.log")),
        ("out/PRD.json", ignored("out/PRD.json")),
        (".ralph/x", ignored(".ralph/x")),
        ("away", Place::Outside),
        ("../beside", Place::Outside),
        (".git/config", Place::Outside),
        ("nested/PRD.json", Place::Outside),
        ("", Place::Outside),
    ];
    for (path, place) in rows {
        assert_eq!(tree.place_of(&repo.path(path)).unwrap(), place, "{path}");
    }
}
