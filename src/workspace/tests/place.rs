use std::path::PathBuf;

use crate::workspace::FileLocation;

use super::sandbox::Sandbox;

#[test]
fn tells_where_a_path_stands() {
    let repo = Sandbox::new();
    repo.write(".gitignore", "*.log\nout/\n").write("tracked.log", "t\n");
    repo.git(["add", "-f", "tracked.log"]);
    repo.git(["init", "-q", "nested"]);
    repo.link("link", "docs/c").link("away", "/etc/hostname");
    let tree = repo.open();
    let inside = |path: &str| FileLocation::Inside(PathBuf::from(path));
    let ignored = |path: &str| FileLocation::Ignored(PathBuf::from(path));
    let rows = [
        ("a", inside("a")),
        ("docs/../a", inside("a")),
        ("docs/not-yet", inside("docs/not-yet")),
        ("link", inside("docs/c")),
        ("tracked.log", inside("tracked.log")),
        ("x.log", ignored("x.log")),
        ("out/PRD.json", ignored("out/PRD.json")),
        (".ralph/x", ignored(".ralph/x")),
        ("away", FileLocation::Outside),
        ("../beside", FileLocation::Outside),
        (".git/config", FileLocation::Outside),
        ("nested/PRD.json", FileLocation::Outside),
        ("", FileLocation::Outside),
    ];
    for (path, place) in rows {
        assert_eq!(tree.place_of(&repo.path(path)).unwrap(), place, "{path}");
    }
}
