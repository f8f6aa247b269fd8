//! The files that decide what gates run: their scripts, what defines their commands, and what
//! these run in turn.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::decide::definitions::{Definition, definitions};
use crate::decide::recipes::{Include, includes, of_package, of_rules};
use crate::decide::scripts::{RunBy, scripts};
use crate::decide::shell::{Command, TextPlace, plain};
use crate::model::Gate;

/// What is at a path of a work tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Thing {
    /// With its text, which may be cut.
    File(String),
    Folder,
    Link(PathBuf),
}

/// Looks at a work tree.
#[derive(Clone, Copy)]
pub struct Sight<'a> {
    /// Absolute.
    pub root: &'a Path,
    /// Relative to the root.
    pub look: &'a dyn Fn(&Path) -> Option<Thing>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GateFiles {
    /// Files that exist, and links on the way to them.
    pub scripts: BTreeMap<PathBuf, RunBy>,
    pub definitions: BTreeSet<Definition>,
    /// What files include if it is there, with the file that does: a path, or a pattern with `*`.
    pub optional: BTreeSet<(PathBuf, PathBuf)>,
    /// Definitions in folders that a command names, and where tests are by convention.
    below: BTreeSet<PathBuf>,
}

/// Scripts of scripts.
const DEEPEST: usize = 3;
const MOST_FILES: usize = 500;
const MOST_LINKS: usize = 8;
const TEST_FOLDERS: [&str; 2] = ["test", "tests"];

impl GateFiles {
    pub fn of<'a>(gates: impl IntoIterator<Item = &'a Gate>, sight: Sight<'_>) -> Self {
        let mut walk = Walk { sight, found: Self::default() };
        let place = TextPlace { root: sight.root, here: Path::new("") };
        for gate in gates {
            walk.all(place.of_gate(gate), place, 0);
        }
        walk.found
    }

    /// Whether one of the files has this text.
    pub fn mention(&self, text: &str, sight: Sight<'_>) -> bool {
        let has = |path: &Path| match (sight.look)(path) {
            Some(Thing::File(content)) => content.contains(text),
            _ => false,
        };
        let mut defined = self.definitions.iter().flat_map(Definition::paths);
        let mut found = self.scripts.keys().chain(&self.below);
        found.any(|path| has(path)) || defined.any(|path| has(&path))
    }
}

struct Walk<'a> {
    sight: Sight<'a>,
    found: GateFiles,
}

/// A file that was found, and the links on the way to it.
struct Found {
    path: PathBuf,
    text: String,
    links: Vec<PathBuf>,
}

