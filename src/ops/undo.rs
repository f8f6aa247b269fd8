//! `ralph undo`: reverts a closed story.
//!
//! The journal has the commit before anything is touched. If the process is killed, the next `ralph
//! undo` or `ralph run` carries it out to its end, before it does anything else.

use std::path::Path;

use crate::files::atomic::remove_leftovers;
use crate::model::{Backlog, Event, LaneId, Recorded, StoryId, visible_line};
use crate::ports::Clock;
use crate::state::RunState;
use crate::store::prd::{Mark, PrdFile, set_mark};
use crate::store::{Journal, Store};
use crate::ui;
use crate::workspace::{
    ClosedStory, ReadyUndo, Replacement, UNDONE_TRAILER, UndoRequest, Undone, WorkTree,
};

use super::error::{CommandError, Result};
use super::place::{
    BacklogPlace, find_story, find_tree, history, place_of, refuse_agents, store_of, take_lease,
};
use super::setup::with_own_setup;
use super::terminal::print;

/// The repository that a story is reverted in.
pub struct UndoScene<'a> {
    pub tree: &'a WorkTree,
    pub store: &'a Store,
    pub file: PrdFile,
    pub place: &'a BacklogPlace,
    pub clock: &'a Clock,
}

pub fn undo(story: &StoryId, prd: &Path, clock: &Clock) -> Result<()> {
    let file = PrdFile::new(prd);
    file.load()?;
    let tree = find_tree(prd)?;
    refuse_agents("`ralph undo`", Some(&tree))?;
    let store = store_of(&tree);
    let _lease = take_lease(&store, clock)?;
    let tree = with_own_setup(tree, prd, &store)?;
    tree.require_ready()?;
    tree.remove_own_locks()?;
    remove_leftovers(prd)?;
    let place = place_of(&tree, prd)?;
    let scene = UndoScene { tree: &tree, store: &store, file, place: &place, clock };
    let undone = match scene.finish()? {
        Some((earlier, undone)) if earlier == *story => Some(undone),
        _ => scene.begin(story)?,
    };
    print(&undone_text(story, undone.as_ref(), &scene.file.load()?.backlog))
}

impl UndoScene<'_> {
    /// None: an earlier commit of the branch reverts it, so only its mark is missing.
    fn begin(&self, story: &StoryId) -> Result<Option<Undone>> {
        let loaded = self.file.load()?;
        self.file.check_writable()?;
        let known = find_story(&loaded.backlog, story)?;
        if !known.passes {
            return Err(CommandError::NotClosed(story.clone()));
        }
        let name = visible_line(&self.place.name);
        let closing = closing_of(self.tree, &self.events()?, story, &name)?;
        let closing = closing.ok_or_else(|| CommandError::NoCommitOf(story.clone()))?;
        if closing.is_undone {
            self.reopen(story, None)?;
            return Ok(None);
        }
        let text = set_mark(&loaded.text, story, Mark::Passes(false))?;
        let replacement = |path| Replacement::new(path, text.as_bytes());
        let replaced: Vec<_> = self.place.in_tree.as_deref().map(replacement).into_iter().collect();
        let message = undo_message(story, &known.title, &name, &closing);
        let request = UndoRequest { closing: &closing, replaced: &replaced, message: &message };
        let ReadyUndo { commit, from } = self.tree.prepare_undo(&request)?;
        self.append(&[Event::UndoPlanned { story: story.clone(), commit, from }])?;
        Ok(self.finish()?.map(|(_, undone)| undone))
    }

    /// Carries out what is planned. None: nothing is, or the branch has moved elsewhere.
    pub fn finish(&self) -> Result<Option<(StoryId, Undone)>> {
        let planned = RunState::of(&self.events()?).undo;
        let Some((story, commit, from)) = planned else { return Ok(None) };
        let ready = ReadyUndo { commit, from };
        let undone = self.tree.carry_out_undo(&ready, self.place.in_tree.as_slice())?;
        let Some(undone) = undone else { return Ok(None) };
        self.reopen(&story, Some(&ready))?;
        Ok(Some((story, undone)))
    }

    /// In the file, then in the journal.
    fn reopen(&self, story: &StoryId, ready: Option<&ReadyUndo>) -> Result<()> {
        let loaded = self.file.load()?;
        let text = set_mark(&loaded.text, story, Mark::Passes(false))?;
        if text != loaded.text {
            self.file.write(&text)?;
        }
        let commit = ready.map(|ready| ready.commit.clone());
        let mut events = vec![Event::StoryReopened { story: story.clone(), commit }];
        if let Some(ready) = ready {
            let state = RunState::of(&self.events()?);
            events.extend(moved_base(self.tree, &state, story, Some(&ready.from))?);
        }
        self.append(&events)
    }

    fn events(&self) -> Result<Vec<Recorded>> {
        Ok(history(self.store, self.place)?.events)
    }

    fn append(&self, events: &[Event]) -> Result<()> {
        let state = RunState::of(&self.events()?);
        let mut journal = self.store.journal(&self.place.key)?;
        let run = state.run.as_ref().map_or("", |run| run.run.as_str());
        journal.read(0)?;
        journal.append(run, self.clock.now().wall, events)?;
        Ok(journal.sync_point().wait()?)
    }
}

