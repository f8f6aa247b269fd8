use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::Command;

use super::*;

/// A folder, and a file outside of it that must stay as it is.
struct Scene {
    outer: tempfile::TempDir,
    dir: Dir,
}

impl Scene {
    fn new() -> Self {
        let outer = tempfile::tempdir().unwrap();
        fs::create_dir(outer.path().join("root")).unwrap();
        fs::create_dir(outer.path().join("elsewhere")).unwrap();
        fs::write(outer.path().join("elsewhere/file"), "theirs").unwrap();
        let dir = Dir::open(&outer.path().join("root")).unwrap();
        Self { outer, dir }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.outer.path().join("root").join(name)
    }

    fn outside(&self) -> PathBuf {
        self.outer.path().join("elsewhere/file")
    }

    fn is_untouched(&self, case: &str) {
        assert_eq!(fs::read_to_string(self.outside()).unwrap(), "theirs", "{case}");
        let names = fs::read_dir(self.outer.path().join("elsewhere")).unwrap();
        assert_eq!(names.count(), 1, "{case}");
    }
}

#[test]
fn a_new_file_replaces_whatever_is_in_its_place() {
    type Plant = fn(&Scene);
    let cases: [(&str, Plant); 6] = [
        ("nothing", |_| ()),
        ("a file", |scene| fs::write(scene.at("log"), "old").unwrap()),
        ("a link", |scene| symlink(scene.outside(), scene.at("log")).unwrap()),
        ("a dangling link", |scene| {
            symlink(scene.outside().with_file_name("new"), scene.at("log")).unwrap();
        }),
        ("a hard link", |scene| fs::hard_link(scene.outside(), scene.at("log")).unwrap()),
        ("a pipe", |scene| {
            assert!(Command::new("mkfifo").arg(scene.at("log")).status().unwrap().success());
        }),
    ];
    for (case, plant) in cases {
        let scene = Scene::new();
        plant(&scene);
        let mut file = scene.dir.create(Path::new("log")).unwrap();
        file.write_all(b"ours").unwrap();
        assert_eq!(fs::read_to_string(scene.at("log")).unwrap(), "ours", "{case}");
        assert_eq!(fs::symlink_metadata(scene.at("log")).unwrap().permissions().mode(), 0o100_600);
        scene.is_untouched(case);

        let scene = Scene::new();
        plant(&scene);
        scene.dir.publish(Path::new("log"), b"ours").unwrap();
        assert_eq!(fs::read_to_string(scene.at("log")).unwrap(), "ours", "{case}");
        assert_eq!(fs::read_dir(scene.at("")).unwrap().count(), 1, "{case}");
        scene.is_untouched(case);
    }
    let scene = Scene::new();
    fs::create_dir(scene.at("log")).unwrap();
    assert!(scene.dir.create(Path::new("log")).is_err());
}

#[test]
fn nothing_is_made_moved_or_removed_through_a_link() {
    let scene = Scene::new();
    symlink(scene.outside().parent().unwrap(), scene.at("folder")).unwrap();
    fs::write(scene.at("own"), "own").unwrap();
    let (own, through) = (Path::new("own"), Path::new("folder/file"));
    let kind = |error: io::Error| error.kind();
    let refused = Some(io::ErrorKind::NotADirectory);
    assert_eq!(scene.dir.make_dir(Path::new("folder/new")).err().map(kind), refused);
    assert_eq!(scene.dir.make_dir(Path::new("folder")).err().map(kind), refused);
    assert!(scene.dir.create(through).is_err());
    assert_eq!(scene.dir.remove(through).err().map(kind), refused);
    assert_eq!(scene.dir.rename(own, &scene.dir, through).err().map(kind), refused);
    assert_eq!(scene.dir.rename(through, &scene.dir, own).err().map(kind), refused);
    assert_eq!(scene.dir.kind(through), FileKind::Nothing);
    assert_eq!(scene.dir.kind(Path::new("folder")), FileKind::Link);
    assert_eq!(scene.dir.kind(own), FileKind::File);
    scene.is_untouched("links");
    scene.dir.remove(Path::new("folder")).unwrap();
    assert_eq!(scene.dir.kind(Path::new("folder")), FileKind::Nothing);
    scene.is_untouched("the link itself is removed");
}

#[test]
fn folders_are_private_even_those_that_were_not() {
    let scene = Scene::new();
    fs::create_dir(scene.at("open")).unwrap();
    fs::set_permissions(scene.at("open"), fs::Permissions::from_mode(0o755)).unwrap();
    let inner = scene.dir.make_dir(Path::new("open/inner")).unwrap();
    inner.create(Path::new("file")).unwrap();
    for name in ["open", "open/inner"] {
        assert_eq!(scene.at(name).metadata().unwrap().permissions().mode() & 0o777, 0o700);
    }
    assert_eq!(scene.dir.kind(Path::new("open/inner/file")), FileKind::File);
    assert_eq!(scene.dir.kind(Path::new("open")), FileKind::Folder);
}
