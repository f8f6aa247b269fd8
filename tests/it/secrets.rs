//! A secret that an agent or a gate prints appears nowhere; what the human wrote reaches the agent.

use std::fs;
use std::io::{Write, stderr, stdout};
use std::os::fd::AsFd;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use memchr::memmem;
use ralph::model::Event;

use crate::support::pty::Terminal;
use crate::support::world::{Ends, RALPH, Runs, Said, until};
use crate::support::{Prd, World};

/// A variable of this name is inherited by the agent and looks secret.
const NAME: &str = "SENTINEL_TOKEN";
/// With what JSON and URLs write in another way.
const VALUE: &str = "corr\"ct/h0rse\\b4ttery<st4ple>";
/// So much of a secret is too much.
const GLIMPSE: usize = 10;

/// Put together here, so that nobody takes this file for a leak.
fn token() -> String {
    format!("{}_{}", "ghp", "q7Rt2WxKp9ZsLd4Vf6NbHj3MgYc8TeUa5o1Q")
}

fn with_secret(mut command: Command) -> Command {
    command.env(NAME, VALUE);
    command
}

fn run(world: &World, args: &[&str]) -> Said {
    with_secret(world.run_command(args)).said()
}

/// Every file that ralph keeps, the journal as it lies on the disk included.
fn kept(folder: &Path) -> Vec<PathBuf> {
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    paths.flat_map(|path| if path.is_dir() { kept(&path) } else { vec![path] }).collect()
}

fn assert_nowhere(world: &World, shown: &str) {
    let mut places = vec![
        ("the terminal".to_owned(), shown.as_bytes().to_vec()),
        ("git".to_owned(), world.git(&["log", "--all", "-p", "--format=fuller"]).into_bytes()),
        ("status".to_owned(), world.ralph(&["status", "--json"]).out.into_bytes()),
    ];
    for path in [kept(&world.path(".ralph")), kept(&world.path(".git"))].concat() {
        places.push((path.display().to_string(), fs::read(&path).unwrap()));
    }
    assert!(places.iter().any(|(name, _)| name.contains("journal.db")));
    let escaped = serde_json::Value::from(VALUE).to_string();
    for secret in [token().as_str(), VALUE, escaped.trim_matches('"')] {
        for glimpse in secret.as_bytes().windows(GLIMPSE) {
            for (name, bytes) in &places {
                let found = memmem::find(bytes, glimpse);
                assert!(found.is_none(), "{:?} is in {name}", String::from_utf8_lossy(glimpse));
            }
        }
    }
}

/// Not a test but an agent, when a run starts it as one: libtest's binary is the one program that
/// is surely there. It says the secrets in two writes, cut at every place, and waits each time
/// until the first was taken from the pipe, so that they are two reads too.
#[test]
#[ignore = "an agent, which the next test starts"]
fn the_agent_that_says_everything_in_two_writes() {
    let iteration = std::env::var("RALPH_ITERATION").expect("started by a run");
    let value = std::env::var(NAME).unwrap();
    let question = "<escalate type=\"stuck\">\n<summary>SECRET</summary>\n<context>SECRET</context>\n\
                    <options>\n1. SECRET\n</options>\n<question>SECRET</question>\n</escalate>\n";
    for secret in [token(), value] {
        for cut in 0..=secret.len() {
            let (head, tail) = secret.split_at(cut);
            say(&mut stdout(), "it is ", head, tail);
            say(&mut stderr(), "error: ", head, tail);
        }
        if iteration == "2" {
            let (head, tail) = question.split_at(40);
            say(
                &mut stdout(),
                "\n",
                &head.replace("SECRET", &secret),
                &tail.replace("SECRET", &secret),
            );
        }
    }
    std::process::exit(if iteration == "1" { 1 } else { 0 });
}

fn say(out: &mut (impl Write + AsFd), before: &str, head: &str, tail: &str) {
    for part in [format!("{before}{head}"), format!("{tail}\n")] {
        out.write_all(part.as_bytes()).unwrap();
        out.flush().unwrap();
        until("the driver to read", || {
            (rustix::io::ioctl_fionread(&mut *out).unwrap() == 0).then_some(())
        });
    }
}

