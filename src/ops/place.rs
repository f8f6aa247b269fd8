//! Where a backlog is, and where what belongs to it is kept.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::model::{Backlog, StoryId};
use crate::ports::{Clock, Moment};
use crate::process::sweep::RUN_ID;
use crate::runner::log::JournalHistory;
use crate::settings;
use crate::state::RunState;
use crate::store::{Journal, Lease, Store, StorePlace};
use crate::text::redact::Rules;
use crate::ui;
use crate::workspace::{GitError, Place, WorkTree};

use super::error::CommandError;

const BUILT_IN_PROMPT: &str = include_str!("../../PROMPT.md.example");
const PROMPT_FILE: &str = "PROMPT.md";

/// Where the backlog stands and what it is called.
pub struct BacklogPlace {
    /// In commits.
    pub name: String,
    /// In the journal: outside the repository the whole path, because names repeat.
    pub key: String,
    /// In the work tree, when it is committed with the work.
    pub in_tree: Option<PathBuf>,
}

/// From this folder upward; else from the PRD's, so that it can be named from anywhere.
pub fn open_tree(prd: &Path) -> Result<WorkTree, CommandError> {
    let here = std::env::current_dir()?;
    match WorkTree::open(&here) {
        Err(GitError::NotARepository { .. }) => {
            let folder = std::path::absolute(prd)?;
            Ok(WorkTree::open(folder.parent().unwrap_or(&here))?)
        }
        opened => Ok(opened?),
    }
}

pub fn place_of(tree: &WorkTree, prd: &Path) -> Result<BacklogPlace, CommandError> {
    let shown = |path: &Path| path.to_string_lossy().into_owned();
    Ok(match tree.place_of(prd)? {
        Place::Inside(path) => {
            BacklogPlace { name: shown(&path), key: shown(&path), in_tree: Some(path) }
        }
        Place::Ignored(path) => {
            BacklogPlace { name: shown(&path), key: shown(&path), in_tree: None }
        }
        Place::Outside => {
            let name = prd.file_name().map(Path::new).map(shown).unwrap_or_default();
            BacklogPlace { name, key: shown(&prd.canonicalize()?), in_tree: None }
        }
    })
}

pub fn check_story(backlog: &Backlog, wanted: Option<&StoryId>) -> Result<(), CommandError> {
    let Some(story) = wanted.filter(|id| backlog.story(id).is_none()) else { return Ok(()) };
    let alike = |id: &StoryId| strsim::jaro_winkler(id.as_str(), story.as_str());
    let nearest = backlog.stories.iter().map(|story| &story.id).filter(|id| alike(id) > 0.8);
    let nearest = nearest.max_by(|a, b| alike(a).total_cmp(&alike(b))).cloned();
    Err(CommandError::NoSuchStory { story: story.clone(), nearest })
}

/// What is kept about the runs of this repository.
pub fn store_of(tree: &WorkTree) -> Store {
    let linked = tree.git_dir() != tree.common_dir();
    let name = tree.git_dir().file_name().filter(|_| linked).unwrap_or_default();
    Store::new(StorePlace {
        shared: tree.common_dir().join("ralph"),
        own: tree.git_dir().join("ralph"),
        work_tree: name.to_string_lossy().into_owned(),
    })
}

/// What the journal has of a backlog, changing nothing.
pub fn history(store: &Store, place: &BacklogPlace) -> Result<JournalHistory, CommandError> {
    if !store.exists() {
        return Ok(JournalHistory::default());
    }
    Ok(JournalHistory::of(store.journal(&place.key)?.read(0)?.0))
}

/// What the journal knows of a backlog, changing nothing.
pub fn fold(store: &Store, place: &BacklogPlace) -> Result<RunState, CommandError> {
    Ok(history(store, place)?.state)
}

/// Held until the process ends.
pub fn take_lease(store: &Store) -> Result<Lease, CommandError> {
    Ok(store.lease(&whoami())?)
}

/// PRD.json, PROMPT.md and ralph.toml, wherever they may be.
pub fn human_files(place: &BacklogPlace) -> Vec<PathBuf> {
    let mut files = vec![PathBuf::from(PROMPT_FILE), PathBuf::from(settings::FILE_NAME)];
    if let Some(prd) = &place.in_tree {
        files.push(prd.with_file_name(PROMPT_FILE));
        files.push(prd.clone());
    }
    files
}

/// The named file, else PROMPT.md beside the PRD or at the root, else the built-in text.
pub fn instructions(
    named: Option<&Path>,
    prd: &Path,
    root: Option<&Path>,
) -> Result<String, CommandError> {
    let read = |path: &Path| {
        std::fs::read_to_string(path)
            .map_err(|source| CommandError::Prompt { path: path.display().to_string(), source })
    };
    match instructions_file(named, prd, root) {
        Some(path) => read(&path),
        None => Ok(BUILT_IN_PROMPT.to_owned()),
    }
}

/// None: they are built in.
pub fn instructions_file(named: Option<&Path>, prd: &Path, root: Option<&Path>) -> Option<PathBuf> {
    if named.is_some() {
        return named.map(Path::to_owned);
    }
    let beside = prd.with_file_name(PROMPT_FILE);
    let at_root = root.map(|root| root.join(PROMPT_FILE));
    [Some(beside), at_root].into_iter().flatten().find(|path| path.exists())
}

/// What the agent inherits too, and could print.
pub fn secrets() -> Arc<Rules> {
    let text = |(name, value): (OsString, OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    Arc::new(Rules::new(std::env::vars_os().filter_map(text)))
}

/// What an agent decides about itself does not count.
pub fn refuse_agents(command: &str) -> Result<(), CommandError> {
    match std::env::var_os(RUN_ID) {
        Some(_) => Err(CommandError::NotForAgents(command.to_owned())),
        None => Ok(()),
    }
}

fn whoami() -> String {
    let since = jiff::Zoned::now().strftime("%Y-%m-%d %H:%M:%S").to_string();
    let terminal = ui::terminal_name().map(|name| format!(", in {name}")).unwrap_or_default();
    format!("pid {}, since {since}{terminal}", std::process::id())
}

pub fn system_clock() -> Clock {
    let start = Instant::now();
    Arc::new(move || Moment { wall: now(), steady: start.elapsed() })
}

/// Milliseconds since the Unix epoch.
pub fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
