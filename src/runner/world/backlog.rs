//! The backlog file and its marks during a run. Humans and agents may edit the file at any time.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::decide::concerns::{of_backlog, removed_stories};
use crate::files::follow;
use crate::model::{Backlog, BacklogText, Concern, Event, LaneId, Notice, StoryId};
use crate::runner::error::Result;
use crate::runner::log::RunLog;
use crate::state::Marks;
use crate::store::prd::{
    EditError, LoadError, Loaded, Mark, MarkedText, PrdFile, PrdLook, TextAhead, TextOnDisk,
    TrackedPrd, WriteError, WrittenText, broken_name, text_with_marks,
};
use crate::text::backlog::Diagnostic;

use super::World;
use super::held_backlog::BacklogWriter;

/// The file, and its last good version.
pub struct BacklogFile {
    /// With the marks that are in the file.
    file: TrackedPrd,
    /// With the marks that count.
    backlog: Backlog,
    warnings: Vec<Diagnostic>,
    has_other_marks: bool,
    /// Why the file cannot be used now.
    problem: Option<String>,
    ids: Arc<[StoryId]>,
    /// As of the last look before anything untrusted ran.
    taken: TakenBacklog,
    /// The file was edited since.
    is_new: bool,
}

/// A version that is the human's; its marks do not matter.
struct TakenBacklog {
    text: Arc<str>,
    backlog: Backlog,
}

impl BacklogFile {
    pub fn open(file: PrdFile) -> Result<Self, LoadError> {
        let (tracked, Loaded { backlog, warnings, .. }) = TrackedPrd::open(file.clone())?;
        file.check_writable()?;
        let ids = ids_of(&backlog);
        let taken = TakenBacklog { text: tracked.text().into(), backlog: backlog.clone() };
        Ok(Self {
            file: tracked,
            backlog,
            warnings,
            has_other_marks: false,
            problem: None,
            ids,
            taken,
            is_new: false,
        })
    }

    pub fn current(&self) -> &Backlog {
        &self.backlog
    }

    pub fn warnings(&self) -> &[Diagnostic] {
        &self.warnings
    }

    pub fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    /// All stories.
    pub fn ids(&self) -> Arc<[StoryId]> {
        Arc::clone(&self.ids)
    }

    /// At the start: takes the file as it is.
    pub fn refresh_all(&mut self) -> Option<Notice> {
        let marks = Marks::of(&self.backlog);
        let notice = self.refresh(&marks);
        self.take_up_marks();
        _ = self.take_text();
        notice
    }

    /// If the file's marks differ, the known ones count until it is clear who set them.
    pub fn compare_marks(&mut self, known: &Marks) {
        let wanted = self.backlog.stories.iter().map(|story| pair(known, &story.id));
        self.has_other_marks = !wanted.eq(self.file.marks().iter().copied());
        self.show_marks(known);
    }

    /// Reads changes from disk, except marks; a broken edit keeps the last good version.
    pub fn refresh(&mut self, known: &Marks) -> Option<Notice> {
        match self.file.look() {
            PrdLook::Unchanged => return None,
            PrdLook::Known => {}
            PrdLook::Changed(Loaded { backlog, warnings, .. }) => {
                self.ids = ids_of(&backlog);
                (self.backlog, self.warnings) = (backlog, warnings);
                self.is_new = true;
                self.compare_marks(known);
            }
            PrdLook::Broken(error) => {
                let problem = error.to_string();
                if self.problem.as_ref() == Some(&problem) {
                    return None;
                }
                self.problem = Some(problem.clone());
                return Some(Notice::BacklogBroken { problem });
            }
        }
        self.problem.take().map(|_| Notice::BacklogUsableAgain)
    }

    /// Sets the marks that count, regardless of the file.
    pub fn show_marks(&mut self, known: &Marks) {
        for story in &mut self.backlog.stories {
            (story.passes, story.skipped) = pair(known, &story.id);
        }
    }

