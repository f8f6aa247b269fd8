//! `ralph init`: files to start from, and gates.

use std::io;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use crate::agent::TrustClause;
use crate::files::atomic::{self, remove_leftovers};
use crate::files::{self, follow};
use crate::settings::FILE_NAME;
use crate::ui::{self, UiOptions};
use crate::workspace::WorkTree;

use super::approvals::tell_runs;
use super::error::{CommandError, Result};
use super::place::{refuse_agents, store_of};
use super::terminal::{ask, print};
use super::trust::{GATE, approvals};

const PRD: &str = include_str!("../../PRD.example.json");
const PRD_NAME: &str = "PRD.json";
const PROMPT: &str = include_str!("../../PROMPT.md.example");
/// Larger files are not read for tests, in bytes.
const LONGEST: u64 = 1024 * 1024;
const PATIENCE: Duration = Duration::from_mins(10);

/// `gates`: commands for ralph.toml; without any, ralph offers the project's tests.
pub fn init(folder: &Path, gates: &[String], look: &UiOptions) -> Result<()> {
    make_folder(folder)?;
    let mut report = String::new();
    for (name, text) in [(PRD_NAME, PRD), ("PROMPT.md", PROMPT)] {
        let path = folder.join(name);
        let written = write_new(&path, text).map_err(|error| {
            CommandError::Refused(format!("cannot write `{}`: {error}", ui::shown(&path)))
        })?;
        let what = if written { "created" } else { "kept existing" };
        report.push_str(&format!("{what} {}\n", path.display()));
    }
    report.push_str(&set_up(folder, gates, look)?);
    if look.quiet {
        return Ok(());
    }
    let prd = folder.join(PRD_NAME).display().to_string();
    // A name with a NUL cannot be made.
    let prd = shlex::try_quote(&prd).unwrap_or_default();
    let prd = if folder == Path::new(".") { String::new() } else { format!(" {prd}") };
    let next = format!("ralph check{prd} && ralph run{prd} --dry-run && ralph run{prd}");
    print(&format!("{report}Edit the files, then run: {next}\n"))
}

fn make_folder(folder: &Path) -> Result<()> {
    let shown = ui::shown(folder);
    follow::make_folders(folder).map_err(|error| {
        // An existing folder is no error of `create_dir_all`; something else in its place is.
        CommandError::Refused(match error.kind() {
            io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory => {
                format!("`{shown}` is not a folder")
            }
            _ => format!("cannot create the folder `{shown}`: {error}"),
        })
    })
}

/// False when something is there already. An empty file is not: a kill may have left it.
fn write_new(path: &Path, text: &str) -> io::Result<bool> {
    remove_leftovers(path)?;
    let found = follow::look_at_end(path);
    if found.is_ok_and(|found| !found.is_file() || found.len() > 0) {
        return Ok(false);
    }
    atomic::replace(path, text.as_bytes()).map(|_| true)
}

/// Writes ralph.toml with the gates that the human names or accepts. Returns a line about it.
fn set_up(folder: &Path, named: &[String], look: &UiOptions) -> Result<String> {
    let tree = WorkTree::look(folder).ok();
    let root = tree.as_ref().map_or(folder, WorkTree::root);
    let path = root.join(FILE_NAME);
    let shown = path.display();
    let refused = format!("`{shown}` already exists; add the gates to `verify` in it");
    // A link to a missing file exists too.
    let exists = follow::look_at_end(&path).is_ok_and(|found| !found.is_file() || found.len() > 0);
    // After a kill it may be there already.
    let is_ours = files::read_text(&path, LONGEST).is_ok_and(|text| text == settings(named));
    if exists && !named.is_empty() && !is_ours {
        return Err(CommandError::Refused(refused));
    }
    let gates = if exists && !is_ours { Vec::new() } else { wanted(named, root, look)? };
    if gates.is_empty() {
        return Ok(String::new());
    }
    refuse_agents("`ralph init` with gates", tree.as_ref())?;
    // First the approvals: the file without them would be an agent's.
    if let Some(tree) = &tree {
        let (store, clock) = (store_of(tree), &look.clock);
        let texts = gates.iter().map(|gate| (GATE, gate.as_str()));
        store.answers()?.trust(clock.now().wall, texts)?;
        let clauses = gates.iter().map(|gate| TrustClause::new(GATE, gate.as_str()));
        tell_runs(&store, true, approvals(clauses.collect()), clock)?;
    }
    let written = write_new(&path, &settings(&gates))?;
    if !written && !is_ours {
        return Err(CommandError::Refused(refused));
    }
    let what = if written { "created" } else { "kept existing" };
    Ok(format!("{what} {shown} with your gates\n"))
}

fn wanted(named: &[String], root: &Path, look: &UiOptions) -> Result<Vec<String>> {
    if !named.is_empty() {
        return Ok(named.to_vec());
    }
    let found = tests_of(root);
    if found.is_empty() || look.quiet {
        return Ok(Vec::new());
    }
    let (_display, human) = ui::terminal(look);
    let shown = found.join("\n");
    match ask(&human, move |human| human.confirm(&ui::GATES, &shown, PATIENCE)) {
        Ok(Some(true)) => Ok(found),
        Ok(_) | Err(CommandError::Interrupted { .. }) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

fn settings(gates: &[String]) -> String {
    // A string of JSON is one of TOML.
    let line = |gate: &String| format!("    {},\n", Value::from(gate.as_str()));
    let lines: String = gates.iter().map(line).collect();
    format!("# Commands that must pass before a story is done.\nverify = [\n{lines}]\n")
}

/// The test suites that the project seems to have.
fn tests_of(root: &Path) -> Vec<String> {
    let has = |name: &str| files::find(&root.join(name)).is_ok();
    let read = |name: &str| files::read_text(&root.join(name), LONGEST).unwrap_or_default();
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
    use std::fs;

    use super::*;

    #[test]
    fn tests_are_found_by_the_files_of_the_project() {
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
    fn gates_are_written_as_they_were_accepted() {
        let gates = ["a \"b\" \\ 'c'".to_owned(), "plain".to_owned()];
        let read: toml::Table = toml::from_str(&settings(&gates)).unwrap();
        let verify: Vec<&str> =
            read["verify"].as_array().unwrap().iter().map(|gate| gate.as_str().unwrap()).collect();
        assert_eq!(verify, gates);
    }
}