impl Walk<'_> {
    fn all(&mut self, commands: Vec<Command>, place: TextPlace<'_>, depth: usize) {
        for command in commands {
            self.define(&command, place, depth);
            self.run(&command, place, depth);
        }
    }

    fn run(&mut self, command: &Command, place: TextPlace<'_>, depth: usize) {
        let sight = self.sight;
        let files = |word: &str| place.paths(&command.dirs, word).into_iter();
        let is_file = |word: &str| files(word).any(|path| resolve(sight, &path).is_some());
        for (word, by) in scripts(&command.words, &is_file) {
            for found in files(&word).filter_map(|path| resolve(sight, &path)) {
                let (path, text) = (found.path.clone(), found.text.clone());
                if self.note(found, by) && is_for_shell(&text, by) {
                    self.in_shell(&text, &command.dirs, &path, depth);
                }
            }
        }
    }

    fn in_shell(&mut self, text: &str, dirs: &[PathBuf], file: &Path, depth: usize) {
        if depth < DEEPEST {
            let here = file.parent().unwrap_or(Path::new(""));
            let place = TextPlace { root: self.sight.root, here };
            self.all(place.in_shell(text, dirs.to_vec()), place, depth + 1);
        }
    }

    fn define(&mut self, command: &Command, place: TextPlace<'_>, depth: usize) {
        let (known, named) = definitions(command, place);
        let mut files = named.clone();
        for definition in known {
            let mut paths = definition.paths().into_iter();
            files.extend(paths.find(|path| resolve(self.sight, path).is_some()));
            self.look_below(&definition, command, place);
            self.found.definitions.insert(definition);
        }
        for path in files {
            let Some(found) = resolve(self.sight, &path) else { continue };
            let (dir, text) = (path.parent().unwrap_or(Path::new("")), found.text.clone());
            if named.contains(&path) || !found.links.is_empty() {
                self.note(found, RunBy::Interpreter);
            }
            self.defined(command, &text, &path, (dir, depth));
        }
    }

    fn look_below(&mut self, definition: &Definition, command: &Command, place: TextPlace<'_>) {
        let words = command.words.iter().map(String::as_str).chain(TEST_FOLDERS);
        for folder in words.flat_map(|word| place.paths(&command.dirs, word)) {
            if matches!((self.sight.look)(&folder), Some(Thing::Folder)) {
                let paths = folder.ancestors().flat_map(|folder| definition.paths_in(folder));
                self.found.below.extend(paths);
            }
        }
    }

    /// What a file that defines a command makes of it.
    fn defined(
        &mut self,
        command: &Command,
        text: &str,
        path: &Path,
        (dir, depth): (&Path, usize),
    ) {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let is_rules = name.to_ascii_lowercase().contains("makefile")
            || name.ends_with(".mk")
            || name.to_ascii_lowercase().contains("just");
        let commands = match name {
            "package.json" => of_package(text, &command.words),
            _ if is_rules => of_rules(&self.with_includes(text, (path, dir), 0), &command.words),
            _ => Vec::new(),
        };
        for command in commands {
            self.in_shell(&command, &[dir.to_owned()], path, depth);
        }
    }

    /// With the texts of the files that it includes.
    fn with_includes(&mut self, text: &str, (by, dir): (&Path, &Path), depth: usize) -> String {
        let mut whole = text.to_owned();
        for Include { name, is_optional } in includes(text) {
            let path = plain(&dir.join(name));
            if let Some(path) = path.clone().filter(|_| is_optional) {
                self.found.optional.insert((path, by.to_owned()));
            }
            let Some(found) = path.and_then(|path| resolve(self.sight, &path)) else { continue };
            let (text, by) = (found.text.clone(), found.path.clone());
            if self.note(found, RunBy::Interpreter) && depth < DEEPEST {
                whole += "\n";
                whole += &self.with_includes(&text, (&by, dir), depth + 1);
            }
        }
        whole
    }

    /// Returns whether it is new.
    fn note(&mut self, found: Found, by: RunBy) -> bool {
        let scripts = &mut self.found.scripts;
        scripts.extend(found.links.into_iter().map(|link| (link, by)));
        scripts.len() < MOST_FILES && scripts.insert(found.path, by).is_none()
    }
}

/// Without a first line that says more, a system has a shell read it.
fn is_for_shell(text: &str, by: RunBy) -> bool {
    let first = text.lines().next().unwrap_or_default();
    match by {
        RunBy::Shell => true,
        RunBy::Itself => !first.starts_with("#!") || first.contains("sh"),
        RunBy::Interpreter => false,
    }
}

/// The file at a path, also behind links.
fn resolve(sight: Sight<'_>, path: &Path) -> Option<Found> {
    let (mut left, mut links) = (path.to_owned(), Vec::new());
    while links.len() < MOST_LINKS {
        let mut at = PathBuf::new();
        let mut parts = left.iter();
        let target = loop {
            at.push(parts.next()?);
            match (sight.look)(&at)? {
                Thing::Folder => {}
                Thing::Link(target) => break target,
                Thing::File(text) => {
                    let is_last = parts.next().is_none();
                    return is_last.then_some(Found { path: at, text, links });
                }
            }
        };
        let target = match target.strip_prefix(sight.root) {
            Ok(below) => below.to_owned(),
            Err(_) => at.parent()?.join(target),
        };
        let Some(next) = plain(&target.join(parts.as_path())) else {
            // What is outside is the system's; where the link leads is not.
            return Some(Found { path: at, text: String::new(), links });
        };
        links.push(at);
        left = next;
    }
    None
}

#[cfg(test)]
mod tests;
