use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use super::sandbox::Sandbox;

/// What an agent does to the git folder, and what is told of it.
#[test]
fn configuration_and_hooks_are_put_back_and_the_other_version_is_kept() {
    type Act = fn(&Sandbox);
    let table: [(&str, Act, &[&str]); 13] = [
        ("nothing", |_| {}, &[]),
        (
            "a commit and a branch are no setup",
            |s| _ = s.write("a", "a1\n").git(["commit", "-qam", "x"]),
            &[],
        ),
        ("a setting", |s| _ = s.git(["config", "core.fsmonitor", "evil"]), &["config"]),
        ("a hook", |s| _ = s.write(".git/hooks/post-commit", "evil\n"), &["hooks/post-commit"]),
        (
            "a setting of this work tree",
            |s| _ = s.write(".git/config.worktree", "[core]\n\tfsmonitor = evil\n"),
            &["config.worktree"],
        ),
        (
            "a hook that runs no more",
            |s| {
                let mode = fs::Permissions::from_mode(0o644);
                fs::set_permissions(s.path(".git/hooks/pre-push"), mode).unwrap();
            },
            &["hooks/pre-push"],
        ),
        (
            "a hook too large to hold",
            |s| {
                let hook = fs::File::create(s.path(".git/hooks/post-merge")).unwrap();
                hook.set_len((16 << 20) + 1).unwrap();
            },
            &["hooks/post-merge"],
        ),
        (
            "the user's own, which grew too large to hold",
            |s| {
                let hook = fs::File::options().write(true).open(s.path(".git/hooks/pre-push"));
                hook.unwrap().set_len((16 << 20) + 1).unwrap();
            },
            &["hooks/pre-push"],
        ),
        ("an example of one", |s| _ = s.write(".git/hooks/x.sample", "x"), &[]),
        ("a hook of the user's", |s| _ = s.write(".git/hooks/pre-push", ""), &["hooks/pre-push"]),
        (
            "rules",
            |s| {
                s.write(".git/info/attributes", "* filter=evil\n").write(".git/info/exclude", "b");
            },
            &["info/attributes", "info/exclude"],
        ),
        (
            "links in their places",
            |s| {
                fs::remove_dir_all(s.path(".git/hooks")).unwrap();
                symlink(s.beside("evil"), s.path(".git/hooks")).unwrap();
                fs::remove_file(s.path(".git/config")).unwrap();
                symlink(s.beside("evil"), s.path(".git/config")).unwrap();
            },
            &["config", "hooks", "hooks/pre-push"],
        ),
        (
            "a folder in its place",
            |s| {
                fs::remove_file(s.path(".git/hooks/pre-push")).unwrap();
                s.write(".git/hooks/pre-push/x", "x");
            },
            &["hooks/pre-push", "hooks/pre-push/x"],
        ),
    ];
    for (case, act, expected) in table {
        let sandbox = Sandbox::new();
        sandbox.write(".git/hooks/pre-push", "#!/bin/sh\nmine\n");
        let mode = fs::Permissions::from_mode(0o755);
        fs::set_permissions(sandbox.path(".git/hooks/pre-push"), mode).unwrap();
        let tree = sandbox.open();
        let before = tree.hold_setup().unwrap();
        act(&sandbox);
        let names = before.differences(&tree.setup().unwrap());
        assert_eq!(names, expected, "{case}");
        let is_there =
            |name: &&String| fs::symlink_metadata(sandbox.path(".git").join(name)).is_ok();
        let new: Vec<&String> = names.iter().filter(is_there).collect();
        tree.put_back_setup(&tree.held_setup().unwrap(), &names, "attempt").unwrap();
        assert_eq!(tree.setup().unwrap(), before, "{case}");
        let kept = tree.changed_setup("attempt");
        for name in new {
            assert!(fs::symlink_metadata(kept.join(name)).is_ok(), "{case}: {name}");
        }
        assert!(!sandbox.beside("evil").exists(), "{case}");
    }
}

/// A repair that was cut off is made again, and by then there may be another version.
#[test]
fn each_version_of_one_attempt_is_kept() {
    let sandbox = Sandbox::new();
    let tree = sandbox.open();
    let before = tree.hold_setup().unwrap();
    for text in ["first\n", "second\n"] {
        sandbox.write(".git/hooks/post-commit", text);
        let names = before.differences(&tree.setup().unwrap());
        tree.put_back_setup(&before, &names, "attempt").unwrap();
    }
    let kept = tree.changed_setup("attempt").join("hooks");
    let read = |name: &str| fs::read_to_string(kept.join(name)).unwrap();
    assert_eq!((read("post-commit"), read("post-commit.1")), ("first\n".into(), "second\n".into()));
}

/// Its bytes are not known, so that they cannot come back; nothing else is put in its place.
#[test]
fn a_hook_that_was_too_large_to_hold_stays_as_it_is() {
    let sandbox = Sandbox::new();
    sandbox.write(".git/hooks/pre-push", "x");
    let hook = fs::File::options().write(true).open(sandbox.path(".git/hooks/pre-push")).unwrap();
    hook.set_len((16 << 20) + 1).unwrap();
    let tree = sandbox.open();
    let before = tree.hold_setup().unwrap();
    hook.set_len((16 << 20) + 2).unwrap();
    let names = before.differences(&tree.setup().unwrap());
    assert_eq!(names, ["hooks/pre-push"], "it is told");
    tree.put_back_setup(&before, &names, "attempt").unwrap();
    assert_eq!(sandbox.path(".git/hooks/pre-push").metadata().unwrap().len(), (16 << 20) + 2);
}
