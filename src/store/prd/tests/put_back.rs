//! Something else in the file's place.

use std::path::PathBuf;

use super::*;

struct Scene {
    folder: tempfile::TempDir,
    tracked: TrackedPrd,
}

impl Scene {
    fn new(is_link: bool) -> Self {
        let (folder, file) = folder_with(SMALL.as_bytes());
        let path = file.path().to_owned();
        if is_link {
            let real = folder.path().join("real");
            fs::create_dir(&real).unwrap();
            fs::rename(&path, real.join("plan.json")).unwrap();
            symlink("real/plan.json", &path).unwrap();
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let (tracked, _) = TrackedPrd::open(file).unwrap();
        fs::write(folder.path().join("foreign"), SMALL).unwrap();
        Self { folder, tracked }
    }

    fn path(&self) -> PathBuf {
        self.tracked.path().to_owned()
    }

    /// What is there must be noticed; returns where it is kept.
    fn put_back(&mut self, case: &str) -> Option<PathBuf> {
        assert!(matches!(self.tracked.look(), PrdLook::Broken(_)), "{case}");
        let keep = self.folder.path().join("kept");
        let (text, _) = self.tracked.with_marks(&[], |_| (false, false)).unwrap();
        let kept = self.tracked.put_back(text, &keep).unwrap();
        assert_eq!(fs::read_to_string(self.path()).unwrap(), SMALL, "{case}");
        let mode = fs::metadata(self.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o640, "{case}");
        let foreign = fs::read_to_string(self.folder.path().join("foreign")).unwrap();
        assert_eq!(foreign, SMALL, "{case}");
        assert!(matches!(self.tracked.look(), PrdLook::Known | PrdLook::Unchanged), "{case}");
        kept
    }
}

type Change = fn(&Path);

fn pipe(path: &Path) {
    fs::remove_file(path).unwrap();
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mkfifoat(rustix::fs::CWD, path, mode).unwrap();
}

fn folder(path: &Path) {
    fs::remove_file(path).unwrap();
    fs::create_dir(path).unwrap();
    fs::write(path.join("a"), "a").unwrap();
}

fn huge(path: &Path) {
    fs::OpenOptions::new().write(true).open(path).unwrap().set_len(10 << 30).unwrap();
}

fn linked(path: &Path) {
    fs::remove_file(path).unwrap();
    let up = if path.ends_with("plan.json") { "../foreign" } else { "foreign" };
    symlink(up, path).unwrap();
}

fn dangling(path: &Path) {
    fs::remove_file(path).unwrap();
    symlink("nothing", path).unwrap();
}

#[test]
fn whatever_is_there_instead_is_kept_and_the_text_is_back() {
    let changes: [(&str, Change, bool); 7] = [
        ("broken", |path| fs::write(path, "{").unwrap(), true),
        ("gone", |path| fs::remove_file(path).unwrap(), false),
        ("folder", folder, true),
        ("pipe", pipe, true),
        ("huge", huge, true),
        ("link", linked, true),
        ("dangling", dangling, true),
    ];
    for (case, change, is_kept) in changes {
        let mut scene = Scene::new(false);
        change(&scene.path());
        assert_eq!(scene.put_back(case).is_some(), is_kept, "{case}");
        assert!(!scene.path().is_symlink(), "{case}");
    }
}

#[test]
fn a_backlog_behind_a_link_stays_there() {
    let at_target: [(&str, Change); 4] = [
        ("gone", |path| fs::remove_file(path).unwrap()),
        ("pipe", pipe),
        ("link", linked),
        ("dangling", dangling),
    ];
    for (case, change) in at_target {
        let mut scene = Scene::new(true);
        let target = scene.folder.path().join("real/plan.json");
        change(&target);
        scene.put_back(case);
        assert!(scene.path().is_symlink() && !target.is_symlink(), "{case}");
    }
    for (case, change) in [
        ("other link", linked as Change),
        ("file", |path| {
            fs::remove_file(path).unwrap();
            fs::write(path, SMALL.replace('t', "u")).unwrap();
        }),
    ] {
        let mut scene = Scene::new(true);
        change(&scene.path());
        scene.put_back(case);
        assert_eq!(scene.path().read_link().unwrap(), PathBuf::from("real/plan.json"), "{case}");
    }
}

#[test]
fn each_version_is_kept() {
    let mut scene = Scene::new(false);
    for (text, name) in [("1", "kept"), ("2", "kept-2"), ("3", "kept-3")] {
        fs::write(scene.path(), text).unwrap();
        let kept = scene.put_back(text).unwrap();
        assert_eq!(kept, scene.folder.path().join(name));
        assert_eq!(fs::read_to_string(kept).unwrap(), text);
    }
}
