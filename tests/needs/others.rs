//! A disk that may be filled, a user who is not root, gpg.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use libtest_mimic::Trial;
use ralph::model::{Event, StopReason};

use crate::support::busy::{BusyRun, EACH};
use crate::support::world::{RALPH, Runs, Said};
use crate::support::{Prd, World};
use crate::{Need, is_root};

/// A disk of its own that nearly nobody else writes to, so that its room is known.
pub const MEMORY_DISK: &str = "/dev/shm";
/// A user that every system has.
pub const NOBODY: u32 = 65_534;

pub fn tests() -> Vec<Trial> {
    let mut tests = trials![
        Need::MemoryDisk;
        others::an_agent_that_fills_the_disk_is_ended_and_its_work_stays,
        others::a_full_disk_is_noticed_whatever_the_run_waits_for,
        others::an_agent_that_cleans_up_when_it_is_ended_has_filled_the_disk_all_the_same,
        others::a_repository_on_another_disk_is_guarded_too,
    ];
    tests.extend(trials![
        Need::OrdinaryUser;
        others::a_file_that_cannot_be_written_is_refused_before_the_work,
        others::what_an_agent_made_unreadable_costs_no_run_and_is_not_gone,
        others::an_ordinary_user_may_allow_everything,
    ]);
    tests.extend(trials![Need::Root; others::a_repository_of_another_user_is_refused]);
    tests.extend(trials![Need::Gpg; others::commits_are_signed_with_gpg_when_yours_are]);
    tests
}

/// The disk, for one test at a time.
struct Disk {
    /// Less than there is, by what others may come to use meanwhile.
    floor: u64,
    too_much: u64,
    _alone: MutexGuard<'static, ()>,
}

impl Disk {
    fn new() -> Self {
        static ALONE: Mutex<()> = Mutex::new(());
        // A test that failed has left nothing on it.
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let room = rustix::fs::statvfs(MEMORY_DISK).unwrap();
        let free = room.f_bavail * room.f_frsize;
        let margin = (free / 4).min(100_000_000);
        Self { floor: free - margin, too_much: margin * 3 / 2, _alone: alone }
    }
}

fn an_agent_that_fills_the_disk_is_ended_and_its_work_stays() {
    let disk = Disk::new();
    let world = World::with_in(Path::new(MEMORY_DISK), &Prd::stories(1));
    let fill = format!("head -c {} /dev/zero > ../fill", disk.too_much);
    let script = format!(
        "[default]\nsteps = [{{ write = \"half.txt\", text = \"half\" }}, {{ run = \"{fill}\" }}, \"hang\"]\n"
    );
    fs::write(world.script(), script).unwrap();
    let floor = disk.floor;
    world.write("ralph.toml", &format!("min_free_disk = {floor}\n"));
    let said = world.run(&[]);
    assert_eq!(said.code, 4, "{}", said.err);
    assert!(said.err.contains("unfinished work is kept"), "{}", said.err);
    assert!(said.err.contains("Disk nearly full"), "{}", said.err);
    assert_eq!(world.processes(), [""; 0]);
    assert_eq!(world.read("half.txt"), "half");
    assert_eq!(world.subjects(), ["backlog", "first"]);

    fs::remove_file(world.path("../fill")).unwrap();
    fs::write(world.script(), "[default]\nsteps = [\"complete\"]\n").unwrap();
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(world.git(&["show", "HEAD:half.txt"]), "half");
}

fn a_full_disk_is_noticed_whatever_the_run_waits_for() {
    for busy in EACH {
        let disk = Disk::new();
        let floor = disk.floor;
        let settings = format!("min_free_disk = {floor}\n");
        let run = BusyRun::start_in(Path::new(MEMORY_DISK), busy, &settings, &[]);
        run.require_busy();
        let BusyRun { terminal, world, .. } = run;
        fs::write(world.path("../fill"), vec![0; usize::try_from(disk.too_much).unwrap()]).unwrap();
        let (code, screen) = terminal.finish();
        assert_eq!(code, 4, "{busy:?}: {screen}");
        assert!(screen.contains("Disk nearly full"), "{busy:?}: {screen}");
        assert_eq!(world.processes(), [""; 0], "{busy:?}");
        let last = world.journal().pop().unwrap().event;
        let reason = StopReason::DiskLow { free: 0, floor, place: String::new() };
        assert!(
            matches!(&last, Event::RunEnded { reason: found } if found.word() == reason.word()),
            "{busy:?}: {last:?}"
        );
    }
}

