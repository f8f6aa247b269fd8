//! A story's base, when the branch moved while no attempt ran.

use git2::{FileFavor, MergeOptions, Oid, Tree};

use super::error::{Doing, GitError};
use super::{WorkTree, head};
use crate::core::event::Base;

impl WorkTree {
    /// The base on top of the branch as it is now. What was committed between `from` (the branch
    /// tip that the story's last attempt left) and now is the human's, so it becomes a part of the
    /// base; the agent's own commits below `from` and what is uncommitted stay the story's work.
    pub fn move_base(&self, base: &Base, from: Option<&str>) -> Result<Base, GitError> {
        let commit = head::tip(&self.repo)?.commit;
        let before =
            self.committed_tree(from.map(Oid::from_str).transpose().doing("read the base")?)?;
        let after = self.committed_tree(commit)?;
        let known = self.tree(&base.tree)?;
        let mut options = MergeOptions::new();
        // Where both changed a line, what was committed by hand is what the tree starts from.
        options.file_favor(FileFavor::Theirs);
        let merged = self.repo.merge_trees(&before, &known, &after, Some(&options));
        let mut merged = merged.doing("move the story's base")?;
        let tree = if merged.has_conflicts() {
            after.id()
        } else {
            merged.write_tree_to(&self.repo).doing("write the story's base")?
        };
        Ok(Base { commit: commit.map(|id| id.to_string()), tree: tree.to_string() })
    }

    fn committed_tree(&self, commit: Option<Oid>) -> Result<Tree<'_>, GitError> {
        let id = match commit {
            Some(id) => self.repo.find_commit(id).doing("read a commit")?.tree_id(),
            None => {
                let empty = self.repo.treebuilder(None).and_then(|builder| builder.write());
                empty.doing("write an empty tree")?
            }
        };
        self.repo.find_tree(id).doing("read a tree")
    }
}
