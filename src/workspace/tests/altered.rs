use std::path::PathBuf;

use super::sandbox::Sandbox;

fn altered(repo: &Sandbox, named: &[&str], patterns: &[&str], change: impl Fn()) -> Vec<String> {
    let tree = repo.open();
    let base = tree.base().unwrap();
    change();
    let named: Vec<PathBuf> = named.iter().map(PathBuf::from).collect();
    let patterns: Vec<String> = patterns.iter().map(ToString::to_string).collect();
    let altered = tree.altered(&base, &named, &patterns).unwrap();
    altered.iter().map(|one| format!("{} {}", one.path.display(), one.diff)).collect()
}

#[test]
fn a_named_file_that_changed_or_went_is_shown_with_its_diff() {
    let repo = Sandbox::new();
    let changed = altered(&repo, &["a", "b", "docs/c", "new"], &[], || {
        repo.write("a", "a1\n").delete("b").write("new", "n\n");
    });
    assert_eq!(changed.len(), 2, "{changed:?}");
    assert!(changed[0].starts_with("a ") && changed[0].contains("-a0\n+a1\n"), "{changed:?}");
    assert!(changed[1].starts_with("b ") && changed[1].contains("-b0\n"), "{changed:?}");
}

#[test]
fn patterns_match_what_is_new_too_and_nothing_else() {
    let repo = Sandbox::new();
    let changed = altered(&repo, &[], &["docs/**", "*.lock"], || {
        repo.write("a", "a1\n").write("docs/deep/new", "n\n").write("x.lock", "l\n");
    });
    let paths: Vec<&str> = changed.iter().filter_map(|one| one.split(' ').next()).collect();
    assert_eq!(paths, ["docs/deep/new", "x.lock"]);
}

#[test]
fn line_endings_alone_are_no_change() {
    let repo = Sandbox::new();
    let changed = altered(&repo, &["a"], &[], || {
        repo.write("a", "a0\r\n");
    });
    assert_eq!(changed, [""; 0]);
}
