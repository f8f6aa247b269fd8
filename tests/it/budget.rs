//! What a run may spend: told, enforced, and kept over restarts, runs and repositories.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use ralph::model::{Event, Usd};
use rustix::process::Signal;
use serde_json::Value;

use crate::support::pty::Terminal;
use crate::support::world::{Ends, RALPH, Runs, Said, signal, until};
use crate::support::{Prd, World};

/// Every attempt writes something and costs a dollar.
const DOLLAR: &str = "[default]\nsteps = [{ write = \"${STORY}.txt\", text = \"${ITERATION}\" }, \
                      { cost = 1.0 }, \"complete\"]\n";
/// The same, and it is never done.
const ENDLESS: &str = "[default]\nsteps = [{ write = \"${STORY}.txt\", text = \"${ITERATION}\" }, \
                       { cost = 1.0 }]\n";
const SUBSCRIPTION: &str =
    r#"{"type":"rate_limit_event","rate_limit_info":{"status":"allowed","isUsingOverage":false}}"#;

fn spent(world: &World) -> Value {
    world.state()["counted_usd"].clone()
}

/// An agent of the user's own, whose dollars are real.
fn real(world: &World, args: &[&str]) -> Command {
    let mut command = world.command(RALPH);
    let agent = format!("{RALPH} mock-agent --script {}", world.script().display());
    command.args(["run", "--trust", "--agent-command", &agent]).args(args);
    command
}

fn run(mut command: Command) -> Said {
    command.said()
}

#[test]
fn a_run_is_warned_at_80_percent_of_its_budget_and_stopped_at_its_end() {
    let world = World::scripted(&Prd::stories(9), DOLLAR);
    let said = world.run(&["--budget", "5"]);
    assert_eq!(said.code, 3, "{}", said.err);
    assert_eq!(world.passing().len(), 5);
    let near = "$4.00 of $5.00 spent in this run";
    assert_eq!(said.err.matches(near).count(), 1, "{}", said.err);
    let stopped = "Stopped: $5.00 of $5.00 spent in this run, 4 stories left; raise the limit with --budget USD";
    assert!(said.err.contains(stopped), "{}", said.err);
    assert_eq!(spent(&world), 5.0);
    let state = world.state();
    assert_eq!(state["stop"]["reason"], "budget_used_up");
    let quiet = world.run(&["--quiet", "--budget", "1.25"]);
    assert!(quiet.err.contains("$1.00 of $1.25 spent"), "{}", quiet.err);
}

