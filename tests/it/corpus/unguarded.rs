//! The control: the same script where nothing guards. A loop that does the stories' work, runs the gates and marks and
//! commits as ralph does, but takes every file as it finds it. Ralph itself has no switch for that: it would be a hole.

use std::fs;

use crate::support::World;
use crate::support::world::{Runs, Said};

use super::attack::{Attack, Then};
use super::check::{Facts, is_marked, wrong_after};
use super::play::succeeds;
use super::scene::{STORIES, work_of};

/// Seconds for one of its commands; nothing honest takes as long.
const TIME: &str = "10";
/// What `timeout` exits with.
const HUNG: i32 = 124;
/// A file that is larger is none of a person's.
const MOST: u64 = 1 << 20;

/// Something waits for ever.
struct Hangs;

/// What is wrong with the control: without the script all has to be well, with it there is damage at the end.
pub fn control(world: &World, attack: &Attack) -> String {
    if succeeds(world, attack) {
        return "the control: it has succeeded before the script".to_owned();
    }
    let before = Facts::of(world);
    let script = format!("{}\n{}", attack.act, attack.naive);
    let played = sh(world, &script).and_then(|said| {
        let has_succeeded = succeeds(world, attack);
        drive(world, attack.then).map(|code| (code, said, has_succeeded))
    });
    match played {
        Err(Hangs) => String::new(),
        Ok((_, said, false)) => {
            format!("the control: the script does not succeed\n{}{}", said.out, said.err)
        }
        Ok((code, ..))
            if succeeds(world, attack) || !wrong_after(world, &before, code).is_empty() =>
        {
            String::new()
        }
        Ok((code, ..)) => format!("the control: no damage is left at the end, exit code {code}"),
    }
}

/// Without a script.
pub fn is_well(world: &World, then: Then) {
    let before = Facts::of(world);
    let Ok(code) = drive(world, then) else { unreachable!("nothing hangs") };
    assert_eq!(code, if then == Then::Work { 0 } else { 4 });
    assert_eq!(wrong_after(world, &before, code), [""; 0]);
}

fn drive(world: &World, then: Then) -> Result<i32, Hangs> {
    for story in &STORIES[1..] {
        let (id, file, line) = *story;
        if !is_open(&backlog(world)?, id) {
            continue;
        }
        let done = work_of(*story, then);
        // Something else may be in its place.
        let _ = fs::write(world.path(&done.0), &done.1);
        let settings = sh(world, "cat ralph.toml")?.out;
        let mut passes = !settings.contains("check.sh") || sh(world, "sh check.sh")?.code == 0;
        if backlog(world)?.contains(&format!("grep -qx {line} {file}")) {
            passes &= sh(world, &format!("grep -qx {line} {file}"))?.code == 0;
        }
        if passes {
            let mark = format!("/\"{id}\"/,/\"passes\"/ s/\"passes\": false/\"passes\": true/");
            sh(world, &format!("sed -i '{mark}' PRD.json; git add {}", done.0))?;
            let trailer = format!("Ralph-Story: {id}");
            let commit = format!("git commit -qm '{id}' -m '{trailer}' -- {} PRD.json", done.0);
            sh(world, &commit)?;
        }
    }
    let backlog = backlog(world)?;
    Ok(if STORIES.iter().any(|(id, ..)| is_open(&backlog, id)) { 4 } else { 0 })
}

/// It is in the backlog and nobody says that it is done.
fn is_open(backlog: &str, id: &str) -> bool {
    let is_skipped = backlog.contains("\"skipped\": true");
    backlog.contains(&format!("\"{id}\"")) && !is_marked(backlog, id) && !is_skipped
}

fn backlog(world: &World) -> Result<String, Hangs> {
    let is_large = fs::metadata(world.path("PRD.json")).is_ok_and(|file| file.len() > MOST);
    if is_large { Err(Hangs) } else { Ok(sh(world, "cat PRD.json")?.out) }
}

fn sh(world: &World, script: &str) -> Result<Said, Hangs> {
    let said = world.command("timeout").args([TIME, "sh", "-c", script]).said();
    if said.code == HUNG { Err(Hangs) } else { Ok(said) }
}
