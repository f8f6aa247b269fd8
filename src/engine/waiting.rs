//! Waiting: for the service, for the rest after a failure, for a budget to last longer, or for a
//! human who wants to try now.

use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::sleep;

use super::Engine;
use super::error::EngineError;
use super::ports::{Human, Wait};
use crate::core::event::Event;

/// The machine may have slept meanwhile, so the clock on the wall is looked at again and again.
const LOOK: Duration = Duration::from_secs(1);
/// How long the human's side may take to let go of the keyboard.
const LETTING_GO: Duration = Duration::from_secs(1);

impl Engine {
    pub(super) async fn wait_until(&mut self, wait: &Wait, now: i64) -> Result<(), EngineError> {
        self.parts.reporter.on_wait(wait);
        let human = &self.parts.human;
        let ear = self.ear.get_or_insert_with(|| Ear::open(Arc::clone(human)));
        let left = Duration::from_millis(u64::try_from(wait.until - now).unwrap_or_default());
        tokio::select! {
            () = sleep(left.min(LOOK)) => {}
            signal = self.signals.next() => self.take_signal(signal),
            () = ear.hears_hurry() => self.record(vec![Event::WaitCutShort])?,
        }
        Ok(())
    }
}

/// An open ear for the human as long as a wait lasts. Dropped, it has let go of the keyboard.
pub struct Ear {
    hurry: mpsc::Receiver<()>,
    over: Arc<AtomicBool>,
    /// Closed when nobody listens any more.
    listening: Receiver<Infallible>,
}

impl Ear {
    fn open(human: Arc<dyn Human>) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let (hurries, hurry) = mpsc::channel(1);
        let (alive, listening) = channel();
        let is_over = Arc::clone(&over);
        let listen = move || {
            if human.hurries(&is_over) {
                // Nobody waits for it any more: no matter.
                let _ = hurries.try_send(());
            }
            drop(alive);
        };
        // Without a thread nobody is heard; the wait has its end all the same.
        let _ = thread::Builder::new().name("ear".to_owned()).spawn(listen);
        Self { hurry, over, listening }
    }

    /// Never, where nobody can be heard.
    async fn hears_hurry(&mut self) {
        if self.hurry.recv().await.is_none() {
            pending().await
        }
    }
}

impl Drop for Ear {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        let _ = self.listening.recv_timeout(LETTING_GO);
    }
}
