//! The journal was damaged and a new one begins: what is known without it.

use crate::core::event::Event;
use crate::core::id::StoryId;
use crate::core::state::Marks;
use crate::core::text::visible_line;
use crate::git::{Kept, Kind};

use super::Engine;
use super::error::EngineError;
use super::ports::Notice;

impl Engine {
    /// A mark counts where a commit of the branch says so; the others may be anybody's. And work
    /// that was set aside comes back.
    pub(super) fn known_without_a_journal(&self) -> Result<Vec<Event>, EngineError> {
        let Marks { passing, skipped } = Marks::of(self.parts.backlog.current());
        let mut events = vec![Event::MarksSeen {
            passing: self.vouched(passing.into_iter())?,
            skipped: self.vouched(skipped.into_iter())?,
        }];
        for kept in self.last_kept()? {
            if let (Kind::SetAside, Some(story)) = (kept.kind, kept.story) {
                events.push(Event::WorkSetAside { story, reference: Some(kept.reference) });
            }
        }
        Ok(events)
    }

    fn vouched(&self, ids: impl Iterator<Item = StoryId>) -> Result<Vec<StoryId>, EngineError> {
        let backlog = visible_line(&self.orders.backlog_name);
        let mut vouched = Vec::new();
        for id in ids {
            let closing = self.parts.tree.newest_closing(&id, &backlog)?;
            if closing.is_some_and(|closing| !closing.is_undone) {
                vouched.push(id);
            }
        }
        Ok(vouched)
    }

    /// Of each open story of this backlog, the newest state that is kept.
    fn last_kept(&self) -> Result<Vec<Kept>, EngineError> {
        let kept = self.parts.tree.kept_for_this_backlog()?;
        let stories = self.parts.backlog.current().stories.iter();
        let open = stories.filter(|story| !story.is_settled());
        let newest = |id: &StoryId| kept.iter().rev().find(|kept| kept.story.as_ref() == Some(id));
        Ok(open.filter_map(|story| newest(&story.id)).cloned().collect())
    }

    /// And puts back the marks that nothing vouches for.
    pub(super) fn tell_what_is_known(&mut self) -> Result<(), EngineError> {
        for id in self.parts.backlog.put_back_marks(&self.state.marks)? {
            self.notice(Notice::Warning(format!(
                "no commit says that {id} is settled, so its mark is put back; if it is right, \
                 stop and set it again: `ralph mark {id} pass`"
            )));
        }
        for kept in self.last_kept()? {
            let (story, at) = (kept.story.map(|id| id.to_string()), kept.reference);
            let story = story.unwrap_or_default();
            let next = if kept.kind == Kind::SetAside { ", and comes back" } else { "" };
            let text = format!("earlier work on {story} is kept at `{at}`{next}");
            self.notice(Notice::Info(text));
        }
        Ok(())
    }
}
