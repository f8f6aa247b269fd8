//! Files that are left out of a commit, and objections to committing others.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use git2::{AttrCheckFlags, AttrValue, Index, IndexEntry, Oid, Tree};

use crate::decide::staging::{Content, Objection, Rules, added_lines};
use crate::files::{self, nofollow};
use crate::model::{Base, LeftOut, Unclean, WhyLeftOut};
use crate::text::redact;

use super::error::{GitContext, GitError, if_found};
use super::tree::{TreeChange, TreeEntry, entry_at, path_of};
use super::{Result, WorkTree};

/// libgit2 ignores larger files with attributes.
const LARGEST_RULES: u64 = 100 << 20;

#[derive(Clone, Copy)]
pub struct Staging<'a> {
    pub rules: &'a Rules,
    pub secrets: &'a Arc<redact::SecretRules>,
}

/// The changes of a story: collected in its lane, committed by `integrate`.
#[derive(Default)]
pub struct Contribution {
    /// The work tree that it was made in.
    pub(super) root: PathBuf,
    /// The commit that the story began at.
    pub(super) began: Option<Oid>,
    /// The commit that its changes are on top of: the agent may have committed by itself.
    pub(super) on: Option<Oid>,
    /// Commits of the agent's that it takes the place of.
    pub(super) replaces: Option<OwnCommits>,
    pub(super) paths: BTreeMap<PathBuf, Option<IndexEntry>>,
    /// Index entries that differ from the commit.
    pub(super) staged: BTreeMap<PathBuf, Option<IndexEntry>>,
    /// Changed files that are not the story's.
    pub(super) excluded: BTreeMap<PathBuf, Option<IndexEntry>>,
    /// Files that were ignored when the story began, and that git looks at now.
    pub(super) ignored: BTreeSet<PathBuf>,
    pub(super) left_out: Vec<LeftOut>,
    /// Objections to committing it.
    pub(super) objections: Vec<Objection>,
    /// The snapshot that the paths came from.
    pub(super) work_tree: Option<Oid>,
}

/// The agent's own commits, if they cannot stay.
pub(super) struct OwnCommits {
    /// The newest, where the branch is.
    pub tip: Oid,
    pub count: usize,
    pub unclean: Vec<Unclean>,
    /// Those with no other on top, oldest first, when those with secrets are taken away.
    pub keepable: Vec<Oid>,
}

pub struct CollectRequest<'a> {
    pub base: &'a Base,
    /// Commit this tree, which the gates saw, whatever changed since.
    pub checked: Option<&'a Base>,
    /// Fail if there is nothing to commit.
    pub must_change: bool,
    /// What changes are counted from, if not from the base: what gates wrote does not count.
    pub counted: Option<&'a Base>,
    /// Files, relative to the root, that are not the story's to change.
    pub except: &'a [PathBuf],
    /// Files whose changes the human did not accept: no commit has them.
    pub refused: &'a [PathBuf],
    /// What may be committed; None: everything.
    pub staging: Option<Staging<'a>>,
    /// The human saw the objections and accepted them.
    pub as_it_is: bool,
}

impl WorkTree {
    /// What git ignored when the story began is the user's, in the index too, whatever the rules say
    /// now.
    pub(super) fn leave_ignored_out(&self, all: &mut Contribution, base: &Base) -> Result<()> {
        let (beside, committed) = (self.beside(), self.committed_at(base)?);
        let is_beside = |path: &PathBuf| beside.ignored(path).is_some();
        all.ignored.extend(all.paths.keys().filter(|path| is_beside(path)).cloned());
        for path in std::mem::take(&mut all.ignored) {
            if entry_at(committed.as_ref(), &path)?.is_none() {
                all.paths.remove(&path);
                all.staged.insert(path.clone(), None);
                all.ignored.insert(path);
            }
        }
        all.left_out.extend(beside.left_out(all.ignored.iter()));
        Ok(())
    }

    /// Removes files that are never committed, from the index too, so that the user's next commit
    /// does not include them.
    pub(super) fn leave_out(&self, all: &mut Contribution, of: &CollectRequest<'_>) -> Result<()> {
        if let Some(staging) = of.staging {
            let mut never = BTreeMap::<PathBuf, usize>::new();
            let committed = self.committed_at(of.base)?;
            let own = self.tree_at(all.replaces.as_ref().map(|own| own.tip))?;
            for path in new_files(all) {
                // What the agent committed itself, it wants: that is for the human.
                if entry_at(own.as_ref(), &path)?.is_some() {
                    continue;
                }
                if let Some(of) = never_committed(staging, committed.as_ref(), &path)? {
                    *never.entry(of).or_default() += 1;
                    all.paths.remove(&path);
                    all.staged.insert(path, None);
                }
            }
            let never = never.into_iter();
            all.left_out.extend(never.map(|(path, n)| LeftOut::new(&path, n, WhyLeftOut::Name)));
        }
        for path in new_files(all) {
            match self.require_plain(&path) {
                Err(GitError::ForeignFilter { .. }) if of.as_it_is => {
                    all.paths.remove(&path);
                    all.left_out.push(LeftOut::new(&path, 1, WhyLeftOut::Filter));
                }
                Err(GitError::ForeignFilter { filter, .. }) => {
                    all.objections.push(Objection::Filtered { path, filter });
                }
                plain => plain?,
            }
        }
        Ok(())
    }

    pub(super) fn objections(
        &self,
        staging: Staging<'_>,
        committed: Option<&Tree<'_>>,
        changes: Vec<TreeChange>,
    ) -> Result<Vec<Objection>> {
        let mut contents = Vec::new();
        for change in changes {
            contents.extend(self.weighed(staging, committed, change)?);
        }
        Ok(staging.rules.objections(&contents))
    }

