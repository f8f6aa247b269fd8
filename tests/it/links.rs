//! Links that an agent leaves where ralph writes: nothing outside of the work tree changes.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::support::{Prd, World};

/// Two stories with a gate each; the first attempt does `act`. `$OUT` is a folder of the user's.
fn with_outside(act: &str) -> World {
    let script = format!(
        r#"
        [[story.US-001.attempts]]
        steps = [{{ run = '''OUT=$(cd .. && pwd)/outside; {act}; echo a > a.txt''' }}, "complete"]
        [default]
        steps = [{{ write = "b.txt", text = "b\n" }}, "complete"]
        "#
    );
    let world = World::scripted(&Prd::stories(2), &script);
    fs::create_dir(world.path("../outside")).unwrap();
    world.write("../outside/file", "theirs\n");
    world.write("ralph.toml", "verify = [\"echo a gate ran\"]\n");
    world.git(&["add", "ralph.toml"]);
    world.git(&["commit", "-qm", "gate"]);
    world
}

fn outside_is_untouched(world: &World, case: &str) {
    assert_eq!(world.read("../outside/file"), "theirs\n", "{case}");
    assert_eq!(fs::read_dir(world.path("../outside")).unwrap().count(), 1, "{case}");
}

#[test]
fn logs_and_prompts_are_not_written_through_links() {
    for act in [
        "ln -sf $OUT/file .ralph/runs/*/0001-US-001.gates.log 2>/dev/null; \
         for run in .ralph/runs/*; do for kind in gates.log log stderr prompt.md; do \
         ln -sf $OUT/file $run/0001-US-001.$kind; ln -sf $OUT/new $run/0002-US-002.$kind; done; done",
        "for run in .ralph/runs/*; do ln -f $OUT/file $run/0002-US-002.log; \
         ln -f $OUT/file $run/0001-US-001.gates.log; done",
        "run=$(echo .ralph/runs/*); rm -rf $run; ln -s $OUT $run",
        "rm -rf .ralph/runs; ln -s $OUT .ralph/runs",
        "rm -rf .ralph; ln -s $OUT .ralph",
        "rm -rf .ralph; ln -s $OUT/file .ralph",
        "rm -rf .ralph; mkfifo .ralph",
        "for name in status.json report.json .gitignore; do ln -sf $OUT/file .ralph/$name; done",
    ] {
        let world = with_outside(act);
        let said = world.run(&[]);
        assert_eq!(said.code, 0, "{act}\n{}", said.err);
        outside_is_untouched(&world, act);
        assert_eq!(world.passing(), ["US-001", "US-002"], "{act}");
        let log = fs::read_to_string(world.iteration_file("0002-US-002.gates.log")).unwrap();
        assert!(log.contains("a gate ran"), "{act}: {log}");
        assert_eq!(world.git(&["status", "--porcelain"]), "", "{act}");
    }
}

/// The story is skipped, so that its work leaves the tree; then the human undoes and restores.
#[test]
fn a_tracked_folder_that_became_a_link_is_put_back() {
    for ignore in ["", "; echo src > .gitignore"] {
        let world = with_outside(&format!("rm -rf src; ln -s $OUT src{ignore}"));
        world.write("src/file", "ours\n");
        world.write(
            "ralph.toml",
            "verify = [\"test -e src/file && test ! -L src\"]\nmax_attempts = 1\n",
        );
        world.git(&["add", "."]);
        world.git(&["commit", "-qm", "src"]);
        let said = world.run(&["--on-escalation", "skip"]);
        assert_eq!(said.code, 0, "{}", said.err);
        outside_is_untouched(&world, ignore);
        assert_eq!(world.read("src/file"), "ours\n", "{ignore}");
        assert_eq!(world.git(&["status", "--porcelain"]), "", "{ignore}");

        fs::remove_dir_all(world.path("src")).unwrap();
        std::os::unix::fs::symlink("../outside", world.path("src")).unwrap();
        for command in [["undo", "US-002"], ["checkpoint", "mine"], ["restore", "1"]] {
            world.ralph(&command);
            outside_is_untouched(&world, command[0]);
        }
        assert_eq!(world.read("src/file"), "ours\n", "{ignore}");
    }
}

/// Whatever git or ralph would read, wait for or write through.
#[test]
fn pipes_gigabytes_and_links_in_gits_files_cost_an_iteration_at_most() {
    for act in [
        "mkfifo .gitignore .gitattributes; mkdir sub; mkfifo sub/.gitignore",
        "rm -f .ralph/.gitignore; mkfifo .ralph/.gitignore",
        "truncate -s 10G large .gitattributes",
        "rm .git/HEAD; mkfifo .git/HEAD",
        "rm .git/HEAD; ln -s $OUT/file .git/HEAD",
        "rm .git/index; mkfifo .git/index",
        "mv .git/index $OUT/index; ln -s $OUT/index .git/index",
        "truncate -s 10G .git/index",
        "rm -r .git/logs; ln -s $OUT .git/logs",
        "rm .git/logs/HEAD; ln -s $OUT/file .git/logs/HEAD",
        "rm .git/logs/refs/heads/work; ln -s $OUT/file .git/logs/refs/heads/work",
        "rm -f .git/info/exclude; mkfifo .git/info/exclude",
        "rm .git/config; mkfifo .git/config",
        "rm -f .git/packed-refs; mkfifo .git/packed-refs",
        "rm .git/logs/refs/heads/work; mkfifo .git/logs/refs/heads/work .git/logs/refs/stash",
        "rm -f .git/ralph/index; mkfifo .git/ralph/index .git/shallow .git/info/grafts",
        "mkfifo $OUT/../fifo; git config include.path ../../fifo",
        "rm README.md; mkfifo README.md",
        "rm -f .git/ralph/lock; mkfifo .git/ralph/lock",
        "rm -f .git/packed-refs; ln -s $OUT/new .git/packed-refs",
        "rm -f .git/ralph/numbers; mkfifo .git/ralph/numbers; rm -f .git/ralph/index; mkfifo .git/ralph/index",
    ] {
        let world = with_outside(act);
        let said = world.run(&[]);
        assert_eq!(said.code, 0, "{act}\n{}", said.err);
        assert_eq!(world.passing(), ["US-001", "US-002"], "{act}");
        assert_eq!(world.read("../outside/file"), "theirs\n", "{act}");
        assert!(!world.path("../outside/new").exists(), "{act}");
        assert_eq!(world.git(&["branch", "--show-current"]), "work\n", "{act}");
        assert_eq!(world.git(&["show", "HEAD~1:a.txt"]), "a\n", "{act}");
        assert_eq!(world.git(&["fsck", "--strict", "--no-dangling"]), "", "{act}");
    }
}

#[test]
fn second_names_of_files_elsewhere_are_not_written_into() {
    for name in [
        ".git/ralph/numbers",
        ".git/ralph/kept",
        ".git/ralph/journal.db-newest",
        ".git/ralph/lock",
        ".git/logs/HEAD",
        ".git/logs/refs/heads/work",
        ".ralph/status.json",
        ".ralph/scratchpad.md",
    ] {
        let world = with_outside(&format!("chmod 644 $OUT/file; ln -f $OUT/file {name}"));
        let said = world.run(&[]);
        assert_eq!(said.code, 0, "{name}\n{}", said.err);
        outside_is_untouched(&world, name);
        let mode = fs::metadata(world.path("../outside/file")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o644, "{name}");
    }
}
