//! Nothing of an earlier run works in the tree beside this one, and nothing else is touched.

use std::process::{Child, Command, Stdio};

use ralph::model::{Event, RunStarted};
use ralph::process::sweep::own_start;
use ralph::store::Journal;
use rustix::process::{Pid, Signal, kill_process};

use crate::support::world::{Ends, RALPH, until};
use crate::support::{Daemon, Prd, Sleeper, World};

/// Shows the supervisor's number, leaves two of its own (one without its environment), and hangs.
const HANGS: &str = r#"
    [[story.US-001.attempts]]
    steps = [
      { grandchild = "setsid", command = "env -i sleep 1000 & echo $! > ../child; wait" },
      { grandchild = "double-fork", command = "exec sleep 1000", pid_file = "../orphan" },
      { run = "cut -d' ' -f4 /proc/$PPID/stat > ../supervisor; echo y > ../here" },
      "hang",
    ]
    [[story.US-001.attempts]]
    steps = [{ write = "work.txt", text = "work" }, "complete"]
"#;

fn pid(text: &str) -> Pid {
    Pid::from_raw(text.trim().parse().unwrap()).unwrap()
}

fn lives(pid: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_pid()));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

/// As when a machine runs out of memory: whoever could have ended the agent is killed too.
fn kill_driver_and_supervisor(world: &World, mut driver: Child) {
    let supervisor = pid(&world.read("../supervisor"));
    kill_process(supervisor, Signal::STOP).unwrap();
    driver.kill().unwrap();
    driver.code();
    kill_process(supervisor, Signal::KILL).unwrap();
    until("the supervisor to be gone", || (!lives(supervisor)).then_some(()));
}

/// A run that was interrupted, and its id.
fn interrupted() -> (World, String) {
    let script = "[default]\nsteps = [{ run = \"echo y > ../here\" }, \"hang\"]\n";
    let world = World::scripted(&Prd::stories(2), script);
    let child = world.start(&[]);
    world.await_file("../here");
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(child.ended().code, 130);
    std::fs::remove_file(world.script()).unwrap();
    let run = world.state()["run"].as_str().unwrap().to_owned();
    (world, run)
}

#[test]
fn what_outlived_driver_and_supervisor_is_ended_first() {
    let world = World::scripted(&Prd::stories(1), HANGS);
    let driver = world.start(&[]);
    world.await_file("../here");
    let orphan = pid(&world.await_file("../orphan"));
    let child = pid(&world.await_file("../child"));
    kill_driver_and_supervisor(&world, driver);
    assert!(lives(orphan) && lives(child), "nobody was left to end them");

    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    let told =
        said.err.find("ended processes that an earlier run left running: ").expect("it is told");
    let begins = said.err.find("Continuing run").expect("it goes on");
    assert!(told < begins, "{}", said.err);
    for ended in [orphan, child] {
        assert!(said.err.contains(&format!("sleep ({})", ended.as_raw_pid())), "{}", said.err);
    }
    assert!(!lives(orphan) && !lives(child));
    assert!(world.processes().is_empty(), "{:?}", world.processes());
    assert!(!world.run(&[]).err.contains("left running"), "once is enough");
}

