//! The file on disk, and the editor on files of every style.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use crate::model::StoryId;

use super::*;

mod marks;
mod put_back;
mod styles;
mod tracked;

const SMALL: &str = r#"{"project": "p", "description": "d", "userStories": [
  {"id": "A", "title": "t", "description": "", "criteria": ["c"], "passes": false}]}"#;

fn id(text: &str) -> StoryId {
    StoryId::try_from(text).unwrap()
}

fn folder_with(bytes: &[u8]) -> (tempfile::TempDir, PrdFile) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("PRD.json");
    fs::write(&path, bytes).unwrap();
    (folder, PrdFile::new(path))
}

/// The message with the folder's changing name taken out.
fn message(folder: &Path, error: &impl ToString) -> String {
    error.to_string().replace(&format!("{}/", folder.display()), "")
}

#[test]
fn loads_marks_and_writes_back() {
    let (folder, file) = folder_with(format!("\u{feff}{SMALL}\r\n").as_bytes());
    fs::set_permissions(file.path(), fs::Permissions::from_mode(0o640)).unwrap();
    file.check_writable().unwrap();
    let loaded = file.load().unwrap();
    assert!(loaded.warnings.is_empty());
    let marked = set_mark(&loaded.text, &id("A"), Mark::Passes(true)).unwrap();
    file.write(&marked).unwrap();
    let again = file.load().unwrap();
    assert!(again.backlog.stories[0].passes);
    assert_eq!(again.text, loaded.text.replace("false", "true"));
    assert_eq!(fs::metadata(file.path()).unwrap().mode() & 0o777, 0o640);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn follows_links_anew_each_time() {
    let (folder, _) = folder_with(SMALL.as_bytes());
    let link = folder.path().join("link");
    symlink("PRD.json", folder.path().join("second")).unwrap();
    symlink("second", &link).unwrap();
    let file = PrdFile::new(&link);
    file.check_writable().unwrap();
    file.write(&SMALL.replace("\"A\"", "\"B\"")).unwrap();
    assert_eq!(file.load().unwrap().backlog.stories[0].id, id("B"));
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(fs::symlink_metadata(folder.path().join("second")).unwrap().is_symlink());
}

#[test]
fn an_error_says_what_is_wrong_and_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("x")).unwrap();
    symlink("gone", at("dangling")).unwrap();
    fs::write(at("latin"), b"{\n \"\xc3\xa4b\": \"\xe4\"").unwrap();
    fs::write(at("large"), vec![b' '; MAX_BYTES + 1]).unwrap();
    fs::write(at("empty"), "").unwrap();
    for (name, told) in [
        ("gone\u{1b}", "no file `gone\\x1b`; create one with `ralph init`"),
        ("x", "`x` is a folder; did you mean `x/PRD.json`?"),
        (
            "dangling",
            "`dangling` is a link to `gone`, which does not exist; fix or remove the link",
        ),
        ("latin", "latin:2:9: invalid UTF-8; save the file as UTF-8"),
        ("large", "`large` is larger than 8 MB; split it into several backlogs"),
        ("empty/PRD.json", "cannot read `empty/PRD.json`: Not a directory (os error 20)"),
        (
            "empty",
            "`empty` is invalid: 1 error\n\nerror: empty: the file is empty\n  = help: delete it, and create a sample with `ralph init`\n\n1 error\n",
        ),
    ] {
        let error = PrdFile::new(at(name)).load().unwrap_err();
        assert_eq!(message(folder.path(), &error), told);
    }
    let error = PrdFile::new(at("dangling")).write("x").unwrap_err();
    let told = "cannot write `dangling`: the file or its folder does not exist";
    assert_eq!(message(folder.path(), &error), told);
}

#[test]
fn a_pipe_is_refused_without_waiting_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("PRD.json");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let error = PrdFile::new(&path).load().unwrap_err();
    let told = "`PRD.json` is not a regular file";
    assert_eq!(message(folder.path(), &error), told);
    assert!(PrdFile::new(&path).check_writable().is_err());
    let socket = folder.path().join("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let error = PrdFile::new(&socket).load().unwrap_err();
    assert_eq!(message(folder.path(), &error), told.replace("PRD.json", "socket"));
    assert!(PrdFile::new(&path).write("x").is_err());
}

#[test]
fn an_error_says_what_cannot_be_written() {
    let denied = || io::Error::from(io::ErrorKind::PermissionDenied);
    let read_only = || io::Error::from(io::ErrorKind::ReadOnlyFilesystem);
    let path = Path::new("p/PRD.json");
    for (what, source, told) in [
        (
            path,
            denied(),
            "cannot write `p/PRD.json`: permission denied; check its owner and mode with `ls -ld`",
        ),
        (
            Path::new("p"),
            read_only(),
            "cannot write `p/PRD.json` because of `p`: the file system is read-only",
        ),
    ] {
        let (path, what) = (path.to_owned(), what.to_owned());
        assert_eq!(LoadError::NotWritable { path, what, source }.to_string(), told);
    }
}

#[test]
fn no_flipped_or_missing_byte_makes_a_story_pass() {
    let (_folder, file) = folder_with(SMALL.as_bytes());
    for at in 0..SMALL.len() {
        let mut spoilt = vec![SMALL.as_bytes()[..at].to_vec()];
        for bit in 0..8 {
            let mut flipped = SMALL.as_bytes().to_vec();
            flipped[at] ^= 1 << bit;
            spoilt.push(flipped);
        }
        for bytes in spoilt {
            fs::write(file.path(), &bytes).unwrap();
            match file.load() {
                Ok(loaded) => assert_eq!(loaded.backlog.done(), 0, "byte {at}: {}", loaded.text),
                Err(error) => assert!(error.to_string().contains("PRD.json"), "byte {at}: {error}"),
            }
        }
    }
}

fn changed_at(seconds: i64, nanoseconds: i64) -> Stamp {
    let times = (seconds, nanoseconds);
    Stamp { file: (1, 2), size: 3, modified: (1, 0), changed: times }
}

#[test]
fn a_young_stamp_is_not_trusted() {
    let now = UNIX_EPOCH + Duration::new(1000, 500_000_000);
    for (stamp, settled) in [
        (changed_at(1000, 400_000_000), true),
        (changed_at(1000, 490_000_000), false),
        (changed_at(1000, 500_000_001), false),
        (changed_at(2000, 1), false),
        (changed_at(999, 0), false),
        (changed_at(998, 0), true),
        (changed_at(-5, 1), true),
    ] {
        assert_eq!(stamp.is_settled(now), settled, "{stamp:?}");
    }
}

#[test]
fn no_stamp_is_trusted_by_a_clock_before_1970() {
    for now in
        [UNIX_EPOCH, UNIX_EPOCH - Duration::from_nanos(1), UNIX_EPOCH - Duration::from_hours(9)]
    {
        for seconds in [i64::MIN, -1, 0, 1, 1_800_000_000, i64::MAX] {
            assert!(!changed_at(seconds, 999_999_999).is_settled(now), "{seconds}");
        }
    }
}
