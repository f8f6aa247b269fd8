//! Changes of files that decide what gates or agents run: out of the work tree until the human
//! decides, and made there once accepted.

use std::path::Path;

use crate::model::{ChangeKind, Event, HeldChange, StoryId, visible_line};
use crate::runner::error::Result;
use crate::runner::task::EventSink;
use crate::workspace::{ChangedFile, WorkTree, hash};

/// Copies both versions of each file, and records the changes. The files still have to be put back.
pub fn record(
    tree: &WorkTree,
    story: &StoryId,
    folder: &Path,
    changed: &[ChangedFile],
    log: &mut dyn EventSink,
) -> Result<()> {
    let changes = changed.iter().map(|one| held(tree, folder, one)).collect::<Result<_>>()?;
    log.record(Event::ChangesHeld { story: story.clone(), changes })
}

/// Makes accepted changes in the work tree. Returns whether there are any.
pub fn apply(
    tree: &WorkTree,
    story: &StoryId,
    accepted: &[HeldChange],
    log: &mut dyn EventSink,
) -> Result<bool> {
    if accepted.is_empty() {
        return Ok(false);
    }
    let (mut applied, mut refused) = (Vec::new(), Vec::new());
    for change in accepted {
        let fits = tree.make_change(change)?;
        if fits { &mut applied } else { &mut refused }.push(change.path.clone());
    }
    log.record(Event::ChangesApplied { story: story.clone(), applied, refused })?;
    Ok(true)
}

/// Without what the human accepted already.
pub fn not_wanted(changed: Vec<ChangedFile>, wanted: &[HeldChange]) -> Vec<ChangedFile> {
    let is_wanted = |one: &ChangedFile| {
        let now = one.new.as_deref().and_then(hash);
        wanted.iter().any(|change| Path::new(&change.path) == one.path && change.hash == now)
    };
    changed.into_iter().filter(|one| !is_wanted(one)).collect()
}

fn held(tree: &WorkTree, folder: &Path, one: &ChangedFile) -> Result<HeldChange> {
    let name = one.path.file_name().unwrap_or_default();
    let copy = |suffix: &str, bytes: &Option<Vec<u8>>| -> Result<Option<String>> {
        let Some(bytes) = bytes else { return Ok(None) };
        let name = Path::new(name).with_added_extension(suffix);
        Ok(Some(tree.keep_version(folder, &name, bytes)?))
    };
    Ok(HeldChange {
        of: ChangeKind::File,
        path: one.path.to_string_lossy().into_owned(),
        what: format!("`{}` changed", visible_line(&one.path.to_string_lossy())),
        diff: one.diff.clone(),
        before: copy("before", &one.old)?,
        changed: copy("changed", &one.new)?,
        hash: one.new.as_deref().and_then(hash),
    })
}
