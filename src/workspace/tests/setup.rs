use std::fs;
use std::os::unix::fs::symlink;

use super::sandbox::Sandbox;

/// What an agent does to the git folder, and what is told of it.
#[test]
fn configuration_and_hooks_are_put_back_and_the_other_version_is_kept() {
    type Act = fn(&Sandbox);
    let table: [(&str, Act, &[&str]); 9] = [
        ("nothing", |_| {}, &[]),
        (
            "a commit and a branch are no setup",
            |s| _ = s.write("a", "a1\n").git(["commit", "-qam", "x"]),
            &[],
        ),
        ("a setting", |s| _ = s.git(["config", "core.fsmonitor", "evil"]), &["config"]),
        ("a hook", |s| _ = s.write(".git/hooks/post-commit", "evil\n"), &["hooks/post-commit"]),
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
