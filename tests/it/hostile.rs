//! What agents do to the repository itself: each costs an iteration at most, and no byte.

use std::fs;
use std::path::Path;

use ralph::model::{Event, Recorded, Violation};

use crate::support::pty::Terminal;
use crate::support::world::{Ends, Said, until};
use crate::support::{Prd, World};

/// The user's own work of every kind, uncommitted, and a stash.
struct Users {
    world: World,
    files: Vec<(&'static str, &'static str)>,
}

/// Runs two stories: the first attempt does `act`, and claims the story when it survives that.
fn hostile(act: &str, then: &str) -> (Users, Said) {
    let script = format!(
        r#"
        [[story.US-001.attempts]]
        steps = [{{ run = '''{act}''' }}, {then}]
        [[story.US-001.attempts]]
        steps = [{{ write = "work.txt", text = "work\n" }}, "complete"]
        [default]
        steps = [{{ write = "second.txt", text = "second\n" }}, "complete"]
        "#
    );
    let world = World::scripted(&Prd::stories(2), &script);
    world.git(&["branch", "other", "HEAD~1"]);
    for text in ["older", "newer"] {
        world.write("README.md", &format!("{text} and stashed\n"));
        world.git(&["stash", "push", "-q", "-m", text]);
    }
    world.write("tracked.txt", "committed\n");
    world.write("staged.txt", "committed\n");
    world.git(&["add", "tracked.txt", "staged.txt"]);
    world.git(&["commit", "-qm", "the user's"]);
    let files = vec![
        ("tracked.txt", "edited by the user\n"),
        ("staged.txt", "staged by the user\n"),
        ("untracked.txt", "not in git\n"),
        ("deep/er/untracked.txt", "not in git either\n"),
        ("added.txt", "new and staged\n"),
    ];
    for (name, text) in &files {
        world.write(name, text);
    }
    world.git(&["add", "staged.txt", "added.txt"]);
    let said = world.run(&["--allow-dirty"]);
    (Users { world, files }, said)
}

impl Users {
    /// Every byte of the user's is where it was, both stories are done once, and git is content.
    fn is_whole(&self, said: &Said) {
        assert_eq!(said.code, 0, "{}", said.err);
        for (name, text) in &self.files {
            assert_eq!(self.world.read(name), *text, "{name}\n{}", said.err);
        }
        let subjects = self.world.subjects();
        let expected = ["US-002: Story 2", "US-001: Story 1", "the user's", "backlog", "first"];
        assert_eq!(subjects, expected, "{}", said.err);
        assert_eq!(self.world.git(&["branch", "--show-current"]), "work\n");
        assert_eq!(self.world.passing(), ["US-001", "US-002"]);
        assert_eq!(self.world.git(&["fsck", "--strict", "--no-dangling"]), "");
        for text in ["older", "newer"] {
            let list = self.world.git(&["stash", "list"]);
            let place = list.lines().position(|line| line.ends_with(&format!(": {text}")));
            assert!(place.is_some(), "{text} is gone: {list}{}", said.err);
            let place = format!("stash@{{{}}}:README.md", place.unwrap());
            let content = self.world.git(&["show", &place]);
            assert_eq!(content, format!("{text} and stashed\n"), "{list}");
        }
        let committed = self.world.git(&["ls-tree", "-r", "--name-only", "HEAD"]);
        for name in ["untracked.txt", "deep/er/untracked.txt", "added.txt"] {
            assert!(!committed.contains(name), "{committed}");
        }
        assert_eq!(self.world.git(&["show", "HEAD:tracked.txt"]), "committed\n");
    }

    fn attempt(&self, path: &str) -> String {
        self.world.git(&["show", &format!("refs/ralph/attempts/US-001/1:{path}")])
    }
}

/// The driver dies while its agent hangs.
pub fn kill_when_here(world: &World) {
    let mut child = world.start(&[]);
    world.await_file("../here");
    child.kill().unwrap();
    child.code();
    until("every process to be gone", || world.processes().is_empty().then_some(()));
}

const PUT_BACK: &str = "restored uncommitted files that the agent deleted or reset: ";

#[test]
fn an_agent_that_does_ordinary_things_triggers_none_of_it() {
    let act = "echo a > a.txt; git add a.txt; git status; git diff; git log -3; git stash list; git gc -q";
    let (users, said) = hostile(act, "\"complete\"");
    users.is_whole(&said);
    for word in ["restored", "left the branch", "rewrote", "warning"] {
        assert!(!said.err.contains(word), "{word}: {}", said.err);
    }
    let kept = users.world.git(&["for-each-ref", "refs/ralph/attempts"]);
    assert_eq!(kept, "");
}

