//! Tasks run concurrently with the loop. Each owns its data and ends with exactly one message.

pub mod attempt;
pub mod gate_guard;
pub mod gates;
pub mod held_files;
pub mod human;
pub mod inspect;
pub mod integrate;
pub mod occupant;
pub mod prepare;
mod progress;
pub mod shelve;
pub mod tail;
pub mod transcript;

use std::future::Future;
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};

use crate::model::{Base, Event, Notice, StoryId, TreeNotice};
use crate::ports::Activity;
use crate::runner::effects::Happened;
use crate::runner::error::{Result, RunnerError};
use crate::runner::task::integrate::MarkWritten;
use crate::runner::task::prepare::Prepared;
use crate::store::SyncPoint;
use crate::store::prd::TextOnDisk;
use crate::workspace::{Moved, StoredBlob, WorkTree};

/// From a task to the loop.
pub enum Message {
    /// What an agent or a gate does now; only displayed.
    Activity(Activity),
    /// A message for people.
    Notice(Notice),
    /// The task continues when this is recorded.
    Record(Box<Event>, oneshot::Sender<SyncPoint>),
    /// The work tree of a running attempt was scanned: did its agent change anything since the last
    /// scan?
    Scanned { attempt: String, changed: bool },
    /// The lane is ready for an attempt.
    Prepared(Box<Prepared>),
    /// A mark is on the branch.
    Marked(Box<MarkWritten>),
    /// An agent runs, so there is time to prepare what comes next.
    Started { story: StoryId },
    /// The next mark is on the disk, and in the repository.
    StoredAhead { text: Option<TextOnDisk>, blob: Option<(Arc<str>, StoredBlob)> },
    /// A gate ended: the backlog file must be as it was before the next one.
    GateOver(oneshot::Sender<()>),
    /// The human's tree while nothing runs; None: it cannot be read.
    Left { story: StoryId, left: Option<Base> },
    /// A gate left programs running that `keep_processes` names.
    Kept,
    /// The end of a task.
    Ended(Result<Happened>),
}

pub type Mailbox = mpsc::Sender<Message>;

/// Starts a task; if it panics, it is reported as lost.
pub fn spawn(mailbox: &Mailbox, task: impl Future<Output = Result<Happened>> + Send + 'static) {
    let mailbox = mailbox.clone();
    let running = tokio::spawn(task);
    tokio::spawn(async move {
        let lost = |lost: tokio::task::JoinError| Err(RunnerError::TaskLost(lost.to_string()));
        let ended = running.await.unwrap_or_else(lost);
        // The loop may have ended.
        let _ = mailbox.send(Message::Ended(ended)).await;
    });
}

/// Records what a work on a tree finds out on its way.
pub trait EventSink {
    /// Returns when the event is safe.
    fn record(&mut self, event: Event) -> Result<()>;
    fn notice(&mut self, notice: Notice);
}

/// What a look at the tree moved out of git's way.
pub fn tell_moved(tree: &WorkTree, log: &mut dyn EventSink) {
    for Moved { path, kept } in tree.moved_away() {
        log.notice(Notice::Tree(TreeNotice::MovedAway { path, kept }));
    }
}

/// To the loop, from the thread of a task.
impl EventSink for Mailbox {
    fn record(&mut self, event: Event) -> Result<()> {
        let (reply, recorded) = oneshot::channel();
        let sent = self.blocking_send(Message::Record(Box::new(event), reply));
        match recorded.blocking_recv() {
            Ok(point) if sent.is_ok() => Ok(point.wait()?),
            _ => Err(RunnerError::TaskLost("the run has ended".to_owned())),
        }
    }

    fn notice(&mut self, notice: Notice) {
        // The loop may have ended.
        let _ = self.blocking_send(Message::Notice(notice));
    }
}