    pub fn has_other_marks(&self) -> bool {
        self.has_other_marks
    }

    /// The marks in the file are the human's and count.
    pub fn take_up_marks(&mut self) {
        self.has_other_marks = false;
        for (story, marks) in self.backlog.stories.iter_mut().zip(self.file.marks()) {
            (story.passes, story.skipped) = *marks;
        }
    }

    /// The text with a story's mark set.
    pub fn marked(&mut self, story: &StoryId, mark: Mark) -> Result<MarkedText, EditError> {
        self.file.marked((self.position(story)?, story), mark)
    }

    /// Called while an agent runs, to make closing its story faster.
    pub fn prepare(&mut self, story: &StoryId, mark: Mark) -> Result<Option<TextAhead>, EditError> {
        self.file.prepare((self.position(story)?, story), mark)
    }

    pub fn take_prepared(&mut self, text: Option<TextOnDisk>) {
        if let Some(text) = text {
            self.file.take_prepared(text);
        }
    }

    /// A text with marks is in the file.
    pub fn take_written(&mut self, written: WrittenText) {
        self.file.take_written(written);
        self.take_up_marks();
    }

    /// Sets all marks in the file to the known ones; returns the stories that differed. None if the
    /// file was edited at the same moment: then that has to be read first.
    pub fn repair_marks(&mut self, known: &Marks) -> Result<Option<Vec<StoryId>>> {
        let (text, touched) = self.file.with_marks(&self.backlog.stories, |id| pair(known, id))?;
        if !touched.is_empty() {
            match text.write() {
                Err(WriteError::Changed { .. }) => return Ok(None),
                written => self.take_written(written?),
            }
        }
        self.has_other_marks = false;
        Ok(Some(touched))
    }

    /// Writes the last good version with these marks, whatever is at its path now. That is kept as
    /// `keep`; returns where.
    pub fn put_back(&mut self, known: &Marks, keep: &Path) -> Result<Option<PathBuf>> {
        let (text, _) = self.file.with_marks(&self.backlog.stories, |id| pair(known, id))?;
        let kept = self.file.put_back(text, keep)?;
        self.problem = None;
        self.compare_marks(known);
        Ok(kept)
    }

    /// The file's content is the human's. Returns it if it is new.
    pub fn take_text(&mut self) -> Option<BacklogText> {
        if !std::mem::take(&mut self.is_new) {
            return None;
        }
        let (text, backlog) = (self.file.text().into(), self.backlog.clone());
        self.taken = TakenBacklog { text, backlog };
        Some(self.kept_text())
    }

    /// For the journal.
    pub fn kept_text(&self) -> BacklogText {
        let link = follow::read_link(self.file.path()).ok();
        BacklogText {
            text: Some(self.taken.text.to_string()),
            path: shown_path(self.file.path()),
            link: link.map(|link| link.to_string_lossy().into_owned()),
        }
    }

    pub fn taken_text(&self) -> Arc<str> {
        Arc::clone(&self.taken.text)
    }

    /// What changed since then that decides what counts as done.
    pub fn concerns(&self, own: Option<&StoryId>) -> Vec<Concern> {
        of_backlog(&self.taken.backlog, &self.backlog, own)
    }

    /// The first story in it that is not settled.
    pub fn next_open(&self, known: &Marks) -> Option<StoryId> {
        let mut ids = self.taken.backlog.stories.iter().map(|story| &story.id);
        ids.find(|id| pair(known, id) == (false, false)).cloned()
    }

    pub fn text(&self) -> &str {
        self.file.text()
    }

    /// Any valid text of the file, with the known marks.
    pub fn marked_text(&self, text: &str, known: &Marks) -> Result<String> {
        let loaded = self.parse(text)?;
        Ok(text_with_marks(text, &loaded.backlog.stories, |id| pair(known, id))?)
    }

