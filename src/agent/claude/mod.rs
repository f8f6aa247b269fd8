//! Claude Code: its command line, and what of it a human has to accept.

mod decoder;
mod end;
mod permissions;
mod shallow;
mod wire;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::model::{Gate, GateCommand, PermissionMode, PermissionModes, Usd};

use super::backend::{
    AgentError, AgentSettings, Backend, Capabilities, Launch, LaunchRequest, TrustClause,
    find_program,
};
use super::event::Decoder;

pub use decoder::ClaudeDecoder;
use permissions::{ACCEPT_EDITS, DONT_ASK, check, files, from_table};
pub use permissions::{PERMISSION_MODES, args_choose_mode};

/// Marks of a surrounding session that would make the agent think it is nested in it.
const NESTING_MARKS: [&str; 2] = ["CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT"];

const NOT_FOUND: &str = "Install Claude Code (`npm install -g @anthropic-ai/claude-code`), name \
    another agent with `--agent-command`, or try the loop with `--agent mock`";

/// What every story needs and no story can do harm with.
///
/// `Edit` is for all tools that write files, and ends at the work tree. Claude Code keeps these
/// commands to the work tree too. By itself it runs the forms of `git diff`, `git log`, `find` and
/// the like that only read; they are not listed because a prefix would allow more than that:
/// `git diff --output=FILE` writes anywhere.
const SAFE_TOOLS: [&str; 9] = [
    "Edit(./**)",
    "Bash(git status:*)",
    "Bash(ls:*)",
    "Bash(cat:*)",
    "Bash(head:*)",
    "Bash(tail:*)",
    "Bash(wc:*)",
    "Bash(grep:*)",
    "Bash(mkdir:*)",
];

/// Messages come in while it works, events go out as they happen.
const ALWAYS: [&str; 6] =
    ["-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose"];

pub struct Claude {
    settings: AgentSettings,
}

impl Claude {
    pub fn new(settings: AgentSettings) -> Self {
        Self { settings }
    }
}

impl Backend for Claude {
    fn name(&self) -> String {
        "claude".to_owned()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { messages: true, own_budget: true, invented_costs: false }
    }

    fn command(&self, request: &LaunchRequest<'_>) -> Result<Launch, AgentError> {
        let name = self.settings.program.clone().unwrap_or_else(|| PathBuf::from("claude"));
        let program = find_program(&name, Some(request.work_tree), NOT_FOUND)?;
        let args = args(&self.settings, request.gates, request.allowance);
        let mut launch = Launch::new(program, args.into_iter().map(OsString::from).collect());
        launch.env.extend(NESTING_MARKS.map(|mark| (mark.into(), None)));
        launch.env.push(("DISABLE_AUTOUPDATER".into(), Some("1".into())));
        if !self.settings.background_tasks {
            launch.env.push(("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS".into(), Some("1".into())));
        }
        Ok(launch)
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::<ClaudeDecoder>::default()
    }

    fn message(&self, text: &str) -> String {
        message(text)
    }

    fn permission_modes(&self) -> Option<PermissionModes> {
        Some(PERMISSION_MODES)
    }

    fn permission_mode(&self) -> Option<PermissionMode> {
        self.settings.permission_mode
    }

    fn check_permissions(&self, mode: PermissionMode) -> Result<Option<String>, AgentError> {
        check(mode)
    }

    fn trust_clauses(&self, table: &AgentSettings, root: &Path) -> Vec<TrustClause> {
        from_table(table).chain(files(root)).collect()
    }
}

/// One line of `--input-format stream-json`.
pub fn message(text: &str) -> String {
    let message = json!({ "type": "user", "message": { "role": "user", "content": text } });
    format!("{message}\n")
}

/// The prompt is not in it: it comes on standard input. `allowance` is what it may cost at most.
fn args(settings: &AgentSettings, gates: &[&Gate], allowance: Option<Usd>) -> Vec<String> {
    let mut args: Vec<String> = ALWAYS.map(str::to_owned).to_vec();
    option(&mut args, "--permission-mode", settings.permission_mode.map(|mode| mode.name));
    option(&mut args, "--model", settings.model.as_deref());
    option(&mut args, "--fallback-model", settings.fallback_model.as_deref());
    option(&mut args, "--max-turns", settings.max_turns.map(|n| n.to_string()).as_deref());
    let most = settings.max_budget_usd.map(Usd::of).into_iter().chain(allowance).min();
    option(&mut args, "--max-budget-usd", most.map(|most| most.as_f64().to_string()).as_deref());
    option(&mut args, "--append-system-prompt", settings.append_system_prompt.as_deref());
    option(&mut args, "--setting-sources", settings.setting_sources.as_deref());
    list(&mut args, "--allowedTools", &allowed_tools(settings, gates));
    list(&mut args, "--disallowedTools", &settings.disallowed_tools);
    list(&mut args, "--mcp-config", &settings.mcp_config);
    if settings.strict_mcp_config {
        args.push("--strict-mcp-config".to_owned());
    }
    args.extend(settings.args.iter().cloned());
    args
}

