//! Files that say what a gate's command runs, such as a Makefile: they count as its script.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::decide::shell::{Command, TextPlace, name_of, plain};

/// Where a command looks for a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Reach {
    Here,
    /// And in the folders above, up to the root.
    Above,
    /// And in all folders below.
    Around,
}

/// Without what a command can do nothing, so that what comes with it makes nothing look done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Needs {
    /// One of these files.
    Itself,
    File(&'static str),
    /// Some test in Python.
    PythonTest,
    /// The command runs with what is installed.
    Nothing,
}

struct Group {
    programs: &'static [&'static str],
    names: &'static [&'static str],
    reach: Reach,
    needs: Needs,
}

const GROUPS: [Group; 11] = [
    Group {
        programs: &["make", "gmake"],
        names: &["GNUmakefile", "makefile", "Makefile"],
        reach: Reach::Here,
        needs: Needs::Itself,
    },
    Group {
        programs: &["npm", "pnpm", "yarn", "bun"],
        names: &["package.json"],
        reach: Reach::Above,
        needs: Needs::Itself,
    },
    Group {
        programs: &["npm", "npx", "pnpm", "yarn", "bun"],
        names: &[".npmrc", ".yarnrc", ".yarnrc.yml", ".pnpmfile.cjs", "bunfig.toml"],
        reach: Reach::Above,
        needs: Needs::File("package.json"),
    },
    Group {
        programs: &["just"],
        names: &["justfile", "Justfile", ".justfile"],
        reach: Reach::Above,
        needs: Needs::Itself,
    },
    Group {
        programs: &["cargo"],
        names: &[".cargo/config.toml", ".cargo/config", ".config/nextest.toml"],
        reach: Reach::Above,
        needs: Needs::File("Cargo.toml"),
    },
    Group {
        programs: &["cargo"],
        names: &["rust-toolchain.toml", "rust-toolchain"],
        reach: Reach::Above,
        needs: Needs::File("Cargo.toml"),
    },
    Group {
        programs: &["tox"],
        names: &["tox.ini", "setup.cfg", "pyproject.toml"],
        reach: Reach::Here,
        needs: Needs::Itself,
    },
    Group {
        programs: &["hatch", "pdm", "poe", "poetry", "uv"],
        names: &["pyproject.toml", "hatch.toml"],
        reach: Reach::Above,
        needs: Needs::Itself,
    },
    Group {
        programs: TESTERS,
        names: &["pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg"],
        reach: Reach::Above,
        needs: Needs::PythonTest,
    },
    Group {
        programs: TESTERS,
        names: &["conftest.py"],
        reach: Reach::Around,
        needs: Needs::PythonTest,
    },
    // Python loads them by itself, from each folder that it looks for modules in.
    Group {
        programs: &["python", "pypy", "pytest", "py.test", "tox"],
        names: &["sitecustomize.py", "usercustomize.py"],
        reach: Reach::Around,
        needs: Needs::Nothing,
    },
];

macro_rules! module {
    ($name:literal) => {
        (
            $name,
            &[
                concat!($name, ".py"),
                concat!($name, "/__init__.py"),
                concat!($name, "/__main__.py"),
            ],
        )
    };
}

