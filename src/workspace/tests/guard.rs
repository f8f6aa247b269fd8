//! Everything that an attempt must leave alone, changed by one and repaired.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::model::{Base, BranchLoss, Violation};
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

/// As a run does it.
fn repair(guard: &Guard, tree: &WorkTree, parts: &[GuardPart]) -> Vec<Violation> {
    let mut found = Vec::new();
    for held in parts {
        let Some(violation) = guard.check(tree, *held).unwrap() else { continue };
        guard.repair(tree, &violation).unwrap();
        let is_over = matches!(violation, Violation::BranchLost { .. });
        found.push(violation);
        if is_over {
            break;
        }
    }
    found
}

#[test]
fn an_attempt_that_leaves_all_alone_violates_nothing() {
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
fn a_lost_branch_ends_the_check() {
    let repo = Sandbox::new();
    repo.write("a", "a1\n").commit_all("second");
    repo.write("mine", "untracked\n");
    let tree = repo.open();
    let guard = armed(&repo, &tree);
    repo.git(["reset", "-q", "--hard", "HEAD^"]);
    repo.delete("mine");
    let lost = Violation::BranchLost { how: BranchLoss::Rewritten };
    assert_eq!(repair(&guard, &tree, GuardPart::after_attempt(true)), [lost]);
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
