//! `ralph undo`.

use std::path::Path;

use crate::model::{Backlog, Event, LaneId, StoryId, visible_line};
use crate::state::RunState;
use crate::store::prd::{Mark, PrdFile, set_mark};
use crate::store::{Journal, SqliteJournal};
use crate::ui;
use crate::workspace::{ClosedStory, Replacement, UNDONE_TRAILER, UndoRequest, Undone, WorkTree};

use super::error::{CommandError, Result};
use super::place::{find_story, now, open_tree, place_of, refuse_agents, store_of, take_lease};
use super::terminal::print;

pub fn undo(story: &StoryId, prd: &Path) -> Result<()> {
    refuse_agents("`ralph undo`")?;
    let file = PrdFile::new(prd);
    file.load()?;
    let tree = open_tree(prd)?;
    let store = store_of(&tree);
    let _lease = take_lease(&store)?;
    tree.remove_own_locks()?;
    let loaded = file.load()?;
    file.check_writable()?;
    let known = find_story(&loaded.backlog, story)?;
    if !known.passes {
        return Err(CommandError::NotClosed(story.clone()));
    }
    let place = place_of(&tree, prd)?;
    let backlog_name = visible_line(&place.name);
    let closing = tree.newest_closing(story, &backlog_name)?;
    let closing = closing.ok_or_else(|| CommandError::NoCommitOf(story.clone()))?;
    let text = set_mark(&loaded.text, story, Mark::Passes(false))?;
    let before = tree.head_commit()?;
    // A process that was killed may have made the commit already.
    let undone = if closing.is_undone {
        None
    } else {
        let replacement = |path| Replacement::new(path, text.as_bytes());
        let replaced: Vec<_> = place.in_tree.as_deref().map(replacement).into_iter().collect();
        let message = message(story, &known.title, &backlog_name, &closing);
        Some(tree.undo(&UndoRequest {
            closing: &closing,
            replaced: &replaced,
            message: &message,
        })?)
    };
    file.write(&text)?;
    let commit = undone.as_ref().map(|undone| undone.commit.clone());
    record(&tree, store.journal(&place.key)?, story, commit, before.as_deref())?;
    print(&result(story, undone.as_ref(), &loaded.backlog))
}

fn message(story: &StoryId, title: &str, backlog: &str, closing: &ClosedStory) -> String {
    let title = visible_line(title);
    format!(
        "Take back {story}: {title}\n\n{UNDONE_TRAILER}: {}\nRalph-Reopened: {story}\n\
         Ralph-Backlog: {backlog}\n",
        closing.commit
    )
}

/// The next run must know that the human reopened the story. Another story's unfinished work in
/// the tree began before this commit and continues after it, so its base moves.
fn record(
    tree: &WorkTree,
    mut journal: SqliteJournal,
    story: &StoryId,
    commit: Option<String>,
    before: Option<&str>,
) -> Result<()> {
    let state = RunState::of(&journal.read(0)?.0);
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

fn result(story: &StoryId, undone: Option<&Undone>, backlog: &Backlog) -> String {
    let how = undone.map(|Undone { commit, files }| {
        format!(" in {} ({})", ui::short_commit(commit), ui::counted(*files, "file"))
    });
    let mut text = format!("{story} is reverted{} and open again\n", how.unwrap_or_default());
    let depend = backlog.stories.iter().filter(|s| s.passes && s.depends_on.contains(story));
    let depend: Vec<String> = depend.map(|story| story.id.to_string()).collect();
    if !depend.is_empty() {
        text.push_str(&format!("still passing, but depends on it: {}\n", depend.join(", ")));
    }
    text
}
