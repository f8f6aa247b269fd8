use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use super::*;

#[test]
fn nothing_is_found_through_a_link_or_outside() {
    let outer = tempfile::tempdir().unwrap();
    fs::write(outer.path().join("secret"), "secret").unwrap();
    let root = outer.path().join("root");
    fs::create_dir_all(root.join("deep/er")).unwrap();
    fs::write(root.join("deep/er/file"), "text").unwrap();
    symlink(outer.path().join("secret"), root.join("link")).unwrap();
    symlink("deep", root.join("folder")).unwrap();
    assert!(Command::new("mkfifo").arg(root.join("pipe")).status().unwrap().success());
    let dir = Dir::open(&root).unwrap();
    for (name, expected) in [
        ("deep/er/file", Ok("text")),
        ("deep/file", Err(Errno::NOENT)),
        ("folder/er/file", Err(Errno::LOOP)),
        ("link", Err(Errno::LOOP)),
    ] {
        // A link in a folder's place has another number without `openat2`.
        let same = |error| if error == Errno::NOTDIR { Errno::LOOP } else { error };
        let name = Path::new(name);
        let by_parts = open_by_parts(&dir.0, name, READ, Mode::empty());
        for found in [dir.open_below(name, READ, Mode::empty()), by_parts] {
            let found = found.map_err(same);
            let found = found.map(|file| io::read_to_string(File::from(file)).unwrap());
            assert_eq!(found.as_deref().map_err(|error| *error), expected, "{}", name.display());
        }
    }
    for outside in ["../secret", "deep/../../secret", "/etc/passwd"] {
        let found = dir.open_below(Path::new(outside), READ, Mode::empty());
        assert_eq!(found.unwrap_err(), Errno::XDEV, "{outside}");
    }
    assert!(matches!(dir.open_file(Path::new("link")), Err(ReadError::NotAFile("link"))));
    assert!(matches!(dir.open_file(Path::new("pipe")), Err(ReadError::NotAFile("pipe"))));
    assert!(matches!(dir.open_file(Path::new("deep")), Err(ReadError::Folder)));
    assert_eq!(dir.dir(Path::new("folder")).unwrap_err().kind(), io::ErrorKind::NotADirectory);
    let deep = dir.dir(Path::new("deep")).unwrap();
    assert_eq!(deep.read(Path::new("er/file"), 4).unwrap(), b"text");
}

#[test]
fn a_held_folder_stays_the_same_when_its_path_becomes_a_link() {
    let root = tempfile::tempdir().unwrap();
    let (inside, outside) = (root.path().join("inside"), root.path().join("outside"));
    fs::create_dir(&inside).unwrap();
    fs::create_dir(&outside).unwrap();
    fs::write(inside.join("file"), "inside").unwrap();
    fs::write(outside.join("file"), "outside").unwrap();
    let dir = Dir::open(&inside).unwrap();
    fs::rename(&inside, root.path().join("moved")).unwrap();
    symlink(&outside, &inside).unwrap();
    assert_eq!(dir.read(Path::new("file"), 100).unwrap(), b"inside");
}
