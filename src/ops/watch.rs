//! Before the loop of a run, and in other commands: looks for a damaged object if work at the
//! repository does not end.

use std::path::Path;
use std::process::exit;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;

use crate::ui::{Printer, UiOptions};
use crate::workspace::{GRACE, GitError, PATIENCE, damaged_object, shared_git_folder};

use super::error::{CommandError, Result};

/// Questions to the human that are open.
static WAITING: AtomicUsize = AtomicUsize::new(0);

/// For the time of a question or of output: a human may think, and read.
pub struct Waiting;

impl Waiting {
    pub fn begin() -> Self {
        WAITING.fetch_add(1, Ordering::Relaxed);
        Self
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        WAITING.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A command that works at the repository of the current folder, else of this backlog.
pub fn watched(prd: &Path, look: &UiOptions, command: impl FnOnce() -> Result<()>) -> Result<()> {
    let (here, there) = (std::env::current_dir()?, std::path::absolute(prd)?);
    let is_here = shared_git_folder(&here).is_some();
    let folder = there.parent().filter(|_| !is_here).unwrap_or(&here);
    let _watch = Watch::start(folder, look)?;
    command()
}

/// Until it is dropped.
pub struct Watch {
    _over: Sender<()>,
}

impl Watch {
    /// If an object of the repository is damaged and the work does not end, the process ends with an error:
    /// nothing can end the work.
    pub fn start(folder: &Path, look: &UiOptions) -> Result<Self> {
        let (watch, over) = channel();
        let (folder, look) = (shared_git_folder(folder), look.clone());
        thread::Builder::new().name("watch".to_owned()).spawn(move || {
            let Some(folder) = folder else { return };
            let mut patience = PATIENCE;
            let goes_on = |patience| over.recv_timeout(patience) == Err(RecvTimeoutError::Timeout);
            while goes_on(patience) {
                patience *= 2;
                let is_working = || WAITING.load(Ordering::Relaxed) == 0;
                let found = Some(&folder).filter(|_| is_working());
                let found = found.and_then(|folder| damaged_object(folder));
                if let Some(path) = found.filter(|_| goes_on(GRACE) && is_working()) {
                    let error = CommandError::from(GitError::DamagedObject { path });
                    Printer::stderr(&look).error(&error.to_string());
                    exit(error.exit_code().into());
                }
            }
        })?;
        Ok(Self { _over: watch })
    }
}
