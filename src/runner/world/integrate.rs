//! Integration: a story's work and its mark become one commit on the branch.

use std::time::Duration;

use crate::model::{Base, EvidenceItem, LaneId, Story, StoryId, first_few, visible_line};
use crate::ports::{NotCommitted, Notice, TreeNotice};
use crate::runner::effects::Integration;
use crate::runner::error::RunnerError;
use crate::runner::log::RunLog;
use crate::state::{Acceptance, Stage};
use crate::store::prd::{Mark, MarkedText};
use crate::workspace::{
    BASE_TRAILER, CollectRequest, Committed, GitError, LeftOut, ReadyCommit, Replacement, Staging,
    WhyLeftOut,
};

use super::World;

/// The most files named in a trailer.
const NAMED: usize = 10;
const ITERATION_TRAILER: &str = "Ralph-Iteration";

type Trailer = (&'static str, String);

impl World {
    pub(super) fn close(
        &mut self,
        log: &mut RunLog,
        id: &StoryId,
    ) -> Result<Integration, RunnerError> {
        let Some(story) = self.env.backlog.current().story(id).cloned() else {
            return Ok(Integration::Gone);
        };
        if !self.work_is_in_lane(log, id)? {
            return Ok(Integration::Conflicting);
        }
        let text = self.env.backlog.marked(id, Mark::Passes(true))?;
        let trailers = self.trailers(log, id);
        let closed = match self.commit_from_before(log, &trailers, id)? {
            Some(commit) => self.env.backlog.write(text).map(|_| commit),
            None => self.commit_story(log, &story, text, trailers),
        };
        let commit = match closed {
            Err(RunnerError::Git(GitError::NothingChanged)) => {
                return Ok(Integration::NothingChanged);
            }
            Err(RunnerError::Git(error)) if error.is_about_content() => {
                let beyond_agent = error.is_beyond_the_agent();
                return Ok(Integration::Unfit { error: error.to_string(), beyond_agent });
            }
            Err(RunnerError::Git(error)) if error.is_the_agents_doing() => {
                return Ok(Integration::Refused { error: error.to_string() });
            }
            commit => commit?,
        };
        self.with_scratchpad(log, |dir| dir.archive_scratchpad(id));
        Ok(Integration::Done { commit })
    }

    /// Writes the backlog and moves the branch, once the plan to do so is safe.
    fn land(
        &mut self,
        log: &mut RunLog,
        ready: ReadyCommit,
        text: MarkedText,
    ) -> Result<Committed, RunnerError> {
        log.sync()?;
        let written = self.env.backlog.write(text)?;
        let backlog = self.config.backlog_in_tree.as_deref();
        let landed = self.env.home.land(ready, backlog.zip(written.as_ref()));
        if landed.is_err() {
            self.put_back_marks(log)?;
        }
        Ok(landed?)
    }

    /// The work of a claim that the human accepted later may be shelved.
    fn work_is_in_lane(&mut self, log: &mut RunLog, id: &StoryId) -> Result<bool, RunnerError> {
        if log.state.story(id).is_none_or(|known| known.work.shelved().is_none()) {
            return Ok(true);
        }
        let base = self.env.home.base()?;
        self.env.home.hold(&base)?;
        self.unshelve(log, id, &base, LaneId::HOME)?;
        Ok(log.state.story(id).is_some_and(|known| known.work.conflicting().is_none()))
    }

    pub(super) fn skip_story(
        &mut self,
        log: &mut RunLog,
        id: &StoryId,
    ) -> Result<Option<String>, RunnerError> {
        let text = self.env.backlog.marked(id, Mark::Skipped(true))?;
        let trailers = self.trailers(log, id);
        let before = self.commit_from_before(log, &trailers, id)?;
        if before.is_some() || self.config.backlog_in_tree.is_none() {
            log.sync()?;
            self.env.backlog.write(text)?;
            return Ok(before);
        }
        let message = message(&format!("{id}: skipped"), &trailers);
        let replaced = self.backlog_for_commit(&text);
        let nothing = self.env.home.collect_nothing()?;
        let ready = self.env.home.prepare_commit(nothing, replaced.as_slice(), &message)?;
        Ok(Some(self.land(log, ready, text)?.commit))
    }

    fn commit_story(
        &mut self,
        log: &mut RunLog,
        story: &Story,
        text: MarkedText,
        mut trailers: Vec<Trailer>,
    ) -> Result<String, RunnerError> {
        let lane = self.lane_of(log, &story.id);
        let known = log.state.story(&story.id);
        let base = known.and_then(|known| known.base().cloned());
        let stage = known.map(|known| &known.stage);
        let evidence = stage.and_then(|stage| stage.claim()).map_or(&[][..], |c| &c.evidence);
        trailers.extend(self.base_trailer(base.as_ref())?);
        trailers.extend(evidence.iter().map(evidence_trailer));
        if let (Some(base), false) = (&base, evidence.is_empty()) {
            trailers.extend(self.note_on_edits(base, lane)?.map(|note| ("Ralph-Note", note)));
        }
        let message = message(&format!("{}: {}", story.id, visible_line(&story.title)), &trailers);
        let by = match stage {
            Some(Stage::Accepted { by, .. }) => *by,
            _ => Acceptance::Evidence,
        };
        let prompt = self.prompt_for_commit(base.as_ref())?;
        let prompt = prompt.as_ref().map(|(path, bytes)| Replacement::new(path, bytes));
        let backlog = self.backlog_for_commit(&text);
        let is_known_after = backlog.is_some() && prompt.is_none();
        let replaced: Vec<Replacement<'_>> = backlog.into_iter().chain(prompt).collect();
        let work = match &base {
            Some(base) => self.tree(lane).collect(&CollectRequest {
                base,
                // Without a gate or the human's approval, the change is the only evidence.
                must_change: evidence.is_empty() && by == Acceptance::Evidence,
                except: &replaced.iter().map(|one| one.path.to_owned()).collect::<Vec<_>>(),
                staging: Some(Staging { rules: &self.config.staging, secrets: &self.env.secrets }),
                as_it_is: by == Acceptance::Human { as_it_is: true },
            })?,
            None => self.tree(lane).collect_nothing()?,
        };
        let ready = self.env.home.prepare_commit(work, &replaced, &message)?;
        let done = self.land(log, ready, text)?;
        self.tell_left_out(log, &done.left_out);
        if let Some(base) = done.next_base.filter(|_| is_known_after) {
            self.known_bases.insert(lane, base);
        }
        Ok(done.commit)
    }

    /// Needed if the agent committed by itself: the parent is not the story's base then.
    fn base_trailer(&self, base: Option<&Base>) -> Result<Option<Trailer>, RunnerError> {
        let Some(base) = base else { return Ok(None) };
        if base.commit == self.env.home.head_commit()? {
            return Ok(None);
        }
        let began = base.commit.clone().unwrap_or_else(|| "none".to_owned());
        Ok(Some((BASE_TRAILER, began)))
    }

    /// The backlog's new bytes, if it is committed.
    fn backlog_for_commit<'a>(&'a self, text: &'a MarkedText) -> Option<Replacement<'a>> {
        let path = self.config.backlog_in_tree.as_deref()?;
        let stored = self.stored_ahead.filter(|_| text.was_prepared);
        Some(Replacement { path, bytes: text.text().as_bytes(), stored })
    }

    /// An earlier process may have died between the commit and its confirmation.
    fn commit_from_before(
        &mut self,
        log: &RunLog,
        trailers: &[Trailer],
        id: &StoryId,
    ) -> Result<Option<String>, RunnerError> {
        if !self.unconfirmed.remove(id) {
            return Ok(None);
        }
        let is_key = |key: &str| key != ITERATION_TRAILER;
        let wanted = trailers.iter().filter(|(key, _)| is_key(key));
        let wanted: Vec<(&str, &str)> = wanted.map(|(key, value)| (*key, value.as_str())).collect();
        let base = log.state.story(id).and_then(|known| known.base());
        let down_to = base.and_then(|base| base.commit.as_deref());
        Ok(self.env.home.find_closing(&wanted, down_to)?)
    }

    fn trailers(&self, log: &RunLog, id: &StoryId) -> Vec<Trailer> {
        let known = log.state.story(id);
        let claimed = known.and_then(|known| known.stage.claim()).map(|claim| claim.iteration);
        let iteration = claimed.or(known.map(|known| known.iteration)).unwrap_or_default();
        vec![
            ("Ralph-Story", id.to_string()),
            ("Ralph-Backlog", visible_line(&self.config.backlog_name)),
            ("Ralph-Run", log.run.clone()),
            (ITERATION_TRAILER, iteration.to_string()),
        ]
    }

    /// Each once.
    fn tell_left_out(&mut self, log: &mut RunLog, left_out: &[LeftOut]) {
        for one in left_out {
            if self.told_left_out.insert(one.path.clone()) {
                log.notice(Notice::Tree(describe(one)));
            }
        }
    }

    /// Records uncommitted edits that the gates saw besides the story's work.
    fn note_on_edits(&self, base: &Base, lane: LaneId) -> Result<Option<String>, RunnerError> {
        let mut edited = self.tree(lane).edited_before(base)?;
        edited.retain(|path| !self.config.human_files.contains(path));
        Ok((!edited.is_empty())
            .then(|| format!("gates ran with uncommitted edits in {}", first_few(&edited, NAMED))))
    }
}

/// `Ralph-Gate: cargo test (12.3s)`.
fn evidence_trailer(item: &EvidenceItem) -> Trailer {
    let EvidenceItem::Gate(report) = item;
    let seconds = Duration::from_millis(report.elapsed_ms).as_secs_f64();
    ("Ralph-Gate", format!("{} ({seconds:.1}s)", report.gate))
}

fn message(subject: &str, trailers: &[Trailer]) -> String {
    let trailers: Vec<String> =
        trailers.iter().map(|(key, value)| format!("{key}: {value}\n")).collect();
    format!("{subject}\n\n{}", trailers.concat())
}

fn describe(one: &LeftOut) -> TreeNotice {
    let why = match one.why {
        WhyLeftOut::Repository => NotCommitted::Repository,
        WhyLeftOut::Name => NotCommitted::Name { files: one.files },
        WhyLeftOut::Users => NotCommitted::Users,
        WhyLeftOut::Filter => NotCommitted::Filter,
    };
    TreeNotice::NotCommitted { path: one.path.clone(), why }
}