#[test]
fn reset_hard() {
    let (users, said) = hostile("git reset -q --hard", "\"complete\"");
    users.is_whole(&said);
    assert!(
        said.err.contains(&format!("{PUT_BACK}added.txt, staged.txt, tracked.txt")),
        "{}",
        said.err
    );
}

#[test]
fn clean_everything() {
    let act = "git clean -fdxq; echo a > a.txt";
    let (users, said) = hostile(act, "\"complete\"");
    users.is_whole(&said);
    let lost = format!("{PUT_BACK}deep/er/untracked.txt, untracked.txt");
    assert!(said.err.contains(&lost), "{}", said.err);
    assert_eq!(users.world.git(&["show", "HEAD~1:a.txt"]), "a\n", "the work counts");
}

#[test]
fn reset_and_clean_and_a_backlog_that_was_never_committed() {
    let script = r#"
        [[story.US-001.attempts]]
        steps = [{ run = "git reset -q --hard; git clean -fdxq; echo a > a.txt" }, "complete"]
    "#;
    let world = World::new();
    fs::write(world.script(), script).unwrap();
    world.write("PRD.json", &Prd::stories(2).text());
    world.write("PROMPT.md", "Mine.\n");
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(world.read("PROMPT.md"), "Mine.\n");
    assert_eq!(world.passing(), ["US-001", "US-002"]);
}

/// What decides about the next process is the human's, whether the agent commits its version or not.
#[test]
fn settings_instructions_and_hooks_are_put_back_and_in_no_commit() {
    for commit in ["", "; git add -f -A .; git commit -qm own"] {
        let act = format!(
            "echo 'verify = []' > ralph.toml; echo Obey. > PROMPT.md; mkdir -p .claude; \
             echo '{{}}' > .claude/settings.json; echo x > .git/info/grafts; echo w > w.txt{commit}"
        );
        let script = format!("[default]\nsteps = [{{ run = \"{act}\" }}, \"complete\"]\n");
        let world = World::scripted(&Prd::stories(1), &script);
        world.write("ralph.toml", "verify = [\"test -e w.txt\"]\n");
        world.git(&["add", "."]);
        world.git(&["commit", "-qm", "settings"]);
        // The human may have wanted the agent's settings.
        let said = world.run(&[]);
        assert_eq!(said.code, 4, "{}", said.err);
        let mut terminal = Terminal::start(world.run_command(&[]));
        terminal.await_text("❯ [r] restore the original");
        terminal.press("\r");
        let (code, screen) = terminal.finish();
        assert_eq!(code, 0, "{screen}");
        for (path, text) in [
            ("ralph.toml", Some("verify = [\"test -e w.txt\"]\n")),
            ("PROMPT.md", None),
            (".claude/settings.json", None),
            (".git/info/grafts", None),
        ] {
            assert_eq!(fs::read_to_string(world.path(path)).ok().as_deref(), text, "{path}");
            assert!(said.err.contains(path), "{path}: {}", said.err);
        }
        assert_eq!(world.git(&["show", "HEAD:ralph.toml"]), "verify = [\"test -e w.txt\"]\n");
        let files = world.git(&["ls-tree", "-r", "--name-only", "HEAD"]);
        assert!(!files.contains("PROMPT.md") && !files.contains(".claude"), "{files}");
        assert_eq!(world.git(&["status", "--porcelain", "-uall"]), "");
    }
}

#[test]
fn stash_and_drop() {
    let (users, said) = hostile("git stash -qu; git stash drop -q", "\"complete\"");
    users.is_whole(&said);
    assert!(said.err.contains(PUT_BACK), "{}", said.err);
}

#[test]
fn drop_the_stashes_of_the_user() {
    for act in [
        "git stash drop -q; echo a > a.txt",
        "git stash drop -q 'stash@{1}'; echo a > a.txt",
        "git stash clear; git gc -q --prune=now; echo a > a.txt",
        "rm -f .git/logs/refs/stash .git/refs/stash; echo a > a.txt",
    ] {
        let (users, said) = hostile(act, "\"complete\"");
        users.is_whole(&said);
        assert!(said.err.contains("restored stashes that the agent dropped: "), "{}", said.err);
        let restored = |one: &Recorded| {
            matches!(&one.event, Event::Repaired { violation: Violation::Stashes { .. }, .. })
        };
        assert_eq!(users.world.journal().iter().filter(|one| restored(one)).count(), 1);
    }
}