/// The next agent would fill it again.
fn an_agent_that_cleans_up_when_it_is_ended_has_filled_the_disk_all_the_same() {
    let disk = Disk::new();
    let world = World::with_in(Path::new(MEMORY_DISK), &Prd::stories(1));
    world.write("ralph.toml", &format!("min_free_disk = {}\n", disk.floor));
    let agent = format!(
        "sh -c 'trap \"rm ../fill; exit 0\" TERM; echo half > half.txt; \
         head -c {} /dev/zero > ../fill; while :; do sleep 0.05; done'",
        disk.too_much
    );
    let said = world.ralph(&["run", "--trust", "--agent-command", &agent]);
    assert_eq!(said.code, 4, "{}", said.err);
    assert!(!world.path("../fill").exists(), "it had the time to clean up");
    let events: Vec<Event> = world.journal().into_iter().map(|one| one.event).collect();
    let started = |event: &&Event| matches!(event, Event::AttemptStarted(_));
    assert_eq!(events.iter().filter(started).count(), 1, "{}", said.err);
    let last = events.last().unwrap();
    let is_disk = matches!(last, Event::RunEnded { reason: StopReason::DiskLow { .. } });
    assert!(is_disk, "{last:?}");
}

/// Files cannot be renamed from one disk to the other.
fn a_repository_on_another_disk_is_guarded_too() {
    let _alone = Disk::new();
    let script = r#"
        [default]
        steps = [
          { run = "echo Obey. > PROMPT.md; rm notes.txt; echo x > w.txt" },
          { run = "git config ralph.test x" },
          "complete",
        ]
    "#;
    let world = World::scripted(&Prd::stories(1), script);
    world.write("PROMPT.md", "Work.\n");
    world.write("notes.txt", "the user's own\n");
    let folder = tempfile::tempdir_in(MEMORY_DISK).unwrap();
    let device = |path: &Path| path.metadata().unwrap().dev();
    assert_ne!(device(folder.path()), device(&world.root()), "two disks");
    let git = folder.path().join("git");
    let moved = world.command("mv").arg(".git").arg(&git).said();
    assert_eq!(moved.code, 0, "{}", moved.err);
    world.write(".git", &format!("gitdir: {}\n", git.display()));
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(world.read("PROMPT.md"), "Work.\n", "{}", said.err);
    assert_eq!(world.read("notes.txt"), "the user's own\n", "{}", said.err);
    assert_eq!(world.git(&["show", "--name-only", "--format=", "HEAD"]), "PRD.json\nw.txt\n");
    assert!(!fs::read_to_string(git.join("config")).unwrap().contains("ralph"), "{}", said.err);
    assert_eq!(world.status(), "?? PROMPT.md\n?? notes.txt\n");
}

/// `ralph` in this world, which belongs to an ordinary user from here on, by that user.
fn by_ordinary_user(world: &World) -> Command {
    if !is_root() {
        return world.command(RALPH);
    }
    // Wherever it was built, that user may not be able to get there.
    let program = world.home().join("ralph");
    if !program.exists() {
        world.copy_program(Path::new(RALPH), &program);
    }
    give_away(world.root().parent().unwrap(), NOBODY);
    let mut command = world.command(program.to_str().unwrap());
    command.uid(NOBODY).gid(NOBODY);
    command
}

fn give_away(path: &Path, user: u32) {
    lchown(path, Some(user), Some(user)).unwrap();
    if path.is_dir() && !path.is_symlink() {
        for entry in fs::read_dir(path).unwrap() {
            give_away(&entry.unwrap().path(), user);
        }
    }
}

fn what_an_agent_made_unreadable_costs_no_run_and_is_not_gone() {
    for act in [
        "chmod 000 README.md",
        "echo x > new; chmod 000 new",
        "chmod 000 lib",
        "chmod 444 lib",
        "echo x >> lib/keep; chmod 000 lib/keep lib",
    ] {
        let script =
            format!("[default]\nsteps = [{{ run = 'echo w > w.txt; {act}' }}, \"complete\"]\n");
        let world = World::scripted(&Prd::stories(1), &script);
        world.write("lib/keep", "kept\n");
        world.git(&["add", "."]);
        world.git(&["commit", "-qm", "lib"]);
        let mut command = by_ordinary_user(&world);
        let said = command.args(world.run_words(&[])).said();
        assert_eq!(said.code, 0, "{act}: {}", said.err);
        let mut kept = world.command("git");
        let kept = kept.args(["-c", "safe.directory=*", "show", "HEAD:lib/keep", "HEAD:w.txt"]);
        let kept = kept.said().out;
        assert!(kept.starts_with("kept\n") && kept.ends_with("w\n"), "{act}: {kept}");
    }
}

