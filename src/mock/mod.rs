//! An agent that plays a script: `--agent mock`.
//!
//! The process that replaces a real agent. It prints Claude Code's stream-json, changes files in
//! the current folder as a script says, and ends
//! as the script says. It serves dry runs, demonstrations and tests.
//!
//! It must never reach the network, cost money, or keep anything between two
//! processes: which attempt this is comes from the driver, in the environment.

#![allow(clippy::disallowed_methods, reason = "it plays an agent, which does what it likes")]

mod failure;
mod script;
mod step;
mod stream;
mod tools;

#[cfg(test)]
mod tests;

use std::env;
use std::io::{self, BufRead, IsTerminal, Read, Write};
use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
pub use script::ScriptError;
use script::{MockAttempt, Scene, Script};
use serde_json::Value;
use step::{Escalate, EscalateKind, Hang, MockStep};
use stream::Stream;

/// The exit code for an invalid script or environment.
const CANNOT_PLAY: u8 = 2;
/// The exit code when the reader of our output is gone, as a shell shows it for SIGPIPE.
const BROKEN_PIPE: u8 = 141;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MockEnd {
    Exit(u8),
    /// Silent until the process is killed.
    Hang,
}

/// Refuses a bad script before a run starts.
pub fn check_script(path: &Path) -> Result<(), ScriptError> {
    Script::load(path, |source| source).map(|_| ())
}

/// Runs as the agent process: reads the prompt from standard input, plays the
/// script to standard output, and returns the exit code. Without a script, every story gets a small
/// file and is claimed complete. `takes_messages`: standard input has a message per line, the prompt
/// first, and stays open.
pub fn play(script: Option<&Path>, takes_messages: bool) -> u8 {
    let (mut scene, attempt) = match prepare(script) {
        Ok(prepared) => prepared,
        Err(problem) => return complain(&problem, CANNOT_PLAY),
    };
    if attempt.read_prompt != Some(false) {
        scene.prompt = if takes_messages { read_message().into() } else { read_prompt() };
    }
    match perform(&scene, &attempt, &mut io::stdout().lock()) {
        Ok(MockEnd::Exit(code)) => code,
        Ok(MockEnd::Hang) => loop {
            std::thread::park();
        },
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => BROKEN_PIPE,
        Err(e) => complain(&e.to_string(), 1),
    }
}

fn prepare(script: Option<&Path>) -> Result<(Scene, MockAttempt), String> {
    let folder = env::current_dir().map_err(|e| format!("no current folder: {e}"))?;
    let scene = Scene::new(|name| env::var(name).ok(), folder)?;
    let script = script.map(|path| Script::load(path, |source| scene.fill_in(&source)));
    let script = script.transpose().map_err(|e| e.to_string())?.unwrap_or_default();
    let attempt = script.attempt(&scene);
    if attempt.steps.contains(&MockStep::Hang { hang: Some(Hang::IgnoreTerm) }) {
        ignore_term().map_err(|e| format!("cannot ignore SIGTERM: {e}"))?;
    }
    Ok((scene, attempt))
}

/// Everything on standard input. Not from a terminal: a person who starts the agent should not have
/// to type a prompt.
fn read_prompt() -> Vec<u8> {
    let mut prompt = Vec::new();
    let stdin = io::stdin();
    if !stdin.is_terminal() {
        let _ = stdin.lock().read_to_end(&mut prompt);
    }
    prompt
}

/// The next message; empty when no more can come.
fn read_message() -> String {
    let mut line = String::new();
    let _ = io::stdin().lock().read_line(&mut line);
    let message: Value = serde_json::from_str(&line).unwrap_or_default();
    message["message"]["content"].as_str().unwrap_or_default().to_owned()
}

/// Tokio's handler stays for the life of the process, and its notes are never read.
fn ignore_term() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let _inside = runtime.enter();
    tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()).map(|_| ())
}

fn complain(problem: &str, code: u8) -> u8 {
    // If standard error is closed too, only the exit code remains.
    let _ = writeln!(io::stderr(), "mock agent: {problem}");
    code
}