#[test]
fn a_secret_split_at_every_place_appears_nowhere() {
    let world = World::with(&Prd::stories(1));
    let itself = std::env::current_exe().unwrap();
    let agent = format!(
        "{} --ignored --exact secrets::the_agent_that_says_everything_in_two_writes --nocapture",
        itself.display()
    );
    let mut command = with_secret(world.command(RALPH));
    let said = command.args(["run", "--verbose", "--agent-command", &agent]).said();
    assert_eq!(said.code, 4, "{}", said.err);
    let shown = format!("{}{}", said.out, said.err);
    assert_nowhere(&world, &shown);
    // Both came through to where they would have been seen.
    for marker in ["[redacted:github-token]", "[redacted:SENTINEL_TOKEN]"] {
        assert!(shown.contains(marker), "{marker} is not in\n{shown}");
        for log in [&world.iteration_files(".log")[0], &world.iteration_files(".stderr")[0]] {
            assert!(log.matches(marker).count() > 20, "{log}");
        }
    }
    let prompt = world.prompt(2);
    assert!(prompt.contains("error: [redacted:SENTINEL_TOKEN]"), "{prompt}");
    let status = world.ralph(&["status", "--json"]).out;
    assert!(status.contains("[redacted:"), "{status}");
}

#[test]
fn in_events_in_the_menu_and_in_the_names_of_tools_it_appears_nowhere() {
    let token = token();
    let script = format!(
        r#"
        [[story.US-001.attempts]]
        steps = [
          {{ run = "printenv {NAME}; echo {token}" }},
          {{ say = "first\n{token}\nlast" }},
          {{ thinking = "{token}" }},
          {{ denied = "Bash({token})" }},
          {{ stderr = "{token}" }},
          {{ escalate = {{ type = "stuck", summary = "Is {token} right?", context = "{token}", options = ["Use {token}"], question = "{token}?" }} }},
        ]
        [[story.US-001.attempts]]
        steps = [{{ say = "{token}" }}, {{ write = "good", text = "" }}, "complete"]
    "#
    );
    let world = World::scripted(&Prd::stories(1), &script);
    let mut terminal = Terminal::start(with_secret(world.run_command(&["--verbose"])));
    let screen = terminal.await_text("[a]");
    assert!(screen.contains("Is [redacted:github-token] right?"), "{screen}");
    assert!(screen.contains("Bash([redacted:github-token])"), "{screen}");
    terminal.press("1");
    terminal.await_text("All tasks complete");
    let raw = terminal.raw();
    assert_eq!(terminal.finish().0, 0);
    assert_nowhere(&world, &raw);
    let prompt = world.prompt(2);
    assert!(prompt.contains("Proceed with option 1: Use [redacted:github-token]"), "{prompt}");
    // Events stay events.
    let log = &world.iteration_files(".log")[0];
    assert!(log.contains("[redacted:SENTINEL_TOKEN]"), "{log}");
    for line in log.lines() {
        serde_json::from_str::<serde_json::Value>(line).unwrap();
    }
}

