//! Every notice as people read it.

use std::path::PathBuf;

use super::*;
use crate::model::{
    AgentNotice, AttemptNotice, ConfigNotice, EndCause, Resumed, SetupNotice, TreeNotice, Usd,
};
use crate::ui::notices;

fn read(all: impl IntoIterator<Item = Notice>) -> String {
    let look = Look { colors: false, columns: None, zone: TimeZone::UTC };
    let lines: Vec<String> = all
        .into_iter()
        .flat_map(|notice| notices::lines(&notice))
        .flat_map(|line| look.render(&line))
        .collect();
    lines.join("\n")
}

fn paths(count: usize) -> Vec<PathBuf> {
    (1..=count).map(|number| PathBuf::from(format!("src/{number}.rs"))).collect()
}

fn names(count: usize) -> Vec<String> {
    (1..=count).map(|number| format!("sleep {number}")).collect()
}

#[test]
fn backlog_notices() {
    let story = || id("US-001");
    insta::assert_snapshot!(read([
        Notice::BacklogBroken { problem: "line 3: expected `,`\nfix it".into() },
        Notice::ClaimWaits {
            story: story(),
            problem: "line 3: expected `,`".into(),
            patience: Duration::from_secs(60),
        },
        Notice::BacklogUsableAgain,
        Notice::BacklogNotCommitted { path: "PRD.json".into(), why: "git ignores it".into() },
        Notice::Doubt { message: "US-002 has no criteria".into() },
        Notice::CompletedButGone { story: story() },
        Notice::Replaced { story: story() },
        Notice::Disowned { story: story() },
    ]), @r"
    warning: the backlog is invalid; using its last valid version
      line 3: expected `,`
      fix it
    warning: US-001 is complete and waits for a valid backlog; in 60 s its last valid version is restored, and yours is kept beside it
      line 3: expected `,`
    the backlog is valid again
    warning: PRD.json is updated but not committed: git ignores it
    warning: US-002 has no criteria
    warning: US-001 was completed but is no longer in the backlog
    warning: US-001 is a different story now; the earlier work is kept at a ref
    warning: you marked US-001 as passing; its unfinished work stays in the work tree, and ralph does not commit it
    ");
}

#[test]
fn attempt_notices() {
    let (cost, limit) = (Usd::of(2.5), Usd::of(2.0));
    insta::assert_snapshot!(read([
        AttemptNotice::FalsePromise { remaining: 1 },
        AttemptNotice::FalsePromise { remaining: 2 },
        AttemptNotice::OtherClaims { ids: vec!["US-002".into(), "US-009".into()] },
        AttemptNotice::ToolDenied { rule: "Bash(git push:*)".into(), times: 1 },
        AttemptNotice::ToolDenied { rule: "WebFetch".into(), times: 3 },
        AttemptNotice::LogIncomplete { problem: "No space left on device".into() },
        AttemptNotice::LeftoversEnded { names: names(2) },
        AttemptNotice::ProcessesKept { names: names(1) },
        AttemptNotice::OverIterationBudget { cost, limit },
        AttemptNotice::LockRemoved { path: ".git/index.lock".into() },
        AttemptNotice::CommitsTakenFrom { branch: "wip".into() },
    ].map(|notice| Notice::Attempt(id("US-004"), notice))), @r#"
    warning: US-004: the agent claimed the whole backlog, but 1 story is left
    warning: US-004: the agent claimed the whole backlog, but 2 stories are left
    warning: US-004: the agent also claimed US-002, US-009; only its own story counts
    warning: US-004: the agent was denied `Bash(git push:*)` once; to allow it, add "Bash(git push:*)" to `allowed_tools` in ralph.toml
    warning: US-004: the agent was denied `WebFetch` 3 times; to allow it, add "WebFetch" to `allowed_tools` in ralph.toml
    warning: US-004: the agent's log is incomplete: No space left on device
    US-004: ended processes that the agent left running: sleep 1, sleep 2
    US-004: left running (`keep_processes` in ralph.toml): sleep 1
    warning: US-004: the iteration cost $2.50 (`--budget-iteration` is $2.00)
    US-004: removed `.git/index.lock`, left behind by the agent's git
    US-004: the agent committed on `wip`; its commits are now on the run's branch
    "#);
}

#[test]
fn agent_notices() {
    insta::assert_snapshot!(read([
        AgentNotice::EarlierRunEnded { names: names(7) },
        AgentNotice::Ended(EndCause::RunTime),
        AgentNotice::Ended(EndCause::DiskLow),
        AgentNotice::Ended(EndCause::Aborted),
        AgentNotice::Ended(EndCause::Interrupt),
        AgentNotice::Scratchpad { problem: "cannot read .ralph/scratchpad.md".into() },
        AgentNotice::UnknownRequest,
    ].map(Notice::Agent)), @r#"
    warning: ended processes that an earlier run left running: sleep 1, sleep 2, sleep 3, sleep 4, sleep 5 and 2 more
    warning: the run reached its time limit; ending all agents (unfinished work is kept)
    warning: the disk is nearly full; ending everything that runs (unfinished work is kept)
    warning: you aborted the run; ending everything that runs (unfinished work is kept)
    warning: interrupted; ending everything that runs (a second signal kills it)
    warning: cannot read .ralph/scratchpad.md
    warning: a newer version of ralph sent a request that this version does not support
    "#);
}

#[test]
fn work_tree_notices() {
    insta::assert_snapshot!(read([
        TreeNotice::LockRemoved { path: ".git/index.lock".into() },
        TreeNotice::CleanUpFailed { problem: "cannot read .git".into() },
        TreeNotice::WorkKept { story: id("US-001"), reference: "refs/x".into(), comes_back: true },
        TreeNotice::WorkKept { story: id("US-001"), reference: "refs/x".into(), comes_back: false },
        TreeNotice::NewFilesShelved {
            story: id("US-001"),
            reference: "refs/x".into(),
            paths: vec!["a.txt".into(), "b.txt".into()],
        },
        TreeNotice::NotPruned { problem: "a ref is locked".into() },
    ].map(Notice::Tree)), @r"
    removed `.git/index.lock`, left behind by a killed process
    warning: cannot read .git
    earlier work on US-001 is at `refs/x` and will be restored
    earlier work on US-001 is at `refs/x`
    new files left the tree with US-001: a.txt, b.txt; `git restore --source=refs/x -- FILE` brings one back
    warning: cannot remove old snapshots: a ref is locked
    ");
}

#[test]
fn setup_notices() {
    let branch = || "feature".to_owned();
    let hook = PathBuf::from(".git/hooks/pre-commit");
    insta::assert_snapshot!(read([
        SetupNotice::Untracked { paths: paths(2) },
        SetupNotice::UncommittedEdits { paths: paths(7) },
        SetupNotice::Hooks { paths: vec![hook.clone()], pre_commit: Some(hook) },
        SetupNotice::Hooks { paths: vec![".git/hooks/post-commit".into()], pre_commit: None },
        SetupNotice::Attributes { names: vec!["filter=lfs".into()] },
        SetupNotice::SparseCheckout,
        SetupNotice::Submodules { paths: vec!["lib".into()] },
        SetupNotice::CommitsSigned,
        SetupNotice::BranchCreated { branch: branch() },
        SetupNotice::BranchSwitched { branch: branch() },
        SetupNotice::BranchCurrent { branch: branch() },
        SetupNotice::OnMainBranch { branch: "main".into() },
    ].map(Notice::Setup)), @r#"
    untracked files, never committed: src/1.rs, src/2.rs
    uncommitted edits, never committed: src/1.rs, src/2.rs, src/3.rs, src/4.rs, src/5.rs and 2 more
    git hooks that ralph does not run: .git/hooks/pre-commit; to run pre-commit as a gate, add `verify = [".git/hooks/pre-commit"]` to ralph.toml
    git hooks that ralph does not run: .git/hooks/post-commit
    git attributes that ralph cannot apply: filter=lfs; a story that changes such a file is not closed automatically
    sparse checkout: excluded files stay as committed
    submodules: lib; ralph commits their commit ids, not changes inside them
    commits will be signed
    created branch `feature` from HEAD
    switched to branch `feature`
    on branch `feature`
    committing to `main`; use `--branch NAME` for a separate branch
    "#);
}

#[test]
fn configuration_notices() {
    let (mode, meaning) = ("acceptEdits".to_owned(), "edit files here".to_owned());
    insta::assert_snapshot!(read([
        ConfigNotice::JournalDamaged { kept: "journal.db.corrupt-1".into() },
        ConfigNotice::JournalMissing,
        ConfigNotice::CommandFinished { command: "ralph undo US-001".into() },
        ConfigNotice::SettingsRestored { kept: Some(".ralph/changed-1-ralph.toml".into()) },
        ConfigNotice::SettingsRestored { kept: None },
        ConfigNotice::SettingsChanged,
        ConfigNotice::AgentCommand { command: "my-agent --fast".into() },
        ConfigNotice::PermissionsRemembered { mode: mode.clone() },
        ConfigNotice::PermissionsAssumed { mode, meaning },
        ConfigNotice::PermissionsDoubt { message: "not in a sandbox".into() },
        ConfigNotice::NoGates,
        ConfigNotice::GatesNotRun,
        ConfigNotice::UserCostsNotKept { problem: "the disk is full".into() },
        ConfigNotice::BudgetsBetweenIterations { agent: "my-agent".into() },
    ].map(Notice::Config)), @r"
    warning: the journal was damaged and is kept as `journal.db.corrupt-1`; rebuilding it from the backlog, the refs and the commits
    warning: this backlog was worked on, but its journal was deleted; rebuilding it from the backlog, the refs and the commits
    `ralph undo US-001` was interrupted; finished it
    warning: ralph.toml is not as it was in this run; the run keeps its settings, and the file is restored (the changed version is `.ralph/changed-1-ralph.toml`). To change settings during a run, edit the file and run `ralph trust`
    warning: ralph.toml is not as it was in this run; the run keeps its settings, and the file is restored. To change settings during a run, edit the file and run `ralph trust`
    the run continues with the changed ralph.toml
    agent: `my-agent --fast`
    agent permissions: acceptEdits, your earlier choice; change it with `permission_mode` in ralph.toml
    agent permissions: acceptEdits (edit files here), the default without an answer; allow more with `allowed_tools` or `permission_mode` in ralph.toml
    warning: not in a sandbox
    no gates: ralph only checks that a claim has changes
    a dry run does not run gates
    warning: cannot record your costs over all repositories: the disk is full
    budgets are checked between iterations only: `my-agent` cannot limit its own cost
    ");
}

#[test]
fn notices_about_an_interrupted_run() {
    let story = || id("US-001");
    insta::assert_snapshot!(read([
        Resumed::After { died: true, attempt: Some((3, story())) },
        Resumed::After { died: false, attempt: None },
        Resumed::Accepted(story()),
        Resumed::ToSkip(story()),
        Resumed::Question(story()),
        Resumed::Claimed(story()),
        Resumed::InTree(story()),
        Resumed::Shelved { story: story(), reference: "refs/ralph/attempts/US-001/1".into() },
        Resumed::More { count: 4 },
    ].map(Notice::Resumed)), @r"
    the last process died in iteration 3 (US-001)
    the last process was interrupted while no agent was running
    US-001 was accepted: checking for its commit, and creating it if needed
    US-001 is to be skipped: committing its mark
    US-001 has an open question: asking it again
    an agent claimed US-001: checking the claim
    unfinished work on US-001 is in the work tree: its next attempt continues it
    work on US-001 is shelved at `refs/ralph/attempts/US-001/1`: its next attempt restores it
    and 4 more; see `ralph status`
    ");
}