#[test]
fn the_default_stops_a_run_but_not_one_that_a_subscription_pays() {
    let dear = DOLLAR.replace("1.0", "20.0");
    let world = World::scripted(&Prd::stories(3), &dear);
    let said = world.run(&[]);
    assert_eq!(said.code, 3, "{}", said.err);
    assert!(said.err.contains("$40.00 of $25.00 spent in this run"), "{}", said.err);

    let event = format!("steps = [{{ raw = '{SUBSCRIPTION}' }}, ");
    let subscribed = dear.replace("steps = [", &event);
    let world = World::scripted(&Prd::stories(3), &subscribed);
    let said = world.run(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    let told = "$20.00 of $25.00 spent in this run; with a subscription the run does not stop";
    assert_eq!(said.err.matches(told).count(), 1, "{}", said.err);
    assert_eq!(spent(&world), 60.0, "figures are kept");

    let world = World::scripted(&Prd::stories(3), &subscribed);
    let said = world.run(&["--budget", "25"]);
    assert_eq!(said.code, 3, "what was asked for counts: {}", said.err);
}

#[test]
fn a_story_over_its_budget_is_parked_and_the_others_continue() {
    let script = ENDLESS.replace("[default]", "[story.US-001]");
    let world = World::scripted(&Prd::stories(2), &format!("{script}\n{DOLLAR}"));
    let said = world.run(&["--budget-story", "2"]);
    assert_eq!(said.code, 4, "{}", said.err);
    assert_eq!(world.passing(), ["US-002"]);
    assert!(said.err.contains("US-001 has cost $2.00; the limit is $2.00"), "{}", said.err);
    assert!(said.err.contains("--budget-story"), "{}", said.err);
    assert_eq!(world.state()["stories"][0]["attempts"], 2);
}

#[test]
fn continuing_a_run_continues_its_figures() {
    let script =
        format!("{DOLLAR}\n[story.US-002]\nsteps = [{{ run = \"echo y > ../here\" }}, \"hang\"]\n");
    let world = World::scripted(&Prd::stories(9), &script);
    let mut child = world.start(&["--budget", "3"]);
    world.await_file("../here");
    signal(&child, Signal::INT);
    child.code();
    // The killed one began, so that it counts as the run's median.
    assert_eq!(spent(&world), 2.0);
    fs::write(world.script(), DOLLAR).unwrap();
    let said = world.run(&["--budget", "3"]);
    assert_eq!(said.code, 3, "{}", said.err);
    assert!(said.err.contains("$3.00 of $3.00"), "{}", said.err);
    assert_eq!(world.passing(), ["US-001", "US-002"]);
}

#[test]
fn what_a_killed_drivers_attempt_may_have_cost_counts_once() {
    let script =
        format!("{DOLLAR}\n[story.US-002]\nsteps = [{{ run = \"echo y > ../here\" }}, \"hang\"]\n");
    let world = World::scripted(&Prd::stories(3), &script);
    let mut child = world.start(&[]);
    world.await_file("../here");
    child.kill().unwrap();
    child.code();
    until("every process to be gone", || world.processes().is_empty().then_some(()));
    fs::write(world.script(), DOLLAR).unwrap();
    assert_eq!(world.run(&[]).code, 0);
    let lost = |event: &Event| match event {
        Event::AttemptLost { counted, .. } => Some(*counted),
        _ => None,
    };
    let lost: Vec<Usd> = world.journal().iter().filter_map(|one| lost(&one.event)).collect();
    assert_eq!(lost, [Usd::from_cents(100)]);
    assert_eq!(spent(&world), 4.0);
}

#[test]
fn a_days_budget_counts_every_run_of_the_repository() {
    let world = World::scripted(&Prd::stories(9), DOLLAR);
    assert_eq!(world.run(&["--once"]).code, 3);
    let said = world.run(&["--budget-day", "3"]);
    assert_eq!(said.code, 3, "{}", said.err);
    let stopped = "Stopped: $3.00 of $3.00 spent in this repository today";
    assert!(said.err.contains(stopped) && said.err.contains("--budget-day"), "{}", said.err);
    assert_eq!(spent(&world), 2.0, "of this run");
    assert_eq!(world.run(&["--budget-day", "none", "--once"]).code, 3);
    assert_eq!(spent(&world), 1.0);
}

#[test]
fn a_users_day_counts_all_repositories_but_no_made_up_dollars() {
    let (one, two) =
        (World::scripted(&Prd::stories(2), DOLLAR), World::scripted(&Prd::stories(9), DOLLAR));
    let shared = one.state_home();
    assert_eq!(run(real(&one, &[])).code, 0);
    let mut made_up = two.run_command(&["--once"]);
    made_up.env("XDG_STATE_HOME", &shared);
    assert_eq!(run(made_up).code, 3);
    let mut limited = real(&two, &["--budget-user-day", "4"]);
    limited.env("XDG_STATE_HOME", &shared);
    let said = run(limited);
    assert_eq!(said.code, 3, "{}", said.err);
    let stopped = "Stopped: $4.00 of $4.00 spent in all your repositories today";
    assert!(said.err.contains(stopped) && said.err.contains("--budget-user-day"), "{}", said.err);
    assert_eq!(spent(&two), 2.0, "of this run");
    let mode = |name: &str| shared.join(name).metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("ralph"), mode("ralph/spending.db")), (0o700, 0o600));
    assert!(!two.state_home().exists() && !one.home().join(".local").exists());
}

#[test]
fn without_a_state_folder_a_run_is_warned_once_and_stops_only_where_a_budget_needs_it() {
    let world = World::scripted(&Prd::stories(2), DOLLAR);
    fs::write(world.state_home(), "a file").unwrap();
    let said = run(real(&world, &["--budget-user-day", "5"]));
    assert_eq!(said.code, 1, "{}", said.err);
    assert!(said.err.contains("per_user_day") && said.err.contains("spending.db"), "{}", said.err);
    assert_eq!(world.passing(), [""; 0]);
    let said = run(real(&world, &[]));
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(said.err.matches("cannot record your costs").count(), 1, "{}", said.err);
}

#[test]
fn costs_that_can_no_longer_be_recorded_stop_a_run_whose_budget_needs_them() {
    let spoilt = |args: &[&str]| {
        let world = World::scripted(&Prd::stories(3), DOLLAR);
        let file = world.state_home().join("ralph/spending.db");
        let spoil =
            format!("[default]\nsteps = [{{ run = \"echo spoilt > {}\" }}, ", file.display());
        fs::write(world.script(), DOLLAR.replace("[default]\nsteps = [", &spoil)).unwrap();
        let said = run(real(&world, args));
        (said.code, world.passing().len(), said.err)
    };
    let (code, passing, said) = spoilt(&["--budget-user-day", "9"]);
    assert_eq!((code, passing), (1, 0), "{said}");
    assert!(said.contains("per_user_day"), "{said}");
    let (code, passing, said) = spoilt(&[]);
    assert_eq!((code, passing), (0, 3), "{said}");
}

