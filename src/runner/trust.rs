//! Trust before every agent: what the repository's files configure must be approved as it is then.

use crate::agent::TrustClause;
use crate::model::visible;
use crate::runner::error::{Result, RunnerError};
use crate::store::Approvals;

/// Those whose exact text nobody approved.
pub fn unapproved(approvals: &Approvals, clauses: Vec<TrustClause>) -> Vec<TrustClause> {
    let is_new = |clause: &TrustClause| !approvals.is_trusted(&clause.what, &clause.text);
    clauses.into_iter().filter(is_new).collect()
}

/// Without a question: the run goes on when they were approved or changed back.
pub fn require(approvals: &Approvals, clauses: Vec<TrustClause>) -> Result<()> {
    let new = unapproved(approvals, clauses);
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
        require(&answers.all().unwrap(), vec![]).unwrap();
        answers.trust(0, [("a file", "old")].into_iter()).unwrap();
        let approvals = answers.all().unwrap();
        require(&approvals, vec![clause("old")]).unwrap();
        let error = require(&approvals, vec![clause("old"), clause("new\x1b[2J\n")]).unwrap_err();
        assert!(error.to_string().contains("a file:\n    new\\x1b[2J\n"), "{error}");
        assert!(!error.to_string().contains("old"), "{error}");
    }
}
