//! Signals that end this process: SIGINT, SIGTERM, SIGHUP.

use std::io;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

/// What Ctrl-C sends.
pub const SIGINT: i32 = 2;

pub struct Interrupts {
    received: mpsc::UnboundedReceiver<i32>,
}

impl Interrupts {
    /// From now on these signals no longer end the process directly.
    pub fn listen() -> io::Result<Self> {
        let (sender, received) = mpsc::unbounded_channel();
        for kind in [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()] {
            let mut stream = signal(kind)?;
            let sender = sender.clone();
            tokio::spawn(async move {
                while stream.recv().await.is_some() {
                    if sender.send(kind.as_raw_value()).is_err() {
                        return;
                    }
                }
            });
        }
        Ok(Self { received })
    }

    pub async fn next(&mut self) -> i32 {
        match self.received.recv().await {
            Some(signal) => signal,
            None => std::future::pending().await,
        }
    }

    pub fn try_next(&mut self) -> Option<i32> {
        self.received.try_recv().ok()
    }
}
