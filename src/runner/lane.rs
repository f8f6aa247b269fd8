//! A lane's work tree.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::runner::error::{Result, RunnerError};
use crate::workspace::WorkTree;

/// Looking at a work tree and changing it takes time: tasks do that on a thread. At most one task
/// has a lane at a time, so only a task that prepares something ever waits for its lock.
#[derive(Clone)]
pub struct Lane {
    root: PathBuf,
    common_dir: PathBuf,
    tree: Arc<Mutex<WorkTree>>,
}

impl Lane {
    pub fn new(tree: WorkTree) -> Self {
        let (root, common_dir) = (tree.root().to_owned(), tree.common_dir().to_owned());
        Self { root, common_dir, tree: Arc::new(Mutex::new(tree)) }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The git folder that all lanes share.
    pub fn common_dir(&self) -> &Path {
        &self.common_dir
    }

    /// Blocks while a task has the tree.
    pub fn tree(&self) -> MutexGuard<'_, WorkTree> {
        self.tree.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// On a thread of its own.
    pub async fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&WorkTree) -> T + Send + 'static,
    ) -> Result<T> {
        let lane = self.clone();
        let work = move || {
            let tree = lane.tree();
            tree.mend_git_files()?;
            Ok(work(&tree))
        };
        let done = tokio::task::spawn_blocking(work).await;
        done.unwrap_or_else(|lost| Err(RunnerError::TaskLost(lost.to_string())))
    }
}
