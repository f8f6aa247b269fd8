//! How a command talks to people: what it prints, and what it asks before a run begins.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::ports::{Asked, WITHDRAWAL};
use crate::runner::{Interrupts, SIGINT};
use crate::ui::{self, TerminalHuman};

use super::error::{CommandError, Result};
use super::watch::Waiting;

/// More files than these are only counted.
const MOST_NAMED: usize = 20;

/// Data goes to standard output. A closed pipe is an error without a message.
pub fn print(text: &str) -> Result<()> {
    print_bytes(text.as_bytes())
}

pub fn print_json(value: &Value) -> Result<()> {
    print(&format!("{value:#}\n"))
}

pub fn print_bytes(bytes: &[u8]) -> Result<()> {
    let _waiting = Waiting::begin();
    let mut out = io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(CommandError::Pipe),
        result => Ok(result?),
    }
}

/// One line for each path, or for the first of them.
pub fn listed(paths: &[PathBuf]) -> Vec<String> {
    let named = paths.iter().take(MOST_NAMED).map(|path| ui::shown(path));
    let more = paths.len().checked_sub(MOST_NAMED).filter(|more| *more > 0);
    named.chain(more.map(|more| format!("and {more} more"))).collect()
}

/// None without a terminal or an answer. A signal ends the question and is an error; the terminal
/// is released first.
pub fn ask<T: Send + 'static>(
    human: &Arc<TerminalHuman>,
    question: impl FnOnce(&TerminalHuman) -> Result<T, Asked> + Send + 'static,
) -> Result<Option<T>> {
    if !TerminalHuman::is_there() {
        return Ok(None);
    }
    let _waiting = Waiting::begin();
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
