//! Where a backlog is, and what belongs to it: work tree, store, instructions.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::agent::SETTINGS_FILES;
use crate::files::{self, follow};
use crate::model::{Backlog, HeldKind, Story, StoryId};
use crate::ports::Clock;
use crate::process::supervised::is_supervised;
use crate::process::sweep::RUN_ID;
use crate::runner::log::JournalHistory;
use crate::settings;
use crate::state::RunState;
use crate::store::{Journal, Lease, Store, StorePlace};
use crate::text::redact::SecretRules;
use crate::ui;
use crate::workspace::{FileLocation, GitError, HeldPlace, WorkTree};

use super::error::{CommandError, Result};

const BUILT_IN_PROMPT: &str = include_str!("../../PROMPT.md.example");
const PROMPT_FILE: &str = "PROMPT.md";
/// In bytes; every prompt begins with the instructions.
const LONGEST_PROMPT: u64 = 16 << 20;

/// Where the backlog is, and its names.
pub struct BacklogPlace {
    /// In commits.
    pub name: String,
    /// In the journal. Outside the repository it is the whole path, because names repeat.
    pub key: String,
    /// In the work tree, when it is committed with the work.
    pub in_tree: Option<PathBuf>,
}

/// The work tree of the current folder, else that of the PRD.
pub fn open_tree(prd: &Path) -> Result<WorkTree> {
    let tree = find_tree(prd)?;
    tree.require_ready()?;
    Ok(tree)
}

/// The same in any state.
pub fn find_tree(prd: &Path) -> Result<WorkTree> {
    find_with(prd, WorkTree::look)
}

/// The same for a run.
pub fn find_tree_for_run(prd: &Path) -> Result<WorkTree> {
    find_with(prd, WorkTree::look_for_run)
}

fn find_with(prd: &Path, look: fn(&Path) -> Result<WorkTree, GitError>) -> Result<WorkTree> {
    let here = std::env::current_dir()?;
    match look(&here) {
        Err(GitError::NotARepository { .. }) => {
            let folder = std::path::absolute(prd)?;
            Ok(look(folder.parent().unwrap_or(&here))?)
        }
        found => Ok(found?),
    }
}

pub fn place_of(tree: &WorkTree, prd: &Path) -> Result<BacklogPlace> {
    let shown = |path: &Path| path.to_string_lossy().into_owned();
    let (path, key, in_tree) = match tree.locate(prd)? {
        FileLocation::Inside(path) => (path.clone(), path.clone(), Some(path)),
        FileLocation::Ignored(path) => (path.clone(), path, None),
        FileLocation::Outside => {
            (prd.file_name().map(PathBuf::from).unwrap_or_default(), follow::real(prd)?, None)
        }
    };
    Ok(BacklogPlace { name: shown(&path), key: shown(&key), in_tree })
}

pub fn find_story<'a>(backlog: &'a Backlog, id: &StoryId) -> Result<&'a Story> {
    backlog.story(id).ok_or_else(|| {
        let alike = |other: &StoryId| strsim::jaro_winkler(other.as_str(), id.as_str());
        let nearest = backlog.stories.iter().map(|story| &story.id).filter(|id| alike(id) > 0.8);
        let nearest = nearest.max_by(|a, b| alike(a).total_cmp(&alike(b))).cloned();
        CommandError::NoSuchStory { story: id.clone(), nearest }
    })
}

/// The store of this repository's runs.
pub fn store_of(tree: &WorkTree) -> Store {
    let linked = tree.git_dir() != tree.common_dir();
    let name = tree.git_dir().file_name().filter(|_| linked).unwrap_or_default();
    Store::new(StorePlace {
        shared: tree.common_dir().join("ralph"),
        own: tree.git_dir().join("ralph"),
        work_tree: name.to_string_lossy().into_owned(),
        anchor: tree.git_dir().to_owned(),
    })
}

/// The journal's events of a backlog. Creates nothing.
pub fn history(store: &Store, place: &BacklogPlace) -> Result<JournalHistory> {
    if !store.exists() {
        return Ok(JournalHistory::default());
    }
    Ok(JournalHistory::of(store.journal(&place.key)?.read(0)?.0))
}

pub fn state_of(store: &Store, place: &BacklogPlace) -> Result<RunState> {
    Ok(history(store, place)?.state)
}

