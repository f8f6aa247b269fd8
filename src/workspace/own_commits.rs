//! The agent's own commits: whether they can stay on the branch.
//!
//! Each is looked at, because the history has what a later one removes. If one has what no commit may
//! have, the close replaces all of them by one commit of the story's work.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use git2::{Commit, Oid, Tree};

use crate::decide::staging::Content;
use crate::model::{
    Base, CommitName, CommitsReplaced, LeftOut, StoryId, Unclean, WhyLeftOut, WhyUnclean,
};

use super::catalog::SnapshotKind;
use super::collect::Shared;
use super::error::GitContext;
use super::guard::Beside;
use super::index::unstatted;
use super::snapshot::SnapshotNote;
use super::staging::{CollectRequest, Contribution, OwnCommits};
use super::tree::{TreeChange, TreeEntry, between, bytes_of, entry_at};
use super::{Result, WorkTree};

const READ: &str = "read the agent's commits";
const SUBMODULES: &str = ".gitmodules";

/// What every commit is compared with.
pub(super) struct Compared<'a> {
    pub request: &'a CollectRequest<'a>,
    /// The base's commit.
    committed: Option<Tree<'a>>,
    /// What was uncommitted at the base.
    users: BTreeMap<PathBuf, TreeChange>,
    beside: Arc<Beside>,
    /// The agent's newest commit.
    last: Option<Tree<'a>>,
    /// The work tree.
    now: Option<Tree<'a>>,
}

impl WorkTree {
    /// None: they can stay, or there are none.
    pub(super) fn unclean_commits(
        &self,
        all: &Contribution,
        request: &CollectRequest<'_>,
    ) -> Result<Option<OwnCommits>> {
        let Some(tip) = all.on.filter(|on| Some(*on) != all.began) else { return Ok(None) };
        let now = all.work_tree.map(|tree| self.repo.find_tree(tree)).transpose();
        let look = Compared { now: now.doing(READ)?, ..self.look_at(request, Some(tip))? };
        let mut hidden = vec![all.began];
        hidden.extend(self.fetched.borrow().iter());
        let mut commits = self.commits_between(tip, &hidden)?;
        commits.reverse();
        let mut found = BTreeMap::<WhyUnclean, BTreeSet<PathBuf>>::new();
        let (mut secret, mut keepable) = (HashSet::new(), Vec::new());
        for id in &commits {
            let commit = self.repo.find_commit(*id).doing(READ)?;
            let unclean = self.unclean_in(&look, &commit)?;
            let is_private = |(why, path): &(WhyUnclean, PathBuf)| {
                *why == WhyUnclean::Secret || look.beside.ignored(path).is_some()
            };
            if unclean.iter().any(is_private)
                || commit.parent_ids().any(|parent| secret.contains(&parent))
            {
                secret.insert(*id);
            } else {
                keepable.retain(|kept| commit.parent_ids().all(|parent| parent != *kept));
                keepable.push(*id);
            }
            for (why, path) in unclean {
                found.entry(why).or_default().insert(path);
            }
        }
        let unclean: Vec<Unclean> = found.into_iter().map(summed).collect();
        let own = OwnCommits { tip, count: commits.len(), unclean, keepable };
        Ok((!own.unclean.is_empty()).then_some(own))
    }

