//! What the agent process finds around it: the story, the attempt, the folder.

use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;

use crate::core::id::StoryId;

/// The story's name when nobody said which one it is.
const NO_STORY: &str = "unnamed";

pub struct Scene {
    pub story: StoryId,
    /// Counts from 1.
    pub attempt: u32,
    pub iteration: u32,
    /// What the driver wants to hear instead of a claim.
    pub stages: Vec<String>,
    pub folder: PathBuf,
    pub prompt: Vec<u8>,
    pub now: Timestamp,
}

impl Scene {
    pub fn from_environment() -> Result<Self, String> {
        let folder = std::env::current_dir().map_err(|e| format!("no current folder: {e}"))?;
        Self::new(|name| std::env::var(name).ok(), folder)
    }

    pub fn new(variable: impl Fn(&str) -> Option<String>, folder: PathBuf) -> Result<Self, String> {
        let story = variable("RALPH_STORY").unwrap_or_else(|| NO_STORY.to_owned());
        Ok(Self {
            story: StoryId::try_from(story).map_err(|e| format!("RALPH_STORY: {e}"))?,
            attempt: count(variable("RALPH_ATTEMPT")),
            iteration: count(variable("RALPH_ITERATION")),
            stages: variable("RALPH_STAGES")
                .iter()
                .flat_map(|s| s.lines())
                .map(str::to_owned)
                .collect(),
            folder,
            prompt: Vec::new(),
            now: Timestamp::now(),
        })
    }

    /// Replaces the placeholders in a script before it is read as TOML. Safe, as
    /// neither ids nor numbers hold a character that means anything in TOML.
    pub fn fill_in(&self, source: &str) -> String {
        source
            .replace("${STORY}", self.story.as_str())
            .replace("${ATTEMPT}", &self.attempt.to_string())
            .replace("${ITERATION}", &self.iteration.to_string())
    }

    /// The moment `wait` from now, in Unix seconds.
    pub fn second_after(&self, wait: Duration) -> i64 {
        let wait = i64::try_from(wait.as_secs()).unwrap_or(i64::MAX);
        self.now.as_second().saturating_add(wait)
    }
}

fn count(text: Option<String>) -> u32 {
    text.and_then(|t| t.trim().parse().ok()).filter(|n| *n > 0).unwrap_or(1)
}
