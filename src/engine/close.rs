//! Closing a story: its work and its mark in one commit.

use std::path::PathBuf;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::core::backlog::Story;
use crate::core::event::{Base, Event, StoryClosed};
use crate::core::evidence::Item;
use crate::core::id::StoryId;
use crate::core::text::visible_line;
use crate::git::{BASE_TRAILER, CommitRequest, GitError};
use crate::store::prd::Mark;

use super::Engine;
use super::error::EngineError;
use super::ports::Notice;

/// How long a broken backlog may stay broken while a story waits to be closed.
const REPAIR_PATIENCE: Duration = Duration::from_mins(10);
const REPAIR_POLL: Duration = Duration::from_millis(250);

impl Engine {
    pub(super) async fn close(&mut self, id: &StoryId, attempt: &str) -> Result<(), EngineError> {
        if !self.backlog_is_usable(id).await? {
            return Ok(());
        }
        let Some(story) = self.parts.backlog.current().story(id).cloned() else {
            let gone = format!("{id} was completed but is no longer in the backlog");
            self.notice(Notice::Warning(gone));
            return self.set_aside(id);
        };
        if !self.work_is_in_the_tree(id)? {
            return Ok(());
        }
        let text = self.parts.backlog.marked(id, Mark::Passes(true))?;
        let trailers = self.trailers(id);
        let commit = match self.commit_from_before(&trailers, id)? {
            Some(commit) => commit,
            None => match self.commit_story(&story, &text, &trailers) {
                Err(EngineError::Git(GitError::NothingChanged)) => {
                    return self.nothing_changed(id, attempt);
                }
                Err(EngineError::Git(error)) if error.is_about_content() => {
                    return self.unfit(id, &error);
                }
                Err(EngineError::Git(error)) if error.is_the_agents_doing() => {
                    return self.refuse_close(id, error.to_string(), false);
                }
                commit => commit?,
            },
        };
        self.parts.backlog.write(&text)?;
        self.with_scratchpad(|room| room.archive_scratchpad(id));
        let closed = StoryClosed { attempt: attempt.to_owned(), story: id.clone(), commit };
        self.record(vec![Event::StoryClosed(closed)])
    }

    /// A claim that the human accepted later may have had its work set aside meanwhile.
    fn work_is_in_the_tree(&mut self, id: &StoryId) -> Result<bool, EngineError> {
        if self.state.story(id).is_none_or(|known| known.set_aside.is_none()) {
            return Ok(true);
        }
        let base = self.parts.tree.base()?;
        self.parts.tree.hold(&base)?;
        self.bring_back(id, &base)?;
        let fits = self.state.story(id).is_some_and(|known| known.does_not_fit.is_none());
        if !fits {
            let error = "its work does not fit onto the branch any more".to_owned();
            self.refuse_close(id, error, false)?;
        }
        Ok(fits)
    }

    pub(super) async fn skip(&mut self, id: &StoryId) -> Result<(), EngineError> {
        if !self.backlog_is_usable(id).await? {
            return Ok(());
        }
        let text = self.parts.backlog.marked(id, Mark::Skipped(true))?;
        let replaced = self.backlog_for_commit(&text);
        let trailers = self.trailers(id);
        let before = self.commit_from_before(&trailers, id)?;
        let commit = if replaced.is_empty() || before.is_some() {
            before
        } else {
            let message = message(&format!("{id}: skipped"), &trailers);
            let request = CommitRequest {
                replaced: &replaced,
                message: &message,
                ..CommitRequest::default()
            };
            Some(self.parts.tree.commit(&request)?.commit)
        };
        self.parts.backlog.write(&text)?;
        self.record(vec![Event::StorySkipped { story: id.clone(), commit }])
    }