    /// Of commits without an attempt's mark: the user's files that were uncommitted at the base, and
    /// secrets (of a message: without a path), each with its commit.
    pub fn users_files_in<'c>(
        &self,
        commits: &'c [CommitName],
        request: &CollectRequest<'_>,
    ) -> Result<Vec<(&'c CommitName, PathBuf)>> {
        let look = self.look_at(request, None)?;
        let mut found = Vec::new();
        for name in commits {
            let commit = self.commit_named(&name.commit)?;
            let is_theirs =
                |why: &WhyUnclean| matches!(why, WhyUnclean::Users | WhyUnclean::Secret);
            let unclean = self.unclean_in(&look, &commit)?.into_iter();
            let theirs = unclean.filter(|(why, _)| is_theirs(why));
            found.extend(theirs.map(|(_, path)| (name, path)));
        }
        Ok(found)
    }

    pub(super) fn look_at<'a>(
        &'a self,
        request: &'a CollectRequest<'a>,
        tip: Option<Oid>,
    ) -> Result<Compared<'a>> {
        let users = self.uncommitted_at(request.base)?.into_iter();
        Ok(Compared {
            request,
            committed: self.committed_at(request.base)?,
            users: users.map(|change| (change.path.clone(), change)).collect(),
            beside: self.beside(),
            last: self.tree_at(tip)?,
            now: None,
        })
    }

    fn unclean_in(
        &self,
        look: &Compared<'_>,
        commit: &Commit<'_>,
    ) -> Result<Vec<(WhyUnclean, PathBuf)>> {
        let mut found = Vec::new();
        let secrets = look.request.staging.map(|staging| staging.secrets);
        if secrets.is_some_and(|rules| rules.kind_in(commit.message_bytes()).is_some()) {
            found.push((WhyUnclean::Secret, PathBuf::new()));
        }
        let tree = commit.tree().doing(READ)?;
        for change in self.changes_of(commit, &tree)? {
            if self.is_refused(look, &change)? {
                found.push((WhyUnclean::Held, change.path));
            } else if !look.request.except.contains(&change.path) {
                let why = self.why_unclean(look, &tree, &change)?;
                found.extend(why.map(|why| (why, change.path)));
            }
        }
        Ok(found)
    }

    /// Files with a secret in a commit; without a path its message.
    pub(super) fn secrets_in(
        &self,
        look: &Compared<'_>,
        commit: &Commit<'_>,
    ) -> Result<Vec<PathBuf>> {
        let unclean = self.unclean_in(look, commit)?.into_iter();
        let secret = unclean.filter(|(why, _)| *why == WhyUnclean::Secret);
        Ok(secret.map(|(_, path)| path).collect())
    }

    /// It has a change that is not accepted: another version than before the story, and than in the
    /// work.
    fn is_refused(&self, look: &Compared<'_>, change: &TreeChange) -> Result<bool> {
        let TreeChange { path, new, .. } = change;
        if !look.request.refused.contains(path) {
            return Ok(false);
        }
        let is_as_before = *new == entry_at(look.committed.as_ref(), path)?;
        // The files that are not the story's have no version of the work.
        let is_work =
            !look.request.except.contains(path) && *new == entry_at(look.now.as_ref(), path)?;
        Ok(!is_as_before && !is_work)
    }

    /// Of a merge only what none of its parents has.
    fn changes_of(&self, commit: &Commit<'_>, tree: &Tree<'_>) -> Result<Vec<TreeChange>> {
        let parents: Result<Vec<_>, _> = commit.parents().map(|parent| parent.tree()).collect();
        let parents = parents.doing(READ)?;
        let mut changes = Vec::new();
        for change in between(&self.repo, parents.first(), Some(tree))? {
            let mut is_new = true;
            for other in parents.iter().skip(1) {
                is_new &= entry_at(Some(other), &change.path)? != change.new;
            }
            changes.extend(is_new.then_some(change));
        }
        Ok(changes)
    }

    fn why_unclean(
        &self,
        look: &Compared<'_>,
        tree: &Tree<'_>,
        change: &TreeChange,
    ) -> Result<Option<WhyUnclean>> {
        let (path, new) = (&change.path, change.new);
        let committed = entry_at(look.committed.as_ref(), path)?;
        if new == committed {
            return Ok(None);
        }
        if new.is_some() && committed.is_none() && look.beside.ignored(path).is_some() {
            return Ok(Some(WhyUnclean::Users));
        }
        let accepted = look.request.as_it_is && entry_at(look.last.as_ref(), path)? == new;
        let content = match look.request.staging.filter(|_| !accepted) {
            Some(staging) => {
                let change = TreeChange { path: path.clone(), old: committed, new };
                self.weighed(staging, look.committed.as_ref(), change)?
            }
            None => None,
        };
        // No ref keeps a secret, whoever's it is.
        if content.as_ref().is_some_and(|content| content.secret.is_some()) {
            return Ok(Some(WhyUnclean::Secret));
        }
        if let Some(users) = look.users.get(path)
            && self.has_edit(look, users, new)?
        {
            return Ok(Some(WhyUnclean::Users));
        }
        if new.is_some_and(TreeEntry::is_nested_repository) {
            let is_known = committed.is_some_and(TreeEntry::is_nested_repository);
            let is_foreign = !is_known && !self.is_submodule(tree, path)?;
            return Ok(is_foreign.then_some(WhyUnclean::Repository));
        }
        Ok(content.and_then(|content| unfit(look, &content)))
    }

    /// Whether a commit has the user's uncommitted edit, or a part of it.
    fn has_edit(
        &self,
        look: &Compared<'_>,
        users: &TreeChange,
        new: Option<TreeEntry>,
    ) -> Result<bool> {
        let Some(committed) = users.old else { return Ok(new.is_some()) };
        let Some(new) = new.filter(|_| users.new.is_some()) else {
            // The user deleted it, and so does the commit; or the agent deleted it.
            return Ok(new.is_none() && users.new.is_none());
        };
        if look.request.as_it_is {
            return Ok(false);
        }
        let (path, committed) = (users.path.clone(), Some(committed));
        let file = [Shared { path, before: users.new, now: Some(new), committed }];
        let without = self.merged(&file, |file| file.committed)?;
        let entry = without.get_path(&users.path, 0).map(|entry| TreeEntry::from(&entry));
        Ok(entry != Some(new))
    }

    /// The project says that the repository belongs to it.
    fn is_submodule(&self, tree: &Tree<'_>, path: &Path) -> Result<bool> {
        let Some(entry) = entry_at(Some(tree), Path::new(SUBMODULES))? else {
            return Ok(false);
        };
        let Ok(blob) = self.repo.find_blob(entry.id) else { return Ok(false) };
        let mut lines = blob.content().split(|byte| *byte == b'\n');
        let wanted = bytes_of(path);
        Ok(lines.any(|line| {
            let mut sides = line.splitn(2, |byte| *byte == b'=').map(<[u8]>::trim_ascii);
            sides.next() == Some(b"path") && sides.next() == Some(wanted)
        }))
    }
}

