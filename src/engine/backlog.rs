//! The backlog file during a run: a human may edit it at any time.

use crate::core::backlog::Backlog;
use crate::core::id::StoryId;
use crate::core::state::Marks;
use crate::store::prd::{EditError, LoadError, Loaded, Mark, PrdFile, set_mark};

use super::error::EngineError;
use super::ports::Notice;

/// The file, and the last version of it that was good.
pub struct BacklogFile {
    file: PrdFile,
    good: Loaded,
    /// Why the file cannot be used as it is now.
    problem: Option<String>,
}

impl BacklogFile {
    pub fn open(file: PrdFile) -> Result<Self, LoadError> {
        let good = file.load()?;
        file.check_writable()?;
        Ok(Self { file, good, problem: None })
    }

    pub fn current(&self) -> &Backlog {
        &self.good.backlog
    }

    pub fn loaded(&self) -> &Loaded {
        &self.good
    }

    pub fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    /// Takes up what changed on the disk; a broken edit keeps the last good version.
    pub fn refresh(&mut self) -> Option<Notice> {
        match self.file.load_unless(&self.good.text) {
            Ok(fresh) => {
                if let Some(fresh) = fresh {
                    self.good = fresh;
                }
                self.problem.take().map(|_| Notice::BacklogUsableAgain)
            }
            Err(error) => {
                let problem = error.to_string();
                if self.problem.as_ref() == Some(&problem) {
                    return None;
                }
                self.problem = Some(problem.clone());
                Some(Notice::BacklogBroken { problem })
            }
        }
    }

    /// The text with a story's mark set.
    pub fn marked(&self, story: &StoryId, mark: Mark) -> Result<String, EditError> {
        set_mark(&self.good.text, story, mark)
    }

    pub fn write(&mut self, text: &str) -> Result<(), EngineError> {
        self.file.write(text)?;
        self.good = self.file.load()?;
        Ok(())
    }

    /// Sets every story's marks to the known ones; the ids of the stories that differed.
    pub fn put_back_marks(&mut self, known: &Marks) -> Result<Vec<StoryId>, EngineError> {
        let mut text = self.good.text.clone();
        let mut touched = Vec::new();
        for story in &self.good.backlog.stories {
            let passes = known.passing.contains(&story.id);
            let skipped = known.skipped.contains(&story.id);
            if (story.passes, story.skipped) == (passes, skipped) {
                continue;
            }
            touched.push(story.id.clone());
            if story.passes != passes {
                text = set_mark(&text, &story.id, Mark::Passes(passes))?;
            }
            if story.skipped != skipped {
                text = set_mark(&text, &story.id, Mark::Skipped(skipped))?;
            }
        }
        if !touched.is_empty() {
            self.write(&text)?;
        }
        Ok(touched)
    }
}
