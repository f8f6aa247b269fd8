//! Files that say what a gate's command runs, such as a Makefile: they count as its script.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::decide::scripts::{Command, INTERPRETERS, below_root, commands};
use crate::model::Gate;

/// In each group the first file that exists decides, so a new file counts if another one was there.
const GROUPS: [(&[&str], &[&str]); 7] = [
    (&["make", "gmake"], &["GNUmakefile", "makefile", "Makefile"]),
    (&["npm", "pnpm", "yarn", "bun"], &["package.json"]),
    (&["just"], &["justfile", "Justfile", ".justfile"]),
    (&["cargo"], &[".cargo/config.toml", ".cargo/config"]),
    (&["tox"], &["tox.ini", "setup.cfg", "pyproject.toml"]),
    (TESTERS, &["pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg"]),
    (TESTERS, &["conftest.py", "tests/conftest.py", "test/conftest.py"]),
];
/// Programs that run Python's tests.
const TESTERS: &[&str] = &["pytest", "py.test", "tox"];
/// Options with a folder, and those with a file.
const FOLDERS: [&str; 4] = ["-C", "--directory", "--prefix", "--cwd"];
const FILES: [&str; 6] = ["-f", "--file", "--makefile", "--justfile", "-c", "--config-file"];

/// Relative to the root; whether they exist is not known.
pub fn definitions(gate: &Gate) -> Vec<Vec<PathBuf>> {
    let mut found = Vec::new();
    for Command { dir, words } in commands(gate) {
        let (Some(dir), Some(program)) = (dir, program(&words)) else { continue };
        let below = |path: PathBuf| below_root(&dir.join(path));
        let folder = values(&words, &FOLDERS).next().unwrap_or_default();
        let folder = Path::new(folder);
        let is_its = |(programs, _): &&(&[&str], &[&str])| programs.contains(&program);
        for (_, names) in GROUPS.iter().filter(is_its) {
            let paths = names.iter().map(|name| folder.join(name));
            found.push(paths.filter_map(below).collect());
            let named = values(&words, &FILES).map(|name| folder.join(name));
            found.extend(named.filter_map(below).map(|path| vec![path]));
        }
    }
    found.retain(|group: &Vec<PathBuf>| !group.is_empty());
    found
}

/// Its name, also behind `python -m`.
fn program(words: &[String]) -> Option<&str> {
    let (first, rest) = words.split_first()?;
    let module = rest.iter().position(|word| word == "-m").and_then(|at| rest.get(at + 1));
    let is_interpreter = INTERPRETERS.contains(&first.as_str());
    let program = module.filter(|_| is_interpreter).unwrap_or(first);
    Path::new(program).file_name()?.to_str()
}

/// `-C web`, `-Cweb` and `--directory=web`.
fn values<'a>(words: &'a [String], options: &'a [&str]) -> impl Iterator<Item = &'a str> {
    words.iter().enumerate().filter_map(|(at, word)| {
        if options.contains(&word.as_str()) {
            return words.get(at + 1).map(String::as_str);
        }
        options.iter().find_map(|option| {
            let value = word.strip_prefix(option)?;
            let is_long = option.starts_with("--");
            if is_long { value.strip_prefix('=') } else { Some(value) }
        })
    })
}

/// What of a file's text says what a command runs. A text that cannot be read is one part.
pub fn relevant(path: &Path, text: &str) -> String {
    let part = match path.file_name().and_then(|name| name.to_str()) {
        Some("package.json") => scripts_of(text),
        Some("pyproject.toml") => tables_of(text),
        Some("setup.cfg") => Some(sections_of(text)),
        _ => None,
    };
    part.unwrap_or_else(|| text.to_owned())
}

fn scripts_of(text: &str) -> Option<String> {
    let value: Value = serde_json::from_str(text).ok()?;
    Some(value.get("scripts").map(Value::to_string).unwrap_or_default())
}

