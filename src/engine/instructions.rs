//! The human's instructions are not an agent's to change.

use std::path::{Path, PathBuf};

use crate::core::event::{AttemptStarted, Base, Event};
use crate::core::signal::ticks_task_complete;
use crate::core::text::visible_line;
use crate::git::Place;
use crate::store::room::private_file;

use super::Engine;
use super::error::EngineError;
use super::ports::Notice;
use super::start::UnderWay;

impl Engine {
    /// What the attempt made of them is kept, and they are what they were. True when it ticked
    /// `TASK_COMPLETE` there, which is a claim.
    pub(super) fn put_back_instructions(
        &mut self,
        started: &AttemptStarted,
        under_way: Option<&UnderWay>,
    ) -> Result<bool, EngineError> {
        let Some(held) = under_way.and_then(|under_way| under_way.instructions.as_ref()) else {
            return Ok(false);
        };
        let Some(now) = held.changed() else { return Ok(false) };
        let claims = ticks_task_complete(&held.text(), &String::from_utf8_lossy(&now));
        let kept = self.keep_instructions(started, held.path(), &now)?;
        let path = visible_line(&held.path().to_string_lossy());
        let (story, path) = (started.story.clone(), self.short(&path));
        self.record(vec![Event::InstructionsPutBack { story, path: path.clone(), kept }])?;
        if let Err(error) = held.put_back() {
            let text = format!("{path} was changed by the attempt and cannot be put back: {error}");
            self.notice(Notice::Warning(text));
        }
        Ok(claims)
    }

    /// In the ref of the attempt where git knows the file, else beside its log.
    fn keep_instructions(
        &mut self,
        started: &AttemptStarted,
        path: &Path,
        now: &[u8],
    ) -> Result<Option<String>, EngineError> {
        let story = &started.story;
        let base = self.state.story(story).and_then(|known| known.base.clone());
        if let (Ok(Place::Inside(_)), Some(base)) = (self.parts.tree.place_of(path), base) {
            let number = self.next_number(story);
            let kept = self.parts.tree.keep_attempt(story, number, started.iteration, &base)?;
            return Ok(kept.map(|(kept, _)| kept.reference));
        }
        let page = self.parts.room.instructions(&self.run, started.iteration, story)?;
        std::io::Write::write_all(&mut private_file(&page)?, now)?;
        Ok(Some(self.short(&page.to_string_lossy())))
    }

    /// What an agent committed of them by itself is not committed with the story.
    pub(super) fn instructions_for_commit(
        &self,
        base: Option<&Base>,
    ) -> Result<Option<(PathBuf, Vec<u8>)>, EngineError> {
        let (Some(base), Some(path)) = (base, self.instructions_in_tree()) else {
            return Ok(None);
        };
        let before = self.parts.tree.committed_before(base, &path)?;
        Ok(before.map(|bytes| (path, bytes)))
    }

    /// Nobody can tell whether the agent or the human changed them since a crash.
    pub(super) fn tell_changed_instructions(&mut self, cut_short: &AttemptStarted) {
        let Some(path) = self.instructions_in_tree() else { return };
        let before = Self::before(cut_short);
        let altered = self.parts.tree.altered(before, std::slice::from_ref(&path), &[]);
        if altered.is_ok_and(|altered| !altered.is_empty()) {
            let path = visible_line(&path.to_string_lossy());
            let text = format!(
                "{path} is not what the attempt that was cut off began with; if that was not you, \
                 `ralph log` and `ralph restore` bring it back"
            );
            self.notice(Notice::Warning(text));
        }
    }

    fn instructions_in_tree(&self) -> Option<PathBuf> {
        let path = self.orders.instructions_file.as_deref()?;
        match self.parts.tree.place_of(path) {
            Ok(Place::Inside(path)) => Some(path),
            _ => None,
        }
    }

    /// From the root of the work tree on.
    fn short(&self, path: &str) -> String {
        let root = self.parts.tree.root();
        let inside = Path::new(path).strip_prefix(root);
        inside.map_or_else(|_| path.to_owned(), |inside| inside.to_string_lossy().into_owned())
    }
}
