use super::*;
use std::os::unix::fs::symlink;

fn id() -> StoryId {
    StoryId::try_from("US-001").unwrap()
}

fn ralph_dir() -> (tempfile::TempDir, RalphDir, PathBuf) {
    let root = tempfile::tempdir().unwrap();
    let dir = RalphDir::open(root.path()).unwrap();
    let pad = root.path().join(FOLDER).join(NAME);
    (root, dir, pad)
}

#[test]
fn its_end_is_read_and_no_more() {
    let (root, _dir, pad) = ralph_dir();
    assert_eq!(end(root.path()).unwrap(), None);
    fs::write(&pad, " \n").unwrap();
    assert_eq!(end(root.path()).unwrap(), None);
    fs::write(&pad, "notes\n").unwrap();
    assert_eq!(end(root.path()).unwrap().unwrap(), "notes\n");
    fs::write(&pad, format!("first\n{}last", "é".repeat(100_000))).unwrap();
    let long = end(root.path()).unwrap().unwrap();
    assert!(long.len() <= 64 * 1024 && long.ends_with("élast") && long.starts_with('é'));
    fs::write(&pad, b"a\xff\xfeb").unwrap();
    assert_eq!(end(root.path()).unwrap().unwrap(), "a\u{fffd}\u{fffd}b");
    File::create(&pad).unwrap().set_len(1 << 40).unwrap();
    assert!(end(root.path()).unwrap().is_some(), "a terabyte of nothing is read at its end");
}

#[test]
fn whatever_else_stands_there_is_left_alone() {
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
        assert!(matches!(end(root.path()), Err(ScratchpadError::NotAFile)), "{what}");
        assert!(dir.archive_scratchpad(&id()).is_err(), "{what}");
        assert!(fs::symlink_metadata(&pad).is_ok(), "{what}");
    }
    assert_eq!(fs::read_to_string(&outside).unwrap(), "secret");
}

#[test]
fn a_folder_that_is_a_link_is_not_followed() {
    let (root, dir, _) = ralph_dir();
    let elsewhere = tempfile::tempdir().unwrap();
    fs::write(elsewhere.path().join(NAME), "not ours").unwrap();
    fs::remove_dir_all(root.path().join(FOLDER)).unwrap();
    assert_eq!(end(root.path()).unwrap(), None);
    symlink(elsewhere.path(), root.path().join(FOLDER)).unwrap();
    assert!(end(root.path()).is_err() && dir.archive_scratchpad(&id()).is_err());
    dir.bring_scratchpad_back(&id()).unwrap();
    assert!(elsewhere.path().join(NAME).exists());
}

#[test]
fn it_is_archived_by_story_and_none_is_overwritten() {
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
fn the_notes_of_a_story_that_waits_come_back_with_it() {
    let (_root, dir, pad) = ralph_dir();
    let other = StoryId::try_from("US-002").unwrap();
    fs::write(&pad, "one").unwrap();
    dir.put_scratchpad_away(&id()).unwrap();
    assert!(!pad.exists());
    dir.bring_scratchpad_back(&other).unwrap();
    assert!(!pad.exists());
    dir.bring_scratchpad_back(&id()).unwrap();
    assert_eq!(fs::read_to_string(&pad).unwrap(), "one");
    dir.put_scratchpad_away(&id()).unwrap();
    fs::write(&pad, "newer").unwrap();
    dir.bring_scratchpad_back(&id()).unwrap();
    assert_eq!(fs::read_to_string(&pad).unwrap(), "newer");
}
