use super::*;
use std::os::unix::fs::symlink;

#[test]
fn a_link_is_refused_even_a_dangling_one() {
    let root = tempfile::tempdir().unwrap();
    symlink(root.path().join("nowhere"), root.path().join(FOLDER)).unwrap();
    assert!(matches!(RalphDir::open(root.path()), Err(RalphDirError::NotAFolder)));
    assert!(!root.path().join("nowhere").exists());
}

#[test]
fn the_folder_is_private_and_ignored_and_made_again() {
    let root = tempfile::tempdir().unwrap();
    let dir = RalphDir::open(root.path()).unwrap();
    fs::remove_dir_all(root.path().join(FOLDER)).unwrap();
    let story = StoryId::try_from("US-001").unwrap();
    let files = dir.iteration("r", 1, &story).unwrap();
    files.write_prompt("secret").unwrap();
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&files.prompt), 0o600);
    assert_eq!(mode(files.prompt.parent().unwrap()), 0o700);
    let folder = root.path().join(FOLDER);
    fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
    RalphDir::open(root.path()).unwrap();
    assert_eq!(mode(&folder), 0o700);
    assert_eq!(fs::read_to_string(root.path().join(".ralph/.gitignore")).unwrap(), "*\n");
}

fn id() -> StoryId {
    StoryId::try_from("US-001").unwrap()
}

fn ralph_dir() -> (tempfile::TempDir, RalphDir, PathBuf) {
    let root = tempfile::tempdir().unwrap();
    let dir = RalphDir::open(root.path()).unwrap();
    let pad = root.path().join(FOLDER).join(SCRATCHPAD);
    (root, dir, pad)
}

#[test]
fn only_the_end_of_a_scratchpad_is_read() {
    let (root, _dir, pad) = ralph_dir();
    assert_eq!(scratchpad(root.path()).unwrap(), None);
    fs::write(&pad, " \n").unwrap();
    assert_eq!(scratchpad(root.path()).unwrap(), None);
    fs::write(&pad, "notes\n").unwrap();
    assert_eq!(scratchpad(root.path()).unwrap().unwrap(), "notes\n");
    fs::write(&pad, format!("first\n{}last", "é".repeat(100_000))).unwrap();
    let long = scratchpad(root.path()).unwrap().unwrap();
    assert!(long.len() <= 64 * 1024 && long.ends_with("élast") && long.starts_with('é'));
    fs::write(&pad, b"a\xff\xfeb").unwrap();
    assert_eq!(scratchpad(root.path()).unwrap().unwrap(), "a\u{fffd}\u{fffd}b");
    File::create(&pad).unwrap().set_len(1 << 40).unwrap();
    assert!(scratchpad(root.path()).unwrap().is_some(), "only the end of a terabyte is read");
}

#[test]
fn a_scratchpad_that_is_not_a_file_is_not_touched() {
    let (root, dir, pad) = ralph_dir();
    let outside = root.path().join("outside.md");
    fs::write(&outside, "secret").unwrap();
    let stand = |what: &str| {
        let _ = fs::remove_file(&pad);
        let _ = fs::remove_dir(&pad);
        match what {
            "link" => symlink(&outside, &pad).unwrap(),
            "folder" => fs::create_dir(&pad).unwrap(),
            _ => {
                let made = std::process::Command::new("mkfifo").arg(&pad).status().unwrap();
                assert!(made.success());
            }
        }
    };
    for what in ["link", "folder", "pipe"] {
        stand(what);
        assert!(matches!(scratchpad(root.path()), Err(ScratchpadError::NotAFile)), "{what}");
        assert!(dir.archive_scratchpad(&id()).is_err(), "{what}");
        assert!(fs::symlink_metadata(&pad).is_ok(), "{what}");
    }
    assert_eq!(fs::read_to_string(&outside).unwrap(), "secret");
}

#[test]
fn a_scratchpad_behind_a_link_is_not_read() {
    let (root, dir, _) = ralph_dir();
    let elsewhere = tempfile::tempdir().unwrap();
    fs::write(elsewhere.path().join(SCRATCHPAD), "not ours").unwrap();
    fs::remove_dir_all(root.path().join(FOLDER)).unwrap();
    assert_eq!(scratchpad(root.path()).unwrap(), None);
    symlink(elsewhere.path(), root.path().join(FOLDER)).unwrap();
    assert!(scratchpad(root.path()).is_err() && dir.archive_scratchpad(&id()).is_err());
    dir.unshelve_scratchpad(&id()).unwrap();
    assert!(elsewhere.path().join(SCRATCHPAD).exists());
}

#[test]
fn scratchpads_are_archived_by_story_and_never_overwritten() {
    let (root, dir, pad) = ralph_dir();
    dir.archive_scratchpad(&id()).unwrap();
    for text in ["one", "two"] {
        fs::write(&pad, text).unwrap();
        dir.archive_scratchpad(&id()).unwrap();
        assert!(!pad.exists());
    }
    let read = |name: &str| {
        let path = root.path().join(FOLDER).join(ARCHIVE).join(name);
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        fs::read_to_string(path).unwrap()
    };
    assert_eq!((read("US-001.md"), read("US-001-2.md")), ("one".into(), "two".into()));
}

#[test]
fn a_shelved_scratchpad_comes_back_with_its_story() {
    let (_root, dir, pad) = ralph_dir();
    let other = StoryId::try_from("US-002").unwrap();
    fs::write(&pad, "one").unwrap();
    dir.shelve_scratchpad(&id()).unwrap();
    assert!(!pad.exists());
    dir.unshelve_scratchpad(&other).unwrap();
    assert!(!pad.exists());
    dir.unshelve_scratchpad(&id()).unwrap();
    assert_eq!(fs::read_to_string(&pad).unwrap(), "one");
    dir.shelve_scratchpad(&id()).unwrap();
    fs::write(&pad, "newer").unwrap();
    dir.unshelve_scratchpad(&id()).unwrap();
    assert_eq!(fs::read_to_string(&pad).unwrap(), "newer");
}
