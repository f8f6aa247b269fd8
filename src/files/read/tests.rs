use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::process::Command;

use super::*;

/// Everything that can be in a file's place, in a folder of its own.
fn impostors() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::create_dir(path("folder")).unwrap();
    assert!(Command::new("mkfifo").arg(path("pipe")).status().unwrap().success());
    UnixListener::bind(path("socket")).unwrap();
    symlink("/dev/zero", path("device")).unwrap();
    symlink("pipe", path("link")).unwrap();
    File::create(path("large")).unwrap().set_len(10 << 30).unwrap();
    fs::write(path("no text"), [b'a', 0xff]).unwrap();
    fs::write(path("file"), "text").unwrap();
    symlink("file", path("to a file")).unwrap();
    folder
}

#[test]
fn only_a_regular_file_of_the_right_size_is_read() {
    let folder = impostors();
    for (name, expected) in [
        ("folder", Err("it is a folder instead of a file")),
        ("pipe", Err("it is a pipe instead of a file")),
        ("socket", Err("it is a socket instead of a file")),
        ("device", Err("it is a device instead of a file")),
        ("link", Err("it is a pipe instead of a file")),
        ("large", Err("it is larger than 1 MB")),
        ("no text", Err("it is not valid UTF-8")),
        ("file", Ok("text")),
        ("to a file", Ok("text")),
    ] {
        let found = read_text(&folder.path().join(name), 1 << 20);
        let found = found.map_err(|error| error.to_string());
        assert_eq!(found.as_deref().map_err(String::as_str), expected, "{name}");
    }
}

#[test]
fn what_becomes_a_pipe_after_the_check_blocks_nobody() {
    let folder = impostors();
    let pipe = open_without_waiting(&folder.path().join("pipe")).unwrap();
    assert!(matches!(require_file(pipe.metadata().unwrap()), Err(ReadError::NotAFile("pipe"))));
}

#[test]
fn a_limit_is_kept_to_the_byte() {
    let folder = impostors();
    let path = folder.path().join("file");
    assert_eq!(read(&path, 4).unwrap(), b"text");
    assert!(matches!(read(&path, 3), Err(ReadError::TooLarge { limit: 3 })));
    // Its size is 0 and its content has no end.
    let zeros = File::open("/dev/zero").unwrap();
    let empty = File::create(folder.path().join("empty")).unwrap().metadata().unwrap();
    assert!(matches!(read_from(&zeros, &empty, 10), Err(ReadError::TooLarge { limit: 10 })));
}