    pub(super) fn weighed(
        &self,
        staging: Staging<'_>,
        committed: Option<&Tree<'_>>,
        change: TreeChange,
    ) -> Result<Option<Content>> {
        let Some(new) = change.new.filter(|new| !new.is_nested_repository()) else {
            return Ok(None);
        };
        let odb = self.repo.odb().doing("open the object database")?;
        let (size, _) = odb.read_header(new.id).doing("read a file's size")?;
        let size = u64::try_from(size).unwrap_or(u64::MAX);
        let is_new = change.old.is_none();
        let is_private = is_new && never_committed(staging, committed, &change.path)?.is_some();
        let is_too_large = staging.rules.max_file_size.is_some_and(|limit| size > limit);
        let secret = if is_too_large { None } else { self.secret(staging, &change)? };
        Ok(Some(Content { path: change.path, size, is_new, is_private, secret }))
    }

    fn secret(&self, staging: Staging<'_>, change: &TreeChange) -> Result<Option<String>> {
        let read = |entry: Option<TreeEntry>| {
            let plain = entry.filter(|entry| !entry.is_nested_repository());
            let blob = plain.map(|entry| self.repo.find_blob(entry.id)).transpose();
            Ok(blob.doing("read a file's content")?.map(|blob| blob.content().to_vec()))
        };
        let (before, now) = (read(change.old)?, read(change.new)?);
        let added = added_lines(&before.unwrap_or_default(), &now.unwrap_or_default());
        Ok(staging.secrets.kind_in(&added))
    }
}

fn new_files(all: &Contribution) -> Vec<PathBuf> {
    let new = all.paths.iter().filter(|(_, entry)| entry.is_some());
    new.map(|(path, _)| path.clone()).collect()
}

/// The part of the path that is never committed. A file or folder that is already tracked does not
/// count.
fn never_committed(
    staging: Staging<'_>,
    committed: Option<&Tree<'_>>,
    path: &Path,
) -> Result<Option<PathBuf>> {
    let Some(of) = staging.rules.never(path) else { return Ok(None) };
    let Some(tree) = committed else { return Ok(Some(of)) };
    let is_known = if_found(tree.get_path(&of)).doing("read a tree")?.is_some();
    Ok((!is_known).then_some(of))
}

impl WorkTree {
    /// libgit2 runs no filter programs and does not convert encodings: it would store a large file
    /// instead of its LFS pointer, or a secret in plain text.
    pub(super) fn require_plain(&self, path: &Path) -> Result<()> {
        let filter = self.attribute(path, "filter")?.filter(|name| self.is_configured(name));
        let encoding = self.attribute(path, "working-tree-encoding")?;
        let Some(filter) = filter.or(encoding) else { return Ok(()) };
        Err(GitError::ForeignFilter { path: path.display().to_string(), filter })
    }

    fn attribute(&self, path: &Path, name: &str) -> Result<Option<String>> {
        self.release_rules_for(path);
        let value = self.repo.get_attr(path, name, AttrCheckFlags::FILE_THEN_INDEX);
        Ok(match AttrValue::from_string(value.doing("read .gitattributes")?) {
            AttrValue::String(text) => Some(text.to_owned()),
            _ => None,
        })
    }

    /// Like git, ignores a filter that is not configured, except LFS and git-crypt: their files
    /// would be wrong without it.
    fn is_configured(&self, filter: &str) -> bool {
        let is_known = filter == "lfs" || filter.starts_with("git-crypt");
        is_known
            || self.repo.config().ok().is_none_or(|config| {
                let has = |step| config.get_entry(&format!("filter.{filter}.{step}")).is_ok();
                ["clean", "smudge", "process"].into_iter().any(has)
            })
    }

    /// Attributes that change a file when it is committed.
    pub(super) fn attributes(&self, index: &Index) -> BTreeSet<String> {
        let tracked = index.iter().map(|entry| path_of(&entry.path));
        let tracked = tracked.filter(|path| path.ends_with(".gitattributes"));
        let paths = tracked.map(|path| self.root.join(path));
        let paths = paths.chain([self.root.join(".gitattributes")]);
        let texts = paths.filter_map(|path| nofollow::read_text(&path, LARGEST_RULES).ok());
        // A link there may be the human's.
        let own = files::read_text(&self.common_dir.join("info/attributes"), LARGEST_RULES);
        let texts = texts.chain(own);
        let words: Vec<String> = texts.flat_map(|text| attribute_words(&text)).collect();
        words.into_iter().filter(|word| self.changes_files(word)).collect()
    }

    fn changes_files(&self, word: &str) -> bool {
        match word.split_once('=') {
            Some(("filter", name)) => self.is_configured(name),
            Some(("working-tree-encoding", _)) => true,
            _ => false,
        }
    }

    /// Git ignores it, or it is in a repository of its own.
    pub fn is_in_no_commit(&self, path: &Path) -> bool {
        let is_tracked = self.repo.index().is_ok_and(|index| index.get_path(path, 0).is_some());
        let folders = path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty());
        let is_nested = || {
            let mut folders = folders.map(|folder| self.root.join(folder).join(".git"));
            folders.any(|git| nofollow::exists(&git))
        };
        !is_tracked && (self.is_ignored(path).unwrap_or(false) || is_nested())
    }

    pub(super) fn is_ignored(&self, path: &Path) -> Result<bool> {
        self.release_rules_for(path);
        self.repo.is_path_ignored(path).doing("read the ignore rules")
    }
}

fn attribute_words(text: &str) -> Vec<String> {
    let lines = text.lines().map(str::trim).filter(|line| !line.starts_with('#'));
    lines.flat_map(|line| line.split_whitespace().skip(1)).map(str::to_owned).collect()
}
