//! PRD.json after an attempt or gates: what they left unusable is put back; what they changed of what
//! counts as done is taken out until the human decides.

use std::path::Path;
use std::sync::Arc;

use crate::files::read_text;
use crate::model::{AttemptStarted, ChangeKind, Concern, Event, HeldChange, Notice, StoryId};
use crate::runner::effects::GatesOf;
use crate::runner::error::Result;
use crate::runner::log::RunLog;
use crate::text::backlog::MAX_BYTES;
use crate::text::redact::SecretRules;
use crate::workspace::{WorkTree, with_change};

use super::World;
use super::gates::folder_of;

/// The folder for versions of a program that was kept.
const KEPT: &str = "kept";

/// Something untrusted that could write PRD.json.
#[derive(Clone, Debug)]
pub struct BacklogWriter {
    /// The folder for its versions.
    name: String,
    /// The story that it ran for.
    story: Option<StoryId>,
    /// The file was unusable before.
    found_broken: bool,
    /// Why the file could not be put back, as it was told.
    failed: Option<String>,
}

impl BacklogWriter {
    pub fn attempt(start: &AttemptStarted, found_broken: bool) -> Self {
        let (name, story) = (start.attempt.clone(), Some(start.story.clone()));
        Self { name, story, found_broken, failed: None }
    }

    pub fn gates(of: &GatesOf, found_broken: bool) -> Self {
        let story = match of {
            GatesOf::Baseline | GatesOf::FirstLook { .. } => None,
            GatesOf::Claim { story, .. } => Some(story.clone()),
        };
        Self { name: folder_of(of).to_owned(), story, found_broken, failed: None }
    }

    /// Something that one of them started and that still runs.
    pub fn kept(found_broken: bool) -> Self {
        Self { name: KEPT.to_owned(), story: None, found_broken, failed: None }
    }
}

/// A backlog before and after a change that the human has to decide about.
pub struct BacklogVersions<'a> {
    /// For people.
    pub path: &'a str,
    pub before: &'a str,
    pub changed: &'a str,
}

impl BacklogVersions<'_> {
    /// Copies both. `ran`: the folder.
    pub fn keep(
        &self,
        tree: &WorkTree,
        secrets: &Arc<SecretRules>,
        ran: &str,
        found: &[Concern],
    ) -> Result<HeldChange> {
        let name = Path::new(self.path).file_name().unwrap_or_default();
        let keep = |folder: &str, text: &str| -> Result<Option<String>> {
            let folder = tree.changed_by(folder);
            Ok(Some(tree.keep_version(&folder, Path::new(name), text.as_bytes())?))
        };
        let whats: Vec<&str> = found.iter().map(|concern| concern.what.as_str()).collect();
        let headed = |concern: &Concern| format!("{}\n{}", concern.what, concern.diff);
        let diffs: Vec<String> = found.iter().map(headed).collect();
        Ok(HeldChange {
            of: ChangeKind::Backlog,
            path: self.path.to_owned(),
            what: secrets.redact(&whats.join("; ")).into_owned(),
            diff: secrets.redact(&diffs.join("\n\n")).into_owned(),
            before: keep(&format!("{ran}.before"), self.before)?,
            changed: keep(ran, self.changed)?,
            hash: None,
        })
    }
}

impl World {
    /// Every process that could write the backlog is gone: nobody has to wait until the file is
    /// mended, and what is there now is the human's or is held.
    pub(super) fn release_backlog(&mut self, log: &mut RunLog) -> Result<()> {
        let Some(mut ran) = self.backlog_writer.clone() else { return Ok(()) };
        if self.is_writing_marks || log.state.is_rolling_back() {
            return Ok(());
        }
        let notice = self.env.backlog.refresh(&log.state.marks);
        let done = match self.env.backlog.problem().map(ToOwned::to_owned) {
            // It was like that before: the human is at it.
            Some(_) if ran.found_broken => {
                self.backlog_writer = None;
                return Ok(());
            }
            Some(problem) => self.put_back_backlog(log, &ran, problem),
            None => {
                notice.into_iter().for_each(|notice| log.notice(notice));
                Ok(())
            }
        };
        // The last good version serves on.
        if let Err(error) = done.and_then(|()| self.hold_backlog(log, &ran)) {
            let problem = error.to_string();
            if ran.failed.as_ref() != Some(&problem) {
                log.notice(Notice::BacklogBroken { problem: problem.clone() });
            }
            ran.failed = Some(problem);
            self.backlog_writer = Some(ran);
        }
        Ok(())
    }

