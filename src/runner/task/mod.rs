//! Tasks next to the loop. Each owns its data and ends with exactly one message.

pub mod attempt;
pub mod gates;
pub mod human;
pub mod transcript;

use std::future::Future;

use tokio::sync::mpsc;

use crate::ports::Activity;
use crate::runner::effects::Happened;

/// From a task to the loop.
pub enum Message {
    /// What an agent or a gate does now; only displayed.
    Activity(Activity),
    Happened(Happened),
}

pub type Mailbox = mpsc::Sender<Message>;

/// Runs a task next to the loop; one that panics is reported as lost.
pub fn spawn(mailbox: &Mailbox, task: impl Future<Output = Happened> + Send + 'static) {
    let mailbox = mailbox.clone();
    let running = tokio::spawn(task);
    tokio::spawn(async move {
        let happened = running.await.unwrap_or(Happened::TaskLost);
        // The loop may have ended.
        let _ = mailbox.send(Message::Happened(happened)).await;
    });
}
