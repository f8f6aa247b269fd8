//! `ralph undo`.

use std::path::Path;

use crate::model::{Backlog, Event, LaneId, StoryId, visible_line};
use crate::state::RunState;
use crate::store::prd::{Mark, PrdFile, set_mark};
use crate::store::{Journal, SqliteJournal};
use crate::ui;
use crate::workspace::{Closing, Replacement, UNDONE_TRAILER, UndoRequest, WorkTree};

use super::error::CommandError;
use super::output::print;
use super::place::{
    BacklogPlace, check_story, now, open_tree, place_of, refuse_agents, store_of, take_lease,
};

pub fn undo(story: &StoryId, prd: &Path) -> Result<(), CommandError> {
    refuse_agents("`ralph undo`")?;
    let file = PrdFile::new(prd);
    file.load()?;
    let tree = open_tree(prd)?;
    let store = store_of(&tree);
    let _lease = take_lease(&store)?;
    tree.remove_own_locks()?;
    let loaded = file.load()?;
    file.check_writable()?;
    check_story(&loaded.backlog, Some(story))?;
    let known = loaded.backlog.story(story).filter(|story| story.passes);
    let Some(known) = known else { return Err(CommandError::NotClosed(story.clone())) };
    let place = place_of(&tree, prd)?;
    let backlog_name = visible_line(&place.name);
    let closing = tree.newest_closing(story, &backlog_name)?;
    let closing = closing.ok_or_else(|| CommandError::NoCommitOf(story.clone()))?;
    let text = set_mark(&loaded.text, story, Mark::Passes(false))?;
    let before = tree.head_commit()?;
    let message = message(story, &known.title, &backlog_name, &closing);
    let done = take_back(&tree, &place, &closing, &text, &message)?;
    file.write(&text)?;
    let commit = done.as_ref().map(|(commit, _)| commit.clone());
    record(&tree, store.journal(&place.key)?, story, commit, before.as_deref())?;
    print(&told(story, done.as_ref(), &loaded.backlog))
}

/// The commit and how many files it changed; None when a process before this one made it and died.
fn take_back(
    tree: &WorkTree,
    place: &BacklogPlace,
    closing: &Closing,
    text: &str,
    message: &str,
) -> Result<Option<(String, usize)>, CommandError> {
    if closing.is_undone {
        return Ok(None);
    }
    let replacement = |path| Replacement::new(path, text.as_bytes());
    let replaced: Vec<_> = place.in_tree.as_deref().map(replacement).into_iter().collect();
    let done = tree.undo(&UndoRequest { closing, replaced: &replaced, message })?;
    Ok(Some((done.commit, done.files)))
}

fn message(story: &StoryId, title: &str, backlog: &str, closing: &Closing) -> String {
    let title = visible_line(title);
    format!(
        "Take back {story}: {title}\n\n{UNDONE_TRAILER}: {}\nRalph-Reopened: {story}\n\
         Ralph-Backlog: {backlog}\n",
        closing.commit
    )
}

/// So that the next run knows whose doing it is. Another story's unfinished work, if there is any
/// in the tree, began before this commit and goes on after it.
fn record(
    tree: &WorkTree,
    mut journal: SqliteJournal,
    story: &StoryId,
    commit: Option<String>,
    before: Option<&str>,
) -> Result<(), CommandError> {
    let mut state = RunState::default();
    for recorded in &journal.read(0)?.0 {
        state.apply(recorded);
    }
    let mut events = vec![Event::StoryReopened { story: story.clone(), commit }];
    let in_work = state.lanes.occupant(LaneId::HOME).filter(|other| *other != story);
    let base = in_work.and_then(|other| Some((other, state.story(other)?.base()?)));
    if let Some((other, base)) = base {
        let base = tree.move_base(base, before)?;
        tree.hold(&base)?;
        events.push(Event::BaseSet { story: other.clone(), base, lane: LaneId::HOME });
    }
    let run = state.run.as_ref().map_or("", |run| run.run.as_str());
    journal.append(run, now(), &events)?;
    Ok(journal.sync()?)
}

fn told(story: &StoryId, done: Option<&(String, usize)>, backlog: &Backlog) -> String {
    let how = done.map(|(commit, files)| {
        let files = if *files == 1 { "1 file".to_owned() } else { format!("{files} files") };
        format!(" in {} ({files})", ui::short_commit(commit))
    });
    let mut text = format!("{story} is reverted{} and open again\n", how.unwrap_or_default());
    let depend = backlog.stories.iter().filter(|s| s.passes && s.depends_on.contains(story));
    let depend: Vec<String> = depend.map(|story| story.id.to_string()).collect();
    if !depend.is_empty() {
        text.push_str(&format!("still passing, but depends on it: {}\n", depend.join(", ")));
    }
    text
}
