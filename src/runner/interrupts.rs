//! Signals that end this process: SIGINT, SIGTERM, SIGHUP.
//!
//! A thread of their own hears them, because the loop's may be at work on the repository. The first
//! signal is for the loop. If that does not take it up, the second one ends the process: then every
//! supervisor ends its agent, and the next start finds what is left.

use std::io::{self, Write};
use std::process::exit;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::sleep;

/// What Ctrl-C sends.
pub const SIGINT: i32 = 2;
/// How long a loop may take to take a signal up.
const PATIENCE: Duration = Duration::from_secs(1);
/// Added to a signal's number.
const ENDED_BY: i32 = 128;

/// Whoever listens now.
static LISTENERS: Mutex<Vec<Listener>> = Mutex::new(Vec::new());

#[derive(Clone)]
struct Listener {
    sender: mpsc::UnboundedSender<i32>,
    /// Signals that were sent and not taken up.
    waiting: Arc<AtomicUsize>,
}

pub struct Interrupts {
    received: mpsc::UnboundedReceiver<i32>,
    waiting: Arc<AtomicUsize>,
}

impl Interrupts {
    /// From now on these signals no longer end the process directly.
    pub fn listen() -> io::Result<Self> {
        static THREAD: OnceLock<Result<(), io::ErrorKind>> = OnceLock::new();
        THREAD.get_or_init(|| start().map_err(|error| error.kind())).map_err(io::Error::from)?;
        let (sender, received) = mpsc::unbounded_channel();
        let waiting = Arc::<AtomicUsize>::default();
        let listener = Listener { sender, waiting: Arc::clone(&waiting) };
        LISTENERS.lock().unwrap_or_else(PoisonError::into_inner).push(listener);
        Ok(Self { received, waiting })
    }

    pub async fn next(&mut self) -> i32 {
        match self.received.recv().await {
            Some(signal) => {
                self.waiting.fetch_sub(1, Ordering::Relaxed);
                signal
            }
            None => std::future::pending().await,
        }
    }

    pub fn try_next(&mut self) -> Option<i32> {
        let signal = self.received.try_recv().ok()?;
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        Some(signal)
    }
}

fn start() -> io::Result<()> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let entered = runtime.enter();
    let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
    let streams: Vec<(SignalKind, Signal)> =
        kinds.into_iter().map(|kind| Ok((kind, signal(kind)?))).collect::<io::Result<_>>()?;
    drop(entered);
    let listen = move || {
        runtime.block_on(async {
            for (kind, mut stream) in streams {
                tokio::spawn(async move {
                    while stream.recv().await.is_some() {
                        tokio::spawn(pass_on(kind.as_raw_value()));
                    }
                });
            }
            std::future::pending::<()>().await;
        });
    };
    thread::Builder::new().name("signals".to_owned()).spawn(listen).map(drop)
}

async fn pass_on(signal: i32) {
    let listeners = {
        let mut all = LISTENERS.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|listener| listener.tell(signal));
        all.clone()
    };
    if listeners.is_empty() {
        exit(ENDED_BY + signal);
    }
    sleep(PATIENCE).await;
    match listeners.iter().map(Listener::waiting).max() {
        Some(1) => drop(writeln!(io::stderr(), "{BUSY}")),
        Some(2..) => exit(ENDED_BY + signal),
        _ => {}
    }
}

impl Listener {
    /// Returns whether somebody listens.
    fn tell(&self, signal: i32) -> bool {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        self.sender.send(signal).is_ok()
    }

    fn waiting(&self) -> usize {
        if self.sender.is_closed() { 0 } else { self.waiting.load(Ordering::Relaxed) }
    }
}

const BUSY: &str =
    "interrupted; work on the repository ends first (a second signal ends ralph at once)";
