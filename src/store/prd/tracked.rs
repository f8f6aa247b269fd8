//! PRD.json during a run: checking for changes costs one `stat`, a mark costs one edit of the text.

use std::fs::Metadata;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use crate::files::atomic::{self, PreparedFile};
use crate::model::{Backlog, Story, StoryId};

use super::edit::{EditResult, Mark, StoryAt, StorySpans, TextEdit, apply};
use super::place::Place;
use super::{LoadError, Loaded, PrdFile, Stamp, WriteError};

/// What a look at the file found.
#[derive(Debug)]
pub enum PrdLook {
    /// Nothing happened since the last look.
    Unchanged,
    /// The file was written, and its text is the known one.
    Known,
    /// The text is a new one.
    Changed(Loaded),
    /// The file cannot be used as it is; the last good text stays.
    Broken(LoadError),
}

/// `passes` and `skipped` of a story.
type MarkPair = (bool, bool);

/// The file and the last good text that it had.
pub struct TrackedPrd {
    pub(super) file: PrdFile,
    pub(super) place: Place,
    pub(super) text: Arc<str>,
    /// Made when first needed.
    spans: Option<StorySpans>,
    /// The marks in the text, story by story.
    pub(super) marks: Vec<MarkPair>,
    /// Of the file at the last look; None: it must be read again.
    stamp: Option<Stamp>,
    /// The last look found no usable text.
    is_broken: bool,
    prepared: Option<MarkedText>,
}

/// The text with marks set. Any thread can write it.
pub struct MarkedText {
    file: PrdFile,
    /// What the file has now.
    old: KnownText,
    pub(super) text: Arc<str>,
    edits: Vec<TextEdit>,
    marks: Vec<(usize, Mark)>,
    /// It is the text of the last `prepare`.
    pub(super) was_prepared: bool,
    on_disk: Option<PreparedFile>,
}

#[derive(Clone)]
struct KnownText {
    text: Arc<str>,
    /// Of the file when it had the text, if it tells that.
    stamp: Option<Stamp>,
}

impl MarkedText {
    pub fn text(&self) -> &str {
        &self.text
    }

    /// It is this very text, not only one that was made from the same text.
    pub fn is(&self, text: &Arc<str>) -> bool {
        Arc::ptr_eq(&self.text, text)
    }

    /// Replaces the file's text: a reader sees the old or the new one, whole. The file must
    /// still have the known text, so that no other process's edit is lost.
    pub fn write(self) -> Result<WrittenText, WriteError> {
        self.write_during(|_| ()).map(|(written, ())| written)
    }

    /// The same, with other work to do while the disk is busy with it.
    pub fn write_during<R>(
        mut self,
        work: impl FnOnce(Option<&Metadata>) -> R,
    ) -> Result<(WrittenText, R), WriteError> {
        let path = self.file.path();
        let prepare = || self.file.prepare(&self.text);
        let on_disk = self.on_disk.take().or_else(prepare);
        // As late as possible: an edit from now on would be lost.
        if !self.old.is_in(&self.file) {
            return Err(WriteError::Changed { path: path.to_owned() });
        }
        let renamed = on_disk.and_then(|prepared| prepared.replace().ok());
        let Some(metadata) = renamed else {
            let metadata = self.file.write(&self.text)?;
            let result = work(metadata.as_ref());
            return Ok((WrittenText { marked: self, metadata }, result));
        };
        let (synced, result) = thread::scope(|scope| {
            let sync =
                scope.spawn(|| self.file.target().and_then(|at| atomic::sync_folder_of(&at)));
            let result = work(metadata.as_ref());
            (sync.join(), result)
        });
        let synced = synced.unwrap_or_else(|_| Err(io::Error::other("the sync panicked")));
        synced.map_err(|source| WriteError::Failed { path: path.to_owned(), source })?;
        Ok((WrittenText { marked: self, metadata }, result))
    }
}

impl KnownText {
    fn is_in(&self, file: &PrdFile) -> bool {
        let now = file.stamp();
        (self.stamp.is_some() && now == self.stamp)
            || file.text().is_ok_and(|(text, _)| *text == *self.text)
    }
}

/// A text that is in the file now.
pub struct WrittenText {
    pub(super) marked: MarkedText,
    /// Of the file, if its times tell it from any later version.
    pub metadata: Option<Metadata>,
}

impl WrittenText {
    /// Writes the text from before, unless the file was edited since.
    pub fn revert(self) -> Result<(), WriteError> {
        let MarkedText { text, old, .. } = &self.marked;
        let stamp = self.metadata.as_ref().map(Stamp::of);
        let (old, text) = (KnownText { text: Arc::clone(text), stamp }, Arc::clone(&old.text));
        match (MarkedText { old, text, ..self.marked }).write() {
            Err(WriteError::Changed { .. }) => Ok(()),
            written => written.map(drop),
        }
    }
}

/// A text to be put on the disk ahead, by any thread.
pub struct TextAhead {
    file: PrdFile,
    pub text: Arc<str>,
}

impl TextAhead {
    /// None if the system cannot.
    pub fn prepare(self) -> Option<TextOnDisk> {
        let on_disk = self.file.prepare(&self.text)?;
        Some(TextOnDisk { on_disk, text: self.text })
    }
}

pub struct TextOnDisk {
    on_disk: PreparedFile,
    text: Arc<str>,
}