#[test]
fn an_agent_that_cannot_enforce_an_allowance_is_named_and_overspending_is_reported() {
    let world = World::scripted(&Prd::stories(1), DOLLAR);
    let said = world.run(&["--budget-iteration", "0.5"]);
    assert_eq!(said.code, 0, "{}", said.err);
    let unlimited = "`mock` cannot limit its own cost";
    assert!(said.err.contains(unlimited), "{}", said.err);
    assert!(
        said.err.contains("the iteration cost $1.00 (`--budget-iteration` is $0.50)"),
        "{}",
        said.err
    );
    let quiet = World::scripted(&Prd::stories(1), DOLLAR).run(&[]);
    assert!(!quiet.err.contains(unlimited), "nobody asked: {}", quiet.err);
}

/// Claude Code in the test's own words: it notes what it was told, and plays the mock, which would
/// wait for the end of the messages.
fn claude(world: &World, settings: &str) {
    let program = world.path("../claude");
    let script = format!(
        "#!/bin/sh\necho \"$@\" >> {}\nexec {RALPH} mock-agent --script {} < /dev/null\n",
        world.path("../told").display(),
        world.script().display()
    );
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let program = program.canonicalize().unwrap();
    world.write("ralph.toml", &format!("{settings}\n[agent]\nprogram = {program:?}\n"));
}

fn allowances(world: &World) -> Vec<Option<String>> {
    let told = fs::read_to_string(world.path("../told")).unwrap();
    let of = |line: &str| {
        let words = line.split_whitespace();
        words.filter_map(|word| word.strip_prefix("--max-budget-usd=")).next().map(str::to_owned)
    };
    told.lines().map(of).collect()
}

fn with_claude(script: &str, settings: &str, args: &[&str]) -> (World, Said) {
    let world = World::scripted(&Prd::stories(3), script);
    claude(&world, settings);
    let said = world.ralph(&[&["run", "--trust", "--permission-mode", "dontAsk"], args].concat());
    (world, said)
}

#[test]
fn claude_gets_the_smallest_rest_of_all_budgets() {
    let some = |all: &[&str]| all.iter().map(|one| Some((*one).to_owned())).collect::<Vec<_>>();
    let (world, said) = with_claude(DOLLAR, "", &[]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(allowances(&world), some(&["25", "24", "23"]));

    let settings = "[budget]\nper_iteration = 2.5\nper_story = 4\nper_day = 3.25\n";
    let (world, said) = with_claude(DOLLAR, settings, &["--budget", "10"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(allowances(&world), some(&["2.5", "2.25", "1.25"]));

    let (world, _) = with_claude(DOLLAR, "", &["--budget", "none"]);
    assert_eq!(allowances(&world), [None, None, None]);

    let event = format!("steps = [{{ raw = '{SUBSCRIPTION}' }}, ");
    let (world, _) = with_claude(&DOLLAR.replace("steps = [", &event), "", &[]);
    assert_eq!(allowances(&world), [Some("25".to_owned()), None, None], "as soon as it is known");
}

#[test]
fn a_throttled_run_pauses_and_enter_continues_it() {
    let world = World::scripted(&Prd::stories(3), DOLLAR);
    world.write("ralph.toml", "[budget]\nper_run = 2.5\nthrottle = true\n");
    let mut terminal = Terminal::start(world.run_command(&[]));
    terminal.await_text("$2.00 of $2.50 spent in this run; pausing to make it last");
    terminal.await_text("Saving budget");
    terminal.await_text("press Enter to skip the wait");
    let status = world.ralph(&["status"]).out;
    assert!(status.contains("waiting until") && status.contains("pausing to make"), "{status}");
    terminal.press("\r");
    let (code, screen) = terminal.finish();
    assert_eq!(code, 0, "{screen}");
    assert!(screen.contains("Wait skipped"), "{screen}");
}

#[test]
fn invalid_amounts_are_wrong_usage() {
    let world = World::scripted(&Prd::stories(1), DOLLAR);
    for bad in ["0", "-1", "nan", "inf", "much"] {
        let said = world.run(&[&format!("--budget={bad}")]);
        assert_eq!(said.code, 2, "{bad}: {}", said.err);
        assert!(said.err.contains("--budget") && said.err.contains("none"), "{}", said.err);
    }
    let mut command = world.run_command(&[]);
    let output = command.env("RALPH_BUDGET_STORY", "0").said();
    assert_eq!(output.code, 2);
    world.write("ralph.toml", "[budget]\nper_run = 0\n");
    let said = world.run(&[]);
    assert_eq!(said.code, 1, "{}", said.err);
    assert!(said.err.contains("for `budget.per_run`"), "{}", said.err);
}
