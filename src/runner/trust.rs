//! Trust before every agent: what the repository's files configure must be approved as it is then.

use crate::agent::TrustClause;
use crate::model::visible;
use crate::runner::error::{Result, RunnerError};
use crate::store::{Answers, StoreError};

/// Those whose exact text nobody approved.
pub fn unapproved(
    answers: &Answers,
    clauses: Vec<TrustClause>,
) -> Result<Vec<TrustClause>, StoreError> {
    let mut new = Vec::new();
    for clause in clauses {
        if !answers.is_trusted(&clause.what, &clause.text)? {
            new.push(clause);
        }
    }
    Ok(new)
}

/// Without a question: the run goes on when they were approved or changed back.
pub fn require(answers: &Answers, clauses: Vec<TrustClause>) -> Result<()> {
    let new = unapproved(answers, clauses)?;
    if new.is_empty() { Ok(()) } else { Err(RunnerError::Untrusted(shown(&new))) }
}

/// With control characters made visible.
pub fn shown(clauses: &[TrustClause]) -> String {
    let one = |clause: &TrustClause| {
        let text = visible(clause.text.trim_end());
        let lines: Vec<String> = text.lines().map(|line| format!("    {line}")).collect();
        format!("{}:\n{}", visible(&clause.what), lines.join("\n"))
    };
    clauses.iter().map(one).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Store, StorePlace};

    #[test]
    fn only_what_is_not_approved_is_shown() {
        let folder = tempfile::tempdir().unwrap();
        let answers = Store::new(StorePlace::in_folder(folder.path())).answers().unwrap();
        let clause = |text| TrustClause::new("a file", text);
        require(&answers, vec![]).unwrap();
        answers.trust(0, [("a file", "old")].into_iter()).unwrap();
        require(&answers, vec![clause("old")]).unwrap();
        let error = require(&answers, vec![clause("old"), clause("new\x1b[2J\n")]).unwrap_err();
        assert!(error.to_string().contains("a file:\n    new\\x1b[2J\n"), "{error}");
        assert!(!error.to_string().contains("old"), "{error}");
    }
}
