//! Agents that misbehave: none hangs the run, none leaves a process behind.

use std::time::{Duration, Instant};

use crate::support::world::Said;
use crate::support::{Prd, World};

fn one_iteration(script: &str) -> (World, Said) {
    with_settings(script, "result_grace = \"300ms\"\n")
}

/// Only the time that is tested is short: an agent may start slowly.
fn with_settings(script: &str, settings: &str) -> (World, Said) {
    let world = World::scripted(&Prd::stories(1), script);
    world.write("ralph.toml", settings);
    let said = world.run(&["--once"]);
    let left = world.processes();
    assert!(left.is_empty(), "{left:?}\n{}", said.err);
    (world, said)
}

#[test]
fn silence_at_the_start_is_ended() {
    let script = "[default]\ninit = false\nsteps = [\"hang\"]\n";
    let (_, said) = with_settings(script, "first_event_timeout = \"1s\"\n");
    assert_eq!(said.code, 3);
    assert!(said.err.contains("printed nothing"), "{}", said.err);
}

#[test]
fn silence_in_the_middle_is_ended() {
    let script = "[default]\nsteps = [{ say = \"hm\" }, \"hang\"]\n";
    let (_, said) = with_settings(script, "idle_timeout = \"1s\"\n");
    assert_eq!(said.code, 3);
    assert!(said.err.contains("stopped printing"), "{}", said.err);
}

#[test]
fn a_result_counts_even_when_the_process_never_exits() {
    let script = "[default]\nsteps = [{ write = \"a\", text = \"a\" }, \"complete\", \"hang_after_result\"]\n";
    let (world, said) = one_iteration(script);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(world.passing(), ["US-001"]);
}

#[test]
fn what_an_agent_leaves_behind_is_ended_and_named() {
    for kind in ["plain", "setsid", "double-fork"] {
        for holds in [false, true] {
            let script = format!(
                "[default]\nsteps = [{{ grandchild = \"{kind}\", command = \"sleep 1000\", holds_output = {holds} }}, {{ run = \"echo work >> $RALPH_STORY.txt\" }}, \"complete\"]\n"
            );
            let start = Instant::now();
            let (_, said) = one_iteration(&script);
            assert_eq!(said.code, 0, "{}", said.err);
            let named = "ended processes that the agent left running: s";
            assert!(said.err.contains(named), "{kind} {holds}: {}", said.err);
            assert!(start.elapsed() < Duration::from_secs(30), "{kind} {holds}");
        }
    }
}

#[test]
fn exits_and_errors_are_reported_and_retried() {
    for (step, told) in [
        ("{ exit = 3 }", "exit code 3"),
        ("\"no_result\"", "without a result"),
        ("{ fail = \"turn-limit\" }", "all of its turns"),
        ("{ fail = \"refusal\" }", "refused"),
    ] {
        let (world, said) = one_iteration(&format!(
            "[default]\nsteps = [{{ write = \"a\", text = \"a\" }}, \"complete\", {step}]\n"
        ));
        assert_eq!(said.code, 3, "{step}: {}", said.err);
        assert!(said.err.contains(told), "{step}: {}", said.err);
        assert_eq!(world.passing(), [""; 0], "a claim without a good end is none");
        world.heard_no_claim();
    }
}

#[test]
fn a_long_prompt_reaches_the_agent_whole() {
    let world = World::with(&Prd::stories(1));
    let prompt = "0123456789abcde\n".repeat(5 * 1024 * 1024 / 16);
    world.write("PROMPT.md", &prompt);
    let agent = "sh -c 'cat > got.txt; echo Task US-001 complete'";
    let said = world.ralph(&["run", "--agent-command", agent]);
    assert_eq!(said.code, 0, "{}", said.err);
    let got = world.read("got.txt");
    assert!(got.starts_with(&prompt), "{} bytes arrived", got.len());
    assert!(got.contains("Your story: US-001"));
}

/// The next attempt's supervisor waits while an agent runs; what an agent does to it costs nothing.
#[test]
fn an_agent_that_kills_or_stops_the_supervisor_on_standby_does_not_disturb_the_next_attempt() {
    for signal in ["KILL", "STOP"] {
        // The shell's parent is the mock, then its supervisor, then the driver.
        let act = format!(
            "up() {{ cut -d' ' -f4 /proc/$1/stat; }}; own=$(up $PPID); driver=$(up $own); \
             for one in $(cat /proc/$driver/task/*/children); do \
             [ $one = $own ] || {{ kill -{signal} $one; echo $one >> hit; }}; done"
        );
        let script = format!(
            r#"
            [default]
            steps = [{{ run = '''{act}''' }}, {{ write = "done.txt", text = "x" }}, "complete"]
            "#
        );
        let world = World::scripted(&Prd::stories(2), &script);
        let said = world.run(&[]);
        assert_eq!(said.code, 0, "{signal}: {}", said.err);
        assert!(!world.read("hit").is_empty(), "{signal}: there was none on standby");
    }
}