/// Plays one attempt, step by step.
fn perform(scene: &Scene, attempt: &MockAttempt, out: &mut dyn Write) -> io::Result<MockEnd> {
    let mut stream = Stream::new(out, attempt.plain == Some(true));
    if attempt.init != Some(false) {
        stream.init(&scene.folder.to_string_lossy())?;
    }
    for step in &attempt.steps {
        if let Some(end) = play_step(step, scene, &mut stream)? {
            return Ok(end);
        }
    }
    stream.success()?;
    Ok(MockEnd::Exit(0))
}

/// Returns the end, if the step is the last one.
fn play_step(
    step: &MockStep,
    scene: &Scene,
    stream: &mut Stream<'_>,
) -> io::Result<Option<MockEnd>> {
    Ok(Some(match step {
        MockStep::Fail { fail, resets_in, retries } => {
            let wait = resets_in.map_or(Duration::from_hours(1), |span| span.0);
            let resets_at = Timestamp::now().as_second().saturating_add_unsigned(wait.as_secs());
            stream.fail(*fail, *retries, resets_at)?;
            MockEnd::Exit(1)
        }
        MockStep::Exit { exit, result } => {
            if *result == Some(true) {
                stream.success()?;
            }
            MockEnd::Exit(*exit)
        }
        MockStep::NoResult {} => MockEnd::Exit(0),
        MockStep::Hang { .. } => MockEnd::Hang,
        MockStep::HangAfterResult {} => stream.success().map(|()| MockEnd::Hang)?,
        _ => return act(step, scene, stream).map(|()| None),
    }))
}

/// What does not end the attempt.
fn act(step: &MockStep, scene: &Scene, stream: &mut Stream<'_>) -> io::Result<()> {
    match step {
        MockStep::Say { say } => stream.text(say)?,
        MockStep::Thinking { thinking } => stream.thinking(thinking)?,
        MockStep::Subagent { subagent } => stream.subagent(subagent)?,
        MockStep::Escalate { escalate } => stream.text(&escalation(escalate))?,
        MockStep::Claim { claim: Some(other) } => stream.text(&format!("Task {other} complete"))?,
        MockStep::Claim { claim: None } | MockStep::Complete {} | MockStep::FalseClaim {} => {
            stream.text(&format!("Task {} complete", scene.story))?
        }
        MockStep::Promise {} => stream.text("<promise>DONE</promise>")?,
        MockStep::Hear {} => stream.text(&format!("I was told: {}", read_message()))?,
        MockStep::Raw { raw } => stream.line(raw.as_bytes())?,
        MockStep::EchoPrompt { echo_prompt: true } => stream.line(&scene.prompt)?,
        MockStep::Stderr { stderr } => writeln!(io::stderr(), "{stderr}")?,
        MockStep::Output { output } => tools::flood(stream, *output)?,
        MockStep::Write { write, text, append } => {
            let text = text.as_deref().unwrap_or_default();
            tools::write(stream, &scene.folder.join(write), text, *append == Some(true))?
        }
        MockStep::Delete { delete } => tools::delete(stream, scene, delete)?,
        MockStep::Run { run } => tools::run(stream, scene, run)?,
        MockStep::Denied { denied } => tools::denied(stream, denied)?,
        MockStep::Grandchild(left) => tools::leave_process(left, scene)?,
        MockStep::Tree { tree, ignore_term } => {
            tools::leave_tree(*tree, *ignore_term == Some(true), scene)?
        }
        MockStep::Sleep { sleep } => std::thread::sleep(sleep.0),
        MockStep::Cost { cost } => stream.totals.cost = *cost,
        MockStep::Turns { turns } => stream.totals.stated_turns = Some(*turns),
        MockStep::Tokens { tokens } => stream.totals.stated_tokens = Some(*tokens),
        MockStep::Model { model } => stream.totals.model = Some(model.clone()),
        MockStep::Retry { retry, times } => stream.retries(*retry, times.unwrap_or(1))?,
        _ => {}
    }
    Ok(())
}

fn escalation(asked: &Escalate) -> String {
    let kind = match asked.kind {
        EscalateKind::Stuck => "stuck",
        EscalateKind::Deviation => "deviation",
    };
    let numbered = (1..).zip(&asked.options).map(|(i, option)| format!("{i}. {option}\n"));
    format!(
        "<escalate type=\"{kind}\">\n<summary>{}</summary>\n<context>{}</context>\n\
         <options>\n{}</options>\n<question>{}</question>\n</escalate>",
        asked.summary,
        asked.context,
        numbered.collect::<String>(),
        asked.question,
    )
}
