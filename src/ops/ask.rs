//! A question before a run begins.

use std::sync::Arc;

use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::ports::{Asked, WITHDRAWAL};
use crate::runner::{Interrupts, SIGINT};
use crate::ui::TerminalHuman;

use super::error::CommandError;

/// None: there is no terminal, or no answer. A signal ends the question and is an error; the
/// terminal is released first.
pub fn ask<T: Send + 'static>(
    human: &Arc<TerminalHuman>,
    question: impl FnOnce(&TerminalHuman) -> Result<T, Asked> + Send + 'static,
) -> Result<Option<T>, CommandError> {
    if !TerminalHuman::is_there() {
        return Ok(None);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let answer = runtime.block_on(async {
        let mut signals = Interrupts::listen()?;
        let asked = Arc::clone(human);
        let mut asking = spawn_blocking(move || question(&asked));
        tokio::select! {
            asked = &mut asking => match asked.unwrap_or(Err(Asked::NoAnswer)) {
                Ok(answer) => Ok(Some(answer)),
                Err(Asked::Interrupted) => Err(CommandError::Interrupted { signal: SIGINT }),
                Err(_) => Ok(None),
            },
            signal = signals.next() => {
                human.withdraw();
                let _ = timeout(WITHDRAWAL, asking).await;
                Err(CommandError::Interrupted { signal })
            }
        }
    });
    runtime.shutdown_background();
    answer
}
