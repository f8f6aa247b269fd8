use super::*;
use std::fs;
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
    files.prompt.write("secret").unwrap();
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&files.prompt.path), 0o600);
    assert_eq!(mode(files.prompt.path.parent().unwrap()), 0o700);
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

/// Every folder and file that ralph writes is a link to something of the human's.
#[test]
fn nothing_is_written_through_planted_links() {
    let places = [
        ".ralph",
        ".ralph/.gitignore",
        ".ralph/runs",
        ".ralph/runs/r",
        ".ralph/runs/r/0001-US-001.prompt.md",
        ".ralph/runs/r/0001-US-001.log",
        ".ralph/runs/r/0001-US-001.stderr",
        ".ralph/runs/r/0001-US-001.gates.log",
        ".ralph/status.json",
        ".ralph/.status.json.tmp",
        ".ralph/scratchpads",
    ];
    for place in places {
        for name in ["", "file", "missing"] {
            let (root, dir, _) = ralph_dir();
            let theirs = tempfile::tempdir().unwrap();
            fs::write(theirs.path().join("file"), "theirs").unwrap();
            let place = root.path().join(place);
            fs::create_dir_all(place.parent().unwrap()).unwrap();
            let _ = fs::remove_file(&place);
            let _ = fs::remove_dir_all(&place);
            symlink(theirs.path().join(name), &place).unwrap();
            let case = format!("{} -> {name}", place.display());

            let files = dir.iteration("r", 1, &id()).unwrap();
            files.prompt.write("ours").unwrap();
            files.output.unwrap().write_all(b"ours").unwrap();
            files.errors.unwrap().write_all(b"ours").unwrap();
            dir.gates("r", 1, Some(&id())).unwrap().unwrap().write_all(b"ours").unwrap();
            dir.put("status.json", b"ours").unwrap();
            fs::write(root.path().join(".ralph/scratchpad.md"), "ours").unwrap();
            dir.archive_scratchpad(&id()).unwrap();

            assert_eq!(fs::read_to_string(theirs.path().join("file")).unwrap(), "theirs", "{case}");
            assert_eq!(fs::read_dir(theirs.path()).unwrap().count(), 1, "{case}");
            let text =
                |name: &str| fs::read_to_string(root.path().join(".ralph").join(name)).unwrap();
            for name in ["runs/r/0001-US-001.gates.log", "status.json", "scratchpads/US-001.md"] {
                assert_eq!(text(name), "ours", "{case}");
            }
            assert_eq!(text(".gitignore"), "*\n", "{case}");
            assert_eq!(fs::read_to_string(files.prompt.path).unwrap(), "ours", "{case}");
        }
    }
}

#[test]
fn what_is_in_the_place_of_a_folder_is_kept() {
    let (root, dir, _) = ralph_dir();
    for (name, kept) in [("runs", "replaced"), ("runs/r", "replaced-2")] {
        let place = root.path().join(".ralph").join(name);
        let _ = fs::remove_dir_all(&place);
        fs::write(&place, "work").unwrap();
        dir.iteration("r", 1, &id()).unwrap();
        assert_eq!(fs::read_to_string(root.path().join(".ralph").join(kept)).unwrap(), "work");
    }
    let folder = root.path().join(".ralph");
    fs::rename(&folder, root.path().join("away")).unwrap();
    fs::write(&folder, "work").unwrap();
    dir.put("status.json", b"{}").unwrap();
    assert_eq!(fs::read_to_string(folder.join("replaced")).unwrap(), "work");
    let names = fs::read_dir(root.path()).unwrap().count();
    assert_eq!(names, 2, "nothing of it stays in the work tree");
}