    /// Others follow it: none sees what another one did to the file.
    pub(super) fn look_after_gate(&mut self, log: &mut RunLog) -> Result<()> {
        let ran = self.backlog_writer.clone();
        self.repair_approvals(log)?;
        self.release_backlog(log)?;
        if self.env.backlog.problem().is_none() && self.env.backlog.has_other_marks() {
            self.repair_marks(log)?;
        }
        self.backlog_writer = ran;
        Ok(())
    }

    /// The human's version stays beside the file, which is what a claim waits for.
    pub(super) fn restore_broken_backlog(&mut self, log: &mut RunLog) {
        let Some(problem) = self.env.backlog.problem().map(ToOwned::to_owned) else { return };
        let keep = self.env.backlog.broken_name(log.now());
        let done = self.env.backlog.put_back(&log.state.marks, &keep).and_then(|kept| {
            let kept = kept.map(|kept| kept.to_string_lossy().into_owned());
            self.record(log, Event::BacklogPutBack { problem, kept })
        });
        if let Err(error) = done {
            log.notice(Notice::BacklogBroken { problem: error.to_string() });
        }
    }

    /// What is in the file is the human's.
    pub(super) fn take_backlog(&mut self, log: &mut RunLog) -> Result<()> {
        match self.env.backlog.take_text() {
            Some(text) => self.record(log, Event::BacklogTaken(text)),
            None => Ok(()),
        }
    }

    fn put_back_backlog(
        &mut self,
        log: &mut RunLog,
        ran: &BacklogWriter,
        problem: String,
    ) -> Result<()> {
        let folder = self.env.home.tree().make_changed_by(&ran.name)?;
        let keep = folder.join(self.env.backlog.name());
        let kept = self.env.backlog.put_back(&log.state.marks, &keep)?;
        let kept = kept.map(|kept| kept.to_string_lossy().into_owned());
        self.record(log, Event::BacklogPutBack { problem, kept })
    }

    fn hold_backlog(&mut self, log: &mut RunLog, ran: &BacklogWriter) -> Result<()> {
        let found = self.env.backlog.concerns(ran.story.as_ref());
        if found.is_empty() {
            self.backlog_writer = None;
            return self.take_backlog(log);
        }
        let before = self.env.backlog.taken_text();
        let next = || self.env.backlog.next_open(&log.state.marks);
        if let Some(story) = ran.story.clone().or_else(next) {
            let (path, changed) = (self.config.backlog_name.as_str(), self.env.backlog.text());
            let versions = BacklogVersions { path, before: &before, changed };
            let tree = self.env.home.tree();
            let changes = vec![versions.keep(&tree, &self.env.secrets, &ran.name, &found)?];
            self.record(log, Event::ChangesHeld { story, changes })?;
            log.sync()?;
        }
        if self.env.backlog.replace(&before, &log.state.marks)? {
            self.backlog_writer = None;
        }
        Ok(())
    }

    /// Changes of the backlog that the human accepted. Nothing untrusted runs.
    pub(super) fn apply_backlog_changes(&mut self, log: &mut RunLog) -> Result<()> {
        if self.env.backlog.problem().is_some() {
            return Ok(());
        }
        let accepted = log.state.unfinished().flat_map(|(id, known)| {
            let changes = known.accepted.iter().filter(|one| one.of == ChangeKind::Backlog);
            changes.map(move |one| (id.clone(), one.clone()))
        });
        for (story, change) in accepted.collect::<Vec<_>>() {
            let fits = match self.accepted_text(log, &change)? {
                Some(text) if !self.env.backlog.replace(&text, &log.state.marks)? => return Ok(()),
                text => text.is_some(),
            };
            self.take_backlog(log)?;
            let (path, other) = (vec![change.path], Vec::new());
            let (applied, refused) = if fits { (path, other) } else { (other, path) };
            self.record(log, Event::ChangesApplied { story, applied, refused })?;
        }
        Ok(())
    }

    /// The backlog with the change. None: they do not fit together.
    fn accepted_text(&self, log: &RunLog, change: &HeldChange) -> Result<Option<String>> {
        let backlog = &self.env.backlog;
        let version = |kept: &Option<String>| -> Option<String> {
            let kept = self.env.home.root().join(kept.as_deref()?);
            let text = read_text(&kept, MAX_BYTES as u64).ok()?;
            backlog.marked_text(&text, &log.state.marks).ok()
        };
        let (Some(before), Some(changed)) = (version(&change.before), version(&change.changed))
        else {
            return Ok(None);
        };
        let now = backlog.marked_text(backlog.text(), &log.state.marks)?;
        let with = with_change(before.as_bytes(), changed.as_bytes(), now.as_bytes())?;
        let with = with.and_then(|bytes| String::from_utf8(bytes).ok());
        Ok(with.filter(|text| backlog.marked_text(text, &log.state.marks).is_ok()))
    }
}
