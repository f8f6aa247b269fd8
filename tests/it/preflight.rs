//! Before the first agent: what a repository has, and what ralph does about it.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::support::pty::Terminal;
use crate::support::world::{Ends, Runs, signal, until};
use crate::support::{Prd, World};

/// Refused: exit 1, nothing was started, and the remedy is named.
fn assert_refused(world: &World, remedy: &str) {
    let said = world.run(&[]);
    assert_eq!(said.code, 1, "{}", said.err);
    assert!(said.err.contains(remedy), "{}", said.err);
    assert!(!world.path(".ralph/runs").exists(), "an agent was started");
    assert_eq!(world.passing(), [""; 0]);
}

fn one_story() -> World {
    World::with(&Prd::stories(1))
}

/// Two branches that disagree about README.md.
fn disagreeing() -> World {
    let world = one_story();
    world.git(&["switch", "-qc", "other"]);
    world.write("README.md", "theirs\n");
    world.git(&["commit", "-qam", "theirs"]);
    world.git(&["switch", "-q", "work"]);
    world.write("README.md", "ours\n");
    world.git(&["commit", "-qam", "ours"]);
    world
}

fn git_fails(world: &World, args: &[&str]) {
    assert_ne!(world.command("git").args(args).said().code, 0);
}

fn make_executable(world: &World, name: &str) {
    fs::set_permissions(world.path(name), fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn operations_in_progress_and_unmerged_files_are_refused() {
    let world = disagreeing();
    for what in ["merge", "rebase", "cherry-pick"] {
        git_fails(&world, &[what, "other"]);
        assert_refused(&world, &format!("`git {what} --abort`"));
        world.git(&[what, "--abort"]);
    }
    git_fails(&world, &["merge", "other"]);
    fs::remove_file(world.path(".git/MERGE_HEAD")).unwrap();
    assert_refused(&world, "unmerged files (README.md): resolve and `git add`");
    world.git(&["reset", "-q", "--hard"]);
    assert_eq!(world.run(&[]).code, 0);
}

#[test]
fn a_format_that_cannot_be_read_is_refused() {
    let world = World::without_repository();
    world.git(&["init", "-q", "-b", "work", "--object-format=sha256"]);
    world.write("PRD.json", &Prd::stories(1).text());
    assert_refused(&world, "it needs SHA-1");
}

#[test]
fn an_index_that_is_locked_for_too_long_is_refused_and_the_lock_stays() {
    let world = one_story();
    world.write(".git/index.lock", "");
    assert_refused(&world, "another git process holds");
    assert!(world.path(".git/index.lock").exists());
}

#[test]
fn edits_of_tracked_files_are_refused_with_the_list() {
    let world = World::scripted(
        &Prd::stories(1),
        "[default]\nsteps = [{ run = \"echo x > x\" }, \"complete\"]\n",
    );
    world.write("README.md", "my edit\n");
    world.write("new.txt", "staged\n");
    world.git(&["add", "new.txt"]);
    assert_refused(&world, "uncommitted edits:\n    README.md\n    new.txt\n");
    assert!(world.run(&[]).err.contains("--allow-dirty"));
    let said = world.run(&["--allow-dirty"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.err.contains("uncommitted edits, never committed: README.md, new.txt"));
    assert_eq!(world.status(), " M README.md\nA  new.txt\n");
    assert_eq!(world.git(&["show", "--name-only", "--format=", "HEAD"]), "PRD.json\nx\n");
}

#[test]
fn the_humans_own_files_are_no_obstacle() {
    let world = one_story();
    world.write("PROMPT.md", "Do the work.\n");
    world.git(&["add", "."]);
    world.git(&["commit", "-qm", "prompt"]);
    world.write("PROMPT.md", "Do it well.\n");
    world.write("PRD.json", &Prd::stories(2).text());
    world.write("ralph.toml", "max_iterations = 9\n");
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(!said.err.contains("untracked"), "{}", said.err);
}

#[test]
fn a_pipe_or_a_huge_file_in_a_files_place_is_one_clear_error() {
    for (name, why) in [
        ("ralph.toml", "cannot read ralph.toml: it is "),
        ("PROMPT.md", "PROMPT.md`: it is "),
        ("PRD.json", "`PRD.json` is "),
    ] {
        let world = one_story();
        let path = world.path(name);
        let _ = fs::remove_file(&path);
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        let said = world.run(&[]);
        assert!(said.code != 0 && said.err.contains(why), "{name}: {}", said.err);
        fs::remove_file(&path).unwrap();
        File::create(&path).unwrap().set_len(10 << 30).unwrap();
        let said = world.run(&[]);
        assert!(said.err.contains(why) && said.err.contains("larger than"), "{}", said.err);
    }
}

#[test]
fn ralph_toml_can_allow_edits() {
    let world = one_story();
    world.write("ralph.toml", "allow_dirty = true\n");
    world.write("README.md", "my edit\n");
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(world.read("README.md"), "my edit\n");
}

#[test]
fn in_a_terminal_a_menu_asks_about_edits() {
    let world = one_story();
    world.write("README.md", "my edit\n");
    let mut terminal = Terminal::start(world.run_command(&[]));
    let screen = terminal.await_text("[g] go ahead");
    assert!(screen.contains("Run with uncommitted edits") && screen.contains("README.md"));
    terminal.press("\r");
    let (code, screen) = terminal.finish();
    assert_eq!(code, 1, "{screen}");
    let mut terminal = Terminal::start(world.run_command(&[]));
    terminal.await_text("[g] go ahead");
    terminal.press("\x03");
    assert_eq!(terminal.finish().0, 130);
    let mut terminal = Terminal::start(world.run_command(&[]));
    terminal.await_text("[g] go ahead");
    terminal.press("g");
    let (code, screen) = terminal.finish();
    assert_eq!(code, 0, "{screen}");
    assert_eq!(world.status(), " M README.md\n");
}

#[test]
fn a_story_under_way_is_no_obstacle_to_going_on() {
    let script = "[[story.US-001.attempts]]\nsteps = [{ run = \"echo half >> README.md\" }]\n\
                  [[story.US-001.attempts]]\nsteps = [\"complete\"]\n";
    let world = World::scripted(&Prd::stories(1), script);
    assert_eq!(world.run(&["--once"]).code, 3);
    assert_eq!(world.status(), " M README.md\n");
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(world.status(), "");
}

#[test]
fn allow_dirty_holds_until_the_run_ends() {
    let world = one_story();
    world.write("ralph.toml", "verify = [\"test -e ../go || { touch ../waits; sleep 1000; }\"]\n");
    world.write("README.md", "my edit\n");
    let child = world.start(&["--allow-dirty"]);
    until("the baseline runs", || world.path("../waits").exists().then_some(()));
    signal(&child, rustix::process::Signal::INT);
    assert_eq!(child.ended().code, 130);
    world.write("../go", "");
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(world.read("README.md"), "my edit\n");
    world.write("PRD.json", &Prd::stories(2).text());
    assert_refused_again(&world);
}

/// Another run is another question.
fn assert_refused_again(world: &World) {
    let said = world.run(&[]);
    assert_eq!(said.code, 1, "{}", said.err);
    assert!(said.err.contains("--allow-dirty"), "{}", said.err);
}

const SHARED: &str = "one\ntwo\nthree\nfour\nfive\nsix\nseven\n";

/// A file of seven lines whose first the user has edited.
fn shared(agent: &str, settings: &str) -> World {
    let script = format!("[default]\nsteps = [{{ run = '''{agent}''' }}, \"complete\"]\n");
    let world = World::scripted(&Prd::stories(1), &script);
    world.write("shared.txt", SHARED);
    world.write("ralph.toml", settings);
    world.git(&["add", "."]);
    world.git(&["commit", "-qm", "shared"]);
    world.write("shared.txt", &SHARED.replace("one", "one, mine"));
    world
}

#[test]
fn a_file_that_both_edited_is_committed_with_the_agents_part_and_the_gates_say_so() {
    let world = shared("echo eight >> shared.txt", "verify = [\"grep -q eight shared.txt\"]\n");
    let said = world.run(&["--allow-dirty"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(world.git(&["show", "HEAD:shared.txt"]), format!("{SHARED}eight\n"));
    let both = format!("{}eight\n", SHARED.replace("one", "one, mine"));
    assert_eq!(world.read("shared.txt"), both);
    assert_eq!(world.status(), " M shared.txt\n");
    let message = world.git(&["log", "-1", "--format=%B"]);
    let note = "\nRalph-Note: gates ran with uncommitted edits in shared.txt\n";
    assert!(message.contains(note), "{message}");
}

#[test]
fn the_same_lines_are_asked_about_and_nothing_is_lost() {
    let world = shared("sed -i 's/one, mine/one, ours/' shared.txt", "");
    let said = world.run(&["--allow-dirty"]);
    assert_eq!(said.code, 4, "{}", said.err);
    assert!(said.err.contains("`shared.txt` had uncommitted edits of the user"), "{}", said.err);
    assert_eq!(world.read("shared.txt"), SHARED.replace("one", "one, mine"));
    assert_eq!(world.iteration_files("prompt.md").len(), 1, "the agent cannot mend it");
    let mut terminal = Terminal::start(world.run_command(&["--allow-dirty"]));
    terminal.await_text("[y] accept it as done");
    terminal.press("y");
    let (code, screen) = terminal.finish();
    assert_eq!(code, 0, "{screen}");
    assert_eq!(world.git(&["show", "HEAD:shared.txt"]), SHARED.replace("one", "one, ours"));
    assert_eq!(world.status(), "");
}

#[test]
fn without_edits_the_record_has_no_note() {
    let world = one_story();
    world.write("ralph.toml", "verify = [\"true\"]\n");
    assert_eq!(world.run(&[]).code, 0);
    let message = world.git(&["log", "-1", "--format=%B"]);
    assert!(message.contains("Ralph-Gate") && !message.contains("Ralph-Note"), "{message}");
}

#[test]
fn untracked_files_are_kept_and_never_committed() {
    let script =
        "[default]\nsteps = [{ run = \"echo more >> notes.txt; echo x > x\" }, \"complete\"]\n";
    let world = World::scripted(&Prd::stories(1), script);
    for name in ["notes.txt", "b.txt", "c/d.txt", "c/e.txt", "f.txt"] {
        world.write(name, "mine\n");
    }
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    let notice = "untracked files, never committed: b.txt, c/, f.txt, notes.txt\n";
    assert!(said.err.contains(notice), "{}", said.err);
    assert!(
        said.err.contains("notes.txt was not committed: it was untracked before the story"),
        "{}",
        said.err
    );
    assert_eq!(world.git(&["show", "--name-only", "--format=", "HEAD"]), "PRD.json\nx\n");
    assert_eq!(world.read("notes.txt"), "mine\nmore\n");
}

#[test]
fn hooks_are_reported_and_the_pre_commit_hook_is_offered_as_a_gate() {
    let world = one_story();
    world.write(".git/hooks/pre-commit", "#!/bin/sh\ntouch ../ran\n");
    make_executable(&world, ".git/hooks/pre-commit");
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    let told = "git hooks that ralph does not run: ";
    let line = format!(
        "{told}.git/hooks/pre-commit; to run pre-commit as a gate, add \
         `verify = [\".git/hooks/pre-commit\"]` to ralph.toml"
    );
    assert!(said.err.contains(&line), "{}", said.err);
    assert!(!world.path("../ran").exists());
    let world = one_story();
    world.write("tools/pre-commit", "#!/bin/sh\ntouch ../ran\n");
    make_executable(&world, "tools/pre-commit");
    world.write("ralph.toml", "verify = [\"tools/pre-commit\"]\n");
    world.git(&["config", "core.hooksPath", "tools"]);
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(!said.err.contains(told), "{}", said.err);
    assert!(world.path("../ran").exists());
}

#[test]
fn filters_a_sparse_checkout_and_submodules_are_reported() {
    let script = "[default]\nsteps = [{ run = \"date >> x\" }, \"complete\"]\n";
    let world = World::scripted(&Prd::stories(1), script);
    let plain = world.run(&[]).err;
    for quiet in ["git attributes", "sparse", "submodules", "hooks", "signed"] {
        assert!(!plain.contains(quiet), "{plain}");
    }
    world.write("PRD.json", &Prd::stories(1).text());
    world.write(".gitattributes", "*.bin filter=lfs\n");
    world.git(&["config", "filter.lfs.clean", "cat"]);
    world.git(&["init", "-q", "../lib"]);
    world.write("../lib/a", "a\n");
    let lib = |args: &[&str]| world.git(&[&["-C", "../lib"], args].concat());
    lib(&["add", "."]);
    lib(&["-c", "user.name=L", "-c", "user.email=l@l", "commit", "-qm", "lib"]);
    world.git(&["-c", "protocol.file.allow=always", "submodule", "add", "-q", "../lib", "lib"]);
    world.git(&["add", "."]);
    world.git(&["commit", "-qm", "surroundings"]);
    world.git(&["sparse-checkout", "set", "--no-sparse-index", "other"]);
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    for told in [
        "git attributes that ralph cannot apply: filter=lfs",
        "sparse checkout: excluded files stay as committed",
        "submodules: lib; ralph commits their commit ids",
    ] {
        assert!(said.err.contains(told), "{told}: {}", said.err);
    }
}

fn sign_with_ssh(world: &World, passphrase: &str) {
    let key = world.home().join("key");
    let key = key.to_str().unwrap();
    let mut keygen = world.command("ssh-keygen");
    let made = keygen.args(["-q", "-t", "ed25519", "-N", passphrase, "-C", "t", "-f", key]);
    assert!(made.status().unwrap().success());
    let public = fs::read_to_string(format!("{key}.pub")).unwrap();
    let signers = world.home().join("signers");
    fs::write(&signers, format!("tester@example.org {public}")).unwrap();
    for (name, value) in [
        ("gpg.format", "ssh"),
        ("commit.gpgsign", "true"),
        ("user.signingkey", "~/key.pub"),
        ("gpg.ssh.allowedSignersFile", signers.to_str().unwrap()),
    ] {
        world.git(&["config", name, value]);
    }
}

#[test]
fn commits_are_signed_with_ssh_when_yours_are() {
    let world = World::with(&Prd::stories(2));
    sign_with_ssh(&world, "");
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.err.contains("commits will be signed"), "{}", said.err);
    assert_eq!(world.git(&["log", "-2", "--format=%G? %GS"]), "G tester@example.org\n".repeat(2));
    world.git(&["verify-commit", "HEAD", "HEAD^"]);
}

#[test]
fn a_signature_that_cannot_be_made_is_refused_before_any_agent() {
    let world = one_story();
    sign_with_ssh(&world, "secret");
    assert_refused(&world, "unlock the key with `ssh-add`");
    // Also at a terminal nobody is asked for a passphrase.
    let terminal = Terminal::start(world.run_command(&[]));
    let (code, screen) = terminal.finish();
    assert_eq!(code, 1, "{screen}");
    assert!(screen.contains("ssh-add") && !screen.contains("Enter passphrase"), "{screen}");
}
