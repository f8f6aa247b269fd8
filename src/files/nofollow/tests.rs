use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;

/// A folder with `real`, `link` to it, and `outside`, which must stay as it is.
fn scene() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    for name in ["real/deep", "outside"] {
        fs::create_dir_all(root.join(name)).unwrap();
        fs::write(root.join(name).join("file"), name).unwrap();
    }
    symlink(root.join("outside"), root.join("link")).unwrap();
    symlink(root.join("outside/file"), root.join("real/to-file")).unwrap();
    (folder, root)
}

#[test]
fn nothing_is_found_or_changed_through_a_link() {
    let (_folder, root) = scene();
    let through = root.join("link/file");
    assert_eq!(look(&through).unwrap_err().kind(), io::ErrorKind::NotADirectory);
    assert!(!exists(&through) && read(&through, 100).is_err());
    assert!(list(&root.join("link")).is_err() && read_link(&through).is_err());
    assert!(remove(&through).is_err() && remove_tree(&through).is_err());
    assert!(rename(&root.join("real/deep/file"), &root.join("link/new")).is_err());
    assert!(rename(&through, &root.join("real/new")).is_err());
    assert!(create_new(&root.join("link/new"), 0o600).is_err());
    assert!(make_link(Path::new("x"), &root.join("link/new")).is_err());
    assert!(make_folders(&root.join("link/new")).is_err());
    assert!(set_mode(&through, 0o777).is_err() && set_mode(&root.join("real/to-file"), 0).is_err());
    assert!(remove_folder(&root.join("link/../outside")).is_err());
    remove_tree(&root.join("real")).unwrap();
    remove_tree(&root.join("link")).unwrap();
    remove_tree(&root.join("link")).unwrap();
    remove(&root.join("missing/file")).unwrap();
    assert_eq!(fs::read_to_string(root.join("outside/file")).unwrap(), "outside");
    assert_eq!(fs::read_dir(root.join("outside")).unwrap().count(), 1);
    assert_eq!(fs::read_dir(&root).unwrap().count(), 1);
}

#[test]
fn a_link_itself_can_be_looked_at() {
    let (_folder, root) = scene();
    let link = root.join("real/to-file");
    assert!(look(&link).unwrap().is_symlink() && exists(&link) && !is_file(&link));
    assert_eq!(read_link(&link).unwrap(), root.join("outside/file"));
    let mut found = list(&root.join("real")).unwrap();
    found.sort_by(|one, other| one.name.cmp(&other.name));
    let kinds: Vec<_> =
        found.iter().map(|entry| (entry.name.to_str().unwrap(), entry.kind)).collect();
    assert_eq!(kinds, [("deep", FileKind::Folder), ("to-file", FileKind::Link)]);
}

#[test]
fn folders_and_files_are_made_as_others_make_them() {
    let (_folder, root) = scene();
    let new = root.join("real/a/b");
    make_folders(&new).unwrap();
    make_folders(&new).unwrap();
    fs::create_dir(root.join("plain")).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode();
    assert_eq!(mode(&new), mode(&root.join("plain")));
    create_new(&new.join("file"), 0o600).unwrap();
    assert_eq!(
        create_new(&new.join("file"), 0o600).unwrap_err().kind(),
        io::ErrorKind::AlreadyExists
    );
    set_mode(&new.join("file"), 0o640).unwrap();
    assert_eq!(mode(&new.join("file")) & 0o777, 0o640);
    rename(&new.join("file"), &root.join("plain/file")).unwrap();
    assert!(is_file(&root.join("plain/file")) && is_folder(&new));
}
