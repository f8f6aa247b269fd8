//! Any other program that reads a prompt and prints what it has to say.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::any_decoder;
use super::backend::{
    AgentError, AgentSettings, Backend, Capabilities, Launch, LaunchRequest, TrustClause,
    find_program,
};
use super::event::Decoder;

/// A command line that the human named.
pub struct Plain {
    words: Vec<String>,
}

impl Plain {
    pub fn new(words: Vec<String>) -> Self {
        Self { words }
    }
}

impl Backend for Plain {
    fn name(&self) -> String {
        format!("plain:{}", self.label())
    }

    fn label(&self) -> String {
        let program = self.words.first().map(Path::new).and_then(Path::file_name);
        program.unwrap_or_default().to_string_lossy().into_owned()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    /// The program may be anywhere, relative to the folder ralph was started in.
    fn command(&self, _request: &LaunchRequest<'_>) -> Result<Launch, AgentError> {
        let name = self.words.first().map(PathBuf::from).unwrap_or_default();
        let program = find_program(&name, None, "`--agent-command` names it")?;
        Ok(Launch::new(program, self.words.iter().skip(1).map(OsString::from).collect()))
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        any_decoder()
    }

    fn trust_clauses(&self, table: &AgentSettings, _root: &Path) -> Vec<TrustClause> {
        let is_own = |text: &&str| shlex::split(text).as_ref() == Some(&self.words);
        let own = table.command.as_deref().filter(is_own);
        own.map(|text| TrustClause::new("agent in ralph.toml", text)).into_iter().collect()
    }
}

/// Takes the prompt out of a plain-text agent's output again.
///
/// Some agents print what they were given. The prompt holds the very lines that
/// count as signals, so a copy of it must not be read as the agent's own words.
/// Two or more lines that follow each other in the prompt as they do in the output
/// are a copy; a single equal line may be the agent speaking.
pub struct Echo {
    /// The prompt's lines that are not blank.
    lines: Vec<String>,
    places: HashMap<String, Vec<usize>>,
    /// Places in the prompt where the last output line stands.
    at: Vec<usize>,
    /// The first line of what may become a copy.
    held: Option<String>,
}

impl Echo {
    pub fn new(prompt: &str) -> Self {
        let lines: Vec<String> = prompt
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .map(str::to_owned)
            .collect();
        let mut places: HashMap<String, Vec<usize>> = HashMap::new();
        for (place, line) in lines.iter().enumerate() {
            places.entry(line.clone()).or_default().push(place);
        }
        Self { lines, places, at: Vec::new(), held: None }
    }

    /// Calls `own` with each line that turns out to be the agent's.
    pub fn push(&mut self, line: &str, mut own: impl FnMut(&str)) {
        // An agent may have lost the indentation that protects a line.
        let trimmed = line.trim();
        if trimmed.is_empty() {
            if self.at.is_empty() {
                own(line);
            }
            return;
        }
        let goes_on: Vec<usize> = self
            .at
            .iter()
            .map(|place| place + 1)
            .filter(|place| self.lines.get(*place).is_some_and(|next| next == trimmed))
            .collect();
        if !goes_on.is_empty() {
            self.held = None;
            self.at = goes_on;
            return;
        }
        self.release(&mut own);
        match self.places.get(trimmed) {
            Some(places) => {
                self.at.clone_from(places);
                self.held = Some(line.to_owned());
            }
            None => own(line),
        }
    }

    pub fn finish(&mut self, mut own: impl FnMut(&str)) {
        self.release(&mut own);
    }

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
        let mut echo = Echo::new(prompt);
        let mut own = Vec::new();
        for line in output.lines() {
            echo.push(line, |line| own.push(line.to_owned()));
        }
        echo.finish(|line| own.push(line.to_owned()));
        own
    }

    const PROMPT: &str =
        "Do it.\n\nSay this:\nTask US-001 complete\nOnly when true.\nDo it.\nWell.\n";

    #[test]
    fn a_copy_of_the_prompt_is_not_the_agents_own() {
        let output = format!("hello\n{PROMPT}\nbye");
        assert_eq!(own_lines(PROMPT, &output), ["hello", "bye"]);
        assert_eq!(own_lines(PROMPT, "Say this:\nTask US-001 complete\n"), [""; 0]);
        assert_eq!(own_lines(PROMPT, "Do it.\nWell.\nok"), ["ok"]);
    }

    #[test]
    fn a_single_line_is_the_agent_speaking() {
        assert_eq!(own_lines(PROMPT, "Task US-001 complete\n"), ["Task US-001 complete"]);
        assert_eq!(
            own_lines(PROMPT, "All good.\nTask US-001 complete\nBye."),
            ["All good.", "Task US-001 complete", "Bye."]
        );
    }
}
