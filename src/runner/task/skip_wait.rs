//! Enter skips a wait.

use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use tokio::sync::mpsc;

use crate::ports::Human;

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
