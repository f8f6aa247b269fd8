//! Commands that come from files of the repository, and whether a human accepted them.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::core::backlog::Backlog;
use crate::core::gate::Gate;
use crate::core::text::visible;
use crate::engine::Ending;
use crate::git::WorkTree;
use crate::settings::{AgentChoice, AgentSettings, Flags, Plan, SettingsFile};
use crate::store::prd::PrdFile;
use crate::store::trust::TrustStore;
use crate::ui::{self, TerminalHuman, UiOptions};

use super::args::TrustArgs;
use super::asking::{Answered, ask};
use super::error::CliError;
use super::mark::refuse_agents;
use super::print;
use super::run::open_tree;
use super::session::{exit_code, journal_path, now};

/// Where the gates of every story come from.
pub const GATE: &str = "gate in ralph.toml";

/// Something that would be run, or decides what may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clause {
    /// Where it comes from.
    pub what: String,
    pub text: String,
}

/// What a human has to have seen before a run begins.
pub fn clauses(plan: &Plan, agent: &AgentSettings, backlog: &Backlog, root: &Path) -> Vec<Clause> {
    let mut clauses: Vec<Clause> =
        plan.verify.iter().map(|gate| clause(GATE, gate_text(gate))).collect();
    for story in &backlog.stories {
        let what = format!("gate of {}", story.id);
        clauses.extend(story.verify.iter().map(|gate| clause(&what, gate_text(gate))));
    }
    match &plan.agent {
        AgentChoice::Claude => {
            clauses.extend(agent_clauses(agent));
            clauses.extend(claude_files(root));
        }
        AgentChoice::Command { words } => {
            let own =
                agent.command.as_deref().filter(|text| shlex::split(text).as_ref() == Some(words));
            clauses.extend(own.map(|text| clause("agent in ralph.toml", text.to_owned())));
        }
        AgentChoice::Mock { .. } => {}
    }
    clauses
}

fn clause(what: &str, text: String) -> Clause {
    Clause { what: what.to_owned(), text }
}

/// The command alone where there is nothing else to it.
fn gate_text(gate: &Gate) -> String {
    if let crate::core::gate::Run::Shell(command) = &gate.run
        && *gate == Gate::shell(command)
    {
        return command.clone();
    }
    serde_json::to_string(gate).unwrap_or_default()
}

/// What decides which programs run and what the agent may do; a model's name does not.
fn agent_clauses(settings: &AgentSettings) -> Vec<Clause> {
    let list = |values: &[String]| (!values.is_empty()).then(|| values.join("\n"));
    let program = settings.program.as_ref().map(|path| path.to_string_lossy().into_owned());
    let parts = [
        ("program", program),
        ("permission_mode", settings.permission_mode.map(|mode| mode.name().to_owned())),
        ("allowed_tools", list(&settings.allowed_tools)),
        ("append_system_prompt", settings.append_system_prompt.clone()),
        ("setting_sources", settings.setting_sources.clone()),
        ("mcp_config", list(&settings.mcp_config)),
        ("args", list(&settings.args)),
    ];
    let named = |(name, text): (&str, Option<String>)| {
        Some(clause(&format!("`{name}` of the agent in ralph.toml"), text?))
    };
    parts.into_iter().filter_map(named).collect()
}

/// Keys of Claude Code's settings whose values are run.
const COMMANDS: [&str; 6] = [
    "apiKeyHelper",
    "awsAuthRefresh",
    "awsCredentialExport",
    "hooks",
    "otelHeadersHelper",
    "statusLine",
];

/// Claude Code takes the project's own commands without asking when nobody is there to ask.
fn claude_files(root: &Path) -> Vec<Clause> {
    let mut clauses = Vec::new();
    for name in [".claude/settings.json", ".claude/settings.local.json"] {
        let Ok(text) = fs::read_to_string(root.join(name)) else { continue };
        let Ok(Value::Object(settings)) = serde_json::from_str(&text) else { continue };
        for key in COMMANDS {
            if let Some(value) = settings.get(key) {
                clauses.push(clause(&format!("`{key}` in {name}"), format!("{value:#}")));
            }
        }
    }
    if let Ok(text) = fs::read_to_string(root.join(".mcp.json")) {
        clauses.push(clause(".mcp.json", text));
    }
    clauses
}

/// Goes on when every text was accepted, now or before. Some: the human left instead.
pub fn require(
    tree: &WorkTree,
    clauses: Vec<Clause>,
    by_flag: bool,
    human: &Arc<TerminalHuman>,
    patience: Duration,
) -> Result<Option<Ending>, CliError> {
    if clauses.is_empty() {
        return Ok(None);
    }
    let mut store = TrustStore::open(&journal_path(tree)?)?;
    let new = unseen(&store, clauses)?;
    if new.is_empty() {
        return Ok(None);
    }
    let texts = shown(&new);
    let question = texts.clone();
    let answer = if by_flag {
        Answered::Answer(true)
    } else {
        ask(human, move |human| human.ask_trust(&question, patience))?
    };
    match answer {
        Answered::Answer(true) => {}
        Answered::Answer(false) => return Err(CliError::NotTrusted),
        Answered::Nobody => return Err(CliError::Untrusted(texts)),
        Answered::Left(signal) => return Ok(Some(Ending::Interrupted { signal })),
    }
    store.trust(now(), new.iter().map(|one| (one.what.as_str(), one.text.as_str())))?;
    Ok(None)
}

/// `ralph trust`.
pub fn trust(args: &TrustArgs, look: &UiOptions) -> Result<u8, CliError> {
    refuse_agents("`ralph trust`")?;
    let loaded = PrdFile::new(&args.prd).load()?;
    let tree = open_tree(&args.prd)?;
    let file = SettingsFile::load(tree.root())?;
    let agent = file.agent.clone();
    let plan = Plan::new(Flags::default(), &ui::env_var, file, tree.root())?;
    let clauses = clauses(&plan, &agent, &loaded.backlog, tree.root());
    let (count, human) = (clauses.len(), Arc::new(TerminalHuman::new(look.color)));
    if let Some(left) = require(&tree, clauses, args.yes, &human, plan.answer_timeout)? {
        return Ok(exit_code(&left));
    }
    print(&match count {
        0 => "No file here names a command or what an agent may do.\n".to_owned(),
        1 => "Trusted: the one text that this repository has.\n".to_owned(),
        count => format!("Trusted: all {count} texts that this repository has.\n"),
    })?;
    Ok(0)
}

fn unseen(store: &TrustStore, clauses: Vec<Clause>) -> Result<Vec<Clause>, CliError> {
    let mut new = Vec::new();
    for clause in clauses {
        if !store.is_trusted(&clause.what, &clause.text)? {
            new.push(clause);
        }
    }
    Ok(new)
}

/// Every character as it is, none of them obeyed.
fn shown(clauses: &[Clause]) -> String {
    let one = |clause: &Clause| {
        let text = visible(clause.text.trim_end());
        let lines: Vec<String> = text.lines().map(|line| format!("    {line}")).collect();
        format!("{}:\n{}", visible(&clause.what), lines.join("\n"))
    };
    clauses.iter().map(one).collect::<Vec<_>>().join("\n")
}
