//! Commands that come from files of the repository, and whether a human accepted them.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::agent::{AgentSettings, TrustClause};
use crate::model::{Backlog, Gate, visible};
use crate::runner::Ending;
use crate::settings::{Flags, RunSettings};
use crate::store::prd::PrdFile;
use crate::store::{Answers, Store};
use crate::ui;
use crate::ui::{TerminalHuman, UiOptions};

use super::asking::{Answered, ask};
use super::error::CommandError;
use super::place::{now, open_tree, refuse_agents, store_of};
use super::print;
use super::session::{backend, exit_code};

/// Where the gates of every story come from.
pub const GATE: &str = "gate in ralph.toml";

/// What a human has to have seen before a run begins. `table`: as ralph.toml has it.
pub fn clauses(
    plan: &RunSettings,
    table: &AgentSettings,
    backlog: &Backlog,
    root: &Path,
) -> Result<Vec<TrustClause>, CommandError> {
    let all = plan.verify.iter().map(|gate| TrustClause::new(GATE, gate_text(gate)));
    let of_stories = backlog.stories.iter().flat_map(|story| {
        let what = format!("gate of {}", story.id);
        story.verify.iter().map(move |gate| TrustClause::new(&what, gate_text(gate)))
    });
    Ok(all.chain(of_stories).chain(backend(plan)?.trust_clauses(table, root)).collect())
}

/// The command alone where there is nothing else to it.
fn gate_text(gate: &Gate) -> String {
    if let crate::model::GateCommand::Shell(command) = &gate.run
        && *gate == Gate::shell(command)
    {
        return command.clone();
    }
    serde_json::to_string(gate).unwrap_or_default()
}

/// Goes on when every text was accepted, now or before. Some: the human left instead.
pub fn require(
    store: &Store,
    clauses: Vec<TrustClause>,
    by_flag: bool,
    human: &Arc<TerminalHuman>,
    patience: Duration,
) -> Result<Option<Ending>, CommandError> {
    if clauses.is_empty() {
        return Ok(None);
    }
    let answers = store.answers()?;
    let new = unseen(&answers, clauses)?;
    if new.is_empty() {
        return Ok(None);
    }
    let texts = shown(&new);
    let question = texts.clone();
    let answer = if by_flag {
        Answered::Answer(true)
    } else {
        ask(human, move |human| human.confirm(&ui::TRUST, &question, patience))?
    };
    match answer {
        Answered::Answer(true) => {}
        Answered::Answer(false) => return Err(CommandError::NotTrusted),
        Answered::Nobody => return Err(CommandError::Untrusted(texts)),
        Answered::Left(signal) => return Ok(Some(Ending::Interrupted { signal })),
    }
    answers.trust(now(), new.iter().map(|one| (one.what.as_str(), one.text.as_str())))?;
    Ok(None)
}

/// `ralph trust`.
/// `yes`: nobody is asked.
pub fn trust(prd: &Path, yes: bool, look: &UiOptions) -> Result<u8, CommandError> {
    refuse_agents("`ralph trust`")?;
    let loaded = PrdFile::new(prd).load()?;
    let tree = open_tree(prd)?;
    let plan = RunSettings::load(tree.root(), &Flags::default(), &ui::env_var)?;
    let clauses = clauses(&plan, &plan.agent_table(), &loaded.backlog, tree.root())?;
    let (count, (_display, human)) = (clauses.len(), ui::terminal(look));
    if let Some(left) = require(&store_of(&tree), clauses, yes, &human, plan.answer_timeout)? {
        return Ok(exit_code(&left));
    }
    print(&match count {
        0 => {
            "nothing to approve: no file here configures commands or agent permissions\n".to_owned()
        }
        1 => "approved: 1 text\n".to_owned(),
        count => format!("approved: {count} texts\n"),
    })?;
    Ok(0)
}

fn unseen(answers: &Answers, clauses: Vec<TrustClause>) -> Result<Vec<TrustClause>, CommandError> {
    let mut new = Vec::new();
    for clause in clauses {
        if !answers.is_trusted(&clause.what, &clause.text)? {
            new.push(clause);
        }
    }
    Ok(new)
}

/// Every character as it is, none of them obeyed.
fn shown(clauses: &[TrustClause]) -> String {
    let one = |clause: &TrustClause| {
        let text = visible(clause.text.trim_end());
        let lines: Vec<String> = text.lines().map(|line| format!("    {line}")).collect();
        format!("{}:\n{}", visible(&clause.what), lines.join("\n"))
    };
    clauses.iter().map(one).collect::<Vec<_>>().join("\n")
}
