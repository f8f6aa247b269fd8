//! A question before a run begins.

use std::sync::Arc;

use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::ports::{Asked, WITHDRAWAL};
use crate::runner::{Interrupts, SIGINT};
use crate::ui::TerminalHuman;

use super::error::CommandError;

/// How it ended.
#[derive(Clone, Copy)]
pub enum Answered<T> {
    Answer(T),
    Nobody,
    /// With this signal, or a key that stands for it.
    Left(i32),
}

/// A signal ends the question, and the terminal is given back first.
pub fn ask<T: Send + 'static>(
    human: &Arc<TerminalHuman>,
    question: impl FnOnce(&TerminalHuman) -> Result<T, Asked> + Send + 'static,
) -> Result<Answered<T>, CommandError> {
    if !TerminalHuman::is_there() {
        return Ok(Answered::Nobody);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let answer = runtime.block_on(async {
        let mut signals = Interrupts::listen()?;
        let asked = Arc::clone(human);
        let mut asking = spawn_blocking(move || question(&asked));
        tokio::select! {
            asked = &mut asking => Ok(match asked.unwrap_or(Err(Asked::NoAnswer)) {
                Ok(answer) => Answered::Answer(answer),
                Err(Asked::Interrupted) => Answered::Left(SIGINT),
                Err(_) => Answered::Nobody,
            }),
            signal = signals.next() => {
                human.withdraw();
                let _ = timeout(WITHDRAWAL, asking).await;
                Ok(Answered::Left(signal))
            }
        }
    });
    runtime.shutdown_background();
    answer
}