fn tables_of(text: &str) -> Option<String> {
    let value: toml::Table = text.parse().ok()?;
    let tools = value.get("tool").and_then(toml::Value::as_table);
    let of = |name| tools.and_then(|tools| tools.get(name)).map(|table| format!("{table:?}"));
    Some(["pytest", "tox"].into_iter().filter_map(of).collect::<Vec<_>>().join("\n"))
}

fn sections_of(text: &str) -> String {
    let mut is_inside = false;
    let lines = text.lines().filter(|line| {
        if line.starts_with('[') {
            let name = line.trim_matches(|c: char| "[] \t".contains(c));
            is_inside = ["tool:pytest", "pytest"].contains(&name) || name.starts_with("tox");
        }
        is_inside
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gate_is_defined_by_the_files_of_its_tool() {
        for (command, dir, expected) in [
            ("make test", None, &["GNUmakefile makefile Makefile"][..]),
            ("cd web && npm test", None, &["web/package.json"]),
            ("npm --prefix ./web run lint", None, &["web/package.json"]),
            (
                "CI=1 /usr/bin/make -Csub test",
                Some("a"),
                &["a/sub/GNUmakefile a/sub/makefile a/sub/Makefile"],
            ),
            ("make -f tests.mk", None, &["GNUmakefile makefile Makefile", "tests.mk"]),
            ("just --justfile=ci/just check", None, &["justfile Justfile .justfile", "ci/just"]),
            ("cargo xtask ci", None, &[".cargo/config.toml .cargo/config"]),
            ("npx tsc && bash -c 'just x'", None, &["justfile Justfile .justfile"]),
            (
                "uv run python -m pytest -q",
                None,
                &[
                    "pytest.ini .pytest.ini pyproject.toml tox.ini setup.cfg",
                    "conftest.py tests/conftest.py test/conftest.py",
                ],
            ),
            (
                "tox",
                None,
                &[
                    "tox.ini setup.cfg pyproject.toml",
                    "pytest.ini .pytest.ini pyproject.toml tox.ini setup.cfg",
                    "conftest.py tests/conftest.py test/conftest.py",
                ],
            ),
            ("cd $X && make", None, &[]),
            ("make -C ../other", None, &[]),
            ("echo make", None, &[]),
        ] {
            let gate = Gate { dir: dir.map(str::to_owned), ..Gate::shell(command) };
            let names = |group: &Vec<PathBuf>| {
                let paths = group.iter().map(|path| path.display().to_string());
                paths.collect::<Vec<_>>().join(" ")
            };
            let found: Vec<_> = definitions(&gate).iter().map(names).collect();
            assert_eq!(found, expected, "{command}");
        }
    }

    #[test]
    fn only_what_says_what_runs_is_compared() {
        for (path, before, after, is_same) in [
            (
                "package.json",
                r#"{"scripts":{"test":"jest"}}"#,
                r#"{ "scripts": { "test": "jest" }, "dependencies": { "a": "1" } }"#,
                true,
            ),
            (
                "web/package.json",
                r#"{"scripts":{"test":"jest"}}"#,
                r#"{"scripts":{"test":"true"}}"#,
                false,
            ),
            ("package.json", "{}", "{", false),
            ("pyproject.toml", "[project]\nname = \"a\"", "[project]\nname = \"b\"", true),
            (
                "pyproject.toml",
                "[project]",
                "[project]\n[tool.pytest.ini_options]\naddopts = \"--co\"",
                false,
            ),
            ("pyproject.toml", "", "[", false),
            ("setup.cfg", "[metadata]\nname = a", "[metadata]\nname = b", true),
            ("setup.cfg", "[metadata]", "[tool:pytest]\naddopts = --co\n[metadata]", false),
            ("Makefile", "test:\n\tpytest", "test:\n\ttrue", false),
        ] {
            let of = |text| relevant(Path::new(path), text);
            assert_eq!(of(before) == of(after), is_same, "{path}: {before} {after}");
        }
    }
}
