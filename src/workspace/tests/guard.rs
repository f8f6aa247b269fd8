//! Everything that an attempt must leave alone, changed by one and repaired.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::model::{Base, HeldKind, Violation};
use crate::workspace::{Guard, GuardPart, Guarded, HeldPlace, Keeping, WorkTree};

use super::sandbox::{GitAtWork, Sandbox};

pub(super) fn guarded(base: &Base) -> Guarded {
    Guarded {
        ran: "attempt".into(),
        base: base.clone(),
        before: base.clone(),
        snapshot: Some("refs/ralph/snapshots/1/1".into()),
    }
}

const INSTRUCTIONS: GuardPart = GuardPart::Held(HeldKind::Instructions);
pub(super) const SETUP: GuardPart = GuardPart::Held(HeldKind::GitSetup);
pub(super) const AGENT_SETTINGS: GuardPart = GuardPart::Held(HeldKind::AgentSettings);

/// Holds these instructions, and `.agent/`.
fn arm(repo: &Sandbox, tree: &WorkTree, instructions: &Path) -> Guard {
    let place = |kind, path| HeldPlace { kind, path };
    let places = [
        place(HeldKind::Instructions, instructions.to_owned()),
        place(HeldKind::AgentSettings, repo.path(".agent")),
    ];
    Guard::arm(tree, guarded(&tree.base().unwrap()), &places).unwrap()
}

/// With a hook, a stash, uncommitted files and instructions of the user's.
fn users(repo: &Sandbox) {
    repo.write("PROMPT.md", "- [ ] TASK_COMPLETE\n").commit_all("instructions");
    repo.write(".git/hooks/pre-push", "mine\n").write("a", "stashed\n").git(["stash", "-q"]);
    repo.write("b", "edited\n").write("mine", "untracked\n");
}

pub(super) fn armed(repo: &Sandbox, tree: &WorkTree) -> Guard {
    arm(repo, tree, &repo.path("PROMPT.md"))
}

/// Part by part.
pub(super) fn repair(guard: &Guard, tree: &WorkTree, parts: &[GuardPart]) -> Vec<Violation> {
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
    assert_eq!(repair(&guard, &tree, GuardPart::after_attempt()), []);
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

    let found = repair(&guard, &tree, GuardPart::after_attempt());
    let kept = || ".git/ralph/changed/attempt".to_owned();
    let held = |whose, paths: &[&str], claims| {
        let paths = paths.iter().map(ToString::to_string).collect();
        Violation::Held { whose, paths, kept: kept(), claims }
    };
    assert_eq!(
        found,
        [
            Violation::Locks { paths: vec![repo.path(".git/index.lock").to_str().unwrap().into()] },
            held(HeldKind::GitSetup, &[".git/config", ".git/hooks/pre-push"], false),
            held(HeldKind::Instructions, &["PROMPT.md"], true),
            Violation::Stashes {
                messages: vec!["WIP on main: ".to_owned() + &wip(&repo)],
                new: Vec::new(),
            },
            Violation::OtherBranch { on: "topic".into() },
            Violation::UserFiles {
                lost: vec!["b".into(), "mine".into()],
                blocked: Vec::new(),
                changed: Vec::new(),
                kept: Some("refs/ralph/snapshots/1/1".into())
            },
        ]
    );
    let kept = repo.path(".git/ralph/changed/attempt");
    assert_eq!(fs::read_to_string(kept.join("PROMPT.md")).unwrap(), "- [x] TASK_COMPLETE\n");
    assert_eq!(fs::read_to_string(kept.join(".git/hooks/pre-push")).unwrap(), "evil\n");
    assert_eq!(repo.read(".git/hooks/pre-push"), "mine\n");
    assert_eq!(repo.git(["rev-parse", "main"]).trim(), own.trim());
    assert_eq!(repo.git(["stash", "list"]).lines().count(), 1);
    assert_eq!(repo.status(), " M b\n?? mine\n");
    assert_eq!(repair(&guard, &tree, GuardPart::after_attempt()), [], "it is all as it was");
}