/// Modules behind `python -m` that are Python's or installed, and what would take their place. Others
/// may be the work itself.
const MODULES: [(&str, &[&str]); 17] = [
    module!("black"),
    module!("build"),
    module!("compileall"),
    module!("coverage"),
    module!("doctest"),
    module!("flake8"),
    module!("isort"),
    module!("mypy"),
    module!("nose2"),
    module!("nox"),
    module!("pip"),
    module!("py_compile"),
    module!("pylint"),
    module!("pytest"),
    module!("ruff"),
    module!("tox"),
    module!("unittest"),
];
const PYTHONS: [&str; 2] = ["python", "pypy"];
/// Programs that run Python's tests.
const TESTERS: &[&str] = &["pytest", "py.test", "tox"];
/// Options with a folder, and those with a file.
const FOLDERS: [&str; 4] = ["-C", "--directory", "--prefix", "--cwd"];
const FILES: [&str; 6] = ["-f", "--file", "--makefile", "--justfile", "-c", "--config-file"];
/// Options with a package of a workspace, and where packages are.
const PACKAGES: [&str; 5] = ["-w", "--workspace", "--filter", "-F", "workspace"];
const PACKAGE_FOLDERS: [&str; 4] = ["", "packages", "apps", "libs"];
/// By convention a command of `cargo` that is a package of the workspace.
const XTASK: &str = "xtask";
/// Of pyproject.toml.
const TABLES: [&str; 5] = ["pytest", "tox", "poe", "pdm", "hatch"];

/// Files of which a command reads those that are there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Definition {
    /// Relative to the root.
    dir: PathBuf,
    names: &'static [&'static str],
    reach: Reach,
    needs: Needs,
}

impl Definition {
    /// Where one may be, except below. Whether they exist is not known.
    pub fn paths(&self) -> Vec<PathBuf> {
        let above = if self.reach == Reach::Here { 1 } else { usize::MAX };
        let folders = self.dir.ancestors().take(above);
        folders.flat_map(|folder| self.names.iter().map(|name| folder.join(name))).collect()
    }

    /// Where others may be, in a folder.
    pub fn paths_in(&self, folder: &Path) -> Vec<PathBuf> {
        let is_its = self.reach == Reach::Around && folder.starts_with(&self.dir);
        let names = self.names.iter().filter(|_| is_its);
        names.map(|name| folder.join(name)).collect()
    }

    /// Whether the command could do anything with these files of a work tree, or one of them defines
    /// it.
    pub fn could_run<'a>(&self, mut files: impl Iterator<Item = &'a Path>) -> bool {
        if self.needs == Needs::Nothing {
            return true;
        }
        let own = self.paths();
        let is_needed = |name: &str| match self.needs {
            Needs::Itself | Needs::Nothing => false,
            Needs::File(needed) => name == needed,
            Needs::PythonTest => is_python_test(name),
        };
        files.any(|file| {
            let name = file.file_name().and_then(|name| name.to_str());
            let below = file.parent().map(|folder| self.paths_in(folder)).unwrap_or_default();
            name.is_some_and(is_needed) || own.iter().chain(&below).any(|path| path == file)
        })
    }
}

fn is_python_test(name: &str) -> bool {
    let stem = name.strip_suffix(".py");
    stem.is_some_and(|stem| stem.starts_with("test_") || stem.ends_with("_test"))
}

/// By convention, and those that the command names. Whether they exist is not known.
pub(super) fn definitions(
    command: &Command,
    place: TextPlace<'_>,
) -> (Vec<Definition>, Vec<PathBuf>) {
    let (mut found, mut named) = (Vec::new(), Vec::new());
    let words = &command.words;
    for group in &GROUPS {
        let mut programs = programs(command);
        if !programs.any(|program| group.programs.contains(&program)) {
            continue;
        }
        let folder = values(words, &FOLDERS).next().unwrap_or(".");
        let folders = place.paths(&command.dirs, folder);
        named.extend(values(words, &FILES).flat_map(|file| place.paths(&folders, file)));
        let xtask = words.iter().any(|word| word == XTASK).then_some("xtask/src/main.rs");
        named.extend(xtask.into_iter().flat_map(|file| place.paths(&folders, file)));
        let packages = match group.names {
            ["package.json"] => packages(words, &folders),
            _ => Vec::new(),
        };
        found.extend(folders.into_iter().chain(packages).map(|dir| Definition {
            dir,
            names: group.names,
            reach: group.reach,
            needs: group.needs,
        }));
    }
    let known = module_of(words).and_then(|name| MODULES.iter().find(|(known, _)| *known == name));
    if let Some((_, names)) = known {
        let folders = place.paths(&command.dirs, ".").into_iter();
        let (reach, needs) = (Reach::Here, Needs::Nothing);
        found.extend(folders.map(|dir| Definition { dir, names, reach, needs }));
    }
    (found, named)
}