/// The commit that closed a story, as the journal has it. A commit's trailers count only where the
/// journal knows nothing: agents make commits too.
pub fn closing_of(
    tree: &WorkTree,
    events: &[Recorded],
    story: &StoryId,
    backlog: &str,
) -> Result<Option<ClosedStory>> {
    let mut is_undone = false;
    for Recorded { event, .. } in events.iter().rev().filter(|one| one.event.story() == Some(story))
    {
        match event {
            Event::StoryReopened { .. } => is_undone = true,
            Event::StoryClosed(closed) => {
                let Some(closing) = tree.closing(&closed.commit)? else { break };
                return Ok(Some(ClosedStory { is_undone, ..closing }));
            }
            _ => {}
        }
    }
    Ok(tree.newest_closing(story, backlog)?)
}

fn undo_message(story: &StoryId, title: &str, backlog: &str, closing: &ClosedStory) -> String {
    let title = visible_line(title);
    format!(
        "Revert {story}: {title}\n\n{UNDONE_TRAILER}: {}\nRalph-Reopened: {story}\n\
         Ralph-Backlog: {backlog}\n",
        closing.commit
    )
}

/// If another story's unfinished work is in the tree, its base moves onto the new commit.
fn moved_base(
    tree: &WorkTree,
    state: &RunState,
    story: &StoryId,
    before: Option<&str>,
) -> Result<Option<Event>> {
    let other = state.lanes.occupant(LaneId::HOME).filter(|other| *other != story);
    let base = other.and_then(|other| Some((other.clone(), state.story(other)?.base()?)));
    let Some((story, base)) = base else { return Ok(None) };
    let base = tree.move_base(base, before)?;
    tree.hold(&base)?;
    Ok(Some(Event::BaseSet { story, base, lane: LaneId::HOME }))
}

fn undone_text(story: &StoryId, undone: Option<&Undone>, backlog: &Backlog) -> String {
    let how = undone.map(|Undone { commit, files }| {
        format!(" in {} ({})", ui::short_commit(commit), ui::counted(*files, "file"))
    });
    let mut text = format!("reverted {story}{} and reopened it\n", how.unwrap_or_default());
    let depend = backlog.stories.iter().filter(|s| s.passes && s.depends_on.contains(story));
    let depend: Vec<String> = depend.map(|story| story.id.to_string()).collect();
    if !depend.is_empty() {
        text.push_str(&format!("stories that depend on it still pass: {}\n", depend.join(", ")));
    }
    text
}