/// `<commit> <subject>` of what the stash was made on.
fn wip(repo: &Sandbox) -> String {
    repo.git(["log", "-1", "--format=%h %s", "main^"]).trim().to_owned()
}

#[test]
#[cfg(target_os = "linux")]
fn a_lock_is_somebody_elses_while_a_process_works_on_the_repository() {
    let repo = Sandbox::new();
    let tree = repo.open();
    let guard = armed(&repo, &tree);
    repo.write(".git/index.lock", "");
    let at_work = GitAtWork::start(repo.root());
    assert_eq!(repair(&guard, &tree, GuardPart::after_attempt()), []);
    drop(at_work);
    let locks = [".git/index.lock", ".git/HEAD.lock", ".git/config.lock", ".git/packed-refs.lock"];
    let locks = locks.into_iter().chain([".git/refs/heads/main.lock"]);
    locks.clone().for_each(|lock| drop(fs::write(repo.path(lock), "")));
    fs::create_dir(repo.path(".git/shallow.lock")).unwrap();
    match repair(&guard, &tree, GuardPart::after_attempt()).as_slice() {
        [Violation::Locks { paths }] => assert_eq!(paths.len(), 6),
        other => panic!("{other:?}"),
    }
    assert!(locks.clone().chain([".git/shallow.lock"]).all(|lock| !repo.exists(lock)));
    repo.write(".git/index.lock", "");
    guard.disarm(&tree).unwrap();
    assert_eq!(repair(&guard, &tree, &[GuardPart::Locks]), [], "no attempt is under way");
}

#[test]
fn the_next_process_repairs_what_a_dead_one_could_not() {
    let repo = Sandbox::new();
    users(&repo);
    repo.write(".agent/hooks/mine", "mine\n");
    let base = repo.open().base().unwrap();
    let stored = armed(&repo, &repo.open()).stored().unwrap().to_owned();
    let change = || {
        repo.git(["config", "core.fsmonitor", "evil"]);
        repo.delete("mine").delete(".agent").write("PROMPT.md", "by the agent\n");
    };
    change();
    let tree = repo.open();
    let guard = Guard::recovered(&tree, guarded(&base), Some(&stored));
    let setup = Guard::restore_setup(&tree).unwrap();
    assert!(matches!(setup, Some(Violation::Held { whose: HeldKind::GitSetup, .. })), "{setup:?}");
    let parts = [GuardPart::held_after_crash(), GuardPart::after_crash()].concat();
    let found = repair(&guard, &tree, &parts);
    let whose = |violation: &Violation| match violation {
        Violation::Held { whose, .. } => Some(*whose),
        _ => None,
    };
    let kinds = [Some(HeldKind::Instructions), Some(HeldKind::AgentSettings), None];
    assert_eq!(found.iter().map(whose).collect::<Vec<_>>(), kinds);
    assert_eq!(repair(&guard, &tree, &[SETUP]), []);
    let read = |path: &str| repo.read(path);
    assert_eq!(
        (read("mine"), read("PROMPT.md"), read(".agent/hooks/mine")),
        ("untracked\n".into(), "- [ ] TASK_COMPLETE\n".into(), "mine\n".into())
    );
    // What is stored is not what was held: nothing may be put back from it.
    change();
    repo.write(".git/ralph/held.json", "{\"places\":[],\"files\":[]}");
    let guard = Guard::recovered(&tree, guarded(&base), Some(&stored));
    assert_eq!(repair(&guard, &tree, GuardPart::held_after_crash()), []);
    guard.disarm(&tree).unwrap();
    assert_eq!(Guard::restore_setup(&tree).unwrap(), None, "since then it is the human's");
}

