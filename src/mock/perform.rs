//! Plays one attempt, step by step. How the process then ends is left to the caller.

use std::io::{self, Write};
use std::ops::ControlFlow::{self, Break, Continue};

use super::scene::Scene;
use super::script::Attempt;
use super::step::{Escalate, EscalateKind, Flood, Step};
use super::stream::Stream;
use super::{flood, grandchild, tools, tree};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    Exit(u8),
    /// Silent until somebody ends the process.
    Hang,
}

/// Whether the next step follows.
type Next = ControlFlow<Ending>;

pub fn perform(scene: &Scene, attempt: &Attempt, out: impl Write) -> io::Result<Ending> {
    let mut stream = Stream::new(out, attempt.plain);
    if attempt.init {
        stream.init(&scene.folder.to_string_lossy())?;
    }
    for step in &attempt.steps {
        if let Break(ending) = play(step, scene, &mut stream)? {
            return Ok(ending);
        }
    }
    stream.success()?;
    Ok(Ending::Exit(0))
}

fn play<W: Write>(step: &Step, scene: &Scene, stream: &mut Stream<W>) -> io::Result<Next> {
    match step {
        Step::Fail { fail, resets_in, retries } => {
            stream.fail(*fail, *retries, scene.second_after(*resets_in))?;
            Ok(Break(Ending::Exit(1)))
        }
        Step::Exit { exit, result } => {
            if *result {
                stream.success()?;
            }
            Ok(Break(Ending::Exit(*exit)))
        }
        Step::NoResult {} => Ok(Break(Ending::Exit(0))),
        Step::Hang { .. } => Ok(Break(Ending::Hang)),
        Step::HangAfterResult {} => stream.success().map(|()| Break(Ending::Hang)),
        _ => act(step, scene, stream).map(Continue),
    }
}

fn act<W: Write>(step: &Step, scene: &Scene, stream: &mut Stream<W>) -> io::Result<()> {
    match step {
        Step::Write { write, text, append } => tools::write(stream, scene, write, text, *append)?,
        Step::Delete { delete } => tools::delete(stream, scene, delete)?,
        Step::Run { run } => tools::run(stream, scene, run)?,
        Step::Denied { denied } => tools::denied(stream, denied)?,
        Step::Sleep { sleep } => std::thread::sleep(*sleep),
        Step::Cost { cost } => stream.totals.cost = *cost,
        Step::Turns { turns } => stream.totals.stated_turns = Some(*turns),
        Step::Tokens { tokens } => stream.totals.stated_tokens = Some(*tokens),
        Step::Model { model } => stream.totals.model = Some(model.clone()),
        Step::Retry { retry, times } => stream.retries(*retry, times.unwrap_or(1))?,
        Step::Grandchild(left) => grandchild::leave(left, scene)?,
        Step::Tree(wanted) => tree::grow(wanted, scene)?,
        _ => speak(step, scene, stream)?,
    }
    Ok(())
}

fn speak<W: Write>(step: &Step, scene: &Scene, stream: &mut Stream<W>) -> io::Result<()> {
    match step {
        Step::Say { say } => stream.text(say),
        Step::Thinking { thinking } => stream.thinking(thinking),
        Step::Subagent { subagent } => stream.subagent(subagent),
        Step::Escalate { escalate } => stream.text(&escalation(escalate)),
        Step::Claim { claim: Some(other) } => stream.text(&format!("Task {other} complete")),
        Step::Claim { claim: None } | Step::Complete {} | Step::FalseClaim {} => {
            stream.text(&format!("Task {} complete", scene.story))
        }
        Step::Promise {} => stream.text("<promise>DONE</promise>"),
        Step::Raw { raw } => stream.line(raw.as_bytes()),
        Step::Stderr { stderr } => writeln!(io::stderr(), "{stderr}"),
        Step::Output { output: Flood::Mb(mb) } => flood::lines(stream, *mb),
        Step::Output { output: Flood::LineMb(mb) } => flood::one_line(stream, *mb),
        Step::Hear {} => {
            let heard = super::read_message();
            stream.text(&format!("I was told: {}", String::from_utf8_lossy(&heard)))
        }
        Step::EchoPrompt { echo_prompt: true } => stream.line(&scene.prompt),
        _ => Ok(()),
    }
}

fn escalation(asked: &Escalate) -> String {
    let kind = match asked.kind {
        EscalateKind::Stuck => "stuck",
        EscalateKind::Deviation => "deviation",
    };
    let numbered =
        asked.options.iter().enumerate().map(|(i, option)| format!("{}. {option}\n", i + 1));
    format!(
        "<escalate type=\"{kind}\">\n<summary>{}</summary>\n<context>{}</context>\n\
         <options>\n{}</options>\n<question>{}</question>\n</escalate>",
        asked.summary,
        asked.context,
        numbered.collect::<String>(),
        asked.question,
    )
}