/// Behind `python -m`.
fn module_of(words: &[String]) -> Option<&str> {
    let is_python = words.first().is_some_and(|first| PYTHONS.contains(&name_of(first)));
    let at = words.iter().position(|word| word == "-m").filter(|_| is_python)?;
    words.get(at + 1).map(String::as_str)
}

/// Their names, also behind `python -m`.
fn programs(command: &Command) -> impl Iterator<Item = &str> {
    let words = command.before.iter().chain(command.words.first()).map(String::as_str);
    words.chain(module_of(&command.words)).map(name_of)
}

/// Of a workspace, by folder or by name.
fn packages(words: &[String], folders: &[PathBuf]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for package in values(words, &PACKAGES) {
        let name = package.trim_end_matches('.').rsplit('/').next().unwrap_or(package);
        let below = PACKAGE_FOLDERS.iter().map(|folder| Path::new(folder).join(name));
        let below: Vec<_> = below.chain([PathBuf::from(package)]).collect();
        let of = |folder: &PathBuf| below.iter().map(|path| folder.join(path)).collect::<Vec<_>>();
        found.extend(folders.iter().flat_map(of).filter_map(|path| plain(&path)));
    }
    found.sort();
    found.dedup();
    found
}

/// `-C web`, `-Cweb` and `--directory=web`.
fn values<'a>(words: &'a [String], options: &'a [&str]) -> impl Iterator<Item = &'a str> {
    words.iter().enumerate().filter_map(|(at, word)| {
        if options.contains(&word.as_str()) {
            return words.get(at + 1).map(String::as_str);
        }
        options.iter().filter(|option| option.starts_with('-')).find_map(|option| {
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
        Some("rust-toolchain.toml" | "rust-toolchain") => Some(lines_with(text, &["path"])),
        Some(".npmrc" | ".yarnrc" | ".yarnrc.yml" | "bunfig.toml") => {
            Some(lines_with(text, &PROGRAMS))
        }
        _ => None,
    };
    part.unwrap_or_else(|| text.to_owned())
}

/// What names a program or a file that is run, in settings of package managers.
const PROGRAMS: [&str; 8] =
    ["shell", "node-options", "yarnPath", "yarn-path", "plugin", "path:", "spec:", "preload"];

fn lines_with(text: &str, words: &[&str]) -> String {
    let lines = text.lines().filter(|line| words.iter().any(|word| line.contains(word)));
    lines.collect::<Vec<_>>().join("\n")
}

fn scripts_of(text: &str) -> Option<String> {
    let value: Value = serde_json::from_str(text).ok()?;
    Some(value.get("scripts").map(Value::to_string).unwrap_or_default())
}

fn tables_of(text: &str) -> Option<String> {
    let value: toml::Table = text.parse().ok()?;
    let tools = value.get("tool").and_then(toml::Value::as_table);
    let of = |name| tools.and_then(|tools| tools.get(name)).map(|table| format!("{table:?}"));
    Some(TABLES.into_iter().filter_map(of).collect::<Vec<_>>().join("\n"))
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
            (".npmrc", "", "registry=https://r.example\n", true),
            (".npmrc", "", "script-shell=/bin/true\n", false),
            (".yarnrc.yml", "", "nodeLinker: node-modules\n", true),
            (".yarnrc.yml", "", "yarnPath: y.cjs\n", false),
            ("rust-toolchain.toml", "", "[toolchain]\nchannel = \"1.90\"\n", true),
            ("rust-toolchain", "", "[toolchain]\npath = \"t\"\n", false),
        ] {
            let of = |text| relevant(Path::new(path), text);
            assert_eq!(of(before) == of(after), is_same, "{path}: {before} {after}");
        }
    }
}
