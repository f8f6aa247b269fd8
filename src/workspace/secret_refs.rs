//! Refs that keep a story's earlier work, without the secrets in it.
//!
//! Before a story is closed, its work needs them: what is at the refs is nowhere else. Then they are
//! made again without the files with secrets, and on top of no commit that has one.

use std::collections::HashSet;
use std::path::PathBuf;

use git2::{Commit, Oid, Tree};

use crate::model::StoryId;

use super::branch::commit_id;
use super::catalog::kind_of;
use super::commit::trailer;
use super::error::{GitContext, if_found};
use super::own_commits::Compared;
use super::staging::CollectRequest;
use super::tree::{bytes_of, edited, entry_at};
use super::{Result, WorkTree};

const SNAPSHOTS: &str = "refs/ralph/snapshots/*";
/// What protects objects while something untrusted runs; the next one has its own.
const HELD: [&str; 4] = [
    "refs/worktree/ralph/before-gates",
    "refs/worktree/ralph/during-gates",
    "refs/worktree/ralph/refs",
    "refs/worktree/ralph/staged",
];
const DOING: &str = "leave secrets out of kept work";

impl WorkTree {
    /// Call when the story's work is collected. Its own commits have a secret if `is_known`; else only
    /// work that was kept before may have one.
    pub fn forget_secrets(
        &self,
        story: &StoryId,
        request: &CollectRequest<'_>,
        is_known: bool,
    ) -> Result<()> {
        let mut refs = self.commits_at(&format!("refs/ralph/attempts/{story}/*"))?;
        if (refs.is_empty() && !is_known) || request.as_it_is || request.staging.is_none() {
            return Ok(());
        }
        refs.extend(self.commits_at(SNAPSHOTS)?.into_iter().filter(|(_, commit)| {
            trailer(commit, "Ralph-Story").is_some_and(|of| of == story.to_string())
        }));
        let look = self.look_at(request, None)?;
        let before = self.tree(&request.base.tree)?;
        let mut is_any = is_known;
        for (name, commit) in refs.iter().filter(|(_, commit)| kind_of(commit).is_some()) {
            let secret = self.with_secrets(&look, &before, commit)?;
            if !secret.is_empty() {
                is_any = true;
                let without = self.without_secrets(&look, &before, (commit, &secret))?;
                self.set_ref(name, without, "ralph: without secrets", DOING)?;
            }
        }
        for name in HELD.iter().filter(|_| is_any) {
            let held = if_found(self.repo.find_reference(name)).doing(DOING)?;
            held.map_or(Ok(()), |mut held| held.delete().doing(DOING))?;
        }
        Ok(())
    }

    fn commits_at(&self, pattern: &str) -> Result<Vec<(String, Commit<'_>)>> {
        let refs = self.repo.references_glob(pattern).doing("list the refs")?;
        let named = |one: git2::Reference<'_>| {
            let name = one.name().ok()?.to_owned();
            Some((name, self.repo.find_commit(one.peel_to_commit().ok()?.id()).ok()?))
        };
        Ok(refs.flatten().filter_map(named).collect())
    }

    /// Commits since the base that have a secret, or are on top of one.
    fn with_secrets(
        &self,
        look: &Compared<'_>,
        before: &Tree<'_>,
        tip: &Commit<'_>,
    ) -> Result<HashSet<Oid>> {
        let mut commits = self.commits_between(tip.id(), &[commit_id(look.request.base)?])?;
        commits.reverse();
        let mut found = HashSet::new();
        for id in commits {
            let commit = self.repo.find_commit(id).doing(DOING)?;
            if commit.parent_ids().any(|parent| found.contains(&parent))
                || !self.secret_files(look, before, &commit)?.is_empty()
            {
                found.insert(id);
            }
        }
        Ok(found)
    }

    /// Except what the user had there before the story.
    fn secret_files(
        &self,
        look: &Compared<'_>,
        before: &Tree<'_>,
        commit: &Commit<'_>,
    ) -> Result<Vec<PathBuf>> {
        let tree = commit.tree().doing(DOING)?;
        let mut found = Vec::new();
        for path in self.secrets_in(look, commit)? {
            let is_users = !path.as_os_str().is_empty()
                && entry_at(Some(&tree), &path)? == entry_at(Some(before), &path)?;
            found.extend((!is_users).then_some(path));
        }
        Ok(found)
    }

    /// The same snapshot, without those files and commits.
    fn without_secrets(
        &self,
        look: &Compared<'_>,
        before: &Tree<'_>,
        (commit, secret): (&Commit<'_>, &HashSet<Oid>),
    ) -> Result<Oid> {
        let mut paths = Vec::new();
        for id in secret {
            let of = self.repo.find_commit(*id).doing(DOING)?;
            paths.extend(self.secret_files(look, before, &of)?);
        }
        paths.retain(|path| !path.as_os_str().is_empty());
        let mut edits = Vec::new();
        for path in &paths {
            edits.push((bytes_of(path), entry_at(Some(before), path)?));
        }
        let tree = commit.tree().doing(DOING)?;
        let tree = edited(&self.repo, Some(&tree), &edits)?;
        let tree = self.repo.find_tree(tree).doing(DOING)?;
        let mut parents: Vec<Commit<'_>> =
            commit.parents().filter(|parent| !secret.contains(&parent.id())).collect();
        if parents.len() < commit.parent_count() && parents.is_empty() {
            let base = commit_id(look.request.base)?;
            let base = base.map(|id| self.repo.find_commit(id)).transpose();
            parents.extend(base.doing(DOING)?);
        }
        let (author, committer) = (commit.author(), commit.committer());
        let message = commit.message().unwrap_or_default();
        let parents: Vec<&Commit<'_>> = parents.iter().collect();
        let made = self.repo.commit(None, &author, &committer, message, &tree, &parents);
        made.doing(DOING)
    }
}
