//! The commands that a text for a shell consists of, as far as they can be told without running it.

use std::path::{Component, Path, PathBuf};

use crate::model::{Gate, GateCommand};

/// Interpreters of a text after `-c` that is a command as well.
pub(super) const SHELLS: [&str; 5] = ["bash", "dash", "ksh", "sh", "zsh"];

/// Words before a command, with those of their options that have a value.
const BEFORE_A_COMMAND: &[(&str, &[&str])] = &[
    ("!", &[]),
    ("bundle", &[]),
    ("chronic", &[]),
    ("command", &[]),
    ("coverage", &[]),
    ("do", &[]),
    ("elif", &[]),
    ("else", &[]),
    ("env", &["-u", "-C", "--unset", "--chdir"]),
    ("exec", &["-a"]),
    ("hatch", &["-e", "--env", "-p", "--project"]),
    ("if", &[]),
    ("ionice", &["-c", "-n"]),
    ("nice", &["-n"]),
    ("nohup", &[]),
    ("npx", &["-p", "--package"]),
    ("pdm", &["-p", "--project"]),
    ("pipenv", &[]),
    ("poetry", &["-C", "-P", "--directory", "--project"]),
    ("run", &["--extra", "--group", "--package", "--python", "--source", "--with", "-p"]),
    ("setsid", &[]),
    ("stdbuf", &["-i", "-o", "-e"]),
    ("sudo", &["-u", "-g"]),
    ("then", &[]),
    ("time", &["-f", "-o"]),
    ("timeout", &["-k", "-s"]),
    ("until", &[]),
    ("uv", &["--directory", "--project"]),
    ("while", &[]),
    ("xargs", &["-a", "-d", "-E", "-I", "-L", "-n", "-P", "-s", "--arg-file", "--delimiter"]),
    ("xvfb-run", &["-n", "-s", "-f"]),
    ("{", &[]),
    ("}", &[]),
];

/// What a text says for its root and for a script's own folder.
const KNOWN: [(&str, &str); 13] = [
    ("$(git rev-parse --show-toplevel)", ROOT),
    ("$(dirname \"$0\")", HERE),
    ("$(dirname -- \"$0\")", HERE),
    ("$(dirname $0)", HERE),
    ("$(dirname \"${BASH_SOURCE[0]}\")", HERE),
    ("$(dirname -- \"${BASH_SOURCE[0]}\")", HERE),
    ("$(dirname \"$BASH_SOURCE\")", HERE),
    ("${0%/*}", HERE),
    ("$(pwd)", "."),
    ("`pwd`", "."),
    ("$PWD", "."),
    ("${PWD}", "."),
    ("$(CURDIR)", "."),
];
const ROOT: &str = "${ralph:root}";
const HERE: &str = "${ralph:here}";

/// One of the commands.
pub(super) struct Command {
    /// Where it may run, relative to the root.
    pub dirs: Vec<PathBuf>,
    /// What only starts it.
    pub before: Vec<String>,
    /// From its program on.
    pub words: Vec<String>,
}

/// Where a text is.
#[derive(Clone, Copy)]
pub(super) struct TextPlace<'a> {
    /// The work tree's, absolute.
    pub root: &'a Path,
    /// The folder of its file, relative to the root.
    pub here: &'a Path,
}

impl TextPlace<'_> {
    /// Where a word may lead to, relative to the root. What a variable says is not known: the rest
    /// of the word may be below each folder that it could mean.
    pub fn paths(&self, dirs: &[PathBuf], word: &str) -> Vec<PathBuf> {
        let path = Path::new(word);
        if path.is_absolute() {
            return path.strip_prefix(self.root).ok().and_then(plain).into_iter().collect();
        }
        let known = [(ROOT, Path::new("")), (HERE, self.here)];
        let known = known.iter().find_map(|(name, dir)| Some((*dir, word.strip_prefix(name)?)));
        let (bases, rest) = match (known, after_variable(word)) {
            (Some((dir, rest)), _) => (vec![dir.to_owned()], rest),
            (None, Some(rest)) => {
                let here = [self.here.to_owned(), PathBuf::new()];
                (dirs.iter().cloned().chain(here).collect(), rest)
            }
            (None, None) => (dirs.to_vec(), word),
        };
        let rest = rest.trim_start_matches('/');
        let mut paths: Vec<_> = bases.iter().filter_map(|dir| plain(&dir.join(rest))).collect();
        paths.sort();
        paths.dedup();
        paths
    }

    pub fn of_gate(&self, gate: &Gate) -> Vec<Command> {
        let dirs = vec![PathBuf::from(gate.dir.as_deref().unwrap_or_default())];
        match &gate.run {
            GateCommand::Shell(text) => self.in_shell(text, dirs),
            GateCommand::Program(words) => self.one_command(words.clone(), dirs),
        }
    }

    pub fn in_shell(&self, text: &str, mut dirs: Vec<PathBuf>) -> Vec<Command> {
        let (mut found, mut outer) = (Vec::new(), Vec::new());
        for part in parts(&readable(text)) {
            match part {
                Part::Open => outer.push(dirs.clone()),
                Part::Close => dirs = outer.pop().unwrap_or(dirs),
                Part::Command(text) => {
                    let words = without_redirections(shlex::split(&text).unwrap_or_default());
                    let next = self.after(&words, &dirs);
                    found.extend(self.one_command(words, dirs.clone()));
                    dirs = next.unwrap_or(dirs);
                }
            }
        }
        found
    }

    fn one_command(&self, mut words: Vec<String>, dirs: Vec<PathBuf>) -> Vec<Command> {
        let start = words.len() - from_program(&words).len();
        let before: Vec<String> = words.drain(..start).collect();
        let Some((program, rest)) = words.split_first() else { return Vec::new() };
        if program == "eval" {
            return self.in_shell(&rest.join(" "), dirs);
        }
        let is_text = |word: &String| word.starts_with('-') && word.ends_with('c');
        if SHELLS.contains(&name_of(program))
            && let Some(at) = rest.iter().position(is_text)
        {
            let text = rest.get(at + 1);
            return text.map_or_else(Vec::new, |text| self.in_shell(text, dirs));
        }
        vec![Command { dirs, before, words }]
    }

    /// The folders after a command that changes them; none: outside.
    fn after(&self, words: &[String], dirs: &[PathBuf]) -> Option<Vec<PathBuf>> {
        let [program, rest @ ..] = words else { return None };
        if program != "cd" && program != "pushd" {
            return None;
        }
        let to = rest.iter().find(|word| !word.starts_with('-'));
        Some(match to.filter(|to| !to.starts_with('~')) {
            Some(to) => self.paths(dirs, to),
            None => Vec::new(),
        })
    }
}