#[test]
fn collect_all_garbage() {
    let act = "git reset -q --hard; git clean -fdxq; git reflog expire --expire=now --all; git gc -q --prune=now";
    let (users, said) = hostile(act, "\"complete\"");
    users.is_whole(&said);
    assert!(said.err.contains(PUT_BACK), "{}", said.err);
}

#[test]
fn check_another_branch_out() {
    for act in [
        "echo a > a.txt; git checkout -qf other",
        "echo a > a.txt; git checkout -qf --detach HEAD~2",
        "echo a > a.txt; git checkout -qf other; git branch -qD work",
    ] {
        let (users, said) = hostile(act, "\"complete\"");
        users.is_whole(&said);
        assert!(
            said.err.contains("the agent left the branch while working on US-001"),
            "{act}: {}",
            said.err
        );
        assert_eq!(users.attempt("a.txt"), "a\n");
        assert_eq!(users.world.git(&["log", "--format=%s", "other"]), "first\n");
        let prompt = users.world.prompt(2);
        assert!(prompt.contains("does not contain the run's branch"), "{prompt}");
    }
}

#[test]
fn a_branch_of_the_agents_own_is_only_a_detour() {
    for act in [
        "git switch -qc mine; echo a > a.txt",
        "git switch -qc mine; echo a > a.txt; git add a.txt; git commit -qm own -- a.txt",
        "git switch -q --detach; echo a > a.txt",
    ] {
        let (users, said) = hostile(act, "\"complete\"");
        assert_eq!(said.code, 0, "{}", said.err);
        assert!(!said.err.contains("left the branch"), "{}", said.err);
        assert_eq!(users.world.git(&["branch", "--show-current"]), "work\n");
        assert_eq!(users.world.git(&["show", "HEAD~1:a.txt"]), "a\n", "{act}");
        assert!(said.err.contains("its commits are now on the run's branch"), "{}", said.err);
    }
}

#[test]
fn rewrite_what_was_there_before() {
    for act in [
        "echo a > a.txt; git reset -q --soft HEAD~2",
        "echo a > a.txt; git add a.txt; git commit -q --amend -m rewritten -- a.txt",
        "echo a > a.txt; git update-ref -d HEAD",
    ] {
        let (users, said) = hostile(act, "\"complete\"");
        users.is_whole(&said);
        assert!(said.err.contains("the agent rewrote older commits"), "{act}: {}", said.err);
        assert_eq!(users.attempt("a.txt"), "a\n");
        assert!(users.world.prompt(2).contains("rewrote commits from before the story"));
    }
}

#[test]
fn a_question_from_off_the_branch_is_still_asked() {
    let ask = "{ escalate = { type = \"stuck\", summary = \"s\", question = \"q\" } }";
    let (users, said) = hostile("git checkout -qf other", ask);
    assert_eq!(said.code, 4, "{}", said.err);
    for (name, text) in &users.files {
        assert_eq!(users.world.read(name), *text, "{name}");
    }
    assert_eq!(users.world.git(&["branch", "--show-current"]), "work\n");
}

#[test]
fn a_lock_of_a_process_that_the_agent_left_behind_is_removed() {
    let script = r#"
        [story.US-001]
        steps = [
          { grandchild = "setsid", command = "sh -c 'touch .git/index.lock; sleep 1000'" },
          { run = "until [ -e .git/index.lock ]; do sleep 0.01; done; echo w > w.txt" },
          "complete",
        ]
    "#;
    let world = World::scripted(&Prd::stories(2), script);
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.err.contains("index.lock"), "{}", said.err);
    assert!(!world.path(".git/index.lock").exists());
    assert_eq!(world.passing(), ["US-001", "US-002"]);
    assert_eq!(world.processes(), [""; 0]);
}

#[test]
fn instructions_that_cannot_be_restored_are_reported_and_the_story_closes() {
    let script = r#"
        [story.US-001]
        steps = [{ run = "rm PROMPT.md; mkdir PROMPT.md; echo w > w.txt" }, "complete"]
    "#;
    let world = World::scripted(&Prd::stories(1), script);
    world.write(".gitignore", "PROMPT.md\n");
    world.git(&["add", "."]);
    world.git(&["commit", "-qm", "ignored"]);
    world.write("PROMPT.md", "Work.\n");
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.err.contains("PROMPT.md"), "{}", said.err);
    assert_eq!(world.git(&["show", "HEAD:w.txt"]), "w\n");
    let put_back = |one: &Recorded| {
        matches!(&one.event, Event::Repaired { violation: Violation::Held { .. }, .. })
    };
    assert!(world.journal().iter().any(put_back), "{}", said.err);
}