#[test]
fn another_backlog_in_the_same_tree_waits_for_the_proof_too() {
    let world = World::scripted(&Prd::stories(1), HANGS);
    world.write("other.json", &Prd::stories(1).text());
    let driver = world.start(&[]);
    world.await_file("../here");
    let orphan = pid(&world.await_file("../orphan"));
    kill_driver_and_supervisor(&world, driver);
    std::fs::remove_file(world.script()).unwrap();
    let said = world.run(&["other.json"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(!lives(orphan), "{}", said.err);
    assert!(world.processes().is_empty(), "{:?}", world.processes());
}

#[test]
fn only_what_is_provably_of_the_run_is_ended() {
    let (world, run) = interrupted();
    let other = run.replace(|digit: char| digit.is_ascii_digit(), "7");
    assert_ne!(run, other);
    let (cut, _) = run.split_at(run.len() - 1);
    let strangers = [
        ("RALPH_RUN_ID", other.clone()),
        ("RALPH_RUN_ID", String::new()),
        ("RALPH_RUN_ID", cut.to_owned()),
        ("RALPH_RUN_ID", format!("{run}0")),
        ("XRALPH_RUN_ID", run.clone()),
        ("OTHER", format!("RALPH_RUN_ID={run}")),
        ("RALPH_RUN_ID_2", run.clone()),
        ("RALPH_ID", run.clone()),
    ];
    let strangers = strangers.map(|(name, value)| (Sleeper::new(&world, name, &value), name));
    let mut own = Sleeper::new(&world, "RALPH_RUN_ID", &run);
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.err.contains(&format!("left running: sleep ({})", own.id())), "{}", said.err);
    assert!(!own.lives());
    for (mut stranger, name) in strangers {
        assert!(stranger.lives(), "{name}");
    }
}

/// It was a day ahead when the run began.
#[test]
fn a_clock_that_was_set_back_hides_no_process() {
    let (world, run) = (World::with(&Prd::stories(1)), "019a8b0c-7f00-7000-8000-000000000000");
    let tomorrow = std::time::SystemTime::now() + std::time::Duration::from_hours(24);
    let tomorrow = tomorrow.duration_since(std::time::UNIX_EPOCH).unwrap().as_millis();
    let start = RunStarted {
        run: run.to_owned(),
        backlog: "PRD.json".to_owned(),
        project: "demo".to_owned(),
        description: String::new(),
        agent: "mock".to_owned(),
        branch: None,
        allow_dirty: false,
        boot: own_start().map(Box::new),
        carried: vec![],
    };
    let mut journal = world.store().journal("PRD.json").unwrap();
    journal.append(run, tomorrow.try_into().unwrap(), &[Event::RunStarted(start)]).unwrap();
    drop(journal);
    let mut left = Sleeper::new(&world, "RALPH_RUN_ID", run);
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.err.contains(&format!("left running: sleep ({})", left.id())), "{}", said.err);
    assert!(!left.lives());
}

#[test]
fn a_run_that_has_ended_is_not_looked_for() {
    let (world, run) = interrupted();
    assert_eq!(world.run(&[]).code, 0);
    let mut child = Sleeper::new(&world, "RALPH_RUN_ID", &run);
    assert_eq!(world.run(&[]).code, 0);
    assert!(child.lives());
}

#[test]
fn a_run_that_is_started_inside_itself_ends_nothing_and_says_so() {
    let (world, run) = interrupted();
    let mut beside = Sleeper::new(&world, "RALPH_RUN_ID", &run);
    let mut agent: Command = world.command("sh");
    agent.args(["-c", "\"$@\"; echo $? > ../code", "agent", RALPH]).args(world.run_words(&[]));
    agent.env("RALPH_RUN_ID", &run).stdout(Stdio::piped()).stderr(Stdio::piped());
    let agent = agent.spawn().unwrap();
    let name = format!("sh ({})", agent.id());
    let said = agent.ended();
    assert_eq!(said.code, 0, "the shell came to its end: {}", said.err);
    assert_eq!(world.read("../code"), "1\n");
    assert!(
        said.err.contains("was started by a process of the run that it would continue"),
        "{}",
        said.err
    );
    assert!(said.err.contains(&name), "{}", said.err);
    assert!(beside.lives());
    assert_eq!(world.passing(), [""; 0]);
}

#[test]
fn what_is_kept_is_kept_from_the_proof_too() {
    let (world, run) = interrupted();
    let daemon = Daemon::new(&world, "a-daemon-of-the-human");
    world.write("ralph.toml", &daemon.setting());
    assert_eq!(world.ralph(&["trust", "--yes"]).code, 0);
    let mut kept = daemon.start("RALPH_RUN_ID", &run);
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(!said.err.contains("left running"), "{}", said.err);
    assert!(kept.lives());
}