/// What follows a variable, or a command in its place.
fn after_variable(word: &str) -> Option<&str> {
    let name = word.strip_prefix('$')?;
    let end = match name.chars().next()? {
        '{' => name.split_once('}')?.1,
        '(' => name.split_once(')')?.1,
        _ => name.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_'),
    };
    Some(end)
}

/// The name of a program, without its folder and version.
pub(super) fn name_of(program: &str) -> &str {
    let name = program.rsplit('/').next().unwrap_or(program);
    let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    if plain.is_empty() { name } else { plain }
}

/// Or a variable.
pub(super) fn is_option(word: &str) -> bool {
    word.starts_with(['-', '+']) || word.contains('=')
}

/// Without variables, and what only starts it.
fn from_program(words: &[String]) -> &[String] {
    let (mut rest, mut valued) = (words, &[][..]);
    while let [first, tail @ ..] = rest {
        let name = if first.starts_with('/') { name_of(first) } else { first };
        let starter = BEFORE_A_COMMAND.iter().find(|(starter, _)| *starter == name);
        let is_number = first.starts_with(|c: char| c.is_ascii_digit());
        if let Some((_, options)) = starter {
            (valued, rest) = (options, tail);
        } else if valued.contains(&first.as_str()) {
            rest = tail.get(1..).unwrap_or_default();
        } else if is_option(first) || is_number {
            rest = tail;
        } else {
            break;
        }
    }
    rest
}

/// Without output; what is read stays as a word.
fn without_redirections(words: Vec<String>) -> Vec<String> {
    let mut kept = Vec::new();
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        let sign = word.trim_start_matches(|c: char| c.is_ascii_digit());
        if let Some(to) = sign.strip_prefix('>') {
            if to.trim_start_matches(['>', '&', '|']).is_empty() {
                words.next();
            }
        } else if let Some(from) = sign.strip_prefix('<') {
            kept.extend((!from.is_empty() && !kept.is_empty()).then(|| from.to_owned()));
        } else {
            kept.push(word);
        }
    }
    kept
}

/// With what is known, and without the texts that a script has for other programs.
fn readable(text: &str) -> String {
    let mut end = None;
    let mut lines = String::new();
    for line in text.lines() {
        match &end {
            Some(word) if line.trim() == word => end = None,
            Some(_) => {}
            None => {
                end = here_document(line);
                lines.push_str(line);
                lines.push('\n');
            }
        }
    }
    KNOWN.iter().fold(lines, |text, (from, to)| text.replace(from, to))
}

/// The word that ends it.
fn here_document(line: &str) -> Option<String> {
    let (_, after) = line.split_once("<<")?;
    let word = after.trim_start_matches('-').split_whitespace().next()?.trim_matches(['\'', '"']);
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_word = word.starts_with(|c: char| c.is_ascii_alphabetic()) && word.chars().all(is_name);
    is_word.then(|| word.to_owned())
}

/// What a shell reads before it looks at words.
enum Part {
    Command(String),
    /// The folder after the end is the one from before.
    Open,
    Close,
}

fn parts(text: &str) -> Vec<Part> {
    let (mut parts, mut command) = (Vec::new(), String::new());
    let (mut quote, mut is_escaped, mut is_comment) = (None, false, false);
    for c in text.chars() {
        let is_plain = quote.is_none() && !is_escaped;
        let is_between = command.chars().next_back().is_none_or(char::is_whitespace);
        is_comment = (is_comment || (is_plain && c == '#' && is_between)) && c != '\n';
        if is_comment {
            continue;
        }
        let is_end = matches!(c, ';' | '|' | '\n' | '(' | ')' | '`')
            || (c == '&' && !command.ends_with('>'));
        if is_plain && is_end {
            parts.push(Part::Command(std::mem::take(&mut command)));
            parts.extend((c == '(').then_some(Part::Open));
            parts.extend((c == ')').then_some(Part::Close));
            continue;
        }
        quote = match quote {
            _ if is_escaped => quote,
            None if matches!(c, '\'' | '"') => Some(c),
            Some(open) if open == c => None,
            _ => quote,
        };
        is_escaped = c == '\\' && !is_escaped && quote != Some('\'');
        command.push(c);
    }
    parts.push(Part::Command(command));
    parts
}

/// None: it is outside. The root itself is the empty path.
pub(super) fn plain(path: &Path) -> Option<PathBuf> {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) if !name.as_encoded_bytes().contains(&0) => plain.push(name),
            Component::CurDir => {}
            Component::ParentDir if plain.pop() => {}
            _ => return None,
        }
    }
    Some(plain)
}
