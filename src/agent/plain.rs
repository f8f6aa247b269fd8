//! Any other program that reads a prompt and prints text.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::text::signals::Scanner;

use super::any_decoder;
use super::backend::{
    AgentError, AgentEvent, AgentSettings, Backend, Capabilities, Decoder, EventListener, Launch,
    LaunchRequest, TrustClause, find_program,
};

/// How much of the end of an agent's text is kept at least, in bytes.
pub const TAIL: usize = 4 * 1024;

/// Words of a command line that stand for the prompt itself and for a file with it.
const PROMPT: &str = "{prompt}";
const PROMPT_FILE: &str = "{prompt_file}";

/// A command line that the human chose.
pub struct Plain {
    pub words: Vec<String>,
}

impl Backend for Plain {
    fn label(&self) -> String {
        let program = self.words.first().map(Path::new).and_then(Path::file_name);
        program.unwrap_or_default().to_string_lossy().into_owned()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    /// The program may be anywhere, relative to the folder ralph was started in. Only a whole word
    /// stands for the prompt: in a shell command, the prompt would become a part of the command.
    fn command(&self, request: &LaunchRequest<'_>) -> Result<Launch, AgentError> {
        let name = self.words.first().map(PathBuf::from).unwrap_or_default();
        let program = find_program(&name, None, "Check `--agent-command` or `agent.command`")?;
        let args = self.words.iter().skip(1).map(|word| match word.as_str() {
            PROMPT => OsString::from(request.prompt),
            PROMPT_FILE => request.prompt_file.into(),
            word => word.into(),
        });
        let is_placed = self.words.iter().any(|word| [PROMPT, PROMPT_FILE].contains(&&**word));
        let input = if is_placed { Path::new("/dev/null") } else { request.prompt_file };
        Ok(Launch::new(program, args.collect(), Some(input.to_owned())))
    }

    fn decoder(&self, _request: &LaunchRequest<'_>) -> Box<dyn Decoder> {
        any_decoder()
    }

    fn trust_clauses(
        &self,
        table: &AgentSettings,
        _root: &Path,
    ) -> Result<Vec<TrustClause>, AgentError> {
        let is_own = |text: &&str| shlex::split(text).as_ref() == Some(&self.words);
        let own = table.command.as_deref().filter(is_own);
        Ok(own.map(|text| TrustClause::new("agent in ralph.toml", text)).into_iter().collect())
    }
}

/// Output that is not events, in case it is a plain-text agent's, and standard error.
pub struct PlainText {
    pub scanner: Scanner,
    pub echo: EchoFilter,
    /// The end of both.
    pub printed: Vec<u8>,
}

impl PlainText {
    pub fn line(&mut self, text: &str, tell: EventListener<'_>) {
        self.keep(text.as_bytes());
        self.keep(b"\n");
        self.echo.push(text, &mut |line| say(&mut self.scanner, line, tell));
    }

    pub fn finish(&mut self, tell: EventListener<'_>) {
        self.echo.release(&mut |line| say(&mut self.scanner, line, tell));
    }

    pub fn tail(&self) -> String {
        String::from_utf8_lossy(&self.printed).into_owned()
    }

    pub fn keep(&mut self, words: &[u8]) {
        let words = words.get(words.len().saturating_sub(TAIL)..).unwrap_or(words);
        self.printed.extend_from_slice(words);
        // Not for every short line: draining moves the rest.
        if self.printed.len() > 2 * TAIL {
            self.printed.drain(..self.printed.len() - TAIL);
        }
    }
}

fn say(scanner: &mut Scanner, line: &str, tell: EventListener<'_>) {
    scanner.push(line);
    scanner.push("\n");
    tell(&AgentEvent::Said(line));
}

/// Removes the prompt from a plain-text agent's output.
///
/// Some agents print their prompt, which contains lines that count as signals. Two or more
/// consecutive lines of output that are also consecutive in the prompt are a copy and are removed;
/// a single equal line may be the agent's own.
pub struct EchoFilter {
    /// The lines of the prompt that are not blank, and their numbers in ascending order.
    places: HashMap<String, Vec<usize>>,
    /// Where in the prompt the last output line may be from.
    at: Vec<usize>,
    /// The first line of what may become a copy.
    held: Option<String>,
}

impl EchoFilter {
    pub fn new(prompt: &str) -> Self {
        let mut places: HashMap<String, Vec<usize>> = HashMap::new();
        let lines = prompt.lines().map(str::trim).filter(|line| !line.is_empty());
        for (place, line) in lines.enumerate() {
            places.entry(line.to_owned()).or_default().push(place);
        }
        Self { places, at: Vec::new(), held: None }
    }

    /// Calls `own` with each line that turns out to be the agent's.
    fn push(&mut self, line: &str, own: &mut impl FnMut(&str)) {
        // An agent may have lost the indentation that protects a line.
        let trimmed = line.trim();
        if trimmed.is_empty() {
            if self.at.is_empty() {
                own(line);
            }
            return;
        }
        let places = self.places.get(trimmed).cloned().unwrap_or_default();
        let follows = |place: &usize| places.binary_search(place).is_ok();
        let next: Vec<usize> = self.at.iter().map(|place| place + 1).filter(follows).collect();
        if !next.is_empty() {
            self.held = None;
            self.at = next;
            return;
        }
        self.release(own);
        if places.is_empty() {
            own(line);
        } else {
            self.at = places;
            self.held = Some(line.to_owned());
        }
    }

    /// A single line was not a copy.
    fn release(&mut self, own: &mut impl FnMut(&str)) {
        self.at.clear();
        if let Some(held) = self.held.take() {
            own(&held);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own_lines(prompt: &str, output: &str) -> Vec<String> {
        let mut echo = EchoFilter::new(prompt);
        let mut own = Vec::new();
        let mut keep = |line: &str| own.push(line.to_owned());
        output.lines().for_each(|line| echo.push(line, &mut keep));
        echo.release(&mut keep);
        own
    }

    const PROMPT: &str =
        "Do it.\n\nSay this:\nTask US-001 complete\nOnly when true.\nDo it.\nWell.\n";

    #[test]
    fn a_copy_of_the_prompt_is_removed() {
        let output = format!("hello\n{PROMPT}\nbye");
        assert_eq!(own_lines(PROMPT, &output), ["hello", "bye"]);
        assert_eq!(own_lines(PROMPT, "Say this:\nTask US-001 complete\n"), [""; 0]);
        assert_eq!(own_lines(PROMPT, "Do it.\nWell.\nok"), ["ok"]);
    }

    #[test]
    fn a_single_line_of_the_prompt_is_the_agents_own() {
        assert_eq!(own_lines(PROMPT, "Task US-001 complete\n"), ["Task US-001 complete"]);
        assert_eq!(
            own_lines(PROMPT, "All good.\nTask US-001 complete\nBye."),
            ["All good.", "Task US-001 complete", "Bye."]
        );
    }
}
