use super::*;
use std::os::unix::fs::symlink;

fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

#[test]
fn keeps_the_mode_and_leaves_nothing_else_behind() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("PRD.json");
    for mode in [0o600, 0o640, 0o664, 0o755] {
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        replace(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, mode, "{mode:o}");
    }
    assert_eq!(names_in(folder.path()), ["PRD.json"]);
}

#[test]
fn a_new_file_can_be_read_by_others() {
    let folder = tempfile::tempdir().unwrap();
    let (ours, plain) = (folder.path().join("ours"), folder.path().join("plain"));
    replace(&ours, b"new").unwrap();
    File::create(&plain).unwrap();
    let umasked = fs::metadata(&plain).unwrap().mode() & 0o777 & NEW_FILE_MODE;
    assert_eq!(fs::metadata(&ours).unwrap().mode() & 0o777, umasked);
}

#[test]
fn a_written_version_is_recognized_by_its_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("PRD.json");
    let written = replace(&path, b"new").unwrap().unwrap();
    assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), written.modified().unwrap());
    let file = File::options().write(true).open(&path).unwrap();
    let own_time = set_own_time(&file);
    assert!(as_written(&file, own_time, 3).is_some());
    assert!(as_written(&file, own_time, 4).is_none());
    assert!(as_written(&file, None, 3).is_none());
    // Any later write sets another time.
    file.set_modified(own_time.unwrap() - std::time::Duration::from_millis(1)).unwrap();
    assert!(as_written(&file, own_time, 3).is_none());
}

#[test]
fn writes_through_a_chain_of_relative_links() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("real")).unwrap();
    let real = folder.path().join("real/backlog.json");
    fs::write(&real, "old").unwrap();
    symlink("real/backlog.json", folder.path().join("middle")).unwrap();
    symlink("middle", folder.path().join("PRD.json")).unwrap();
    replace(&folder.path().join("PRD.json"), b"new").unwrap();
    assert_eq!(fs::read(&real).unwrap(), b"new");
    assert_eq!(fs::read_link(folder.path().join("PRD.json")).unwrap(), Path::new("middle"));
    assert_eq!(names_in(&folder.path().join("real")), ["backlog.json"]);
    assert_eq!(names_in(folder.path()), ["PRD.json", "middle", "real"]);
}

#[test]
fn refuses_a_dangling_link_and_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let dangling = folder.path().join("PRD.json");
    symlink("nowhere", &dangling).unwrap();
    assert_eq!(replace(&dangling, b"").unwrap_err().kind(), io::ErrorKind::NotFound);
    assert!(fs::symlink_metadata(&dangling).unwrap().is_symlink());
    let error = replace(folder.path(), b"").unwrap_err();
    assert_eq!(error.to_string(), "not a regular file");
    assert_eq!(names_in(folder.path()), ["PRD.json"]);
}

#[test]
fn a_published_file_is_private_and_replaces_a_link() {
    let folder = tempfile::tempdir().unwrap();
    let (path, other) = (folder.path().join("status.json"), folder.path().join("other"));
    fs::write(&other, "mine").unwrap();
    symlink("other", &path).unwrap();
    for text in ["{}", "{ }"] {
        publish(&path, text.as_bytes()).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
        assert_eq!(fs::symlink_metadata(&path).unwrap().mode() & 0o7777, 0o600);
    }
    assert_eq!(fs::read_to_string(&other).unwrap(), "mine");
    assert_eq!(names_in(folder.path()), ["other", "status.json"]);
}

#[test]
fn a_reader_never_sees_half_of_a_published_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("status.json");
    let page = |number: u8| vec![b'a' + number % 26; 100_000 + usize::from(number)];
    publish(&path, &page(0)).unwrap();
    let writing = std::thread::spawn({
        let path = path.clone();
        move || (1..=200).for_each(|number| publish(&path, &page(number)).unwrap())
    });
    let mut reads = 0;
    while !writing.is_finished() || reads == 0 {
        let text = fs::read(&path).unwrap();
        let number = u8::try_from(text.len() - 100_000).unwrap();
        assert!(text == page(number), "mixed or cut");
        reads += 1;
    }
    writing.join().unwrap();
}

#[test]
fn removes_leftovers_of_this_file_by_their_exact_name() {
    let folder = tempfile::tempdir().unwrap();
    let gone = [".PRD.json.ralph-a1B2c3.tmp", ".PRD.json.ralph-zzzzzz.tmp"];
    let stay = [
        ".PRD.json.ralph-a1B2c.tmp",
        ".PRD.json.ralph-a1-2c3.tmp",
        ".PRD.json.ralph-a1B2c3.tmp2",
        ".other.json.ralph-a1B2c3.tmp",
        "PRD.json",
        "x.PRD.json.ralph-a1B2c3.tmp",
    ];
    for name in gone.iter().chain(&stay) {
        fs::write(folder.path().join(name), "").unwrap();
    }
    fs::create_dir(folder.path().join(".PRD.json.ralph-folder.tmp")).unwrap();
    remove_leftovers(&folder.path().join("PRD.json")).unwrap();
    let mut left = vec![".PRD.json.ralph-folder.tmp"];
    left.extend(stay);
    left.sort_unstable();
    assert_eq!(names_in(folder.path()), left);
}

#[test]
fn free_space_is_known_for_an_existing_path() {
    let folder = tempfile::tempdir().unwrap();
    assert!(free_space(folder.path()).is_some_and(|bytes| bytes > 0));
    assert_eq!(free_space(&folder.path().join("nothing")), None);
    // A file system without blocks has no room to run out of.
    #[cfg(target_os = "linux")]
    assert_eq!(free_space(Path::new("/proc")), None);
}

#[test]
fn a_file_that_exists_is_not_opened() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    ensure_private(&path).unwrap();
    let mode = || path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(), 0o600);
    fs::write(&path, "kept").unwrap();
    ensure_private(&path).unwrap();
    assert_eq!((fs::read_to_string(&path).unwrap().as_str(), mode()), ("kept", 0o600));
    // A socket cannot be opened, so this shows that it is not tried.
    let socket = folder.path().join("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    ensure_private(&socket).unwrap();
}

#[test]
fn what_has_a_name_elsewhere_too_is_not_written_into() {
    let folder = tempfile::tempdir().unwrap();
    let (theirs, own) = (folder.path().join("theirs"), folder.path().join("own"));
    for open in [keep_private, append_private] {
        fs::write(&theirs, "theirs").unwrap();
        fs::set_permissions(&theirs, Permissions::from_mode(0o644)).unwrap();
        let _ = fs::remove_file(&own);
        fs::hard_link(&theirs, &own).unwrap();
        open(&own).unwrap().write_all(b"ours!!").unwrap();
        assert_eq!(fs::read(&theirs).unwrap(), b"theirs");
        assert_eq!(theirs.metadata().unwrap().mode() & 0o777, 0o644);
        assert!(fs::read(&own).unwrap().ends_with(b"ours!!"));
    }
    assert_eq!(names_in(folder.path()), ["own", "theirs"]);
}
