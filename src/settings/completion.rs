//! The run's own signs of completion.

use super::file::SettingsFile;
use super::plan::{Origin, PlanError};
use crate::core::signal::{Signs, can_be_a_line, can_be_promised};
use crate::core::text::visible_line;

const A_WORD: &str = "a word or a few that can stand in a `<promise>`";
const A_LINE: &str = "a line that says something and is no quote, comment or code";
const ONCE: &str = "named once only";

pub fn signs(file: &SettingsFile) -> Result<Signs, PlanError> {
    let promise = file.completion_promise.as_ref();
    if let Some(word) = promise.filter(|word| !can_be_promised(word)) {
        return Err(bad("completion_promise", word, A_WORD));
    }
    Ok(Signs {
        promise: promise.cloned(),
        signals: lines("signals", &file.signals)?,
        stages: lines("stages", &file.stages)?,
    })
}

fn lines(name: &'static str, texts: &[String]) -> Result<Vec<String>, PlanError> {
    let mut lines: Vec<String> = Vec::new();
    for text in texts {
        let line = text.trim().to_owned();
        if !can_be_a_line(text) {
            return Err(bad(name, text, A_LINE));
        }
        if lines.contains(&line) {
            return Err(bad(name, text, ONCE));
        }
        lines.push(line);
    }
    Ok(lines)
}

fn bad(name: &'static str, value: &str, expected: &'static str) -> PlanError {
    PlanError::Bad { origin: Origin::File(name), value: visible_line(value), expected }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(promise: Option<&str>, signals: &[&str], stages: &[&str]) -> SettingsFile {
        let owned = |list: &[&str]| list.iter().map(|one| (*one).to_owned()).collect();
        SettingsFile {
            completion_promise: promise.map(str::to_owned),
            signals: owned(signals),
            stages: owned(stages),
            ..SettingsFile::default()
        }
    }

    #[test]
    fn what_could_never_be_heard_is_told_with_its_place() {
        let good = signs(&file(Some("DONE"), &["LOGIN_OK "], &["A_1", "B_2"])).unwrap();
        assert_eq!(good.signals, ["LOGIN_OK"]);
        for (wrong, told) in [
            (file(Some(""), &[], &[]), "`completion_promise` in ralph.toml: ``"),
            (file(None, &["> x"], &[]), "`signals` in ralph.toml: `> x`"),
            (file(None, &[], &["A_1", ""]), "`stages` in ralph.toml: ``"),
            (file(None, &[], &["A_1", "A_1"]), "`stages` in ralph.toml: `A_1`"),
        ] {
            let error = signs(&wrong).unwrap_err().to_string();
            assert!(error.starts_with(told), "{error}");
        }
    }
}