    /// Writes another text, with the known marks. False if the file was edited at the same moment:
    /// then that has to be read first.
    pub fn replace(&mut self, text: &str, known: &Marks) -> Result<bool> {
        let text = self.marked_text(text, known)?;
        let Loaded { backlog, warnings, .. } = self.parse(&text)?;
        let written = match self.file.other_text(&text).write() {
            Err(WriteError::Changed { .. }) => return Ok(false),
            written => written?,
        };
        self.file.take_replaced(written, &backlog);
        self.is_new = *text != *self.taken.text;
        self.ids = ids_of(&backlog);
        (self.backlog, self.warnings) = (backlog, warnings);
        self.compare_marks(known);
        Ok(true)
    }

    fn parse(&self, text: &str) -> Result<Loaded, LoadError> {
        PrdFile::new(self.file.path()).parse(text.to_owned())
    }

    /// Beside the file, for a version that is broken.
    pub fn broken_name(&self, at: i64) -> PathBuf {
        broken_name(self.file.real_path(), at)
    }

    /// Its name, without its folder.
    pub fn name(&self) -> &OsStr {
        self.file.path().file_name().unwrap_or_default()
    }

    fn position(&self, story: &StoryId) -> Result<usize, EditError> {
        self.backlog.place(story).ok_or_else(|| EditError::NoSuchStory(story.clone()))
    }
}

fn pair(marks: &Marks, id: &StoryId) -> (bool, bool) {
    (marks.passing.contains(id), marks.skipped.contains(id))
}

/// Absolute, without following links.
pub fn shown_path(path: &Path) -> String {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    path.to_string_lossy().into_owned()
}

fn ids_of(backlog: &Backlog) -> Arc<[StoryId]> {
    backlog.stories.iter().map(|story| story.id.clone()).collect()
}

impl World {
    pub(super) fn refresh_backlog(&mut self, log: &mut RunLog) -> Result<()> {
        // An agent may have left the repository on another branch, with another file.
        if self.is_writing_marks || log.state.is_rolling_back() {
            return Ok(());
        }
        let before = self.env.backlog.ids();
        if self.has_kept {
            let is_broken = self.env.backlog.problem().is_some();
            self.backlog_writer.get_or_insert_with(|| BacklogWriter::kept(is_broken));
        }
        if self.backlog_writer.is_some() && log.state.attempts.is_idle() && self.gates.is_empty() {
            self.release_backlog(log)?;
        }
        if !self.has_kept || self.backlog_writer.is_some() {
            let notice = self.env.backlog.refresh(&log.state.marks);
            notice.into_iter().for_each(|notice| log.notice(notice));
        }
        if self.backlog_writer.is_some() {
            // Whose it is will be decided when that is over.
            return Ok(());
        }
        self.take_backlog(log)?;
        self.apply_backlog_changes(log)?;
        let removed = removed_stories(&before, self.env.backlog.current());
        let Some(first) = removed.first() else { return Ok(()) };
        let at_work = log.state.lanes.occupant(LaneId::HOME);
        let story = at_work.unwrap_or(first).clone();
        self.record(log, Event::StoriesRemoved { story, removed })
    }

    /// Records the human's marks; reverts and reports others. While agents or gates run anywhere, a
    /// mark in the file may be theirs; `ralph mark` is the human's.
    pub(super) fn settle_marks(&mut self, log: &mut RunLog) -> Result<()> {
        let attempts = &log.state.attempts;
        let runs_here = !attempts.is_free(LaneId::HOME) || !self.gates.is_empty();
        let busy = runs_here || log.state.is_rolling_back();
        if busy || self.is_writing_marks || self.env.backlog.problem().is_some() {
            return Ok(());
        }
        let suspect = std::mem::take(&mut self.marks_are_suspect);
        let suspect = suspect || self.has_kept || !attempts.is_idle();
        if !self.env.backlog.has_other_marks() {
            return Ok(());
        }
        if suspect {
            return self.repair_marks(log);
        }
        self.env.backlog.take_up_marks();
        let seen = self.marks_in_file();
        self.record(log, seen)
    }

