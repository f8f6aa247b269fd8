//! Plays one attempt, step by step. How the process then ends is left to the caller.

use std::io::{self, Write};
use std::ops::ControlFlow::{self, Break, Continue};

use super::script::{MockAttempt, Scene};
use super::step::{Escalate, EscalateKind, MockStep};
use super::stream::Stream;
use super::tools;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MockEnd {
    Exit(u8),
    /// Silent until somebody ends the process.
    Hang,
}

pub fn perform(scene: &Scene, attempt: &MockAttempt, out: impl Write) -> io::Result<MockEnd> {
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
    Ok(MockEnd::Exit(0))
}

fn play<W: Write>(
    step: &MockStep,
    scene: &Scene,
    stream: &mut Stream<W>,
) -> io::Result<ControlFlow<MockEnd>> {
    match step {
        MockStep::Fail { fail, resets_in, retries } => {
            stream.fail(*fail, *retries, scene.second_after(*resets_in))?;
            Ok(Break(MockEnd::Exit(1)))
        }
        MockStep::Exit { exit, result } => {
            if *result {
                stream.success()?;
            }
            Ok(Break(MockEnd::Exit(*exit)))
        }
        MockStep::NoResult {} => Ok(Break(MockEnd::Exit(0))),
        MockStep::Hang { .. } => Ok(Break(MockEnd::Hang)),
        MockStep::HangAfterResult {} => stream.success().map(|()| Break(MockEnd::Hang)),
        _ => act(step, scene, stream).map(Continue),
    }
}

fn act<W: Write>(step: &MockStep, scene: &Scene, stream: &mut Stream<W>) -> io::Result<()> {
    match step {
        MockStep::Write { write, text, append } => {
            tools::write(stream, scene, write, text, *append)?
        }
        MockStep::Delete { delete } => tools::delete(stream, scene, delete)?,
        MockStep::Run { run } => tools::run(stream, scene, run)?,
        MockStep::Denied { denied } => tools::denied(stream, denied)?,
        MockStep::Sleep { sleep } => std::thread::sleep(*sleep),
        MockStep::Cost { cost } => stream.totals.cost = *cost,
        MockStep::Turns { turns } => stream.totals.stated_turns = Some(*turns),
        MockStep::Tokens { tokens } => stream.totals.stated_tokens = Some(*tokens),
        MockStep::Model { model } => stream.totals.model = Some(model.clone()),
        MockStep::Retry { retry, times } => stream.retries(*retry, times.unwrap_or(1))?,
        MockStep::Grandchild(left) => tools::leave_process(left, scene)?,
        MockStep::Tree(wanted) => tools::leave_tree(wanted, scene)?,
        _ => speak(step, scene, stream)?,
    }
    Ok(())
}

fn speak<W: Write>(step: &MockStep, scene: &Scene, stream: &mut Stream<W>) -> io::Result<()> {
    match step {
        MockStep::Say { say } => stream.text(say),
        MockStep::Thinking { thinking } => stream.thinking(thinking),
        MockStep::Subagent { subagent } => stream.subagent(subagent),
        MockStep::Escalate { escalate } => stream.text(&escalation(escalate)),
        MockStep::Claim { claim: Some(other) } => stream.text(&format!("Task {other} complete")),
        MockStep::Claim { claim: None } | MockStep::Complete {} | MockStep::FalseClaim {} => {
            stream.text(&format!("Task {} complete", scene.story))
        }
        MockStep::Promise {} => stream.text("<promise>DONE</promise>"),
        MockStep::Raw { raw } => stream.line(raw.as_bytes()),
        MockStep::Stderr { stderr } => writeln!(io::stderr(), "{stderr}"),
        MockStep::Output { output } => tools::flood(stream, *output),
        MockStep::Hear {} => {
            let heard = super::read_message();
            stream.text(&format!("I was told: {}", String::from_utf8_lossy(&heard)))
        }
        MockStep::EchoPrompt { echo_prompt: true } => stream.line(&scene.prompt),
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