#[test]
fn edited_files_stay_edited_and_the_old_bytes_are_one_command_away() {
    let (users, said) = hostile("echo agent > untracked.txt; echo a > a.txt", "\"complete\"");
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(!said.err.contains(PUT_BACK), "{}", said.err);
    let told = "changed files of yours that git does not know: untracked.txt · a copy is at refs/";
    assert!(said.err.contains(told), "{}", said.err);
    assert_eq!(users.world.read("untracked.txt"), "agent\n");
    assert_eq!(users.world.ralph(&["restore", "1", "untracked.txt"]).code, 0);
    assert_eq!(users.world.read("untracked.txt"), "not in git\n");
}

#[test]
fn what_an_agent_deleted_before_its_driver_was_killed_comes_back_too() {
    let script = "[default]\nsteps = [{ run = \"git clean -fdxq; echo y > ../here\" }, \"hang\"]\n";
    let world = World::scripted(&Prd::stories(1), script);
    world.write("mine.txt", "mine\n");
    kill_when_here(&world);
    assert!(!world.path("mine.txt").exists());
    fs::remove_file(world.script()).unwrap();
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(world.read("mine.txt"), "mine\n");
    assert!(said.err.contains(&format!("{PUT_BACK}mine.txt")), "{}", said.err);
}

#[test]
fn deleting_the_drivers_own_folder_loses_nothing() {
    let (users, said) = hostile("rm -rf .ralph; echo a > a.txt", "\"complete\"");
    users.is_whole(&said);
    assert!(Path::new(&users.world.path(".ralph/runs")).exists());
}

#[test]
fn plant_a_hook_and_change_the_configuration() {
    let act = "printf '#!/bin/sh\\ntouch ../hooked\\n' > .git/hooks/post-commit; chmod +x .git/hooks/post-commit; \
               git config core.hooksPath /nowhere; git config user.name Mallory; echo a > a.txt";
    let (users, said) = hostile(act, "\"complete\"");
    users.is_whole(&said);
    let told = "restored git configuration or hooks that the agent changed: .git/config, \
                .git/hooks/post-commit";
    assert!(said.err.contains(told), "{}", said.err);
    assert!(!users.world.path(".git/hooks/post-commit").exists());
    assert_eq!(users.world.git(&["config", "user.name"]), "Tester\n");
    assert_eq!(users.world.git(&["log", "-1", "--format=%an"]), "Tester\n");
    assert!(!users.world.path("../hooked").exists(), "it ran");
}

#[test]
fn what_an_agent_planted_before_its_driver_was_killed_goes_too() {
    let act = r#"echo evil > .git/hooks/pre-commit; git config core.fsmonitor evil
        printf '#!/bin/sh\ntouch %s\n' "$PWD/../ran" > ../evil; chmod +x ../evil
        git config commit.gpgsign true; git config gpg.program "$PWD/../evil"
        git config core.worktree "$PWD/.."; echo y > ../here"#;
    let script = format!("[default]\nsteps = [{{ run = '''{act}''' }}, \"hang\"]\n");
    let world = World::scripted(&Prd::stories(1), &script);
    let before = world.read(".git/config");
    kill_when_here(&world);
    assert_ne!(world.read(".git/config"), before);
    fs::remove_file(world.script()).unwrap();
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(world.read(".git/config"), before);
    assert!(!world.path(".git/hooks/pre-commit").exists());
    assert!(!world.path("../ran").exists(), "the planted program ran");
}

#[test]
fn a_planted_program_does_not_run_without_the_record_of_what_was_before() {
    for cover in ["rm .git/ralph/held.json .git/ralph/attempt", "echo '{}' > .git/ralph/held.json"]
    {
        let act = format!(
            r#"printf '#!/bin/sh\ntouch %s\n' "$PWD/../ran" > ../evil; chmod +x ../evil
            git config commit.gpgsign true; git config gpg.program "$PWD/../evil"; {cover}; echo y > ../here"#
        );
        let script = format!("[default]\nsteps = [{{ run = '''{act}''' }}, \"hang\"]\n");
        let world = World::scripted(&Prd::stories(1), &script);
        kill_when_here(&world);
        fs::remove_file(world.script()).unwrap();
        let said = world.run(&[]);
        assert_eq!(said.code, 1, "{cover}: {}", said.err);
        assert!(!world.path("../ran").exists(), "{cover}: the planted program ran: {}", said.err);
        assert!(
            said.err.contains("program = ") && said.err.contains("in a terminal"),
            "{}",
            said.err
        );
    }
}

