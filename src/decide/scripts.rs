//! The files of the work tree that a gate runs; files that it only reads are the work itself.

use std::path::{Component, Path, PathBuf};

use crate::model::{Gate, GateCommand};

/// Programs that run a file.
pub(super) const INTERPRETERS: [&str; 14] = [
    ".", "bash", "bun", "dash", "deno", "node", "perl", "php", "python", "python3", "ruby", "sh",
    "source", "zsh",
];

/// Interpreters of a text after `-c` that is a command as well.
const SHELLS: [&str; 4] = ["bash", "dash", "sh", "zsh"];

/// Words before a command.
const BEFORE_A_COMMAND: [&str; 23] = [
    "!", "command", "do", "elif", "else", "env", "exec", "if", "nice", "nohup", "npx", "poetry",
    "run", "sudo", "then", "time", "timeout", "until", "uv", "while", "xvfb-run", "{", "}",
];

/// Relative to the root; whether they exist is not known.
pub fn scripts(gate: &Gate) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for Command { dir, words } in commands(gate) {
        let script = script(&words).and_then(|script| below_root(&dir?.join(script)));
        found.extend(script);
    }
    found
}

/// One of the commands that a gate consists of.
pub(super) struct Command {
    /// None: it is not known.
    pub dir: Option<PathBuf>,
    /// From its program on.
    pub words: Vec<String>,
}

pub(super) fn commands(gate: &Gate) -> Vec<Command> {
    let dir = Some(PathBuf::from(gate.dir.as_deref().unwrap_or_default()));
    match &gate.run {
        GateCommand::Shell(text) => in_shell(text, dir),
        GateCommand::Program(words) => one_command(from_program(words.clone()), dir),
    }
}

fn in_shell(text: &str, mut dir: Option<PathBuf>) -> Vec<Command> {
    let (mut found, mut outer) = (Vec::new(), Vec::new());
    for part in parts(text) {
        match part {
            Part::Open => outer.push(dir.clone()),
            Part::Close => dir = outer.pop().unwrap_or(dir),
            Part::Command(text) => {
                let words = from_program(shlex::split(&text).unwrap_or_default());
                let next = after(&words, dir.clone());
                found.extend(one_command(words, dir));
                dir = next;
            }
        }
    }
    found
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
    let (mut quote, mut is_escaped) = (None, false);
    for c in text.chars() {
        let is_plain = quote.is_none() && !is_escaped;
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

/// Without variables, and what only starts it.
fn from_program(words: Vec<String>) -> Vec<String> {
    let is_number = |word: &str| word.starts_with(|c: char| c.is_ascii_digit());
    let is_before = |word: &String| {
        is_option(word) || is_number(word) || BEFORE_A_COMMAND.contains(&word.as_str())
    };
    words.into_iter().skip_while(is_before).collect()
}

fn one_command(words: Vec<String>, dir: Option<PathBuf>) -> Vec<Command> {
    let Some((program, rest)) = words.split_first() else { return Vec::new() };
    let is_text = |word: &&String| word.starts_with('-') && word.ends_with('c');
    if SHELLS.contains(&program.as_str())
        && let Some(at) = rest.iter().position(|word| is_text(&word))
    {
        return rest.get(at + 1).map_or_else(Vec::new, |text| in_shell(text, dir));
    }
    vec![Command { dir, words }]
}

/// Or a variable.
fn is_option(word: &str) -> bool {
    word.starts_with('-') || word.contains('=')
}

/// The folder after a command.
fn after(words: &[String], dir: Option<PathBuf>) -> Option<PathBuf> {
    let [program, rest @ ..] = words else { return dir };
    if program != "cd" && program != "pushd" {
        return dir;
    }
    let to = rest.iter().find(|word| !word.starts_with('-'))?;
    let is_known = !to.starts_with('~') && !to.contains('$');
    is_known.then_some(dir?.join(to))
}

fn script(words: &[String]) -> Option<&str> {
    let (program, rest) = words.split_first()?;
    if INTERPRETERS.contains(&program.as_str()) {
        return rest.iter().map(String::as_str).find(|word| !is_option(word));
    }
    Some(program)
}

/// None: it is outside, or the root itself.
pub(super) fn below_root(path: &Path) -> Option<PathBuf> {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) if !name.as_encoded_bytes().contains(&0) => plain.push(name),
            Component::CurDir => {}
            Component::ParentDir if plain.pop() => {}
            _ => return None,
        }
    }
    (plain != Path::new("")).then_some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gate_runs_its_scripts_and_looks_at_the_work() {
        for (command, dir, expected) in [
            ("./check.sh --fast src/a.rs", None, &["check.sh"][..]),
            ("CI=1 bash -eu scripts/a.sh; echo b", None, &["scripts/a.sh", "echo"]),
            ("test -e go && tools/x|| { y; }", None, &["test", "tools/x", "y"]),
            ("./check.sh", Some("web"), &["web/check.sh"]),
            ("../check.sh", Some("web"), &["check.sh"]),
            ("/bin/true", None, &[]),
            ("../up", None, &[]),
            (". .venv/bin/activate && pytest", None, &[".venv/bin/activate", "pytest"]),
            ("node --test .", None, &[]),
            ("python -m pytest ./", None, &["pytest"]),
            ("cd sub && ./check.sh", None, &["cd", "sub/check.sh"]),
            ("cd sub; cd .. && ./check.sh", Some("a"), &["a/cd", "a/sub/cd", "a/check.sh"]),
            ("(cd sub && ./a.sh) && ./b.sh", None, &["cd", "sub/a.sh", "b.sh"]),
            ("cd \"$HOME\" && ./check.sh", None, &["cd"]),
            ("cd && ./check.sh", None, &["cd"]),
            ("cd /tmp && ./check.sh", None, &["cd"]),
            ("bash -ec 'cd sub; ./a.sh; . ./env'", None, &["cd", "sub/a.sh", "sub/env"]),
            ("echo 'a; ./no.sh' \"; ./no.sh\" \\; 2>&1", None, &["echo"]),
            ("env -u A timeout 5m ./slow.sh", None, &["A"]),
            ("timeout -k 5 60 sh slow.sh", None, &["slow.sh"]),
            ("if ! ./a.sh; then uv run b.sh; fi", None, &["a.sh", "b.sh", "fi"]),
            ("x=$(./a.sh)", None, &["a.sh"]),
            ("echo 'unfinished", None, &[]),
            ("sh -c", None, &[]),
            (".", None, &[]),
            ("./a\0b", None, &[]),
        ] {
            let gate = Gate { dir: dir.map(str::to_owned), ..Gate::shell(command) };
            let found = scripts(&gate);
            let found: Vec<_> = found.iter().map(|path| path.display().to_string()).collect();
            assert_eq!(found, expected, "{command}");
        }
    }

    #[test]
    fn a_program_is_looked_up_like_a_command_of_a_shell() {
        let of = |words: &[&str]| {
            let run = GateCommand::Program(words.iter().map(|word| (*word).to_owned()).collect());
            scripts(&Gate { run, dir: Some("web".into()), ..Gate::shell("x") })
        };
        assert_eq!(of(&["node", "--test", "run.js"]), [PathBuf::from("web/run.js")]);
        assert_eq!(
            of(&["sh", "-c", "cd a && ./b; c"]),
            ["web/cd", "web/a/b", "web/a/c"].map(PathBuf::from)
        );
        assert_eq!(of(&["./a;b"]), [PathBuf::from("web/a;b")]);
        assert!(of(&["--", "FOO=1"]).is_empty());
    }
}
