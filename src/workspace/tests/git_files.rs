//! Pipes, links and gigabytes where git has its files: nothing waits for them, reads them whole or
//! writes through them.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use crate::workspace::{GitError, Guard, WorkTree};

use super::sandbox::{Sandbox, close, story};

const GIGABYTES: u64 = 10 << 30;
const NAMES: [&str; 14] = [
    "HEAD",
    "index",
    "packed-refs",
    "logs/HEAD",
    "logs/refs/heads/main",
    "logs/refs/stash",
    "refs/ralph/new",
    "refs/worktree/ralph/new",
    "ralph/numbers",
    "ralph/index",
    "ralph/lock",
    "ralph/journal.db-newest",
    "ralph/journal.db-journal",
    "objects/aa/9e4c9ae5ab6f2e1fa1d5a3d5a7a3b6c0e1d2f3",
];
/// Those of the human's may be links.
const READ_ONLY: [&str; 5] =
    ["config", "info/exclude", "info/grafts", "shallow", "objects/info/alternates"];

fn sandbox() -> Sandbox {
    let repo = Sandbox::new();
    let tree = repo.open();
    tree.checkpoint("one").unwrap();
    repo.git(["pack-refs", "--all"]);
    repo.write(repo.beside("theirs"), "theirs\n");
    repo
}

fn plant(repo: &Sandbox, name: &str, what: &str) {
    let path = repo.path(".git").join(name);
    let _ = fs::remove_file(&path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    match what {
        "pipe" => drop(repo.fifo(&path)),
        "gigabytes" => File::create(&path).unwrap().set_len(GIGABYTES).unwrap(),
        _ => std::os::unix::fs::symlink(repo.beside("theirs"), &path).unwrap(),
    }
}

#[test]
fn at_the_start_they_are_refused_by_name() {
    for name in NAMES.into_iter().chain(READ_ONLY) {
        for what in ["pipe", "gigabytes", "link"] {
            let is_large = what == "gigabytes" && name.ends_with("-journal");
            if is_large || (READ_ONLY.contains(&name) && what == "link") {
                continue;
            }
            let repo = sandbox();
            plant(&repo, name, what);
            if name.starts_with("ralph/") {
                // Nobody else has anything there.
                let moved = repo.open().moved_away();
                assert_eq!(moved[0].path, Path::new(".git").join(name), "{what}");
                assert_eq!(repo.read(repo.beside("theirs")), "theirs\n", "{name}");
                continue;
            }
            let refused = repo.refusal();
            assert!(matches!(refused, GitError::OddFile { .. }), "{name} {what}: {refused}");
            assert!(refused.to_string().contains(name), "{refused}");
            assert_eq!(repo.read(repo.beside("theirs")), "theirs\n", "{name}");
        }
    }
}

#[test]
fn during_a_run_they_make_room() {
    for name in NAMES {
        for what in ["pipe", "gigabytes", "link"] {
            let case = format!("{name} {what}");
            if what == "gigabytes" && name.ends_with("-journal") {
                continue;
            }
            let repo = sandbox();
            let mut tree = repo.open();
            tree.serve("run-1", "PRD.json");
            let base = tree.base().unwrap();
            repo.write("a", "a1\n");
            plant(&repo, name, what);
            if name == "packed-refs" {
                // The guard knows the refs: here only nothing may block.
                tree.mend_git_files().unwrap();
                repo.git(["update-ref", "refs/heads/main", base.commit.as_deref().unwrap()]);
            }
            tree.mend_git_files().unwrap();
            if name == "index" {
                repo.git(["reset", "-q"]);
            }
            tree.checkpoint("two").unwrap();
            close(&tree, &base);
            assert_eq!(repo.git(["show", "HEAD:a"]), "a1\n", "{case}");
            assert_eq!(repo.read(repo.beside("theirs")), "theirs\n", "{case}");
            let moved = tree.moved_away();
            assert_eq!(moved[0].path, Path::new(".git").join(name), "{case}");
            assert!(fs::symlink_metadata(&moved[0].kept).is_ok(), "{case}");
        }
    }
}

#[test]
fn after_an_interruption_they_make_room_at_the_start() {
    for name in NAMES.into_iter().chain(READ_ONLY).chain(["ralph/attempt", "refs/heads/main"]) {
        let repo = sandbox();
        let before = repo.head();
        repo.open().begin_attempt().unwrap();
        plant(&repo, name, "pipe");
        let tree = WorkTree::look_for_run(repo.root()).unwrap();
        let moved = tree.moved_away();
        assert_eq!(moved.len(), 1, "{name}: {moved:?}");
        assert_eq!(moved[0].path, Path::new(".git").join(name));
        assert!(Guard::was_interrupted(&tree), "{name}");
        if name == "HEAD" {
            assert_eq!(repo.head(), before, "the commit; the journal knows the branch");
        }
    }
}

#[test]
fn a_start_beside_a_run_leaves_its_files_alone() {
    let repo = sandbox();
    repo.open().begin_attempt().unwrap();
    let run = File::open(repo.path(".git")).unwrap();
    run.try_lock().unwrap();
    plant(&repo, "ralph/index", "pipe");
    assert!(WorkTree::look_for_run(repo.root()).is_err());
    assert!(repo.exists(".git/ralph/index"));
    // A process that another test is starting may have the file, too.
    run.unlock().unwrap();
    WorkTree::look_for_run(repo.root()).unwrap();
}

#[test]
fn files_that_the_configuration_names_are_not_waited_for() {
    for text in ["[include]\n\tpath = ../../pipe\n", "[core] excludesFile = \"PIPE\"\n"] {
        let repo = sandbox();
        repo.fifo(repo.beside("pipe"));
        repo.open().begin_attempt().unwrap();
        let config = repo.read(".git/config");
        let text = text.replace("PIPE", &repo.beside("pipe").to_string_lossy());
        repo.write(".git/config", config.clone() + &text);
        assert!(matches!(repo.refusal(), GitError::OddFile { .. }), "{text}");
        let moved = WorkTree::look_for_run(repo.root()).unwrap().moved_away();
        assert_eq!(moved[0].path, Path::new(".git/config"));
        assert!(repo.exists("../pipe"), "it is not in the repository");
    }
}

#[test]
fn a_file_with_a_second_name_elsewhere_is_not_written_into() {
    for name in ["logs/HEAD", "logs/refs/heads/main", "ralph/numbers", "ralph/kept"] {
        let repo = sandbox();
        let mut tree = repo.open();
        tree.serve("run-1", "PRD.json");
        let base = tree.base().unwrap();
        let place = repo.path(".git").join(name);
        let _ = fs::remove_file(&place);
        fs::hard_link(repo.beside("theirs"), &place).unwrap();
        tree.mend_git_files().unwrap();
        repo.write("a", "a1\n");
        tree.checkpoint("two").unwrap();
        close(&tree, &base);
        assert_eq!(repo.read(repo.beside("theirs")), "theirs\n", "{name}");
    }
}

#[test]
fn objects_are_not_written_through_links() {
    let repo = sandbox();
    let outside = repo.beside("outside");
    fs::create_dir(&outside).unwrap();
    let mut tree = repo.open();
    tree.serve("run-1", "PRD.json");
    for name in (0..=255).map(|number| format!(".git/objects/{number:02x}")) {
        if !repo.exists(&name) {
            repo.link(&name, outside.to_str().unwrap());
        }
    }
    tree.mend_git_files().unwrap();
    repo.write("a", "a1\n");
    tree.checkpoint("two").unwrap();
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
}

#[test]
fn what_moves_away_does_not_go_through_links() {
    for link in ["changed", "changed/replaced", "changed/replaced/.git"] {
        let repo = sandbox();
        let outside = repo.beside("outside");
        fs::create_dir(&outside).unwrap();
        let mut tree = repo.open();
        tree.serve("run-1", "PRD.json");
        let place = repo.path(".git/ralph").join(link);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(&outside, &place).unwrap();
        plant(&repo, "ralph/index", "pipe");
        tree.mend_git_files().unwrap();
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 0, "{link}");
        assert!(!repo.exists(".git/ralph/index") && place.metadata().unwrap().is_dir(), "{link}");
        assert!(tree.moved_away().iter().any(|one| one.path == Path::new(".git/ralph/index")));
    }
}

