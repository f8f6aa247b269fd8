//! `ralph undo`.

use std::path::PathBuf;

use crate::core::backlog::Backlog;
use crate::core::event::Event;
use crate::core::id::StoryId;
use crate::core::state::RunState;
use crate::core::text::visible_line;
use crate::git::{Closing, UNDONE_TRAILER, UndoRequest, WorkTree};
use crate::store::journal::{Journal, SqliteJournal};
use crate::store::prd::{Mark, PrdFile, set_mark};
use crate::ui;

use super::error::CliError;
use super::kept_args::UndoArgs;
use super::mark::refuse_agents;
use super::print;
use super::run::{check_story, open_tree, place_of};
use super::session::{Place, journal_path, now, scope, take_lock};

pub fn undo(args: &UndoArgs) -> Result<u8, CliError> {
    refuse_agents("`ralph undo`")?;
    let (story, file) = (&args.story, PrdFile::new(&args.prd));
    file.load()?;
    let tree = open_tree(&args.prd)?;
    let _lock = take_lock(&tree)?;
    tree.remove_own_locks()?;
    let loaded = file.load()?;
    file.check_writable()?;
    check_story(&loaded.backlog, Some(story))?;
    let known = loaded.backlog.story(story).filter(|story| story.passes);
    let Some(known) = known else { return Err(CliError::NotClosed(story.clone())) };
    let place = place_of(&tree, &args.prd)?;
    let backlog_name = visible_line(&place.name);
    let closing = tree.newest_closing(story, &backlog_name)?;
    let closing = closing.ok_or_else(|| CliError::NoCommitOf(story.clone()))?;
    let text = set_mark(&loaded.text, story, Mark::Passes(false))?;
    let before = tree.head_commit()?;
    let message = message(story, &known.title, &backlog_name, &closing);
    let done = take_back(&tree, &place, &closing, &text, &message)?;
    file.write(&text)?;
    let commit = done.as_ref().map(|(commit, _)| commit.clone());
    record(&tree, &place, story, commit, before.as_deref())?;
    print(&told(story, done.as_ref(), &loaded.backlog))?;
    Ok(0)
}

/// The commit and how many files it changed; None when a process before this one made it and died.
fn take_back(
    tree: &WorkTree,
    place: &Place,
    closing: &Closing,
    text: &str,
    message: &str,
) -> Result<Option<(String, usize)>, CliError> {
    if closing.is_undone {
        return Ok(None);
    }
    let replaced: Vec<(PathBuf, Vec<u8>)> =
        place.in_tree.iter().map(|path| (path.clone(), text.as_bytes().to_vec())).collect();
    let done = tree.undo(&UndoRequest { closing, replaced: &replaced, message })?;
    Ok(Some((done.commit, done.files)))
}

fn message(story: &StoryId, title: &str, backlog: &str, closing: &Closing) -> String {
    let title = visible_line(title);
    format!(
        "Take back {story}: {title}\n\n{UNDONE_TRAILER}: {}\nRalph-Reopened: {story}\n\
         Ralph-Backlog: {backlog}\n",
        closing.commit
    )
}

/// So that the next run knows whose doing it is. Another story's unfinished work, if there is any
/// in the tree, began before this commit and goes on after it.
fn record(
    tree: &WorkTree,
    place: &Place,
    story: &StoryId,
    commit: Option<String>,
    before: Option<&str>,
) -> Result<(), CliError> {
    let mut journal = SqliteJournal::open(&journal_path(tree)?, scope(tree, place))?;
    let mut state = RunState::default();
    for recorded in &journal.read(0)?.0 {
        state.apply(recorded);
    }
    let mut events = vec![Event::StoryReopened { story: story.clone(), commit }];
    let in_work = state.in_tree.as_ref().filter(|other| *other != story);
    let base = in_work.and_then(|other| Some((other, state.story(other)?.base.clone()?)));
    if let Some((other, base)) = base {
        let base = tree.move_base(&base, before)?;
        tree.hold(&base)?;
        events.push(Event::BaseSet { story: other.clone(), base });
    }
    let run = state.run.as_ref().map_or("", |run| run.run.as_str());
    Ok(journal.append(run, now(), &events)?)
}

fn told(story: &StoryId, done: Option<&(String, usize)>, backlog: &Backlog) -> String {
    let how = done.map(|(commit, files)| {
        let files = if *files == 1 { "1 file".to_owned() } else { format!("{files} files") };
        format!(" in {} ({files})", ui::short_commit(commit))
    });
    let mut text = format!("{story} is taken back{}; it is open again\n", how.unwrap_or_default());
    let depend = backlog.stories.iter().filter(|s| s.passes && s.depends_on.contains(story));
    let depend: Vec<String> = depend.map(|story| story.id.to_string()).collect();
    if !depend.is_empty() {
        text.push_str(&format!("Depending on it and still passing: {}\n", depend.join(", ")));
    }
    text
}
