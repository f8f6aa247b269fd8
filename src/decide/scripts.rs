//! The files that a command runs; files that it only reads are the work itself.

use crate::decide::shell::{SHELLS, is_option, name_of};

/// Programs that run a file, besides shells.
const INTERPRETERS: [&str; 10] =
    [".", "bun", "deno", "node", "perl", "php", "pypy", "python", "ruby", "source"];
/// Commands of the newer ones, with the file after them.
const COMMANDS: [&str; 2] = ["run", "test"];
const WITH_COMMANDS: [&str; 2] = ["bun", "deno"];
/// Options of theirs whose value is a word of its own.
const VALUED: [&str; 14] = [
    "-I",
    "-O",
    "-W",
    "-X",
    "-r",
    "--conditions",
    "--env-file",
    "--experimental-loader",
    "--import",
    "--init-file",
    "--loader",
    "--rcfile",
    "--require",
    "--test-reporter",
];

/// How a file is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunBy {
    Shell,
    Interpreter,
    /// As its first line says.
    Itself,
}

/// The words, or files that they mean, that a command may run. Whether they are files is for the
/// caller to find out: a word that is none is no script.
pub(super) fn scripts(words: &[String], is_file: &dyn Fn(&str) -> bool) -> Vec<(String, RunBy)> {
    let Some((program, rest)) = words.split_first() else { return Vec::new() };
    let mut found = vec![(program.clone(), RunBy::Itself)];
    let name = name_of(program);
    let is_shell = SHELLS.contains(&name) || [".", "source"].contains(&program.as_str());
    if !is_shell && !INTERPRETERS.contains(&name) {
        return found;
    }
    let commands = if WITH_COMMANDS.contains(&name) { &COMMANDS[..] } else { &[] };
    let by = if is_shell { RunBy::Shell } else { RunBy::Interpreter };
    let mut rest = rest.iter();
    while let Some(word) = rest.next() {
        if !is_shell && word == "-m" {
            found.extend(rest.next().into_iter().flat_map(|module| module_files(module)));
            break;
        }
        if !is_shell && ["-c", "-e"].contains(&word.as_str()) {
            break;
        }
        if is_valued(word, is_shell) {
            found.extend(rest.next().map(|value| (value.clone(), by)));
        } else if !is_option(word) && !commands.contains(&word.as_str()) {
            // In doubt it is the value of an option, and the script comes later.
            let files = [word.clone(), format!("{word}/__main__.py"), format!("{word}/index.js")];
            let is_found = files.iter().any(|file| is_file(file));
            found.extend(files.map(|file| (file, by)));
            if is_found {
                break;
            }
        }
    }
    found
}

/// For shells `-euo pipefail`, too.
fn is_valued(word: &str, is_shell: bool) -> bool {
    let is_cluster = is_shell && word.starts_with(['-', '+']) && !word.starts_with("--");
    VALUED.contains(&word) || (is_cluster && word.ends_with('o'))
}

fn module_files(module: &str) -> [(String, RunBy); 2] {
    let path = module.replace('.', "/");
    [format!("{path}.py"), format!("{path}/__main__.py")].map(|file| (file, RunBy::Interpreter))
}
