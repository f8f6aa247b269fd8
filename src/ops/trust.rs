//! Trust: commands and agent settings in the repository's files, and their approval.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::agent::TrustClause;
use crate::model::{Approval, Backlog, Gate, GateCommand};
use crate::ports::Clock;
use crate::runner::RunnerError;
use crate::runner::trust::{shown, unapproved};
use crate::settings::{Flags, RunSettings};
use crate::store::Store;
use crate::store::prd::PrdFile;
use crate::ui::{self, TerminalHuman, UiOptions};

use super::approvals::{note_in_journal, restore, tell_runs};
use super::error::{CommandError, Result};
use super::in_force::change_clause;
use super::place::{open_tree, place_of, refuse_agents, state_of, store_of, take_lease};
use super::session::backend;
use super::terminal::{ask, print};

/// The source of the gates for every story.
pub const GATE: &str = "gate in ralph.toml";

/// What a human must approve before a run begins.
pub fn clauses(plan: &RunSettings, backlog: &Backlog, root: &Path) -> Result<Vec<TrustClause>> {
    let all = plan.verify.iter().map(|gate| TrustClause::new(GATE, gate_text(gate)));
    let of_stories = backlog.stories.iter().flat_map(|story| {
        let what = format!("gate of {}", story.id);
        story.verify.iter().map(move |gate| TrustClause::new(&what, gate_text(gate)))
    });
    let of_agent = backend(plan)?.trust_clauses(&plan.agent_table(), root)?;
    Ok(all.chain(of_stories).chain(of_agent).collect())
}

/// The command alone, unless the gate has more.
fn gate_text(gate: &Gate) -> String {
    match &gate.run {
        GateCommand::Shell(command) if *gate == Gate::shell(command) => command.clone(),
        _ => serde_json::to_string(gate).unwrap_or_default(),
    }
}

/// Fails unless every text is approved, now or earlier. Returns those that are now. `patience`: how long to wait for an answer;
/// None approves without asking.
pub fn require(
    store: &Store,
    clauses: Vec<TrustClause>,
    human: &Arc<TerminalHuman>,
    patience: Option<Duration>,
    clock: &Clock,
) -> Result<Vec<TrustClause>> {
    if clauses.is_empty() {
        return Ok(clauses);
    }
    let answers = store.answers()?;
    let new = unapproved(&answers.all()?, clauses);
    if new.is_empty() {
        return Ok(new);
    }
    if let Some(patience) = patience {
        let texts = shown(&new);
        let question = texts.clone();
        match ask(human, move |human| human.confirm(&ui::TRUST, &question, patience))? {
            Some(true) => {}
            Some(false) => return Err(CommandError::NotTrusted),
            None => return Err(RunnerError::Untrusted(texts).into()),
        }
    }
    let texts = new.iter().map(|one| (one.what.as_str(), one.text.as_str()));
    answers.trust(clock.now().wall, texts)?;
    Ok(new)
}

pub fn approvals(clauses: Vec<TrustClause>) -> Vec<Approval> {
    let approval = |TrustClause { what, text }| Approval::Trusted { what, text };
    clauses.into_iter().map(approval).collect()
}

/// `ralph trust`.
pub fn trust(prd: &Path, yes: bool, look: &UiOptions) -> Result<()> {
    let loaded = PrdFile::new(prd).load()?;
    let tree = open_tree(prd)?;
    refuse_agents("`ralph trust`", Some(&tree))?;
    let plan = RunSettings::load(tree.root(), &Flags::default(), &ui::env_var)?;
    let store = store_of(&tree);
    let place = place_of(&tree, prd)?;
    let state = state_of(&store, &place)?;
    let lease = take_lease(&store, &look.clock).ok();
    if lease.is_some() {
        restore(&store, &state, &look.clock)?;
    }
    let mut clauses = clauses(&plan, &loaded.backlog, tree.root())?;
    clauses.extend(change_clause(&state, tree.root())?);
    let (count, (_display, human)) = (clauses.len(), ui::terminal(look));
    let patience = (!yes).then_some(plan.answer_timeout);
    let new = require(&store, clauses, &human, patience, &look.clock)?;
    if lease.is_some() {
        note_in_journal(&store, &place.key, &state, &look.clock)?;
    }
    tell_runs(&store, lease.is_none(), approvals(new), &look.clock)?;
    if count == 0 {
        return print(
            "nothing to approve: this repository configures no commands or agent permissions\n",
        );
    }
    print(&format!("{} approved\n", ui::counted(count, "item")))
}
