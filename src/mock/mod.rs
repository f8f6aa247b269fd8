//! An agent that only plays: `--agent mock`.
//!
//! Owns the process that stands in for a real agent. It speaks Claude Code's
//! stream-json, changes files in the current folder as a script says, and ends
//! as the script says. It serves dry runs, demonstrations and tests.
//!
//! It must never reach the network, cost money, or keep anything between two
//! processes: which attempt this is comes from the driver, in the environment.

mod failure;
mod perform;
mod script;
mod step;
mod stream;
mod tools;

#[cfg(test)]
mod tests;

use std::io::{self, BufRead, IsTerminal, Read, Write};
use std::path::Path;

use perform::{MockEnd, perform};
pub use script::ScriptError;
use script::{MockAttempt, Scene, Script};
use serde_json::Value;

/// A script that cannot be played, or an environment that cannot be right.
const CANNOT_PLAY: u8 = 2;
/// Whoever read our output is gone: what a shell shows for a process that SIGPIPE ended.
const NOBODY_LISTENS: u8 = 141;

/// Refuses a bad script before a run starts.
pub fn check_script(path: &Path) -> Result<(), ScriptError> {
    Script::load(path, |source| source).map(|_| ())
}

/// Runs as the agent process: reads the prompt from standard input, plays the
/// script to standard output, and returns the exit code. Without a script, every story gets a small
/// file and is claimed complete. `takes_messages`: standard input has a message per line, the prompt
/// first, and stays open.
pub fn play(script: Option<&Path>, takes_messages: bool) -> u8 {
    match prepare(script) {
        Ok((scene, attempt)) => play_attempt(scene, &attempt, takes_messages),
        Err(problem) => complain(&problem, CANNOT_PLAY),
    }
}

fn prepare(script: Option<&Path>) -> Result<(Scene, MockAttempt), String> {
    let scene = Scene::from_environment()?;
    let script = match script {
        Some(path) => {
            Script::load(path, |source| scene.fill_in(&source)).map_err(|e| e.to_string())?
        }
        None => Script::default(),
    };
    let attempt = script.attempt(&scene);
    Ok((scene, attempt))
}

fn play_attempt(mut scene: Scene, attempt: &MockAttempt, takes_messages: bool) -> u8 {
    if attempt.ignores_term()
        && let Err(problem) = swallow_term()
    {
        return complain(&format!("cannot ignore SIGTERM: {problem}"), CANNOT_PLAY);
    }
    if attempt.read_prompt {
        scene.prompt = if takes_messages { read_message() } else { read_prompt() };
    }
    match perform(&scene, attempt, io::stdout().lock()) {
        Ok(MockEnd::Exit(code)) => code,
        Ok(MockEnd::Hang) => hang(),
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => NOBODY_LISTENS,
        Err(e) => complain(&e.to_string(), 1),
    }
}

/// Everything on standard input. A missing prompt is no reason not to play, and
/// a person who starts the agent by hand should not have to type one.
fn read_prompt() -> Vec<u8> {
    let mut prompt = Vec::new();
    let stdin = io::stdin();
    if !stdin.is_terminal() {
        let _ = stdin.lock().read_to_end(&mut prompt);
    }
    prompt
}

/// The next message; nothing when no more can come.
fn read_message() -> Vec<u8> {
    let mut line = String::new();
    let _ = io::stdin().lock().read_line(&mut line);
    let message: Value = serde_json::from_str(&line).unwrap_or_default();
    message["message"]["content"].as_str().unwrap_or_default().into()
}

/// Tokio's handler stays for the life of the process, and nobody reads what it notes.
fn swallow_term() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let _inside = runtime.enter();
    tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()).map(|_| ())
}

fn hang() -> ! {
    loop {
        std::thread::park();
    }
}

fn complain(problem: &str, code: u8) -> u8 {
    // There is nobody left to tell when standard error is gone too.
    let _ = writeln!(io::stderr(), "mock agent: {problem}");
    code
}
