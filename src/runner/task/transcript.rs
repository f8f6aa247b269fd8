//! Writes the output of an agent or of gates to its log.
//!
//! On its own thread: copying into the system's cache takes as long as reading and decoding, and a
//! stalled disk must not delay the loop.

use std::io;

use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::{JoinHandle, spawn_blocking};

use crate::store::log::Log;

/// Queued chunks.
const WAITING: usize = 4;

pub struct Transcript {
    chunks: Sender<Chunk>,
    /// Written buffers for reuse.
    spare: Receiver<Vec<u8>>,
    writer: JoinHandle<Option<io::Error>>,
}

enum Chunk {
    Output(Vec<u8>),
    Errors(Vec<u8>),
}

impl Transcript {
    /// Without a log of its own, standard error is in the other one.
    pub fn begin(output: Log, errors: Option<Log>) -> Self {
        let (chunks, to_write) = channel(WAITING);
        let (written, spare) = channel(WAITING);
        let writer = spawn_blocking(move || write(to_write, &written, output, errors));
        Self { chunks, spare, writer }
    }

    /// An empty buffer.
    pub fn buffer(&mut self) -> Vec<u8> {
        self.spare.try_recv().unwrap_or_default()
    }

    /// Waits while too much is queued. If the writer has ended, `finish` returns its error.
    pub async fn output(&mut self, said: Vec<u8>) {
        let _ = self.chunks.send(Chunk::Output(said)).await;
    }

    pub async fn errors(&mut self, said: Vec<u8>) {
        let _ = self.chunks.send(Chunk::Errors(said)).await;
    }

    /// Waits until everything is written; returns the error, if any.
    pub async fn finish(self) -> Option<io::Error> {
        drop(self.chunks);
        self.writer.await.unwrap_or_else(|lost| Some(io::Error::other(lost)))
    }
}

fn write(
    mut chunks: Receiver<Chunk>,
    written: &Sender<Vec<u8>>,
    mut output: Log,
    mut errors: Option<Log>,
) -> Option<io::Error> {
    while let Some(chunk) = chunks.blocking_recv() {
        let (log, mut said) = match chunk {
            Chunk::Output(said) => (&mut output, said),
            Chunk::Errors(said) => (errors.as_mut().unwrap_or(&mut output), said),
        };
        log.append(&said);
        said.clear();
        // Dropped if enough spare buffers are queued.
        let _ = written.try_send(said);
    }
    let (output, errors) = (output.finish(), errors.map_or(Ok(()), Log::finish));
    output.and(errors).err()
}
