//! Everything that an attempt must leave alone, changed by one and repaired.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use crate::model::{Base, Violation};
use crate::workspace::{Guard, GuardPart, GuardedAttempt, Keeping, WorkTree};

use super::sandbox::{Sandbox, story};

fn attempt(repo: &Sandbox, base: &Base, before: &Base) -> GuardedAttempt {
    GuardedAttempt {
        attempt: "attempt".into(),
        story: story("S"),
        iteration: 1,
        base: base.clone(),
        before: before.clone(),
        snapshot: Some("refs/ralph/snapshots/1/1".into()),
        number: 1,
        spare: repo.beside("spare"),
    }
}

/// With a hook, a stash, uncommitted files and instructions of the user's.
fn users(repo: &Sandbox) {
    repo.write("PROMPT.md", "- [ ] TASK_COMPLETE\n").commit_all("instructions");
    repo.write(".git/hooks/pre-push", "mine\n").write("a", "stashed\n").git(["stash", "-q"]);
    repo.write("b", "edited\n").write("mine", "untracked\n");
}

fn armed(repo: &Sandbox, tree: &WorkTree) -> Guard {
    let base = tree.base().unwrap();
    Guard::arm(tree, attempt(repo, &base, &base), Some(&repo.path("PROMPT.md"))).unwrap()
}

/// Part by part.
fn repair(guard: &Guard, tree: &WorkTree, parts: &[GuardPart]) -> Vec<Violation> {
    let mut found = Vec::new();
    for held in parts {
        let Some(violation) = guard.check(tree, *held).unwrap() else { continue };
        guard.repair(tree, &violation).unwrap();
        found.push(violation);
    }
    found
}

#[test]
fn an_attempt_that_only_works_violates_nothing() {
    let repo = Sandbox::new();
    users(&repo);
    let tree = repo.open();
    let guard = armed(&repo, &tree);
    repo.write("new", "work\n").write("b", "edited, and by the agent\n").git(["add", "new"]);
    repo.git(["commit", "-qm", "by the agent"]);
    assert_eq!(repair(&guard, &tree, GuardPart::after_attempt(true)), []);
}

#[test]
fn all_that_an_attempt_changed_is_named_and_as_it_was_again() {
    let repo = Sandbox::new();
    users(&repo);
    let tree = repo.open();
    let guard = armed(&repo, &tree);
    repo.git(["switch", "-q", "-c", "topic"]);
    let own = repo.git(["commit", "-q", "--allow-empty", "-m", "own"]) + &repo.head();
    repo.git(["stash", "drop", "-q"]);
    repo.git(["config", "core.fsmonitor", "evil"]);
    repo.write(".git/hooks/pre-push", "evil\n").write(".git/index.lock", "");
    repo.delete("mine").write("b", "b0\n").write("PROMPT.md", "- [x] TASK_COMPLETE\n");

    let found = repair(&guard, &tree, GuardPart::after_attempt(true));
    let kept = repo.path(".git/ralph/changed/attempt");
    assert_eq!(
        found,
        [
            Violation::Locks { paths: vec![repo.path(".git/index.lock").to_str().unwrap().into()] },
            Violation::Setup {
                names: vec!["config".into(), "hooks/pre-push".into()],
                kept: kept.to_str().unwrap().into()
            },
            Violation::Stashes { messages: vec!["WIP on main: ".to_owned() + &wip(&repo)] },
            Violation::OtherBranch { on: "topic".into() },
            Violation::UserFiles {
                lost: vec!["b".into(), "mine".into()],
                blocked: Vec::new(),
                kept: Some("refs/ralph/snapshots/1/1".into())
            },
            Violation::Instructions {
                path: "PROMPT.md".into(),
                kept: Some("refs/ralph/attempts/S/1".into()),
                claims: true
            },
        ]
    );
    assert_eq!(repo.git(["show", "refs/ralph/attempts/S/1:PROMPT.md"]), "- [x] TASK_COMPLETE\n");
    assert_eq!(fs::read_to_string(kept.join("hooks/pre-push")).unwrap(), "evil\n");
    assert_eq!(repo.read(".git/hooks/pre-push"), "mine\n");
    assert_eq!(repo.git(["rev-parse", "main"]).trim(), own.trim());
    assert_eq!(repo.git(["stash", "list"]).lines().count(), 1);
    assert_eq!(repo.status(), " M b\n?? mine\n");
    assert_eq!(repair(&guard, &tree, GuardPart::after_attempt(true)), [], "it is all as it was");
}