#[test]
fn a_pipe_in_the_place_of_a_tracked_file_makes_room() {
    let repo = Sandbox::new();
    let tree = repo.open();
    let base = tree.base().unwrap();
    repo.delete("a").fifo("a").delete("docs/c").fifo("docs/c");
    tree.shelve(&story("S-1"), 1, &base, &[]).unwrap();
    assert_eq!((repo.read("a").as_str(), repo.read("docs/c").as_str()), ("a0\n", "c0\n"));
    assert_eq!(tree.moved_away().len(), 2);
}

#[test]
fn rules_for_one_path_are_not_waited_for() {
    let repo = Sandbox::new();
    let tree = repo.open();
    repo.fifo(".gitignore").fifo("docs/.gitignore");
    assert!(!tree.is_in_no_commit(Path::new("docs/c")));
}

#[test]
fn pipes_among_the_rules_are_moved_away() {
    let repo = Sandbox::new();
    repo.write("docs/.gitignore", "*.log\n").commit_all("rules");
    let tree = repo.open();
    let base = tree.base().unwrap();
    repo.delete("docs/.gitignore").write("docs/c", "c1\n").write("deep/er/x", "x\n");
    let places = [".gitignore", "docs/.gitignore", "docs/.gitattributes", "deep/er/.gitignore"];
    for place in places {
        repo.fifo(place);
    }
    fs::create_dir(repo.path(".ralph")).unwrap();
    repo.fifo(".ralph/.gitignore").fifo("deep/pipe").link("deep/.gitignore", "pipe");
    assert!(!tree.difference_since(&base).unwrap().paths.is_empty());
    close(&tree, &base);
    let mut moved: Vec<PathBuf> = tree.moved_away().into_iter().map(|one| one.path).collect();
    moved.sort();
    let expected = [
        ".gitignore",
        ".ralph/.gitignore",
        "deep/.gitignore",
        "deep/er/.gitignore",
        "docs/.gitattributes",
        "docs/.gitignore",
    ];
    assert_eq!(moved, expected.map(PathBuf::from));
    assert_eq!(repo.git(["ls-tree", "-r", "--name-only", "HEAD"]), "a\nb\ndeep/er/x\ndocs/c\n");
}

#[test]
fn a_file_of_gigabytes_is_not_read() {
    let repo = Sandbox::new();
    let tree = repo.open();
    let base = tree.base().unwrap();
    File::create(repo.path("large")).unwrap().set_len(GIGABYTES).unwrap();
    File::options().write(true).open(repo.path("b")).unwrap().set_len(GIGABYTES).unwrap();
    repo.write("a", "a1\n");
    let closed = close(&tree, &base);
    let left_out: Vec<_> = closed.left_out.iter().map(|one| one.path.as_str()).collect();
    assert_eq!(left_out, ["b", "large"]);
    assert_eq!(repo.last_changes(), "M\ta\n");
}
