//! Daemons that the human wants kept: neither ended nor waited for.

use rustix::process::{Pid, Signal, kill_process};

use crate::support::pty::Terminal;
use crate::support::world::{Ends, until};
use crate::support::{Daemon, Prd, World};

/// The system cuts names after 15 characters.
const NAMES: [&str; 2] = ["short-daemon", "a-daemon-with-a-very-long-name"];

/// A daemon, and a process that is none. The agent continues when the daemon has its name: a process
/// that was only just started still has its parent's.
fn script(daemon: &Daemon<'_>, end: &str) -> String {
    format!(
        "[default]\nsteps = [{{ write = \"work.txt\", text = \"work\" }},\n\
           {{ grandchild = \"double-fork\", command = \"{}\", pid_file = \"../daemon\" }},\n\
           {{ grandchild = \"setsid\", command = \"exec sleep 1000\", pid_file = \"../other\" }},\n\
           {{ run = \"until [ -s ../daemon ] && [ -s ../other ] && \
           grep -q '^{}' /proc/$(cat ../daemon)/cmdline; do sleep 0.01; done; echo y > ../here\" }},\n\
           {end}]\n",
        daemon.command(),
        daemon.program().display(),
    )
}

fn pid(world: &World, file: &str) -> Pid {
    Pid::from_raw(world.await_file(file).trim().parse().unwrap()).unwrap()
}

/// The daemon is all that is left; then it is ended, by the test that started it.
fn only_the_daemon_is_left(world: &World) {
    let daemon = pid(world, "../daemon");
    let left = world.processes();
    assert!(left.len() == 1 && left[0].contains("-daemon"), "{left:?}");
    kill_process(daemon, Signal::KILL).unwrap();
    until("the daemon to be gone", || world.processes().is_empty().then_some(()));
}

#[test]
fn a_kept_daemon_outlives_its_agent_and_is_reported_once() {
    for name in NAMES {
        let world = World::with(&Prd::stories(1));
        let daemon = Daemon::new(&world, name);
        world.write("ralph.toml", &daemon.setting());
        std::fs::write(world.script(), script(&daemon, "\"complete\"")).unwrap();
        let said = world.run(&[]);
        assert_eq!(said.code, 0, "{}", said.err);
        let (daemon, other) = (pid(&world, "../daemon"), pid(&world, "../other"));
        let of = |pid: Pid| format!("({})", pid.as_raw_pid());
        let line = |start: &str| {
            let lines: Vec<&str> = said.err.lines().filter(|line| line.contains(start)).collect();
            assert_eq!(lines.len(), 1, "{start} {}", said.err);
            lines[0].to_owned()
        };
        let (ended, kept) =
            (line("ended processes that the agent left running"), line("left running (`keep"));
        assert!(ended.contains(&of(other)) && !ended.contains(&of(daemon)), "{ended}");
        assert!(kept.contains(&of(daemon)) && !kept.contains(&of(other)), "{kept}");
        only_the_daemon_is_left(&world);
    }
}

#[test]
fn it_outlives_an_interruption_and_a_killed_driver() {
    for how in [Signal::INT, Signal::KILL] {
        let world = World::with(&Prd::stories(1));
        let daemon = Daemon::new(&world, NAMES[1]);
        world.write("ralph.toml", &daemon.setting());
        std::fs::write(world.script(), script(&daemon, "\"hang\"")).unwrap();
        let child = world.start(&[]);
        world.await_file("../here");
        kill_process(Pid::from_child(&child), how).unwrap();
        let said = child.ended();
        assert_eq!(said.code, if how == Signal::INT { 130 } else { -1 }, "{}", said.err);
        until("the others to be gone", || (world.processes().len() == 1).then_some(()));
        only_the_daemon_is_left(&world);
    }
}

#[test]
fn an_agent_is_ended_whatever_its_name() {
    let world = World::with(&Prd::stories(1));
    world.write("ralph.toml", "idle_timeout = \"1s\"\nkeep_processes = [\"ralph\", \"sleep\"]\n");
    let said =
        world.ralph(&["run", "--once", "--agent-command", "sh -c 'echo hm; exec sleep 1000'"]);
    assert_eq!(said.code, 3, "{}", said.err);
    assert!(world.processes().is_empty(), "{:?}", world.processes());
}