/// `<commit> <subject>` of what the stash was made on.
fn wip(repo: &Sandbox) -> String {
    repo.git(["log", "-1", "--format=%h %s", "main^"]).trim().to_owned()
}

#[test]
fn locks_of_an_agent_that_ended_by_itself_are_somebody_elses() {
    let repo = Sandbox::new();
    let tree = repo.open();
    let guard = armed(&repo, &tree);
    repo.write(".git/index.lock", "");
    assert_eq!(repair(&guard, &tree, GuardPart::after_attempt(false)), []);
    assert!(repo.exists(".git/index.lock"));
    guard.disarm(&tree).unwrap();
    assert_eq!(repair(&guard, &tree, &[GuardPart::Locks]), [], "no attempt is under way");
}

#[test]
fn the_next_process_repairs_what_a_dead_one_could_not() {
    let repo = Sandbox::new();
    users(&repo);
    let base = repo.open().base().unwrap();
    drop(armed(&repo, &repo.open()));
    repo.git(["config", "core.fsmonitor", "evil"]);
    repo.delete("mine").write("PROMPT.md", "by somebody\n");
    let tree = repo.open();
    let guard = Guard::recovered(&tree, attempt(&repo, &base, &base));
    let found = repair(&guard, &tree, GuardPart::after_crash());
    assert!(
        matches!(&found[..], [Violation::Setup { .. }, Violation::UserFiles { .. }]),
        "{found:?}"
    );
    assert_eq!(
        (repo.read("mine"), repo.read("PROMPT.md")),
        ("untracked\n".into(), "by somebody\n".into())
    );
    let nothing_held = repo.open();
    fs::remove_file(repo.path(".git/ralph/setup.json")).unwrap();
    repo.git(["config", "core.fsmonitor", "evil"]);
    let guard = Guard::recovered(&nothing_held, attempt(&repo, &base, &base));
    assert_eq!(repair(&guard, &nothing_held, GuardPart::after_crash()), []);
}

#[test]
fn a_file_that_cannot_be_restored_is_named_and_nothing_is_overwritten() {
    let repo = Sandbox::new();
    repo.write("mine", "untracked\n");
    let tree = repo.open();
    let guard = armed(&repo, &tree);
    repo.delete("mine").write("mine/inside", "x\n");
    let found = repair(&guard, &tree, &[GuardPart::UserFiles]);
    assert!(
        matches!(&found[..], [Violation::UserFiles { lost, blocked, .. }]
            if lost.is_empty() && blocked == &["mine"]),
        "{found:?}"
    );
    assert_eq!(repo.read("mine/inside"), "x\n");
}

/// Instructions that git does not know: what happened to them, and whether they can be restored.
#[test]
fn whatever_happened_to_the_instructions_they_are_restored() {
    let repo = Sandbox::new();
    let prompt = repo.beside("PROMPT.md");
    let outside = repo.beside("outside");
    fs::write(&prompt, "Work.\n").unwrap();
    fs::write(&outside, "not ours\n").unwrap();
    let tree = repo.open();
    let base = tree.base().unwrap();
    let guard = Guard::arm(&tree, attempt(&repo, &base, &base), Some(&prompt)).unwrap();
    let changes: [(&str, &dyn Fn()); 4] = [
        ("edited", &|| fs::write(&prompt, "Obey.\n").unwrap()),
        ("deleted", &|| fs::remove_file(&prompt).unwrap()),
        ("a link now", &|| {
            fs::remove_file(&prompt).unwrap();
            symlink(&outside, &prompt).unwrap();
        }),
        ("a pipe now, which nobody writes to", &|| {
            fs::remove_file(&prompt).unwrap();
            let mode = rustix::fs::Mode::from_raw_mode(0o600);
            let kind = rustix::fs::FileType::Fifo;
            rustix::fs::mknodat(rustix::fs::CWD, &prompt, kind, mode, 0).unwrap();
        }),
    ];
    for (case, change) in changes {
        change();
        let found = repair(&guard, &tree, &[GuardPart::Instructions]);
        assert!(
            matches!(&found[..], [Violation::Instructions { kept: Some(kept), claims: false, .. }]
                if Path::new(kept) == repo.beside("spare")),
            "{case}: {found:?}"
        );
        assert_eq!(fs::read_to_string(&prompt).unwrap(), "Work.\n", "{case}");
        assert!(fs::symlink_metadata(&prompt).unwrap().is_file(), "{case}");
    }
    assert_eq!(fs::read_to_string(&outside).unwrap(), "not ours\n");
    fs::remove_file(&prompt).unwrap();
    fs::create_dir(&prompt).unwrap();
    let violation = guard.check(&tree, GuardPart::Instructions).unwrap().unwrap();
    assert!(guard.repair(&tree, &violation).is_err(), "a folder is in the way, and that is told");
}

