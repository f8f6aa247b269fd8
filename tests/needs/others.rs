//! A disk that may be filled, a user who is not root, gpg.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use libtest_mimic::Trial;
use ralph::model::{Event, StopReason};

use crate::Need;
use crate::support::busy::{BusyRun, EACH};
use crate::support::world::{Said, said};
use crate::support::{Prd, World};

/// A disk of its own that nearly nobody else writes to, so that its room is known.
pub const MEMORY_DISK: &str = "/dev/shm";

pub fn tests() -> Vec<Trial> {
    let mut tests = trials![
        Need::MemoryDisk;
        others::an_agent_that_fills_the_disk_is_ended_and_its_work_stays,
        others::a_full_disk_is_noticed_whatever_the_run_waits_for,
    ];
    tests.extend(trials![
        Need::OrdinaryUser;
        others::a_file_that_cannot_be_written_is_refused_before_the_work,
    ]);
    tests.extend(trials![Need::Gpg; others::commits_are_signed_with_gpg_when_yours_are]);
    tests
}

fn an_agent_that_fills_the_disk_is_ended_and_its_work_stays() {
    let world = World::with_in(Path::new(MEMORY_DISK), &Prd::stories(1));
    let fill = "for i in $(seq 40); do head -c 1000000 /dev/zero >> ../fill; sleep 0.1; done";
    let script = format!(
        "[default]\nsteps = [{{ write = \"half.txt\", text = \"half\" }}, {{ run = \"{fill}\" }}, \"complete\"]\n"
    );
    fs::write(world.script(), script).unwrap();
    let room = rustix::fs::statvfs(MEMORY_DISK).unwrap();
    let floor = room.f_bavail * room.f_frsize - 8_000_000;
    world.write("ralph.toml", &format!("min_free_disk = {floor}\n"));
    let said = world.run(&[]);
    assert_eq!(said.code, 4, "{}", said.err);
    assert!(said.err.contains("ended the agent, its work stays"), "{}", said.err);
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
        let room = rustix::fs::statvfs(MEMORY_DISK).unwrap();
        let floor = room.f_bavail * room.f_frsize - 8_000_000;
        let settings = format!("min_free_disk = {floor}\n");
        let run = BusyRun::start_in(Path::new(MEMORY_DISK), busy, &settings, &[]);
        assert!(run.is_busy(), "{busy:?}");
        let BusyRun { terminal, world, .. } = run;
        fs::write(world.path("../fill"), vec![0; 12_000_000]).unwrap();
        let (code, screen) = terminal.finish();
        assert_eq!(code, 4, "{busy:?}: {screen}");
        assert!(screen.contains("Disk nearly full"), "{busy:?}: {screen}");
        assert_eq!(world.processes(), [""; 0], "{busy:?}");
        let last = world.journal().pop().unwrap().event;
        let reason = StopReason::DiskLow { free: 0, floor, place: String::new() };
        assert!(
            matches!(&last, Event::RunEnded { reason: found } if found.stop().word == reason.stop().word),
            "{busy:?}: {last:?}"
        );
    }
}

fn a_file_that_cannot_be_written_is_refused_before_the_work() {
    let world = World::with(&Prd::stories(1));
    let mode = |mode| {
        let permissions = std::os::unix::fs::PermissionsExt::from_mode(mode);
        fs::set_permissions(world.path("PRD.json"), permissions).unwrap();
    };
    mode(0o444);
    let said = world.run(&[]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("PRD.json"), "{}", said.err);
    mode(0o644);
}

fn commits_are_signed_with_gpg_when_yours_are() {
    let world = World::with(&Prd::stories(1));
    let home = world.home().join("g");
    fs::create_dir(&home).unwrap();
    fs::set_permissions(&home, fs::Permissions::from_mode(0o700)).unwrap();
    let in_home = |program: &str, args: &[&str]| -> Said {
        let mut command = world.command(program);
        let output = command.env("GNUPGHOME", &home).args(args).output().unwrap();
        said(&output)
    };
    let id = "Tester <tester@example.org>";
    let key =
        ["--batch", "--passphrase", "", "--quick-generate-key", id, "ed25519", "sign", "never"];
    let made = in_home("gpg", &key);
    assert_eq!(made.code, 0, "{}", made.err);
    world.git(&["config", "commit.gpgsign", "true"]);
    let run = said(&world.run_command(&[]).env("GNUPGHOME", &home).output().unwrap());
    let verified = in_home("git", &["verify-commit", "HEAD"]);
    let unsigned = in_home("git", &["verify-commit", "HEAD^"]);
    in_home("gpgconf", &["--kill", "gpg-agent"]);
    assert_eq!(run.code, 0, "{}", run.err);
    assert_eq!(verified.code, 0, "{}", verified.err);
    assert!(verified.err.contains("Good signature"), "{}", verified.err);
    assert_ne!(unsigned.code, 0, "the commit before was not signed");
}