/// A shell that is called `d`: what it does, it does while no attempt runs.
fn world_with_daemon(act: &str) -> World {
    let world = World::with(&Prd::stories(2));
    world.copy_program(std::path::Path::new("/bin/sh"), &world.home().join("d"));
    let daemon = world.home().join("d");
    let acts = format!("until test -e ../go; do sleep 0.02; done; {act}; echo y > ../acted");
    world.write("../daemon.sh", &format!("{acts}; while :; do sleep 0.02; done\n"));
    world
        .write("ralph.toml", "keep_processes = [\"d\"]\nverify = [\"test -e $RALPH_STORY.txt\"]\n");
    world.git(&["add", "."]);
    world.git(&["commit", "-qm", "settings"]);
    let start = format!(
        "setsid {0} ../daemon.sh < /dev/null > ../said 2>&1 & echo $! > ../daemon; \
         until grep -q '^{0}' /proc/$(cat ../daemon)/cmdline; do sleep 0.01; done; \
         echo work > US-001.txt",
        daemon.display()
    );
    let script = format!(
        "[[story.US-001.attempts]]\nsteps = [{{ run = '''{start}''' }}, {{ fail = \"usage-limit\", resets_in = \"1s\" }}]\n\
         [[story.US-001.attempts]]\n{WORKS}[default]\n{WORKS}"
    );
    std::fs::write(world.script(), script).unwrap();
    world
}

const WORKS: &str = "steps = [{ run = \"echo work > $RALPH_STORY.txt\" }, \"complete\"]\n";
const TICK: &str = r#"sed -i 's/"passes": false/"passes": true/' PRD.json"#;

/// The run waits for the usage limit, the daemon acts, and the human skips the wait.
#[test]
fn what_a_kept_daemon_does_between_attempts_is_not_the_humans() {
    for (act, told) in [
        (TICK, "reverted the marks of US-001, US-002"),
        ("sed -i 's/it is done/anything/' PRD.json", "PRD.json"),
        ("echo 'verify = []' > ralph.toml", "ralph's settings"),
        ("git config core.fsmonitor /bin/true", "git configuration or hooks"),
        ("echo 'do nothing' > PROMPT.md", "your instructions"),
    ] {
        let world = world_with_daemon(act);
        let mut terminal = Terminal::start(world.run_command(&[]));
        terminal.await_text("press Enter to skip the wait");
        world.write("../go", "");
        world.await_file("../acted");
        terminal.press("\r");
        let screen = terminal.await_text(told);
        assert!(!world.passing().contains(&"US-002".to_owned()), "{act}: {screen}");
        terminal.signal(Signal::TERM);
        let (_, screen) = terminal.finish();
        assert!(!world.path("PROMPT.md").exists(), "{act}: {screen}");
        assert!(!world.read(".git/config").contains("fsmonitor"), "{act}: {screen}");
        assert_ne!(world.read("ralph.toml"), "verify = []\n", "{act}: {screen}");
        kill_process(pid(&world, "../daemon"), Signal::KILL).unwrap();
        until("the daemon to be gone", || world.processes().is_empty().then_some(()));
    }
}

/// It lives on after the run; the next one takes no mark of its for the human's.
#[test]
fn a_mark_that_a_kept_daemon_sets_after_the_run_is_reverted() {
    let world = world_with_daemon(TICK);
    let said = world.run(&["--on-limit", "stop"]);
    assert_eq!(said.code, 3, "{}", said.err);
    world.write("../go", "");
    world.await_file("../acted");
    std::fs::write(world.script(), format!("[default]\n{WORKS}")).unwrap();
    let said = world.run(&["--once"]);
    assert!(said.err.contains("reverted the marks of US-001, US-002"), "{}", said.err);
    assert_eq!(said.code, 3, "{}", said.err);
    assert_eq!(world.passing(), ["US-001"], "{}", said.err);
    kill_process(pid(&world, "../daemon"), Signal::KILL).unwrap();
    until("the daemon to be gone", || world.processes().is_empty().then_some(()));
}
