//! Changes of an attempt that could make its own work look done.

use std::path::{Component, Path, PathBuf};

use crate::model::{
    AttemptStarted, CompletionMarkers, Concern, Gate, GateCommand, Story, StoryId, visible_line,
};
use crate::runner::error::RunnerError;
use crate::runner::log::RunLog;

use super::World;
use super::attempt::Held;

impl World {
    /// Measured from the story's base, so that no attempt can prepare them for the next.
    pub(super) fn concerns_about(
        &self,
        log: &RunLog,
        start: &AttemptStarted,
    ) -> Result<Vec<Concern>, RunnerError> {
        let (id, held) = (&start.story, self.held(&start.attempt));
        let mut concerns = Vec::new();
        if let Some(story) = self.env.backlog.current().story(id) {
            concerns.extend(self.other_criteria(log, story));
            concerns.extend(self.other_gates(story));
            concerns.extend(self.other_signs(story));
        }
        concerns.extend(self.removed(held.as_deref()));
        concerns.extend(self.altered_files(log, id)?);
        // The agent wrote what the diffs show.
        let clean = |text: &str| self.env.secrets.redact(text).into_owned();
        let shown = |one: Concern| Concern { what: clean(&one.what), diff: clean(&one.diff) };
        Ok(concerns.into_iter().map(shown).collect())
    }

    fn other_criteria(&self, log: &RunLog, story: &Story) -> Option<Concern> {
        let before = log.state.story(&story.id)?.criteria.as_ref()?;
        let what = "its criteria changed".to_owned();
        (*before != story.criteria).then(|| Concern { what, diff: lines(before, &story.criteria) })
    }

    fn other_gates(&self, story: &Story) -> Option<Concern> {
        let before = self.config.gates.of_story(&story.id);
        if before == story.verify {
            return None;
        }
        let texts = |gates: &[Gate]| gates.iter().map(ToString::to_string).collect::<Vec<_>>();
        let diff = lines(&texts(before), &texts(&story.verify));
        let what = "its gates changed (those of the run's start were run)".to_owned();
        Some(Concern { what, diff })
    }

    /// The scanner uses those of the run's start.
    fn other_signs(&self, story: &Story) -> Option<Concern> {
        let before = self.config.markers.of.get(&story.id)?;
        if *before == story.markers {
            return None;
        }
        let texts = |signs: &CompletionMarkers| {
            let promise = signs.promise.clone();
            promise.into_iter().chain(signs.signals.clone()).chain(signs.stages.clone()).collect()
        };
        let (before, now): (Vec<String>, Vec<String>) = (texts(before), texts(&story.markers));
        let what = "its completion markers changed".to_owned();
        Some(Concern { what, diff: lines(&before, &now) })
    }

    fn removed(&self, held: Option<&Held>) -> Option<Concern> {
        let gone = self.removed_stories(held);
        if gone.is_empty() {
            return None;
        }
        let diff: Vec<String> = gone.iter().map(|id| format!("- {id}")).collect();
        let what = format!(
            "{} disappeared from the backlog",
            gone.iter().map(StoryId::as_str).collect::<Vec<_>>().join(", ")
        );
        Some(Concern { what, diff: diff.join("\n") })
    }

    fn altered_files(&self, log: &RunLog, id: &StoryId) -> Result<Vec<Concern>, RunnerError> {
        let Some(base) = log.state.story(id).and_then(|known| known.base().cloned()) else {
            return Ok(Vec::new());
        };
        let gates = &self.config.gates;
        let gates = gates.all.iter().chain(gates.of_story(id));
        let mut named: Vec<PathBuf> = gates.flat_map(scripts).collect();
        named.push(self.config.settings_file.clone());
        let altered =
            self.tree(self.lane_of(log, id)).altered(&base, &named, &self.config.protect)?;
        let concern = |one: crate::workspace::Altered| Concern {
            what: format!("`{}` changed", visible_line(&one.path.to_string_lossy())),
            diff: one.diff,
        };
        Ok(altered.into_iter().map(concern).collect())
    }
}

/// Programs that run a file.
const INTERPRETERS: [&str; 14] = [
    "bash", "bun", "dash", "deno", "env", "exec", "node", "perl", "php", "python", "python3",
    "ruby", "sh", "zsh",
];

/// Files of the work tree that a gate runs; files that it only reads are the work itself.
fn scripts(gate: &Gate) -> Vec<PathBuf> {
    let commands = match &gate.run {
        GateCommand::Shell(text) => text
            .split([';', '&', '|', '(', ')', '{', '}', '\n'])
            .map(|command| shlex::split(command).unwrap_or_default())
            .collect(),
        GateCommand::Program(words) => vec![words.clone()],
    };
    let dir = Path::new(gate.dir.as_deref().unwrap_or_default());
    let programs = commands.iter().filter_map(|words| program(words));
    programs.filter_map(|program| below_root(&dir.join(program))).collect()
}

fn program(words: &[String]) -> Option<&str> {
    let is_option = |word: &&&String| word.starts_with('-') || word.contains('=');
    let mut words = words.iter().skip_while(|word| is_option(&word)).map(String::as_str);
    let first = words.next()?;
    if INTERPRETERS.contains(&first) {
        return words.find(|word| !word.starts_with('-') && !word.contains('='));
    }
    Some(first)
}

fn below_root(path: &Path) -> Option<PathBuf> {
    let parts = path.components().filter(|part| *part != Component::CurDir);
    let plain: PathBuf = parts.collect();
    let is_normal = |part| matches!(part, Component::Normal(_));
    plain.components().all(is_normal).then_some(plain)
}

fn lines(before: &[String], now: &[String]) -> String {
    let gone = before.iter().filter(|line| !now.contains(line)).map(|line| format!("- {line}"));
    let new = now.iter().filter(|line| !before.contains(line)).map(|line| format!("+ {line}"));
    gone.chain(new).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gate_runs_its_scripts_and_looks_at_the_work() {
        let found = |command: &str, dir: Option<&str>| {
            let gate = Gate { dir: dir.map(str::to_owned), ..Gate::shell(command) };
            let found = scripts(&gate);
            found.iter().map(|path| path.display().to_string()).collect::<Vec<_>>()
        };
        assert_eq!(found("./check.sh --fast src/a.rs", None), ["check.sh"]);
        assert_eq!(found("CI=1 bash -eu scripts/a.sh; echo b", None), ["scripts/a.sh", "echo"]);
        assert_eq!(found("test -e go && tools/x|| { y; }", None), ["test", "tools/x", "y"]);
        assert_eq!(found("./check.sh", Some("web")), ["web/check.sh"]);
        assert_eq!(found("/bin/true", None), [""; 0]);
        assert_eq!(found("../up", None), [""; 0]);
    }
}