fn unfit(look: &Compared<'_>, content: &Content) -> Option<WhyUnclean> {
    let limit = look.request.staging.and_then(|staging| staging.rules.max_file_size);
    let is_too_large = limit.is_some_and(|limit| content.size > limit);
    let private = content.is_private.then_some(WhyUnclean::Name);
    is_too_large.then_some(WhyUnclean::TooLarge).or(private)
}

fn summed((why, paths): (WhyUnclean, BTreeSet<PathBuf>)) -> Unclean {
    let first = paths.first().map(|path| path.to_string_lossy().into_owned());
    Unclean { why, path: first.unwrap_or_default(), files: paths.len() }
}

impl WorkTree {
    /// New nested repositories are no part of the project.
    pub(super) fn leave_repositories_out(&self, all: &mut Contribution, base: &Base) -> Result<()> {
        let is_repository =
            |entry: &git2::IndexEntry| TreeEntry::from(entry).is_nested_repository();
        let nested =
            all.paths.iter().filter(|(_, entry)| entry.as_ref().is_some_and(is_repository));
        let nested: Vec<PathBuf> = nested.map(|(path, _)| path.clone()).collect();
        if nested.is_empty() {
            return Ok(());
        }
        let committed = self.committed_at(base)?;
        let now = all.work_tree.map(|id| self.repo.find_tree(id)).transpose();
        let now = now.doing("read the snapshot")?;
        for path in nested {
            let known = entry_at(committed.as_ref(), &path)?;
            let is_submodule = match &now {
                Some(now) => self.is_submodule(now, &path)?,
                None => false,
            };
            if !is_submodule && !known.is_some_and(TreeEntry::is_nested_repository) {
                all.paths.remove(&path);
                all.left_out.push(LeftOut::new(&path, 1, WhyLeftOut::Repository));
                all.staged.insert(path, None);
            }
        }
        Ok(())
    }

    /// What only the replaced commits had is in the index as it is committed at the base.
    pub(super) fn unstage_replaced(&self, all: &mut Contribution, base: &Base) -> Result<()> {
        let Some(own) = &all.replaces else { return Ok(()) };
        let (committed, last) = (self.committed_at(base)?, self.tree_at(Some(own.tip))?);
        for TreeChange { path, old, .. } in between(&self.repo, committed.as_ref(), last.as_ref())?
        {
            if !all.paths.contains_key(&path) && !all.excluded.contains_key(&path) {
                let entry = old.map(|old| unstatted(&path, old));
                all.staged.entry(path).or_insert(entry);
            }
        }
        Ok(())
    }

    /// Keeps the commits that a contribution replaces, except those with secrets, at the first free
    /// number of the story. None: it replaces none.
    pub fn keep_replaced(
        &self,
        work: &Contribution,
        story: &StoryId,
        iteration: u32,
        base: &Base,
    ) -> Result<Option<CommitsReplaced>> {
        let Some(own) = &work.replaces else { return Ok(None) };
        // It has them too.
        self.release_before_gates()?;
        let kept = match own.keepable.is_empty() {
            true => None,
            false => Some(self.keep_own(own, story, iteration, base)?),
        };
        let (story, unclean) = (story.clone(), own.unclean.clone());
        Ok(Some(CommitsReplaced { story, commits: own.count, unclean, kept }))
    }

    fn keep_own(
        &self,
        own: &OwnCommits,
        story: &StoryId,
        iteration: u32,
        base: &Base,
    ) -> Result<String> {
        // A failed attempt, or a close that was interrupted, may have kept them.
        let pattern = format!("refs/ralph/attempts/{story}/*");
        let refs = self.repo.references_glob(&pattern).doing("list the refs")?;
        for kept in refs.flatten() {
            let commit = kept.peel_to_commit().ok().map(|commit| commit.id());
            let mut has_all = commit.is_some();
            for head in &own.keepable {
                has_all = has_all && self.contains(commit, Some(*head))?;
            }
            if let (true, Ok(name)) = (has_all, kept.name()) {
                return Ok(name.to_owned());
            }
        }
        let text = format!("ralph: the agent's own commits for {story}");
        let (kind, iteration) = (SnapshotKind::Attempt, Some(iteration));
        let note = SnapshotNote { kind, text: &text, story: Some(story), iteration };
        let before = self.commit_of_base(base, &format!("ralph: the work tree before {story}"))?;
        let parents = own.keepable.iter().copied().chain([before]);
        let parents: Result<Vec<_>, _> = parents.map(|id| self.repo.find_commit(id)).collect();
        let tree = self
            .tree_at(own.keepable.last().copied())?
            .map_or_else(|| self.tree_or_empty(None), Ok)?;
        Ok(self.keep_at_free_number((story, 1), &tree, &parents.doing(READ)?, &note)?.reference)
    }
}