impl TrackedPrd {
    pub fn open(file: PrdFile) -> Result<(Self, Loaded), LoadError> {
        let place = Place::of(&file).map_err(|error| file.failed(error))?;
        let file = file.at(&place.target);
        let (text, stamp) = file.text()?;
        let loaded = file.parse(text)?;
        let (text, marks) = (Arc::from(loaded.text.as_str()), marks_of(&loaded.backlog));
        let (spans, prepared) = (None, None);
        let tracked = Self { file, place, text, spans, marks, stamp, is_broken: false, prepared };
        Ok((tracked, loaded))
    }

    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Where it was when it was opened, without links.
    pub fn real_path(&self) -> &Path {
        &self.place.target
    }

    /// `passes` and `skipped` of each story, as they are in the file.
    pub fn marks(&self) -> &[MarkPair] {
        &self.marks
    }

    /// Reads the file if it changed.
    pub fn look(&mut self) -> PrdLook {
        let path = self.file.path();
        let is_there = self.place.is_at();
        let now = self.file.stamp();
        if is_there && now.is_some() && now == self.stamp {
            return PrdLook::Unchanged;
        }
        let moved = || LoadError::OtherLink { path: path.to_owned() };
        let read = if is_there { self.file.text() } else { Err(moved()) };
        self.stamp = read.as_ref().ok().and_then(|(_, stamp)| *stamp);
        let found = match read {
            Ok((text, _)) if *text == *self.text => PrdLook::Known,
            Ok((text, _)) => self.file.parse(text).map_or_else(PrdLook::Broken, |loaded| {
                self.take(loaded.text.as_str().into());
                self.marks = marks_of(&loaded.backlog);
                PrdLook::Changed(loaded)
            }),
            Err(error) => PrdLook::Broken(error),
        };
        self.is_broken = matches!(found, PrdLook::Broken(_));
        found
    }

    /// The text with a mark of a story set.
    pub fn marked(&mut self, story: StoryAt<'_>, mark: Mark) -> EditResult<MarkedText> {
        let marks = vec![(story.0, mark)];
        if let Some(prepared) = self.prepared.take().filter(|made| made.marks == marks) {
            return Ok(prepared);
        }
        let edits = self.spans()?.edits(&self.text, story, &[mark]);
        Ok(self.with(edits?, marks))
    }

    /// Makes the marked text ahead. It is dropped if the text changes or another mark is wanted.
    /// Returns the text if it is new.
    pub fn prepare(&mut self, story: StoryAt<'_>, mark: Mark) -> EditResult<Option<TextAhead>> {
        let marked = self.marked(story, mark)?;
        let ahead = (!marked.was_prepared)
            .then(|| TextAhead { file: self.file.clone(), text: Arc::clone(&marked.text) });
        self.prepared = Some(MarkedText { was_prepared: true, ..marked });
        Ok(ahead)
    }

    /// If it is the prepared text, writing that is a rename. Another one may have been prepared since.
    pub fn take_prepared(&mut self, ahead: TextOnDisk) {
        if let Some(prepared) = self.prepared.as_mut().filter(|one| one.is(&ahead.text)) {
            prepared.on_disk = Some(ahead.on_disk);
        }
    }

    /// The text with the wanted marks of every story, made in one pass, and the stories whose marks
    /// changed.
    pub fn with_marks(
        &mut self,
        stories: &[Story],
        wanted: impl Fn(&StoryId) -> MarkPair,
    ) -> EditResult<(MarkedText, Vec<StoryId>)> {
        let spans = self.spans()?;
        let (mut edits, mut marks, mut touched) = (Vec::new(), Vec::new(), Vec::new());
        for (position, (story, found)) in stories.iter().zip(&self.marks).enumerate() {
            let (passes, skipped) = wanted(&story.id);
            if *found == (passes, skipped) {
                continue;
            }
            let both = [Mark::Passes(passes), Mark::Skipped(skipped)];
            edits.extend(spans.edits(&self.text, (position, &story.id), &both)?);
            marks.extend(both.map(|mark| (position, mark)));
            touched.push(story.id.clone());
        }
        Ok((self.with(edits, marks), touched))
    }

    /// The file has this text now.
    pub fn take_written(&mut self, written: WrittenText) {
        let MarkedText { old, text, edits, marks, .. } = written.marked;
        self.is_broken = false;
        self.stamp = written.metadata.as_ref().map(Stamp::of);
        let spans = self.spans.take().filter(|_| Arc::ptr_eq(&old.text, &self.text));
        self.take(text);
        self.spans = spans.map(|spans| spans.after(&edits));
        for (position, mark) in marks {
            match (self.marks.get_mut(position), mark) {
                (Some(marks), Mark::Passes(value)) => marks.0 = value,
                (Some(marks), Mark::Skipped(value)) => marks.1 = value,
                (None, _) => {}
            }
        }
    }

    pub(super) fn with(&self, edits: Vec<TextEdit>, marks: Vec<(usize, Mark)>) -> MarkedText {
        let stamp = self.stamp.filter(|_| !self.is_broken);
        MarkedText {
            file: self.file.clone(),
            old: KnownText { text: Arc::clone(&self.text), stamp },
            text: apply(&self.text, &edits).into(),
            edits,
            marks,
            was_prepared: false,
            on_disk: None,
        }
    }

    fn take(&mut self, text: Arc<str>) {
        self.text = text;
        self.spans = None;
        self.prepared = None;
    }

    pub(super) fn forget_spans(&mut self) {
        self.spans = None;
    }

    fn spans(&mut self) -> EditResult<StorySpans> {
        match &mut self.spans {
            Some(spans) => Ok(spans.clone()),
            none => Ok(none.insert(StorySpans::of(&self.text)?).clone()),
        }
    }
}

pub(super) fn marks_of(backlog: &Backlog) -> Vec<MarkPair> {
    backlog.stories.iter().map(|story| (story.passes, story.skipped)).collect()
}
