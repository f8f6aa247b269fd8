//! Files that are easily damaged: each goes through commit, set-aside and back.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::workspace::Unshelved;

use super::sandbox::{CommitRequest, Sandbox, close, story};

/// What is on disk, with modes and link targets, `.git` left out.
fn listing(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        let kind = entry.file_type().unwrap();
        if kind.is_dir() && entry.file_name() != ".git" {
            found.push((path.clone(), "folder".to_owned()));
            found.extend(listing(&path));
        } else if kind.is_symlink() {
            found.push((path.clone(), format!("-> {:?}", fs::read_link(&path).unwrap())));
        } else if kind.is_file() {
            let mode =
                std::os::unix::fs::PermissionsExt::mode(&entry.metadata().unwrap().permissions());
            let bytes = fs::read(&path).unwrap();
            found.push((path, format!("{:o} {bytes:?}", mode & 0o111)));
        }
    }
    found.sort();
    found
}

/// Sets aside, brings back, closes: at each step the disk must be as expected.
fn round_trip(repo: &Sandbox, work: impl Fn()) {
    let tree = repo.open();
    let base = tree.base().unwrap();
    let (before, status) = (listing(repo.root()), repo.status());
    work();
    let after = listing(repo.root());
    let kept = tree.shelve(&story("S"), 1, &base, &[]).unwrap().expect("something to keep");
    assert_eq!(listing(repo.root()), before);
    assert_eq!(repo.status(), status);
    assert_eq!(tree.unshelve(&kept, &[]).unwrap(), Unshelved::Clean);
    assert_eq!(listing(repo.root()), after);
    close(&tree, &base);
    assert_eq!(listing(repo.root()), after);
    assert_eq!(repo.status(), "");
    // Trees have no empty folders and no other oddities that git would not write.
    assert_eq!(repo.git(["write-tree"]), repo.git(["rev-parse", "HEAD^{tree}"]));
    repo.assert_sound();
}

#[test]
fn deletions_and_renames() {
    let repo = Sandbox::new();
    round_trip(&repo, || {
        repo.delete("docs");
        fs::rename(repo.path("a"), repo.path("moved")).unwrap();
    });
    assert_eq!(repo.git(["ls-files"]), "b\nmoved\n");
}

#[test]
fn the_executable_bit() {
    let repo = Sandbox::new();
    round_trip(&repo, || {
        repo.make_executable("a").write("tool", "#!/bin/sh\n").make_executable("tool");
    });
    assert!(repo.is_executable("a") && repo.is_executable("tool"));
}

#[test]
fn links() {
    let repo = Sandbox::new();
    repo.link("old", "a").commit_all("link");
    round_trip(&repo, || {
        repo.delete("old").link("old", "b").link("dangling", "nowhere");
        repo.delete("a").link("a", "b").delete("docs").link("docs", "/tmp");
    });
}

#[test]
fn a_link_that_became_a_file() {
    let repo = Sandbox::new();
    repo.link("old", "a").commit_all("link");
    round_trip(&repo, || {
        repo.delete("old").write("old", "text\n");
    });
    assert_eq!(repo.read("a"), "a0\n");
}

#[test]
fn names_that_are_not_utf8() {
    let repo = Sandbox::new();
    let name = Path::new(OsStr::from_bytes(b"caf\xe9/\xff\xfe"));
    round_trip(&repo, || {
        repo.write(name, "latin\n");
    });
}

#[test]
fn names_with_glob_characters() {
    let repo = Sandbox::new();
    repo.write("*", "star\n").write("[ab]", "set\n").write("!x", "not\n").commit_all("globs");
    round_trip(&repo, || {
        repo.write("*", "star 1\n").write("[ab]", "set 1\n").write("!x", "not 1\n");
        repo.write("?", "new\n").write(":(top)x", "magic\n").write("back\\slash", "s\n");
        repo.write("with space\tand tab", "t\n").write("#hash", "h\n");
    });
}

#[test]
fn only_the_globs_own_file_is_written_back() {
    let repo = Sandbox::new();
    repo.write("*", "star\n").commit_all("globs");
    let tree = repo.open();
    let base = tree.base().unwrap();
    repo.write("*", "star 1\n").write("a", "edited by the human\n");
    tree.shelve(&story("S"), 1, &base, &[PathBuf::from("a")]).unwrap();
    assert_eq!(
        (repo.read("*").as_str(), repo.read("a").as_str()),
        ("star\n", "edited by the human\n")
    );
}

#[test]
fn a_file_becomes_a_folder_and_a_folder_a_file() {
    let repo = Sandbox::new();
    repo.write("deep/er/x", "x\n").write("deep/y", "y\n").commit_all("folders");
    round_trip(&repo, || {
        repo.delete("a").write("a/inside", "i\n").delete("docs").write("docs", "now a file\n");
        repo.delete("deep/er").write("deep/er", "file\n");
    });
}

#[test]
fn the_same_swaps_with_files_that_were_never_committed() {
    let repo = Sandbox::new();
    repo.write("u", "u\n").write("v/w", "w\n");
    let tree = repo.open();
    let base = tree.base().unwrap();
    let before = listing(repo.root());
    repo.delete("u").write("u/inside", "i\n").delete("v").write("v", "file\n");
    tree.shelve(&story("S"), 1, &base, &[]).unwrap().unwrap();
    assert_eq!(listing(repo.root()), before);
    assert_eq!(repo.status(), "?? u\n?? v/w\n");
}

#[test]
fn line_endings_with_autocrlf() {
    let repo = Sandbox::new();
    repo.git(["config", "core.autocrlf", "true"]);
    repo.write("crlf", "one\r\ntwo\r\n").commit_all("crlf");
    assert_eq!(repo.git(["show", "HEAD:crlf"]), "one\ntwo\n");
    round_trip(&repo, || {
        repo.write("crlf", "one\r\ntwo\r\nthree\r\n").write("new", "n\r\n");
    });
    assert_eq!(repo.git(["show", "HEAD:crlf"]), "one\ntwo\nthree\n");
    let replaced = [(PathBuf::from("crlf"), b"last\r\n".to_vec())];
    let request = CommitRequest { replaced: &replaced, message: "m", ..CommitRequest::default() };
    request.commit(&repo.open()).unwrap();
    assert_eq!(repo.git(["show", "HEAD:crlf"]), "last\n");
}

#[test]
fn line_endings_by_attribute() {
    let repo = Sandbox::new();
    repo.write(".gitattributes", "* text=auto\n*.bat eol=crlf\n").write("x.bat", "x\r\n");
    repo.commit_all("attributes");
    round_trip(&repo, || {
        repo.write("x.bat", "x\r\ny\r\n").write("z.bat", "z\r\n").write("unix", "u\n");
    });
}
