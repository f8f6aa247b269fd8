//! What an attempt did to the branch and to the user's own files.

use std::path::PathBuf;

use crate::core::event::{AttemptStarted, Event, Stray};
use crate::core::text::visible_line;
use crate::git::{Setup, Stash, Whereabouts};

use super::Engine;
use super::error::EngineError;
use super::ports::Notice;
use super::start::UnderWay;

impl Engine {
    /// Mends at once what can be mended without losing anything of the attempt's; says when
    /// branch and tree have to go back.
    pub(super) fn look_after(
        &mut self,
        started: &AttemptStarted,
        under_way: Option<&UnderWay>,
    ) -> Result<Option<Stray>, EngineError> {
        self.put_back_setup(started, under_way.map(|under_way| &under_way.setup))?;
        self.put_back_stashes(under_way.map_or(&[], |under_way| &under_way.stashes))?;
        let base = self.state.story(&started.story).and_then(|known| known.base.as_ref());
        match self.parts.tree.whereabouts(base.unwrap_or(&started.base))? {
            Whereabouts::Home => {}
            Whereabouts::Strayed(stray) => return Ok(Some(stray)),
            Whereabouts::Ahead { on } => {
                self.parts.tree.come_home()?;
                let on = visible_line(&on);
                let text = format!("the agent worked on `{on}`; the run's branch has its commits");
                self.notice(Notice::Info(text));
            }
        }
        self.put_back_lost_files(started)?;
        Ok(None)
    }

    /// Of an agent whose git was ended with it.
    pub(super) fn remove_locks(&mut self, cut_short: bool) {
        match self.parts.tree.end_attempt(cut_short) {
            Ok(removed) => {
                for lock in listed(&removed) {
                    let text = format!("removed `{lock}`: the agent's git was ended in its work");
                    self.notice(Notice::Info(text));
                }
            }
            Err(error) => self.notice(Notice::Warning(error.to_string())),
        }
    }

    /// Configuration and hooks are the human's: ralph and git must behave as they did before.
    pub(super) fn put_back_setup(
        &mut self,
        started: &AttemptStarted,
        before: Option<&Setup>,
    ) -> Result<(), EngineError> {
        let Some(before) = before else { return Ok(()) };
        let names = before.differences(&self.parts.tree.setup()?);
        if names.is_empty() {
            return Ok(());
        }
        let (story, attempt) = (started.story.clone(), &started.attempt);
        let kept = self.parts.tree.changed_setup(attempt);
        let event =
            Event::SetupPutBack { story, names: names.clone(), kept: listed(&[kept]).concat() };
        self.record(vec![event])?;
        Ok(self.parts.tree.put_back_setup(before, &names, attempt)?)
    }

    /// Stashes that the attempt dropped.
    fn put_back_stashes(&mut self, before: &[Stash]) -> Result<(), EngineError> {
        for stash in self.parts.tree.put_back_stashes(before)? {
            let message = visible_line(&stash.message);
            let text = format!("the attempt dropped a stash of yours, it is put back: {message}");
            self.notice(Notice::Warning(text));
        }
        Ok(())
    }

    /// Files that were uncommitted before the story and that the attempt deleted or reset.
    pub(super) fn put_back_lost_files(
        &mut self,
        started: &AttemptStarted,
    ) -> Result<(), EngineError> {
        let before = Self::before(started);
        let base = self.state.story(&started.story).and_then(|known| known.base.as_ref());
        let losses = self.parts.tree.losses(base.unwrap_or(&started.base), before)?;
        if !losses.blocked.is_empty() {
            let at = started.snapshot.as_deref().unwrap_or("refs/ralph/snapshots");
            let text = format!(
                "{} cannot be put back, something else stands there; it is kept at {at}",
                listed(&losses.blocked).join(", ")
            );
            self.notice(Notice::Warning(text));
        }
        if losses.lost.is_empty() {
            return Ok(());
        }
        let paths = listed(&losses.lost);
        let (story, snapshot) = (started.story.clone(), started.snapshot.clone());
        self.record(vec![Event::FilesPutBack { story, paths, snapshot }])?;
        Ok(self.parts.tree.put_back(before, &losses.lost)?)
    }
}

fn listed(paths: &[PathBuf]) -> Vec<String> {
    paths.iter().map(|path| path.to_string_lossy().into_owned()).collect()
}
