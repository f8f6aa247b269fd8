//! How large the parts of the house may become, and that no file is forgotten.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Longer than this, a file has more than one concept in it.
const LONGEST_FILE: usize = 400;

/// A room's own `Result`, as in the standard library.
const OF_A_ROOM: &str = "Result";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A module that a file declares, and whether it is for tests only.
struct Declared {
    path: PathBuf,
    for_tests: bool,
}

/// What a file declares with `mod name;`.
fn declared(file: &Path, text: &str) -> Vec<Declared> {
    let folder = file.parent().unwrap();
    let own = match file.file_name().unwrap().to_str().unwrap() {
        "mod.rs" | "lib.rs" | "main.rs" => folder.to_owned(),
        _ => file.with_extension(""),
    };
    let (mut found, mut named, mut for_tests) = (Vec::new(), Vec::new(), false);
    for line in text.lines().map(str::trim) {
        if line.starts_with("#[") || line.starts_with("//") {
            // One for each system, perhaps.
            let path = line.split_once("path = \"").and_then(|(_, rest)| rest.split_once('"'));
            named.extend(path.map(|(path, _)| folder.join(path)));
            for_tests |= line.starts_with("#[cfg(test)]");
        } else {
            let words: Vec<&str> = line.split_whitespace().collect();
            let name = match words.as_slice() {
                ["mod", name] | [_, "mod", name] => name.strip_suffix(';'),
                _ => None,
            };
            if let Some(name) = name {
                let usual = own.join(format!("{name}.rs"));
                let usual = if usual.exists() { usual } else { own.join(name).join("mod.rs") };
                let paths = if named.is_empty() { vec![usual] } else { std::mem::take(&mut named) };
                found.extend(paths.into_iter().map(|path| Declared { path, for_tests }));
            }
            named.clear();
            for_tests = false;
        }
    }
    found
}

/// The files that are compiled from this one on, without those for tests unless they are wanted.
fn reached(from: &str, with_tests: bool) -> BTreeMap<PathBuf, String> {
    let (mut files, mut open) = (BTreeMap::new(), vec![root().join(from)]);
    while let Some(file) = open.pop() {
        assert!(file.exists(), "{} is declared and not there", file.display());
        let file = file.canonicalize().unwrap();
        if files.contains_key(&file) {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap();
        let modules = declared(&file, &text).into_iter();
        open.extend(modules.filter(|one| with_tests || !one.for_tests).map(|one| one.path));
        files.insert(file, text);
    }
    files
}

/// Name → text without its inline tests, which stand last.
fn product() -> BTreeMap<String, String> {
    let files = reached("src/lib.rs", false).into_iter().chain(reached("src/main.rs", false));
    let own = |text: String| text.split("#[cfg(test)]\nmod tests {").next().unwrap().to_owned();
    files.map(|(path, text)| (name(&path), own(text))).collect()
}

fn name(path: &Path) -> String {
    let root = root().canonicalize().unwrap();
    path.strip_prefix(root).unwrap().to_str().unwrap().to_owned()
}

fn all_below(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all_below(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.insert(name(&path.canonicalize().unwrap()));
        }
    }
}

#[test]
fn every_file_is_compiled() {
    let roots = [
        "src/lib.rs",
        "src/main.rs",
        "tests/it/main.rs",
        "tests/needs/main.rs",
        "benches/floors/main.rs",
    ];
    let compiled: BTreeSet<String> =
        roots.iter().flat_map(|from| reached(from, true).into_keys()).map(|p| name(&p)).collect();
    let mut there = BTreeSet::new();
    for folder in ["src", "tests", "benches"] {
        all_below(&root().join(folder), &mut there);
    }
    let forgotten: Vec<&String> = there.difference(&compiled).collect();
    assert!(forgotten.is_empty(), "no module declares {forgotten:?}");
}

#[test]
fn no_file_is_too_long() {
    let long = product().into_iter().map(|(name, text)| (name, text.lines().count()));
    let long: Vec<(String, usize)> = long.filter(|(_, lines)| *lines > LONGEST_FILE).collect();
    assert!(long.is_empty(), "over {LONGEST_FILE} lines: {long:?}");
}

#[test]
fn no_two_public_types_have_one_name() {
    let mut types: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (file, text) in product() {
        for line in text.lines() {
            if let Some(name) = public_type(line) {
                types.entry(name.to_owned()).or_default().push(file.clone());
            }
        }
    }
    types.retain(|name, files| files.len() > 1 && name != OF_A_ROOM);
    assert!(types.is_empty(), "declared more than once: {types:#?}");
}

/// The name of the type that a line declares for others.
fn public_type(line: &str) -> Option<&str> {
    let line = line.trim_start().strip_prefix("pub")?;
    let line = match line.strip_prefix('(') {
        Some(rest) => rest.split_once(')')?.1,
        None => line,
    };
    let (kind, rest) = line.strip_prefix(' ')?.split_once(' ')?;
    let is_type = ["struct", "enum", "trait", "type"].contains(&kind);
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    rest.get(..end).filter(|name| is_type && !name.is_empty())
}

#[test]
fn declarations_are_recognized() {
    for (line, expected) in [
        ("pub struct Report {", Some("Report")),
        ("    pub(super) enum Kind<'a> {", Some("Kind")),
        ("pub(in crate::store) type Row = (i64, String);", Some("Row")),
        ("pub trait Journal: Send {", Some("Journal")),
        ("struct Report;", None),
        ("pub fn struct_of() {", None),
        ("pub use report::Report;", None),
    ] {
        assert_eq!(public_type(line), expected, "{line}");
    }
}
