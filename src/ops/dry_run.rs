//! `ralph run --dry-run`: the whole loop, in a scratch repository.

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use crate::model::{Budgets, Event, Limits, OnEscalation, Recorded, visible_line};
use crate::ports::{Ask, Asked, Human};
use crate::runner::BacklogFile;
use crate::runner::log::JournalHistory;
use crate::settings::{AgentChoice, RunSettings};
use crate::store::Journal;
use crate::store::prd::PrdFile;
use crate::ui;
use crate::ui::UiOptions;
use crate::workspace::init_scratch;

use super::error::{CommandError, Result};
use super::place::{
    BacklogPlace, RunInstructions, find_story, instructions, secrets, store_of, take_lease,
};
use super::preflight::report_warnings;
use super::run::{RunOptions, check_script};
use super::session::Session;
use super::terminal::print;

const PRD: &str = "PRD.json";

pub fn dry_run(options: &RunOptions, look: &UiOptions) -> Result<u8> {
    let original = PrdFile::new(&options.prd).load()?;
    let plan = plan(options)?;
    let instructions = instructions(plan.prompt.as_deref(), &options.prd, None)?;
    if let Some(story) = &plan.story {
        find_story(&original.backlog, story)?;
    }
    // Removed when it goes out of scope, after an error too.
    let folder = tempfile::Builder::new().prefix("ralph-dry-run-").tempdir()?;
    let prd = folder.path().join(PRD);
    fs::write(&prd, &original.text)?;
    let tree = init_scratch(folder.path())?;
    let place = BacklogPlace {
        name: PRD.to_owned(),
        key: PRD.to_owned(),
        in_tree: Some(PathBuf::from(PRD)),
    };
    let store = store_of(&tree);
    let lease = take_lease(&store)?;
    let backlog = BacklogFile::open(PrdFile::new(prd))?;
    let mut reporter = ui::reporter(look);
    report_warnings(&backlog, reporter.as_mut());
    let session = Session {
        tree,
        backlog,
        place,
        plan,
        // The run is in another repository, so there is no file to guard.
        instructions: RunInstructions { file: None, ..instructions },
        reporter,
        human: Arc::new(NoHuman),
        human_present: false,
        verbose: look.verbose,
        branch: None,
        dry: true,
        secrets: secrets(),
        allow_dirty: false,
        store: store.clone(),
        lease,
        history: JournalHistory::default(),
        clock: Arc::clone(&look.clock),
    };
    let code = session.run()?;
    let (events, _) = store.journal(PRD)?.read(0)?;
    // The exit code counts even if the reader of the summary has gone.
    match print(&summary(&events)) {
        Ok(()) | Err(CommandError::Pipe) => Ok(code),
        Err(error) => Err(error),
    }
}

/// The mock agent, no limits, no ralph.toml.
fn plan(options: &RunOptions) -> Result<RunSettings> {
    let mut flags = options.flags.clone();
    let agent = flags.values.remove("agent.name");
    if agent.is_some_and(|name| name != "mock") || flags.values.contains_key("agent.command") {
        let why = "a dry run uses the mock agent; remove `--agent` and `--agent-command`";
        return Err(CommandError::Refused(why.to_owned()));
    }
    let script = flags.mock_script.take();
    let mut plan = RunSettings::new("", &flags, &ui::env_var)?;
    plan.agent = AgentChoice::Mock { script };
    plan.max_iterations = None;
    plan.limits = Limits::NONE;
    plan.min_free_disk = None;
    plan.budgets = Budgets::default();
    plan.on_escalation = OnEscalation::Park;
    check_script(&plan)?;
    Ok(plan)
}

/// The order of the stories, and the questions.
fn summary(events: &[Recorded]) -> String {
    let mut text = String::from("Dry run: nothing was changed.\n");
    let closed = events.iter().filter_map(|recorded| match &recorded.event {
        Event::StoryClosed(closed) => Some(&closed.story),
        _ => None,
    });
    let order: Vec<String> = closed.map(ToString::to_string).collect();
    if !order.is_empty() {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "Order: {}", order.join(" → "));
    }
    for recorded in events {
        if let Event::QuestionRaised { story, question } = &recorded.event {
            let _ = writeln!(text, "Would ask about {story}: {}", visible_line(&question.summary));
        }
    }
    text
}

/// A dry run asks no questions.
struct NoHuman;

impl Human for NoHuman {
    fn ask(&self, _: &Ask) -> Asked {
        Asked::NoAnswer
    }
}