/// Everything that runs unasked, whoever allowed it.
fn allowed_tools(settings: &AgentSettings, gates: &[&Gate]) -> Vec<String> {
    let own = settings.allowed_tools.iter().cloned();
    match settings.permission_mode {
        Some(ACCEPT_EDITS | DONT_ASK) => {
            let safe = SAFE_TOOLS.iter().map(|&tool| tool.to_owned());
            safe.chain(gates.iter().filter_map(|gate| rule(gate))).chain(own).collect()
        }
        // Judged, all allowed, or as the free arguments say.
        _ => own.collect(),
    }
}

/// That very command. With more words after it, it would be another one: `make` may test, and
/// `make deploy` not. None where a character means something else in a rule than in a command.
fn rule(gate: &Gate) -> Option<String> {
    let command = match &gate.run {
        GateCommand::Shell(command) => command.trim().to_owned(),
        GateCommand::Program(words) => shlex::try_join(words.iter().map(String::as_str)).ok()?,
    };
    (!command.contains(['*', '\\'])).then(|| format!("Bash({command})"))
}

fn option(args: &mut Vec<String>, flag: &str, value: Option<&str>) {
    if let Some(value) = value {
        // One word, so that a value that begins with `-` stays a value.
        args.push(format!("{flag}={value}"));
    }
}

fn list(args: &mut Vec<String>, flag: &str, values: &[String]) {
    if !values.is_empty() {
        args.push(flag.to_owned());
        args.extend(values.iter().cloned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What comes after the part that is always the same.
    fn rest(settings: &AgentSettings) -> Vec<String> {
        let mut args = args(settings, &[&Gate::shell("cargo test")], None);
        let rest = args.split_off(ALWAYS.len());
        assert_eq!(args, ALWAYS);
        rest
    }

    #[test]
    fn settings_become_arguments() {
        let settings = AgentSettings {
            model: Some("opus".into()),
            max_turns: Some(40),
            allowed_tools: vec!["Bash(cargo test:*)".into(), "Edit".into()],
            strict_mcp_config: true,
            args: vec!["--debug".into()],
            ..AgentSettings::default()
        };
        assert_eq!(
            rest(&settings),
            [
                "--model=opus",
                "--max-turns=40",
                "--allowedTools",
                "Bash(cargo test:*)",
                "Edit",
                "--strict-mcp-config",
                "--debug"
            ]
        );
    }

    #[test]
    fn it_may_cost_the_smaller_of_what_is_set_and_what_is_left() {
        let budget = |max_budget_usd: Option<f64>, rest: Option<Usd>| {
            let settings = AgentSettings { max_budget_usd, ..AgentSettings::default() };
            args(&settings, &[], rest).into_iter().find(|arg| arg.contains("budget"))
        };
        let said = |dollars: &str| Some(format!("--max-budget-usd={dollars}"));
        assert_eq!(budget(None, None), None);
        assert_eq!(budget(Some(2.5), None), said("2.5"));
        assert_eq!(budget(None, Some(Usd::from_micros(1))), said("0.000001"));
        assert_eq!(budget(None, Some(Usd::dollars(25))), said("25"));
        assert_eq!(budget(Some(2.0), Some(Usd::dollars(3))), said("2"));
        assert_eq!(budget(Some(4.0), Some(Usd::dollars(3))), said("3"));
    }

    #[test]
    fn safe_tools_and_gates_come_with_the_modes_that_need_a_list() {
        for &mode in PERMISSION_MODES.modes {
            let settings = AgentSettings {
                permission_mode: Some(mode),
                allowed_tools: vec!["Bash(npm run lint:*)".into()],
                ..AgentSettings::default()
            };
            let mode_option = format!("--permission-mode={}", mode.name);
            let mut expected = vec![mode_option.as_str(), "--allowedTools"];
            if matches!(mode, ACCEPT_EDITS | DONT_ASK) {
                expected.extend(SAFE_TOOLS);
                expected.push("Bash(cargo test)");
            }
            expected.push("Bash(npm run lint:*)");
            assert_eq!(rest(&settings), expected);
        }
    }

    #[test]
    fn a_gate_is_allowed_as_it_is() {
        let program = |words: &[&str]| Gate {
            run: GateCommand::Program(words.iter().map(|&word| word.to_owned()).collect()),
            ..Gate::shell("")
        };
        for (gate, expected) in [
            (Gate::shell(" cargo test && make "), Some("Bash(cargo test && make)")),
            (program(&["npm", "run", "lint"]), Some("Bash(npm run lint)")),
            (program(&["sh", "-c", "exit 0"]), Some("Bash(sh -c 'exit 0')")),
            (Gate::shell("prettier --check src/*.js"), None),
            (Gate::shell(r"grep \d f"), None),
        ] {
            assert_eq!(rule(&gate).as_deref(), expected);
        }
    }
}