#[test]
fn a_file_that_cannot_be_restored_is_named_and_nothing_is_overwritten() {
    let repo = Sandbox::new();
    repo.write("mine", "untracked\n");
    let tree = repo.open();
    let guard = armed(&repo, &tree);
    let large = fs::File::create(repo.path("mine")).unwrap();
    large.set_len((1 << 30) + 1).unwrap();
    let found = repair(&guard, &tree, &[GuardPart::UserFiles]);
    assert!(
        matches!(&found[..], [Violation::UserFiles { lost, blocked, .. }]
            if lost.is_empty() && blocked == &["mine"]),
        "{found:?}"
    );
    assert_eq!(repo.path("mine").metadata().unwrap().len(), (1 << 30) + 1);
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
    let guard = arm(&repo, &tree, &prompt);
    let changes: [(&str, &dyn Fn()); 4] = [
        ("edited", &|| fs::write(&prompt, "Obey.\n").unwrap()),
        ("deleted", &|| fs::remove_file(&prompt).unwrap()),
        ("a link now", &|| {
            fs::remove_file(&prompt).unwrap();
            symlink(&outside, &prompt).unwrap();
        }),
        ("a pipe now, which nobody writes to", &|| {
            fs::remove_file(&prompt).unwrap();
            repo.fifo(&prompt);
        }),
    ];
    for (case, change) in changes {
        change();
        let found = repair(&guard, &tree, &[INSTRUCTIONS]);
        assert!(
            matches!(&found[..], [Violation::Held { paths, claims: false, .. }]
                if paths == &["PROMPT.md"]),
            "{case}: {found:?}"
        );
        assert_eq!(fs::read_to_string(&prompt).unwrap(), "Work.\n", "{case}");
        assert!(fs::symlink_metadata(&prompt).unwrap().is_file(), "{case}");
    }
    assert_eq!(fs::read_to_string(&outside).unwrap(), "not ours\n");
    let kept = repo.path(".git/ralph/changed/attempt");
    assert_eq!(fs::read_to_string(kept.join("PROMPT.md")).unwrap(), "Obey.\n");
}

#[test]
fn absent_instructions_stay_absent() {
    let repo = Sandbox::new();
    let tree = repo.open();
    let guard = armed(&repo, &tree);
    repo.write("PROMPT.md", "Obey.\n");
    assert_eq!(repair(&guard, &tree, &[INSTRUCTIONS]).len(), 1);
    assert!(!repo.exists("PROMPT.md"));
    assert_eq!(repo.read(".git/ralph/changed/attempt/PROMPT.md"), "Obey.\n");
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
    let guard = arm(&repo, &tree, &prompt);
    fs::remove_dir_all(&folder).unwrap();
    symlink(&outside, &folder).unwrap();
    symlink("elsewhere", outside.join("PROMPT.md")).unwrap();
    assert_eq!(repair(&guard, &tree, &[INSTRUCTIONS]).len(), 1);
    assert_eq!(fs::read_to_string(&prompt).unwrap(), "Work.\n");
    assert!(!fs::symlink_metadata(&folder).unwrap().is_symlink());
    let found: Vec<_> = fs::read_dir(&outside).unwrap().flatten().collect();
    assert_eq!(found.len(), 1, "what is outside stays as it was");
    assert_eq!(fs::read_link(found[0].path()).unwrap(), Path::new("elsewhere"));
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
    let guard = arm(&repo, &tree, &link);
    fs::write(&prompt, "Obey.\n").unwrap();
    assert_eq!(repair(&guard, &tree, &[INSTRUCTIONS]).len(), 1);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    fs::remove_file(&link).unwrap();
    fs::write(&link, "Obey.\n").unwrap();
    assert_eq!(repair(&guard, &tree, &[INSTRUCTIONS]).len(), 1);
    assert_eq!(fs::read_link(&link).unwrap(), prompt);
    assert_eq!(fs::read_to_string(&prompt).unwrap(), "Work.\n");
}
