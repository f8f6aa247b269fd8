//! After a crash: what an attempt or a gate left in PRD.json is not the human's.

use std::path::Path;

use crate::decide::concerns::of_backlog;
use crate::files::follow;
use crate::model::{BacklogText, Event, StoryId};
use crate::runner::log::JournalHistory;
use crate::runner::{BacklogVersions, shown_path};
use crate::state::{Marks, RunState};
use crate::store::prd::{Loaded, PrdFile, text_with_marks};
use crate::store::{Journal, Store};
use crate::workspace::WorkTree;

use super::error::Result;
use super::place::{self, BacklogPlace};
use super::preflight::Preflight;

/// What could change the backlog when its driver died, and the backlog before it.
struct Cut<'a> {
    /// The folder for its versions.
    ran: &'a str,
    story: Option<&'a StoryId>,
    before: &'a str,
    known: &'a BacklogText,
}

impl<'a> Cut<'a> {
    fn of(state: &'a RunState) -> Option<Self> {
        let known = state.backlog.as_ref().filter(|_| state.is_open() && state.cut_off)?;
        let attempt = state.attempts.iter().map(|flight| &flight.start).next();
        let attempt = attempt.map(|start| (start.attempt.as_str(), Some(&start.story)));
        let gates = state.gates.as_ref();
        let gates = gates.map(|start| (start.folder.as_str(), start.story.as_ref()));
        let (ran, story) = attempt.or(gates)?;
        Some(Self { ran, story, before: known.text.as_deref()?, known })
    }
}

/// If its path leads elsewhere now: then it looks like another backlog, which has no history. Call
/// before it is looked up.
pub fn restore_path(prd: &Path, tree: &WorkTree, store: &Store) -> Result<Option<Event>> {
    if !store.exists() {
        return Ok(None);
    }
    let (file, path) = (PrdFile::new(prd), shown_path(prd));
    for open in store.open_runs()? {
        let state = RunState::of(&store.journal(&open.backlog)?.read(0)?.0);
        let Some(cut) = Cut::of(&state).filter(|cut| cut.known.path == path) else { continue };
        let link = cut.known.link.as_deref().map(Path::new);
        // The key is where it really was.
        let was_led = tree.clear_way_to(Path::new(&open.backlog))?;
        let is_there = !was_led && file.has_link(link) && follow::look_at_end(prd).is_ok();
        if !is_there && let Ok(before) = file.parse(cut.before.to_owned()) {
            let text = marked(&before, &state.marks)?;
            let problem = format!("{} leads elsewhere, or is gone", prd.display());
            return Ok(Some(put_back(tree, prd, &cut, &text, problem)?));
        }
    }
    Ok(None)
}

/// Whatever is there instead is kept.
fn put_back(tree: &WorkTree, prd: &Path, cut: &Cut, text: &str, problem: String) -> Result<Event> {
    let folder = tree.make_changed_by(cut.ran)?;
    let keep = folder.join(prd.file_name().unwrap_or_default());
    let link = cut.known.link.as_deref().map(Path::new);
    let kept = PrdFile::new(prd).put_back(link, text, &keep)?;
    let kept = kept.map(|kept| kept.to_string_lossy().into_owned());
    Ok(Event::BacklogPutBack { problem, kept })
}

impl Preflight {
    /// Call when none of the earlier run's processes is left.
    pub fn restore_backlog(
        &self,
        prd: &Path,
        place: &BacklogPlace,
        history: &mut JournalHistory,
    ) -> Result<()> {
        let Some(cut) = Cut::of(&history.state) else { return Ok(()) };
        if !self.is_on_branch(&history.state)? {
            return Ok(());
        }
        let file = PrdFile::new(prd);
        let Ok(before) = file.parse(cut.before.to_owned()) else { return Ok(()) };
        let text = marked(&before, &history.state.marks)?;
        let now = match file.load() {
            Ok(now) => now,
            Err(error) => {
                let event = put_back(&self.tree, prd, &cut, &text, error.to_string())?;
                history.repaired.push(event);
                return Ok(());
            }
        };
        let found = of_backlog(&before.backlog, &now.backlog, cut.story);
        let first = before.backlog.stories.first().map(|story| &story.id);
        let Some(story) = cut.story.or(first).filter(|_| !found.is_empty()).cloned() else {
            return Ok(());
        };
        let versions =
            BacklogVersions { path: &place.name, before: cut.before, changed: &now.text };
        let changes = vec![versions.keep(&self.tree, &self.secrets, cut.ran, &found)?];
        // A second crash must not take the change for the human's, nor lose it.
        let event = Event::ChangesHeld { story, changes };
        let mut journal = self.store.journal(&place.key)?;
        let run = history.state.run.as_ref().map_or("", |run| run.run.as_str());
        journal.append(run, self.clock.now().wall, std::slice::from_ref(&event))?;
        journal.sync_point().wait()?;
        file.write(&text)?;
        let repaired = std::mem::take(&mut history.repaired);
        *history = JournalHistory { repaired, ..place::history(&self.store, place)? };
        Ok(())
    }
}

fn marked(loaded: &Loaded, marks: &Marks) -> Result<String> {
    let wanted = |id: &StoryId| (marks.passing.contains(id), marks.skipped.contains(id));
    Ok(text_with_marks(&loaded.text, &loaded.backlog.stories, wanted)?)
}
