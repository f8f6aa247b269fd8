//! Gates to begin with.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::git::WorkTree;
use crate::settings::FILE_NAME;
use crate::store::trust::TrustStore;
use crate::ui::{TerminalHuman, UiOptions};

use super::args::InitArgs;
use super::asking::{Answered, ask};
use super::error::CliError;
use super::init::write_new;
use super::mark::refuse_agents;
use super::session::{journal_path, now};
use super::trust::GATE;

const PATIENCE: Duration = Duration::from_mins(10);

/// Writes ralph.toml with the gates that the human names or accepts; what there is to say of it.
pub fn set_up(args: &InitArgs, look: &UiOptions) -> Result<String, CliError> {
    let tree = WorkTree::look(&args.folder).ok();
    let root = tree.as_ref().map_or(args.folder.as_path(), WorkTree::root);
    let path = root.join(FILE_NAME);
    if path.exists() && !args.gate.is_empty() {
        let text = format!("`{}` is there already; add the gates to its `verify`", path.display());
        return Err(CliError::Refused(text));
    }
    if path.exists() {
        return Ok(String::new());
    }
    let gates = wanted(args, root, look)?;
    if gates.is_empty() {
        return Ok(String::new());
    }
    refuse_agents("`ralph init` with gates")?;
    let written = write_new(&path, &settings(&gates))?;
    if let Some(tree) = tree.filter(|_| written) {
        let texts = gates.iter().map(|gate| (GATE, gate.as_str()));
        TrustStore::open(&journal_path(&tree)?)?.trust(now(), texts)?;
    }
    Ok(format!("wrote {}, with the gates that you accepted\n", path.display()))
}

fn wanted(args: &InitArgs, root: &Path, look: &UiOptions) -> Result<Vec<String>, CliError> {
    if !args.gate.is_empty() {
        return Ok(args.gate.clone());
    }
    let found = tests_of(root);
    if found.is_empty() || look.quiet {
        return Ok(Vec::new());
    }
    let human = Arc::new(TerminalHuman::new(look.color));
    let shown = found.join("\n");
    match ask(&human, move |human| human.ask_gates(&shown, PATIENCE))? {
        Answered::Answer(true) => Ok(found),
        _ => Ok(Vec::new()),
    }
}

fn settings(gates: &[String]) -> String {
    // A string of JSON is one of TOML.
    let line = |gate: &String| format!("    {},\n", Value::from(gate.as_str()));
    let lines: String = gates.iter().map(line).collect();
    format!(
        "# A story is done when its agent says so and all of these pass.\nverify = [\n{lines}]\n"
    )
}

/// The test suites that the project seems to have.
fn tests_of(root: &Path) -> Vec<String> {
    let has = |name: &str| root.join(name).is_file();
    let read = |name: &str| fs::read_to_string(PathBuf::from(root).join(name)).unwrap_or_default();
    let package: Value = serde_json::from_str(&read("package.json")).unwrap_or_default();
    let makes = read("Makefile").lines().any(|line| line.starts_with("test:"));
    [
        (has("Cargo.toml"), "cargo test"),
        (package["scripts"]["test"].is_string(), "npm test"),
        (has("go.mod"), "go test ./..."),
        (has("pytest.ini") || read("pyproject.toml").contains("pytest"), "pytest"),
        (makes, "make test"),
    ]
    .into_iter()
    .filter(|(found, _)| *found)
    .map(|(_, command)| command.to_owned())
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_project_shows_its_tests() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(tests_of(folder.path()), [""; 0]);
        for (name, text) in [
            ("Cargo.toml", ""),
            ("package.json", r#"{"scripts": {"test": "jest", "build": "tsc"}}"#),
            ("go.mod", ""),
            ("pyproject.toml", "[tool.pytest.ini_options]"),
            ("Makefile", "all:\n\ttrue\ntest: all\n\ttrue\n"),
        ] {
            fs::write(folder.path().join(name), text).unwrap();
        }
        let all = ["cargo test", "npm test", "go test ./...", "pytest", "make test"];
        assert_eq!(tests_of(folder.path()), all);
        fs::write(folder.path().join("package.json"), r#"{"scripts": {"build": "tsc"}}"#).unwrap();
        assert!(!tests_of(folder.path()).contains(&"npm test".to_owned()));
    }

    #[test]
    fn what_is_written_is_what_was_accepted() {
        let gates = ["a \"b\" \\ 'c'".to_owned(), "plain".to_owned()];
        let read: toml::Table = toml::from_str(&settings(&gates)).unwrap();
        let verify: Vec<&str> =
            read["verify"].as_array().unwrap().iter().map(|gate| gate.as_str().unwrap()).collect();
        assert_eq!(verify, gates);
    }
}