    fn commit_story(
        &mut self,
        story: &Story,
        text: &str,
        trailers: &[(&'static str, String)],
    ) -> Result<String, EngineError> {
        let known = self.state.story(&story.id);
        let base = known.and_then(|known| known.base.clone());
        let mut replaced = self.backlog_for_commit(text);
        let with_backlog = !replaced.is_empty();
        let instructions = self.instructions_for_commit(base.as_ref())?;
        let is_known_after = with_backlog && instructions.is_none();
        replaced.extend(instructions);
        let title = visible_line(&story.title);
        let evidence = known.map_or(&[][..], |known| &known.evidence).iter().map(evidence_trailer);
        let note = self.note_on_edits(&story.id)?.map(|note| ("Ralph-Note", note));
        let base_trailer = self.base_trailer(base.as_ref())?;
        let trailers = trailers.iter().cloned().chain(base_trailer).chain(evidence).chain(note);
        let trailers: Vec<_> = trailers.collect();
        let message = message(&format!("{}: {title}", story.id), &trailers);
        let request = CommitRequest {
            base: base.as_ref(),
            // Without a gate or the human's word, the change is all the evidence there is.
            must_change: known.is_some_and(|known| known.evidence.is_empty() && !known.accepted),
            replaced: &replaced,
            staging: Some(self.staging()),
            as_it_is: known.is_some_and(|known| known.as_it_is),
            message: &message,
        };
        let done = self.parts.tree.commit(&request)?;
        self.tell_left_out(&done.left_out);
        self.known_base = done.next_base.filter(|_| is_known_after);
        Ok(done.commit)
    }

    /// Where an agent committed by itself, the parent does not say where the story began.
    fn base_trailer(
        &self,
        base: Option<&Base>,
    ) -> Result<Option<(&'static str, String)>, EngineError> {
        let Some(base) = base else { return Ok(None) };
        if base.commit == self.parts.tree.head_commit()? {
            return Ok(None);
        }
        let began = base.commit.clone().unwrap_or_else(|| "none".to_owned());
        Ok(Some((BASE_TRAILER, began)))
    }

    /// The backlog's new bytes, when it is one of the repository's files.
    fn backlog_for_commit(&self, text: &str) -> Vec<(PathBuf, Vec<u8>)> {
        let path = self.orders.backlog_in_tree.clone();
        path.map(|path| (path, text.as_bytes().to_vec())).into_iter().collect()
    }

    /// A process before this one may have died between the commit and its confirmation.
    fn commit_from_before(
        &mut self,
        trailers: &[(&'static str, String)],
        id: &StoryId,
    ) -> Result<Option<String>, EngineError> {
        if !std::mem::take(&mut self.resumed) {
            return Ok(None);
        }
        let base = self.state.story(id).and_then(|known| known.base.clone());
        let wanted: Vec<(&str, &str)> =
            trailers.iter().map(|(key, value)| (*key, value.as_str())).collect();
        let down_to = base.and_then(|base| base.commit);
        Ok(self.parts.tree.find_closing(&wanted, down_to.as_deref())?)
    }

    fn trailers(&self, id: &StoryId) -> Vec<(&'static str, String)> {
        vec![
            ("Ralph-Story", id.to_string()),
            ("Ralph-Backlog", visible_line(&self.orders.backlog_name)),
            ("Ralph-Run", self.run.clone()),
            ("Ralph-Iteration", self.state.iterations.to_string()),
        ]
    }

    /// Waits for a human who is in the middle of an edit; false when the run shall end instead.
    async fn backlog_is_usable(&mut self, id: &StoryId) -> Result<bool, EngineError> {
        let until = Instant::now() + REPAIR_PATIENCE;
        while let Some(problem) = self.parts.backlog.problem() {
            if Instant::now() >= until {
                let (story, problem) = (id.clone(), problem.to_owned());
                return Err(EngineError::BacklogBroken { story, problem });
            }
            tokio::select! {
                () = sleep(REPAIR_POLL) => {}
                signal = self.signals.next() => {
                    self.take_signal(signal);
                    return Ok(false);
                }
            }
            self.refresh_backlog();
        }
        Ok(true)
    }
}

/// `Ralph-Gate: cargo test (12.3s)`.
fn evidence_trailer(item: &Item) -> (&'static str, String) {
    let Item::Gate(report) = item;
    let seconds = Duration::from_millis(report.elapsed_ms).as_secs_f64();
    ("Ralph-Gate", format!("{} ({seconds:.1}s)", report.gate))
}

fn message(subject: &str, trailers: &[(&'static str, String)]) -> String {
    let trailers: Vec<String> =
        trailers.iter().map(|(key, value)| format!("{key}: {value}\n")).collect();
    format!("{subject}\n\n{}", trailers.concat())
}
