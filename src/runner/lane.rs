//! A lane's work tree.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::sleep;

use crate::runner::error::{Result, RunnerError};
use crate::workspace::{GRACE, GitError, PATIENCE, WorkTree, damaged_object};

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
        tokio::select! {
            done = tokio::task::spawn_blocking(work) => {
                done.unwrap_or_else(|lost| Err(RunnerError::TaskLost(lost.to_string())))
            }
            path = self.damage() => Err(GitError::DamagedObject { path }.into()),
        }
    }

    /// Why work at the repository does not end: then nobody can wait for it.
    async fn damage(&self) -> PathBuf {
        let mut patience = PATIENCE;
        loop {
            sleep(patience).await;
            let common_dir = self.common_dir.clone();
            let look = tokio::task::spawn_blocking(move || damaged_object(&common_dir));
            if let Ok(Some(path)) = look.await {
                // It may not be in the way.
                sleep(GRACE).await;
                return path;
            }
            patience *= 2;
        }
    }
}