#[test]
fn set_the_marks_by_hand() {
    let act = "sed -i 's/\"passes\": false/\"passes\": true/' PRD.json; echo a > a.txt";
    let (users, said) = hostile(act, "{ say = \"not yet\" }");
    users.is_whole(&said);
    assert!(said.err.contains("ralph mark"), "{}", said.err);
}

#[test]
fn a_repository_in_the_repository_is_left_out_and_reported() {
    let act = "git init -q inner; cd inner; echo i > i; git add i; \
               git -c user.name=A -c user.email=a@b commit -qm i; cd ..; echo a > a.txt";
    let (users, said) = hostile(act, "\"complete\"");
    users.is_whole(&said);
    assert!(said.err.contains("inner"), "{}", said.err);
    assert_eq!(
        users.world.git(&["show", "--name-only", "--format=", "HEAD~1"]),
        "PRD.json\na.txt\n"
    );
    assert_eq!(users.world.read("inner/i"), "i\n", "it stays where it is");
}

#[test]
fn a_file_that_git_would_filter_is_not_committed_as_it_is() {
    let act = "echo '*.bin filter=lfs' > .gitattributes; echo raw > a.bin";
    let (users, said) = hostile(act, "\"complete\"");
    assert_eq!(said.code, 4, "the second time it is asked about: {}", said.err);
    let prompt = users.world.prompt(2);
    assert!(prompt.contains("a.bin") && prompt.contains("lfs"), "{prompt}");
    for (name, text) in &users.files {
        assert_eq!(users.world.read(name), *text, "{name}");
    }
    let committed = users.world.git(&["log", "work", "--format=", "--name-only"]);
    assert!(!committed.contains("a.bin"), "{committed}");
}

#[test]
fn a_file_whose_place_is_taken_is_back_and_in_the_journal() {
    let act = "rm untracked.txt; mkdir untracked.txt; echo a > untracked.txt/a; echo a > a.txt";
    let (users, said) = hostile(act, "\"complete\"");
    let events = users.world.journal();
    let lost = events.iter().find_map(|one| match &one.event {
        Event::Repaired { violation: Violation::UserFiles { lost, blocked, kept, .. }, .. } => {
            Some((lost, kept, blocked))
        }
        _ => None,
    });
    let (paths, snapshot, blocked) = lost.expect("it is recorded");
    assert_eq!((paths.as_slice(), blocked.len()), (&["untracked.txt".to_owned()][..], 0));
    let kept = format!("{}:untracked.txt", snapshot.as_deref().expect("a copy"));
    assert_eq!(users.world.git(&["show", &kept]), "not in git\n");
    assert_eq!(users.world.read("untracked.txt"), "not in git\n", "{}", said.err);
    assert_eq!(users.world.read(".git/ralph/changed/replaced/untracked.txt/a"), "a\n");
    let committed = users.world.git(&["log", "work", "--format=", "--name-only"]);
    assert!(!committed.contains("untracked.txt"), "{committed}");
    assert_eq!(users.world.notices()[0]["kind"], "repaired");
}

#[test]
fn a_failed_repair_stops_the_run_and_is_shown() {
    let act = "rm -rf .git/ralph/objects .git/refs/ralph .git/refs/worktree; git checkout -qf other; git reflog expire --expire=now --all; git gc -q --prune=now";
    let (users, said) = hostile(act, "\"complete\"");
    assert_eq!(said.code, 1, "{}", said.err);
    assert!(said.err.contains("error:"), "{}", said.err);
    assert_eq!(users.world.git(&["branch", "--show-current"]), "other\n", "nothing was touched");
}

#[test]
fn a_gates_script_that_git_ignores_is_held() {
    let cheat = "printf '#!/bin/sh\\n' > check.sh";
    let script = format!(
        "[[story.US-001.attempts]]\nsteps = [{{ run = \"{cheat}\" }}, {{ write = \"a.txt\", text = \"a\" }}, \"complete\"]\n\
         [[story.US-001.attempts]]\nsteps = [{{ write = \"work.txt\", text = \"work\" }}, \"complete\"]\n"
    );
    let world = World::scripted(&Prd::stories(1), &script.replace('\\', "\\\\"));
    world.write(".gitignore", "check.sh\n");
    world.write("ralph.toml", "verify = [\"sh ./check.sh\"]\n");
    world.git(&["add", "."]);
    world.git(&["commit", "-qm", "settings"]);
    let check = "#!/bin/sh\ntest -e work.txt\n";
    world.write("check.sh", check);
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(world.read("check.sh"), check);
    assert!(world.path("work.txt").exists(), "{}", said.err);
    let told = "restored scripts of gates that the agent changed: check.sh";
    assert!(said.err.contains(told), "{}", said.err);
}
