//! Objects that were cut, changed or removed.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use crate::workspace::{GitError, damaged_object};

use super::sandbox::Sandbox;

fn object(repo: &Sandbox, name: &str) -> PathBuf {
    let id = repo.git(["rev-parse", name]);
    let (folder, file) = id.trim().split_at(2);
    let path = repo.path(".git/objects").join(folder).join(file);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    path
}

/// What is left of an object's bytes.
type Damage = fn(&[u8]) -> Option<Vec<u8>>;

const DAMAGES: [(&str, Damage); 5] = [
    ("cut", |bytes| Some(bytes[..bytes.len() / 2].to_vec())),
    ("cut to its start", |bytes| Some(bytes[..2].to_vec())),
    ("emptied", |_| Some(Vec::new())),
    ("zeroed", |bytes| Some(vec![0; bytes.len()])),
    ("removed", |_| None),
];

#[test]
fn a_damaged_object_is_named() {
    for (damage, damaged) in DAMAGES {
        for name in ["HEAD", "HEAD^{tree}", "HEAD:docs/c"] {
            let repo = Sandbox::new();
            let folder = repo.path(".git");
            assert_eq!(damaged_object(&folder), None);
            let path = object(&repo, name);
            match damaged(&fs::read(&path).unwrap()) {
                Some(bytes) => fs::write(&path, bytes).unwrap(),
                None => continue,
            }
            assert_eq!(damaged_object(&folder), Some(path), "{damage} {name}");
        }
    }
}

#[test]
fn what_the_branch_has_must_be_whole() {
    for (damage, damaged) in DAMAGES {
        for name in ["HEAD~1", "HEAD^{tree}", "HEAD:docs", "HEAD:docs/c"] {
            // Nothing ever reads these to their end: the jobs' deadline is for them.
            if damage.starts_with("cut") {
                continue;
            }
            let repo = Sandbox::new();
            repo.write("a", "a1\n").commit_all("second");
            let tree = repo.open();
            tree.require_whole_tip().unwrap();
            let path = object(&repo, name);
            match damaged(&fs::read(&path).unwrap()) {
                Some(bytes) => fs::write(&path, bytes).unwrap(),
                None => fs::remove_file(&path).unwrap(),
            }
            let refused = tree.require_whole_tip().unwrap_err();
            let is_named =
                matches!(&refused, GitError::DamagedObject { path: named } if *named == path);
            assert!(is_named, "{damage} {name}: {refused}");
        }
    }
}

#[test]
fn another_objects_content_is_damage() {
    let repo = Sandbox::new();
    let (one, other) = (object(&repo, "HEAD:a"), object(&repo, "HEAD:b"));
    fs::copy(other, &one).unwrap();
    assert_eq!(damaged_object(&repo.path(".git")), Some(one));
    assert!(repo.open().require_whole_tip().is_err());
}