fn a_file_that_cannot_be_written_is_refused_before_the_work() {
    let set =
        |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    for (what, open, closed) in [("plans/PRD.json", 0o644, 0o444), ("plans", 0o755, 0o555)] {
        let world = World::new();
        world.write("plans/PRD.json", &Prd::stories(1).text());
        world.git(&["add", "."]);
        world.git(&["commit", "-qm", "backlog"]);
        let run = || {
            let mut command = by_ordinary_user(&world);
            command.args(["run", "--trust", "--agent", "mock", "plans/PRD.json"]).said()
        };
        set(&world.path(what), closed);
        let said = run();
        assert_eq!(said.code, 1, "{what}: {}", said.err);
        assert!(said.err.contains("cannot write") && said.err.contains("PRD.json"), "{}", said.err);
        assert!(!world.path(".ralph/runs").exists(), "{what}: an agent has worked");
        set(&world.path(what), open);
        let said = run();
        assert_eq!(said.code, 0, "{what}: {}", said.err);
    }
}

/// Ordinary users may, with a warning; root may not, outside a sandbox.
fn an_ordinary_user_may_allow_everything() {
    let world = World::with(&Prd::stories(1));
    let claude = r#"#!/bin/sh
printf '%s\n' "$@" > "$HOME/args"
echo x > "$RALPH_STORY.txt"
echo '{"type":"system","subtype":"init"}'
printf '{"type":"assistant","message":{"content":[{"type":"text","text":"Task %s complete"}]}}\n' "$RALPH_STORY"
echo '{"type":"result","subtype":"success","is_error":false,"result":"done"}'
"#;
    let folder = world.home().join("bin");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("claude"), claude).unwrap();
    fs::set_permissions(folder.join("claude"), fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = by_ordinary_user(&world);
    let path = std::env::var("PATH").unwrap();
    command.env("PATH", format!("{}:{path}", folder.display()));
    let args = ["run", "--once", "--trust", "--permission-mode", "bypassPermissions"];
    let said = command.args(args).said();
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.err.contains("use this only in a sandbox"), "{}", said.err);
    let args = fs::read_to_string(world.home().join("args")).unwrap();
    assert!(args.contains("--permission-mode=bypassPermissions\n"), "{args}");
}

fn a_repository_of_another_user_is_refused() {
    let world = World::with(&Prd::stories(1));
    assert_eq!(world.run(&["--dry-run"]).code, 0);
    give_away(&world.root(), 54_321);
    let said = world.run(&[]);
    assert_eq!(said.code, 1, "{}", said.err);
    assert!(said.err.contains("safe.directory"), "{}", said.err);
    assert!(!world.path(".ralph/runs").exists() && !world.path(".git/ralph").exists());
}

fn commits_are_signed_with_gpg_when_yours_are() {
    let world = World::with(&Prd::stories(1));
    let home = world.home().join("g");
    fs::create_dir(&home).unwrap();
    fs::set_permissions(&home, fs::Permissions::from_mode(0o700)).unwrap();
    let in_home = |program: &str, args: &[&str]| -> Said {
        let mut command = world.command(program);
        command.env("GNUPGHOME", &home).args(args).said()
    };
    let id = "Tester <tester@example.org>";
    let key =
        ["--batch", "--passphrase", "", "--quick-generate-key", id, "ed25519", "sign", "never"];
    let made = in_home("gpg", &key);
    assert_eq!(made.code, 0, "{}", made.err);
    world.git(&["config", "commit.gpgsign", "true"]);
    let run = world.run_command(&[]).env("GNUPGHOME", &home).said();
    let verified = in_home("git", &["verify-commit", "HEAD"]);
    let unsigned = in_home("git", &["verify-commit", "HEAD^"]);
    in_home("gpgconf", &["--kill", "gpg-agent"]);
    assert_eq!(run.code, 0, "{}", run.err);
    assert_eq!(verified.code, 0, "{}", verified.err);
    assert!(verified.err.contains("Good signature"), "{}", verified.err);
    assert_ne!(unsigned.code, 0, "the commit before was not signed");
}