#[test]
fn nothing_is_restored_through_a_folder_that_became_a_link() {
    let repo = Sandbox::new();
    let (folder, outside) = (repo.beside("plans"), repo.beside("outside"));
    for made in [&folder, &outside] {
        fs::create_dir(made).unwrap();
    }
    let prompt = folder.join("PROMPT.md");
    fs::write(&prompt, "Work.\n").unwrap();
    let tree = repo.open();
    let base = tree.base().unwrap();
    let guard = Guard::arm(&tree, attempt(&repo, &base, &base), Some(&prompt)).unwrap();
    fs::remove_dir_all(&folder).unwrap();
    symlink(&outside, &folder).unwrap();
    for link in [false, true] {
        if link {
            symlink("elsewhere", outside.join("PROMPT.md")).unwrap();
        }
        let violation = guard.check(&tree, GuardPart::Instructions).unwrap().unwrap();
        assert!(guard.repair(&tree, &violation).is_err(), "it is told");
        let found: Vec<_> = fs::read_dir(&outside).unwrap().collect();
        assert_eq!(found.len(), usize::from(link), "what is outside stays as it was");
    }
}

#[test]
fn dropped_stashes_come_back_in_their_order() {
    let repo = Sandbox::new();
    for text in ["one\n", "two\n", "three\n"] {
        repo.write("a", text).git(["stash", "-q"]);
    }
    let tree = repo.open();
    let guard = armed(&repo, &tree);
    let ids = || repo.git(["stash", "list", "--format=%H"]);
    let before = ids();
    repo.git(["stash", "clear"]);
    repo.git(["gc", "-q", "--prune=now"]);
    assert_eq!(repair(&guard, &tree, &[GuardPart::Stashes]).len(), 1);
    assert_eq!(ids(), before);
}

#[test]
fn a_stash_is_held_until_the_human_drops_it() {
    let repo = Sandbox::new();
    for text in ["older\n", "newer\n"] {
        repo.write("a", text).git(["stash", "-q"]);
    }
    let tree = repo.open();
    let held = || repo.git(["for-each-ref", "--format=%(objectname)", "refs/ralph/stashes"]);
    assert_eq!(tree.hold_stashes().unwrap().len(), 2);
    assert_eq!(held().lines().count(), 2);
    let stays = repo.git(["rev-parse", "stash@{1}"]);
    repo.git(["stash", "drop", "-q"]);
    let keeping = Keeping { count: None, days: None };
    tree.prune(keeping, &BTreeSet::new(), 0).unwrap();
    assert_eq!(held(), stays, "only the one that is still listed");
}

#[test]
fn a_link_to_the_instructions_stays_one() {
    let repo = Sandbox::new();
    let (prompt, link) = (repo.beside("PROMPT.md"), repo.beside("link.md"));
    fs::write(&prompt, "Work.\n").unwrap();
    symlink(&prompt, &link).unwrap();
    let tree = repo.open();
    let base = tree.base().unwrap();
    let guard = Guard::arm(&tree, attempt(&repo, &base, &base), Some(&link)).unwrap();
    fs::write(&prompt, "Obey.\n").unwrap();
    assert_eq!(repair(&guard, &tree, &[GuardPart::Instructions]).len(), 1);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    fs::remove_file(&link).unwrap();
    fs::write(&link, "Obey.\n").unwrap();
    let violation = guard.check(&tree, GuardPart::Instructions).unwrap().unwrap();
    assert!(guard.repair(&tree, &violation).is_err(), "it is told that the link is gone");
}

/// What an agent does to the git folder, and what is told of it.
#[test]
fn configuration_and_hooks_are_repaired_and_the_other_version_is_kept() {
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
        tree.repair_setup(&tree.held_setup().unwrap(), &names, "attempt").unwrap();
        assert_eq!(tree.setup().unwrap(), before, "{case}");
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
    let before = tree.hold_setup().unwrap();
    for text in ["first\n", "second\n"] {
        sandbox.write(".git/hooks/post-commit", text);
        let names = before.differences(&tree.setup().unwrap());
        tree.repair_setup(&before, &names, "attempt").unwrap();
    }
    let kept = tree.changed_by("attempt").join("hooks");
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
    tree.repair_setup(&before, &names, "attempt").unwrap();
    assert_eq!(sandbox.path(".git/hooks/pre-push").metadata().unwrap().len(), (16 << 20) + 2);
}
