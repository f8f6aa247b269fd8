//! A tree with some paths changed, touching only the folders on their way.

use std::collections::BTreeMap;

use git2::{ObjectType, Oid, Repository, Tree};

use super::changes::Entry;
use super::error::{Doing, GitError};

/// A path and what is to be there; None: nothing.
pub(super) type Edit<'a> = (&'a [u8], Option<Entry>);

/// What happens to one name in a folder.
#[derive(Default)]
struct Edits<'a> {
    itself: Option<Option<Entry>>,
    below: Vec<Edit<'a>>,
}

/// The tree with the edits made; a missing tree is an empty one.
pub(super) fn edited(
    repo: &Repository,
    tree: Option<&Tree<'_>>,
    edits: &[Edit<'_>],
) -> Result<Oid, GitError> {
    match folder(repo, tree, edits).doing("write a tree")? {
        Some(id) => Ok(id),
        None => repo.treebuilder(None).and_then(|empty| empty.write()).doing("write a tree"),
    }
}

/// None: nothing is left in the folder, so it must not be in its parent.
fn folder(
    repo: &Repository,
    tree: Option<&Tree<'_>>,
    edits: &[Edit<'_>],
) -> Result<Option<Oid>, git2::Error> {
    let mut builder = repo.treebuilder(tree)?;
    for (name, edits) in by_name(edits) {
        match outcome(repo, tree, name, &edits)? {
            Some(entry) => drop(builder.insert(name, entry.id, entry.mode.cast_signed())?),
            None if builder.get(name)?.is_some() => builder.remove(name)?,
            None => {}
        }
    }
    if builder.is_empty() { Ok(None) } else { builder.write().map(Some) }
}

fn by_name<'a>(edits: &[Edit<'a>]) -> BTreeMap<&'a [u8], Edits<'a>> {
    let mut names: BTreeMap<&[u8], Edits<'_>> = BTreeMap::new();
    for &(path, entry) in edits {
        let mut parts = path.splitn(2, |byte| *byte == b'/');
        let name = parts.next().unwrap_or_default();
        let edits = names.entry(name).or_default();
        match parts.next() {
            Some(rest) => edits.below.push((rest, entry)),
            None => edits.itself = Some(entry),
        }
    }
    names
}

/// What a name stands for after the edits. A new file wins over what was in a
/// folder of its name; a removed one makes room for a folder.
fn outcome(
    repo: &Repository,
    tree: Option<&Tree<'_>>,
    name: &[u8],
    edits: &Edits<'_>,
) -> Result<Option<Entry>, git2::Error> {
    if let Some(Some(entry)) = edits.itself {
        return Ok(Some(entry));
    }
    let before = tree.and_then(|tree| tree.get_name_bytes(name));
    let subtree = match &before {
        Some(entry) if entry.kind() == Some(ObjectType::Tree) => Some(repo.find_tree(entry.id())?),
        _ => None,
    };
    let kept = before.filter(|_| edits.itself.is_none() && subtree.is_none());
    let as_folder = |id| Entry { id, mode: 0o040_000 };
    Ok(match folder(repo, subtree.as_ref(), &edits.below)? {
        Some(id) => Some(as_folder(id)),
        None => kept.map(|e| Entry { id: e.id(), mode: e.filemode().unsigned_abs() }),
    })
}
