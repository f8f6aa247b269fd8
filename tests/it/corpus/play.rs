//! One case: the run, and what must be true afterwards.

use std::fmt::Write;

use rustix::process::Signal;

use crate::support::World;
use crate::support::world::{Ends, Runs, Said, signal, until};

use super::attack::{Actor, Attack, Case, End, Then};
use super::check::{Facts, wrong_after};
use super::scene::{STORIES, Scenes, step, work_of};

const ARGS: [&str; 1] = ["--allow-dirty"];
/// What each script is run with, and its end.
const ONCE: &str = "[ ! -e ../control/done ] || exit 0\n: > ../control/done\n\
                    sh ../control/attack >../control/heard 2>&1\necho y > ../control/here\n";

/// What is wrong; nothing if it is as it must be.
pub fn play(scenes: &Scenes, case: &Case) -> String {
    let world = scenes.of(case);
    stage(&world, case);
    let before = Facts::of(&world);
    let said = run(&world, case);
    let mut wrong = wrong_after(&world, &before, said.code);
    if succeeds(&world, &case.attack) {
        wrong.push("the attack succeeded".to_owned());
    }
    let usual: &[i32] = if case.attack.then == Then::Work { &[0] } else { &[3, 4] };
    let codes = if case.attack.codes.is_empty() { usual } else { &case.attack.codes };
    if !codes.contains(&said.code) {
        wrong.push(format!("exit code {}", said.code));
    }
    if !world.path("../control/here").exists() {
        wrong.push("the script was not run".to_owned());
    }
    if wrong.is_empty() { String::new() } else { format!("{}\n{}", wrong.join("\n"), said.err) }
}

pub fn succeeds(world: &World, attack: &Attack) -> bool {
    world.command("sh").args(["-c", &attack.succeeded]).said().code == 0
}

/// Writes what the agents and the gate will do.
fn stage(world: &World, case: &Case) {
    world.write("../control/attack", &case.attack.act);
    let end = match case.end {
        End::Well => "exit 0",
        End::NonZero => "exit 1",
        _ => "exec sleep 1000",
    };
    let whose = match case.actor {
        Actor::Agent => None,
        Actor::Gate => Some("-n"),
        Actor::Baseline => Some("-z"),
    };
    if let Some(test) = whose {
        let gate = format!("[ {test} \"$RALPH_STORY\" ] || exit 0\n{ONCE}{end}\n");
        world.write("../control/gate", &gate);
    }
    world.write("../control/once", ONCE);
    std::fs::write(world.script(), script(case)).unwrap();
}

/// Of the mock agent.
fn script(case: &Case) -> String {
    let mut script = String::new();
    if case.actor == Actor::Agent {
        let end = match case.end {
            End::Well => "\"complete\"",
            End::NonZero => "{ exit = 1 }",
            _ => "\"hang\"",
        };
        let steps = format!("{{ run = \"sh ../control/once\" }}, {end}");
        writeln!(script, "[[story.US-002.attempts]]\nsteps = [{steps}]").unwrap();
    }
    for story in &STORIES[1..] {
        let (work, id) = (step(work_of(*story, case.attack.then)), story.0);
        writeln!(script, "[[story.{id}.attempts]]\nsteps = [{work}, \"complete\"]").unwrap();
    }
    script
}

/// The run, continued when it was ended.
fn run(world: &World, case: &Case) -> Said {
    let ended = match case.end {
        End::Well | End::NonZero | End::TimeOut if case.attack.again => Some(world.run(&ARGS)),
        End::Well | End::NonZero | End::TimeOut => None,
        End::Interrupt => Some(ended_by(world, Signal::INT)),
        End::Terminate => Some(ended_by(world, Signal::TERM)),
        End::HangUp => Some(ended_by(world, Signal::HUP)),
        End::Abort => Some(ended_by(world, Signal::ABORT)),
        End::Kill => Some(ended_by(world, Signal::KILL)),
    };
    let said = world.run(&ARGS);
    let before = ended.map_or_else(String::new, |said| format!("{}---\n", said.err));
    Said { err: format!("{before}{}", said.err), ..said }
}

fn ended_by(world: &World, by: Signal) -> Said {
    let child = world.start(&ARGS);
    world.await_file("../control/here");
    signal(&child, by);
    let said = child.ended();
    until("every process to be gone", || world.processes().is_empty().then_some(()));
    said
}
