//! Tasks that wait for the human: a question, and Enter during a wait.

use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use tokio::sync::{Notify, mpsc};
use tokio::time::sleep;

use crate::ports::{Ask, Asked, Human, WITHDRAWAL, Withdrawal};
use crate::runner::effects::{About, Happened};
use crate::runner::error::Result;

/// The loop's handle on an open question.
pub struct OpenQuestion {
    pub withdrawal: Arc<Withdrawal>,
    closing: Arc<Notify>,
}

impl OpenQuestion {
    pub fn close(&self) {
        self.withdrawal.close();
        self.closing.notify_one();
    }
}

pub struct QuestionTask {
    about: About,
    ask: Ask,
    human: Arc<dyn Human>,
    closing: Arc<Notify>,
}

impl QuestionTask {
    pub fn new(about: About, ask: Ask, human: Arc<dyn Human>) -> (OpenQuestion, Self) {
        let closing = Arc::new(Notify::new());
        let withdrawal = Arc::clone(&ask.withdrawal);
        let open = OpenQuestion { withdrawal, closing: Arc::clone(&closing) };
        (open, Self { about, ask, human, closing })
    }

    pub async fn run(self) -> Result<Happened> {
        let (human, ask) = (self.human, self.ask);
        let withdrawal = Arc::clone(&ask.withdrawal);
        let mut asking = tokio::task::spawn_blocking(move || human.ask(&ask));
        let closed = async {
            self.closing.notified().await;
            // Wait for the menu to release the terminal, but not forever, unless it is the editor's.
            let is_editing = || withdrawal.in_editor.load(Ordering::SeqCst);
            let mut was_editing = true;
            while std::mem::replace(&mut was_editing, is_editing()) || was_editing {
                sleep(WITHDRAWAL).await;
            }
        };
        let asked = tokio::select! {
            biased;
            // An answer that was just given counts.
            asked = &mut asking => asked.unwrap_or(Asked::NoAnswer),
            () = closed => Asked::NoAnswer,
        };
        Ok(Happened::Answered { about: self.about, asked })
    }
}

/// How long releasing the keyboard may take.
const RELEASE: Duration = Duration::from_secs(1);

/// Listens during a wait. Dropping it releases the keyboard.
pub struct SkipWait {
    skipped: mpsc::Receiver<()>,
    over: Arc<AtomicBool>,
    /// Closed when the listener has ended.
    listening: Receiver<Infallible>,
}

impl SkipWait {
    pub fn listen(human: Arc<dyn Human>) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let (skips, skipped) = mpsc::channel(1);
        let (alive, listening) = channel();
        let is_over = Arc::clone(&over);
        let listen = move || {
            if human.wait_skipped(&is_over) {
                // The wait may be over already.
                let _ = skips.try_send(());
            }
            drop(alive);
        };
        // Without a thread the wait simply cannot be skipped.
        let _ = thread::Builder::new().name("skip-wait".to_owned()).spawn(listen);
        Self { skipped, over, listening }
    }

    /// Never resolves if no key can be read.
    pub async fn skipped(&mut self) {
        if self.skipped.recv().await.is_none() {
            pending().await
        }
    }
}

impl Drop for SkipWait {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        let _ = self.listening.recv_timeout(RELEASE);
    }
}
