//! Held files, changed in every way and put back.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};

use crate::model::Violation;
use crate::workspace::Guard;

use super::guard::{AGENT_SETTINGS, SETUP, armed, guarded, repair};
use super::sandbox::Sandbox;

/// What an agent does to the git folder, and what is told of it.
#[test]
fn configuration_and_hooks_are_repaired_and_the_other_version_is_kept() {
    type Act = fn(&Sandbox);
    let table: [(&str, Act, &[&str]); 20] = [
        ("nothing", |_| {}, &[]),
        (
            "a commit and a branch are no setup",
            |s| _ = s.write("a", "a1\n").git(["commit", "-qam", "x"]),
            &[],
        ),
        ("a setting", |s| _ = s.git(["config", "core.fsmonitor", "evil"]), &[".git/config"]),
        (
            "a hook",
            |s| _ = s.write(".git/hooks/post-commit", "evil\n"),
            &[".git/hooks/post-commit"],
        ),
        (
            "a setting of this work tree",
            |s| _ = s.write(".git/config.worktree", "[core]\n\tfsmonitor = evil\n"),
            &[".git/config.worktree"],
        ),
        (
            "a hook that runs no more",
            |s| {
                let mode = fs::Permissions::from_mode(0o644);
                fs::set_permissions(s.path(".git/hooks/pre-push"), mode).unwrap();
            },
            &[".git/hooks/pre-push"],
        ),
        (
            "a hook too large to hold",
            |s| {
                let hook = fs::File::create(s.path(".git/hooks/post-merge")).unwrap();
                hook.set_len((16 << 20) + 1).unwrap();
            },
            &[".git/hooks/post-merge"],
        ),
        (
            "the user's own, which grew too large to hold",
            |s| {
                let hook = fs::File::options().write(true).open(s.path(".git/hooks/pre-push"));
                hook.unwrap().set_len((16 << 20) + 1).unwrap();
            },
            &[".git/hooks/pre-push"],
        ),
        ("an example of one", |s| _ = s.write(".git/hooks/x.sample", "x"), &[]),
        (
            "a hook of the user's",
            |s| _ = s.write(".git/hooks/pre-push", ""),
            &[".git/hooks/pre-push"],
        ),
        (
            "rules",
            |s| {
                s.write(".git/info/attributes", "* filter=evil\n").write(".git/info/exclude", "b");
            },
            &[".git/info/attributes", ".git/info/exclude"],
        ),
        (
            "links in their places",
            |s| {
                fs::remove_dir_all(s.path(".git/hooks")).unwrap();
                symlink(s.beside("evil"), s.path(".git/hooks")).unwrap();
                fs::remove_file(s.path(".git/config")).unwrap();
                symlink(s.beside("evil"), s.path(".git/config")).unwrap();
                symlink(s.beside("evil"), s.path(".git/info/grafts")).unwrap();
            },
            &[".git/config", ".git/hooks", ".git/hooks/pre-push", ".git/info/grafts"],
        ),
        (
            "a folder in its place",
            |s| {
                fs::remove_file(s.path(".git/hooks/pre-push")).unwrap();
                s.write(".git/hooks/pre-push/x", "x");
            },
            &[".git/hooks/pre-push", ".git/hooks/pre-push/x"],
        ),
        (
            "objects from elsewhere",
            |s| _ = s.write(".git/objects/info/alternates", "/tmp/evil\n"),
            &[".git/objects/info/alternates"],
        ),
        (
            "an agent's settings and hooks",
            |s| {
                s.write(".agent/settings.json", "{\"key\": \"mine\"}")
                    .write(".agent/hooks/new", "evil");
            },
            &[".agent/hooks/new", ".agent/settings.json"],
        ),
        ("deleted settings", |s| _ = s.delete(".agent"), &[".agent/settings.json"]),
        (
            "a link in place of their folder",
            |s| {
                fs::rename(s.path(".agent"), s.beside("away")).unwrap();
                symlink(s.beside("away"), s.path(".agent")).unwrap();
            },
            &[".agent", ".agent/settings.json"],
        ),
        (
            "a pipe in the place of a setting",
            |s| {
                s.delete(".agent/settings.json").fifo(".agent/settings.json");
            },
            &[".agent/settings.json"],
        ),
        (
            "a name that is not text",
            |s| {
                let name = OsStr::from_bytes(b"\xff");
                fs::write(s.path(".agent").join(name), "evil").unwrap();
            },
            &[".agent/\u{fffd}"],
        ),
        (
            "too many files",
            |s| {
                for number in 0..2001 {
                    s.write(format!(".agent/many/{number}"), "");
                }
            },
            &[".agent", ".agent/settings.json"],
        ),
    ];
    for (case, act, expected) in table {
        let sandbox = Sandbox::new();
        sandbox.write(".git/hooks/pre-push", "#!/bin/sh\nmine\n");
        let mode = fs::Permissions::from_mode(0o755);
        fs::set_permissions(sandbox.path(".git/hooks/pre-push"), mode).unwrap();
        sandbox.write(".agent/settings.json", "{}");
        let tree = sandbox.open();
        let guard = armed(&sandbox, &tree);
        act(&sandbox);
        let names: Vec<String> = [SETUP, AGENT_SETTINGS]
            .iter()
            .filter_map(|part| match guard.check(&tree, *part).unwrap() {
                Some(Violation::Held { paths, .. }) => Some(paths),
                _ => None,
            })
            .flatten()
            .collect();
        assert_eq!(names, expected, "{case}");
        let is_there = |name: &&String| fs::symlink_metadata(sandbox.path(name)).is_ok();
        let new: Vec<&String> = names.iter().filter(is_there).collect();
        // As the next process does it.
        let base = tree.base().unwrap();
        let guard = Guard::recovered(&tree, guarded(&base), guard.stored());
        repair(&guard, &tree, &[SETUP, AGENT_SETTINGS]);
        assert_eq!(repair(&guard, &tree, &[SETUP, AGENT_SETTINGS]), [], "{case}");
        assert_eq!(sandbox.read(".agent/settings.json"), "{}", "{case}");
        let kept = tree.changed_by("attempt");
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
    let guard = armed(&sandbox, &tree);
    for text in ["first\n", "second\n"] {
        sandbox.write(".git/hooks/post-commit", text);
        assert_eq!(repair(&guard, &tree, &[SETUP]).len(), 1);
    }
    let kept = tree.changed_by("attempt").join(".git/hooks");
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
    let guard = armed(&sandbox, &tree);
    hook.set_len((16 << 20) + 2).unwrap();
    assert_eq!(repair(&guard, &tree, &[SETUP]).len(), 1, "it is told");
    assert_eq!(sandbox.path(".git/hooks/pre-push").metadata().unwrap().len(), (16 << 20) + 2);
}

#[test]
fn a_package_managers_folder_is_no_part_of_an_agents_settings() {
    let repo = Sandbox::new();
    for number in 0..2_100 {
        repo.write(format!(".agent/node_modules/{number}"), "x\n");
    }
    repo.write(".agent/plugin.js", "mine\n");
    let tree = repo.open();
    let guard = armed(&repo, &tree);
    repo.delete(".agent/node_modules").write(".agent/plugin.js", "evil\n");
    let found = repair(&guard, &tree, &[AGENT_SETTINGS]);
    assert!(
        matches!(&found[..], [Violation::Held { paths, .. }] if paths == &[".agent/plugin.js"]),
        "{found:?}"
    );
    assert_eq!(repo.read(".agent/plugin.js"), "mine\n");
}