/// Held until the process ends. It says where people find this process.
pub fn take_lease(store: &Store, clock: &Clock) -> Result<Lease> {
    let since = ui::date_and_time(clock.now().wall, &clock.zone);
    let terminal = ui::terminal_name().map(|name| format!(", in {name}")).unwrap_or_default();
    Ok(store.lease(&format!("pid {}, since {since}{terminal}", std::process::id()))?)
}

/// PRD.json, PROMPT.md and ralph.toml, whether they exist or not.
pub fn human_files(place: &BacklogPlace) -> Vec<PathBuf> {
    let mut files = vec![PathBuf::from(PROMPT_FILE), PathBuf::from(settings::FILE_NAME)];
    if let Some(prd) = &place.in_tree {
        files.push(prd.with_file_name(PROMPT_FILE));
        files.push(prd.clone());
    }
    files
}

/// The text of PROMPT.md, and its file unless the text is built in.
pub struct RunInstructions {
    pub text: String,
    pub file: Option<PathBuf>,
    /// Where the next process looks for it.
    pub places: Vec<PathBuf>,
}

impl RunInstructions {
    /// Where they would be, without reading them.
    pub fn unread(named: Option<&Path>, prd: &Path, root: &Path) -> Self {
        let places = prompt_places(named, prd, Some(root));
        let places = places.iter().filter_map(|path| std::path::absolute(path).ok()).collect();
        Self { text: String::new(), file: None, places }
    }

    /// The files that only the human changes.
    pub fn held(&self, root: &Path) -> Vec<HeldPlace> {
        let place = |kind| move |path: PathBuf| HeldPlace { kind, path };
        let settings = [root.join(settings::FILE_NAME)].into_iter();
        let agents = SETTINGS_FILES.iter().map(|name| root.join(name));
        let instructions = self.places.iter().cloned();
        instructions
            .map(place(HeldKind::Instructions))
            .chain(settings.map(place(HeldKind::Settings)))
            .chain(agents.map(place(HeldKind::AgentSettings)))
            .collect()
    }
}

fn prompt_places(named: Option<&Path>, prd: &Path, root: Option<&Path>) -> Vec<PathBuf> {
    let next_to_prd = prd.with_file_name(PROMPT_FILE);
    let at_root = root.map(|root| root.join(PROMPT_FILE));
    let usual: Vec<PathBuf> = [Some(next_to_prd), at_root].into_iter().flatten().collect();
    named.map_or(usual, |named| vec![named.to_owned()])
}

/// The named file, else PROMPT.md next to the PRD or at the root, else the built-in text.
pub fn instructions(
    named: Option<&Path>,
    prd: &Path,
    root: Option<&Path>,
) -> Result<RunInstructions> {
    let places = prompt_places(named, prd, root);
    let found = places.iter().find(|path| named.is_some() || follow::exists(path)).cloned();
    let places = places.iter().filter_map(|path| std::path::absolute(path).ok()).collect();
    let Some(path) = found else {
        return Ok(RunInstructions { text: BUILT_IN_PROMPT.to_owned(), file: None, places });
    };
    let failed = |source| CommandError::Prompt { path: path.display().to_string(), source };
    let text = files::read_text(&path, LONGEST_PROMPT).map_err(failed)?;
    Ok(RunInstructions { text, file: std::path::absolute(path).ok(), places })
}

/// Secrets of the environment: the agent inherits them and could print them.
pub fn secrets() -> Arc<SecretRules> {
    let text = |(name, value): (OsString, OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    Arc::new(SecretRules::new(std::env::vars_os().filter_map(text)))
}

/// Refuses a human's decisions to agents and gates.
pub fn refuse_agents(command: &str, tree: Option<&WorkTree>) -> Result<()> {
    match (std::env::var_os(RUN_ID), tree) {
        (Some(_), _) => Err(CommandError::NotForAgents(command.to_owned())),
        (None, Some(tree)) => refuse_supervised(command, tree),
        (None, None) => Ok(()),
    }
}

/// Refuses a command to agents and gates of a run of this repository. They may use it in another
/// one: their project may be one that uses ralph.
pub fn refuse_supervised(command: &str, tree: &WorkTree) -> Result<()> {
    match is_supervised(tree.common_dir())? {
        true => Err(CommandError::NotForAgents(command.to_owned())),
        false => Ok(()),
    }
}
