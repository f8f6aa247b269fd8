//! `ralph run --dry-run`: the whole loop, in a scratch repository.

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::core::backlog::Story;
use crate::core::budget::Budgets;
use crate::core::event::{Event, Recorded};
use crate::core::limits::Limits;
use crate::core::policy::OnEscalation;
use crate::core::signal::Escalation;
use crate::core::text::visible_line;
use crate::engine::BacklogFile;
use crate::engine::ports::{Asked, Human};
use crate::git::init_scratch;
use crate::settings::{AgentChoice, Plan, SettingsFile};
use crate::store::journal::{Journal, SqliteJournal};
use crate::store::prd::PrdFile;
use crate::ui::{self, UiOptions};

use super::args::{AgentArg, RunArgs};
use super::error::CliError;
use super::print;
use super::run::{check_script, check_story, flags, warn};
use super::session::{Place, Session, instructions, journal_path, scope, secrets, take_lock};

const PRD: &str = "PRD.json";

pub fn run(args: &RunArgs, look: &UiOptions) -> Result<u8, CliError> {
    let original = PrdFile::new(&args.prd).load()?;
    let instructions = instructions(args.prompt.as_deref(), &args.prd, None)?;
    let plan = plan(args)?;
    check_story(&original.backlog, plan.story.as_ref())?;
    // Removed again when it goes out of scope, whatever happens in between.
    let folder = tempfile::Builder::new().prefix("ralph-dry-run-").tempdir()?;
    let prd = folder.path().join(PRD);
    fs::write(&prd, &original.text)?;
    let tree = init_scratch(folder.path())?;
    let place =
        || Place { name: PRD.to_owned(), key: PRD.to_owned(), in_tree: Some(PathBuf::from(PRD)) };
    let lock = take_lock(&tree)?;
    let journal = journal_path(&tree)?;
    let scope = scope(&tree, &place());
    let backlog = BacklogFile::open(PrdFile::new(prd))?;
    let mut reporter = ui::reporter(look);
    warn(&backlog, reporter.as_mut());
    let session = Session {
        tree,
        backlog,
        place: place(),
        plan: &plan,
        instructions,
        instructions_file: None,
        reporter,
        human: Arc::new(Nobody),
        human_present: false,
        listening: look.verbose,
        branch: None,
        dry: true,
        secrets: secrets(),
        allow_dirty: false,
        lock,
    };
    let code = session.run()?;
    let (events, _) = SqliteJournal::open(&journal, scope)?.read(0)?;
    // What the run amounts to counts, also when nobody reads on.
    match print(&summary(&events)) {
        Ok(()) | Err(CliError::Pipe) => Ok(code),
        Err(error) => Err(error),
    }
}

/// The mock agent, no limit, and no command or setting of the user's.
fn plan(args: &RunArgs) -> Result<Plan, CliError> {
    if args.agent == Some(AgentArg::Claude) || args.agent_command.is_some() {
        let why = "a dry run uses the mock agent only; leave out `--agent` and `--agent-command`";
        return Err(CliError::Refused(why.to_owned()));
    }
    let root = std::env::current_dir()?;
    let mut flags = flags(args.clone());
    flags.agent = None;
    let script = flags.mock_script.take();
    let mut plan = Plan::new(flags, &ui::env_var, SettingsFile::default(), &root)?;
    plan.agent = AgentChoice::Mock { script };
    plan.max_iterations = None;
    plan.limits = Limits::NONE;
    plan.min_free_disk = None;
    plan.budgets = Budgets::default();
    plan.on_escalation = OnEscalation::Park;
    check_script(&plan)?;
    Ok(plan)
}

/// The order it would work in, and what would be asked.
fn summary(events: &[Recorded]) -> String {
    let mut text = String::from("Dry run: nothing of yours was changed.\n");
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

/// A dry run asks nobody.
struct Nobody;

impl Human for Nobody {
    fn ask(&self, _: &Story, _: &Escalation, _: Duration) -> Asked {
        Asked::NobodyThere
    }
}