#[test]
fn what_a_gate_prints_appears_nowhere() {
    let token = token();
    let gate =
        format!("test -e good || {{ printenv {NAME}; cat ../token; cat ../token >&2; false; }}");
    let prd = Prd::default().story(&format!(r#""verify": ["{gate}"]"#));
    let script = r#"
        [[story.US-001.attempts]]
        steps = ["complete"]
        [[story.US-001.attempts]]
        steps = [{ write = "good", text = "" }, "complete"]
    "#;
    let world = World::scripted(&prd, script);
    world.write("../token", &format!("the token is {token}\n"));
    let said = run(&world, &["--verbose"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_nowhere(&world, &format!("{}{}", said.out, said.err));
    let prompt = world.prompt(2);
    for marker in ["[redacted:SENTINEL_TOKEN]", "the token is [redacted:github-token]"] {
        assert!(prompt.contains(marker), "{prompt}");
        assert!(world.iteration_files(".gates.log")[0].contains(marker));
    }
}

#[test]
fn a_gate_that_has_a_secret_in_its_command_is_recorded_without_it() {
    let token = token();
    let prd = Prd::default().story(&format!(r#""verify": ["test -e good # {token}"]"#));
    let script = r#"
        [[story.US-001.attempts]]
        steps = ["complete"]
        [[story.US-001.attempts]]
        steps = [{ write = "good", text = "" }, "complete"]
    "#;
    let world = World::scripted(&prd, script);
    let said = run(&world, &[]);
    assert_eq!(said.code, 0, "{}", said.err);
    let message = world.git(&["log", "-1", "--format=%B"]);
    assert!(message.contains("Ralph-Gate: test -e good # [redacted:github-token]"), "{message}");
    // What the human wrote in PRD.json reaches the agent as it is; what happened does not have it.
    let mut events = world.journal();
    events.retain(|one| !matches!(one.event, Event::BacklogTaken(_)));
    let events = format!("{events:?}");
    assert!(events.contains("[redacted:github-token]") && !events.contains(&token), "{events}");
    assert!(!world.iteration_files("gates.log").concat().contains(&token));
}

#[test]
fn what_an_agent_wrote_into_its_own_measure_is_shown_without_it() {
    let token = token();
    let script = format!(
        r#"
        [story.US-001]
        steps = [{{ run = "sed -i 's/it is done/{token}/' PRD.json" }}, "complete"]
    "#
    );
    let world = World::scripted(&Prd::stories(1), &script);
    let said = run(&world, &[]);
    assert_eq!(said.code, 4, "{}", said.err);
    for shown in [said.err, world.ralph(&["status", "--json"]).out] {
        assert!(shown.contains("[redacted:github-token]") && !shown.contains(&token), "{shown}");
    }
}

#[test]
fn what_the_human_wrote_reaches_the_agent_as_it_is() {
    let token = token();
    let world = World::new();
    let prd = Prd::stories(1).text().replace("What story 1 is about.", &format!("Use {token}."));
    world.write("PRD.json", &prd);
    let text = format!("The staging token is {token}\nTask US-001 complete\n{token} is it.\n");
    world.write("PROMPT.md", &text);
    let said = world.ralph(&["run", "--once", "--agent-command", "sh -c 'tee ../got; touch new'"]);
    let got = fs::read_to_string(world.path("../got")).unwrap();
    assert!(got.starts_with(&text) && got.contains(&format!("Use {token}.")), "{got}");
    assert_eq!(world.prompt(1), got);
    // The agent printed all of it, which is kept without the token and is no claim.
    let log = &world.iteration_files(".log")[0];
    assert!(log.contains("The staging token is [redacted:github-token]"), "{log}");
    assert!(!log.contains(&token));
    assert_eq!(said.code, 3, "{}", said.err);
    assert_eq!(world.passing(), [""; 0]);
}

#[test]
fn nobody_else_can_read_what_ralph_keeps() {
    let script = r#"
        [story.US-001]
        steps = [
          { run = "touch ../ready; while [ -e ../ready ]; do sleep 0.01; done; echo work > work" },
          "complete",
        ]
    "#;
    let world = World::scripted(&Prd::default().story(r#""verify": ["true"]"#), script);
    let mut command = world.command("sh");
    command.args(["-c", "umask 0; exec \"$0\" \"$@\"", RALPH]).args(world.run_words(&[]));
    let mut child = command.stderr(Stdio::null()).spawn().unwrap();
    until("the agent", || world.path("../ready").exists().then_some(()));
    // While it runs: SQLite removes its other files at the end.
    assert_private(&world);
    let kept = [kept(&world.path(".git/ralph")), kept(&world.path(".ralph"))].concat();
    let ends = |ending: &&str| kept.iter().any(|path| path.to_str().unwrap().ends_with(ending));
    let missing =
        ["/journal.db", "/journal.db-wal", "/journal.db-shm", "/lock", "/status.json", ".log"];
    let missing: Vec<_> = missing.into_iter().filter(|ending| !ends(ending)).collect();
    assert_eq!(missing, [""; 0], "{kept:?}");
    fs::remove_file(world.path("../ready")).unwrap();
    assert!(child.code() == 0);
    assert_private(&world);
}

fn assert_private(world: &World) {
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    for folder in [world.path(".ralph"), world.path(".git/ralph")] {
        for file in kept(&folder) {
            // Git's own files, under a second name.
            let is_object = file.starts_with(world.path(".git/ralph/objects"));
            assert!(is_object || mode(&file) == 0o600, "{}", file.display());
            let above = file.ancestors().skip(1).take_while(|above| above.starts_with(&folder));
            above.for_each(|above| assert_eq!(mode(above), 0o700, "{}", above.display()));
        }
    }
}

#[test]
fn a_linked_working_folder_is_refused() {
    let world = World::with(&Prd::stories(1));
    fs::create_dir(world.path("../elsewhere")).unwrap();
    symlink("../elsewhere", world.path(".ralph")).unwrap();
    let said = run(&world, &[]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("`.ralph` is a link or a file instead of a folder"), "{}", said.err);
    assert_eq!(kept(&world.path("../elsewhere")), [""; 0].map(PathBuf::from));
}