    /// For `ralph mark`. While an attempt runs, its agent may write the file too: the journal
    /// counts, and the file is set again after the attempt.
    pub(super) fn set_marks(&mut self, log: &mut RunLog, wanted: &Marks) -> Result<()> {
        // First the journal: after a crash the file is set again.
        self.env.backlog.show_marks(wanted);
        self.record(log, wanted.seen())?;
        log.sync()?;
        if self.env.backlog.problem().is_none() {
            // If that has to wait, what the file says is not the human's last word.
            self.marks_are_suspect |= self.env.backlog.repair_marks(wanted)?.is_none();
        }
        Ok(())
    }

    pub(super) fn disown_work(&self, log: &mut RunLog, story: &StoryId) {
        log.notice(Notice::Disowned { story: story.clone() });
        self.with_scratchpad(log, |dir| dir.archive_scratchpad(story));
    }

    pub(super) fn marks_in_file(&self) -> Event {
        Marks::of(self.env.backlog.current()).seen()
    }

    pub(super) fn repair_marks(&mut self, log: &mut RunLog) -> Result<()> {
        let Some(mut ids) = self.env.backlog.repair_marks(&log.state.marks)? else {
            self.marks_are_suspect = true;
            return Ok(());
        };
        // The driver's own marks are about to be set again, and others wait to be confirmed.
        ids.retain(|id| {
            let known = log.state.story(id);
            !known.is_some_and(|known| known.is_being_settled() || known.is_to_be_confirmed())
        });
        if ids.is_empty() { Ok(()) } else { self.record(log, Event::MarksPutBack { stories: ids }) }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::decide::samples::id;

    const PRD: &str = r#"{"project": "p", "description": "d", "userStories": [
        {"id": "A", "title": "t", "description": "", "criteria": ["c"], "passes": true}]}"#;

    fn backlog() -> (tempfile::TempDir, BacklogFile) {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("PRD.json"), PRD).unwrap();
        let file = PrdFile::new(folder.path().join("PRD.json"));
        (folder, BacklogFile::open(file).unwrap())
    }

    #[test]
    fn marks_are_restored_unless_the_file_was_edited_at_that_moment() {
        let (folder, mut backlog) = backlog();
        let path = folder.path().join("PRD.json");
        backlog.compare_marks(&Marks::default());
        assert!(backlog.has_other_marks() && !backlog.current().stories[0].passes);
        let edit = PRD.replace("\"t\"", "\"edited\"");
        fs::write(&path, &edit).unwrap();
        assert_eq!(backlog.repair_marks(&Marks::default()).unwrap(), None);
        assert!(backlog.has_other_marks(), "that has to be done again");
        assert_eq!(fs::read_to_string(&path).unwrap(), edit);
        backlog.refresh(&Marks::default());
        let restored = backlog.repair_marks(&Marks::default()).unwrap();
        assert_eq!((restored, backlog.has_other_marks()), (Some(vec![id("A")]), false));
        assert_eq!(fs::read_to_string(&path).unwrap(), edit.replace("true", "false"));
    }

    #[test]
    fn a_broken_file_is_reported_once_and_its_last_good_version_counts() {
        let (folder, mut backlog) = backlog();
        let path = folder.path().join("PRD.json");
        let marks = Marks::of(backlog.current());
        fs::write(&path, "{").unwrap();
        assert!(matches!(backlog.refresh(&marks), Some(Notice::BacklogBroken { .. })));
        assert!(backlog.refresh(&marks).is_none() && backlog.problem().is_some());
        assert_eq!(backlog.current().stories.len(), 1);
        fs::write(&path, PRD).unwrap();
        assert!(matches!(backlog.refresh(&marks), Some(Notice::BacklogUsableAgain)));
        assert!(backlog.problem().is_none() && !backlog.has_other_marks());
    }
}
