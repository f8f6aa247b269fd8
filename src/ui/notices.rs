//! Notices in words.

use std::path::{Path, PathBuf};

use crate::model::{
    AgentNotice, AttemptNotice, ConfigNotice, EndCause, Notice, Resumed, SetupNotice, TreeNotice,
    first_few, visible_line,
};

use super::figures::stories;
use super::layout::shown;
use super::look::{Line, TextLine, Tone};

/// The most names in a line.
const MOST: usize = 5;
/// Files that left the tree; more are only counted.
const MOST_FILES: usize = 10;

pub fn lines(notice: &Notice) -> Vec<Line> {
    let (tone, text) = words(notice);
    let mut rest = text.trim_end().split('\n');
    let first = rest.next().unwrap_or_default();
    let is_warning = tone == Tone::Warning;
    let first = if is_warning { TextLine::warning(first) } else { TextLine::new().plain(first) };
    let more = rest.map(|line| TextLine::new().plain(format!("  {line}")));
    std::iter::once(first).chain(more).map(Line::from).collect()
}

/// `--quiet` shows warnings only.
pub fn is_warning(notice: &Notice) -> bool {
    words(notice).0 == Tone::Warning
}

fn info(text: impl Into<String>) -> (Tone, String) {
    (Tone::Normal, text.into())
}

fn warning(text: impl Into<String>) -> (Tone, String) {
    (Tone::Warning, text.into())
}

/// Lower case, no full stop, like compiler messages.
fn words(notice: &Notice) -> (Tone, String) {
    match notice {
        Notice::BacklogBroken { problem } => {
            warning(format!("the backlog is invalid; using its last valid version\n{problem}"))
        }
        Notice::ClaimWaits { story, problem, patience } => {
            let wait = patience.as_secs();
            warning(format!(
                "{story} is complete and waits for a valid backlog; in {wait} s its last valid \
                 version is restored, and yours is kept beside it\n{problem}"
            ))
        }
        Notice::BacklogUsableAgain => info("the backlog is valid again"),
        Notice::BacklogNotCommitted { path, why } => {
            warning(format!("{} is updated but not committed: {why}", shown(path)))
        }
        Notice::Doubt { message } => warning(message.as_str()),
        Notice::CompletedButGone { story } => {
            warning(format!("{story} was completed but is no longer in the backlog"))
        }
        Notice::Replaced { story } => {
            warning(format!("{story} is a different story now; the earlier work is kept at a ref"))
        }
        Notice::Disowned { story } => warning(format!(
            "you marked {story} as passing; its unfinished work stays in the work tree, and ralph \
             does not commit it"
        )),
        Notice::Attempt(story, notice) => {
            let (tone, text) = attempt(notice);
            (tone, format!("{story}: {text}"))
        }
        Notice::Agent(notice) => agent(notice),
        Notice::Tree(notice) => tree(notice),
        Notice::Setup(notice) => info(setup(notice)),
        Notice::Config(notice) => config(notice),
        Notice::Resumed(found) => info(resumed(found)),
    }
}

fn attempt(notice: &AttemptNotice) -> (Tone, String) {
    match notice {
        AttemptNotice::FalsePromise { remaining } => {
            let left =
                format!("{} {}", stories(*remaining), if *remaining == 1 { "is" } else { "are" });
            warning(format!("the agent claimed the whole backlog, but {left} left"))
        }
        AttemptNotice::OtherClaims { ids } => warning(format!(
            "the agent also claimed {}; only its own story counts",
            first_few(ids, usize::MAX)
        )),
        AttemptNotice::ToolDenied { rule, times } => {
            let often = if *times == 1 { "once".to_owned() } else { format!("{times} times") };
            warning(format!(
                "the agent was denied `{rule}` {often}; to allow it, add {rule:?} to \
                 `allowed_tools` in ralph.toml"
            ))
        }
        AttemptNotice::LogIncomplete { problem } => {
            warning(format!("the agent's log is incomplete: {problem}"))
        }
        AttemptNotice::LeftoversEnded { names } => {
            info(format!("ended processes that the agent left running: {}", first_few(names, MOST)))
        }
        AttemptNotice::ProcessesKept { names } => info(format!(
            "left running (`keep_processes` in ralph.toml): {}",
            first_few(names, MOST)
        )),
        AttemptNotice::OverIterationBudget { cost, limit } => {
            warning(format!("the iteration cost {cost} (`--budget-iteration` is {limit})"))
        }
        AttemptNotice::LockRemoved { path } => {
            info(format!("removed `{}`, left behind by the agent's git", shown(path)))
        }
        AttemptNotice::CommitsTakenFrom { branch } => info(format!(
            "the agent committed on `{}`; its commits are now on the run's branch",
            visible_line(branch)
        )),
    }
}

fn agent(notice: &AgentNotice) -> (Tone, String) {
    match notice {
        AgentNotice::EarlierRunEnded { names } => warning(format!(
            "ended processes that an earlier run left running: {}",
            first_few(names, MOST)
        )),
        AgentNotice::Ended(cause) => stopped(*cause),
        AgentNotice::Scratchpad { problem } => warning(problem.as_str()),
        AgentNotice::UnknownRequest => {
            warning("a newer version of ralph sent a request that this version does not support")
        }
    }
}

fn stopped(cause: EndCause) -> (Tone, String) {
    let (why, what) = match cause {
        // Gates continue.
        EndCause::RunTime => ("the run reached its time limit", "all agents"),
        EndCause::DiskLow => ("the disk is nearly full", "everything that runs"),
        EndCause::Aborted => ("you aborted the run", "everything that runs"),
        EndCause::Interrupt => {
            return warning("interrupted; ending everything that runs (a second signal kills it)");
        }
    };
    warning(format!("{why}; ending {what} (unfinished work is kept)"))
}

fn tree(notice: &TreeNotice) -> (Tone, String) {
    match notice {
        TreeNotice::LockRemoved { path } => {
            info(format!("removed `{}`, left behind by a killed process", shown(path)))
        }
        TreeNotice::CleanUpFailed { problem } => warning(problem.as_str()),
        TreeNotice::WorkKept { story, reference, comes_back } => {
            let next = if *comes_back { " and will be restored" } else { "" };
            info(format!("earlier work on {story} is at `{reference}`{next}"))
        }
        TreeNotice::NewFilesShelved { story, reference, paths } => {
            let files = first_few(paths, MOST_FILES);
            let back = format!("`git restore --source={reference} -- FILE`");
            info(format!("new files left the tree with {story}: {files}; {back} brings one back"))
        }
        TreeNotice::MovedAway { path, kept } => {
            let (path, kept) = (shown(path), shown(kept));
            let why = "git cannot use it as it is, or its place is taken";
            warning(format!("moved `{path}` away, because {why}: now {kept}"))
        }
        TreeNotice::NotPruned { problem } => {
            warning(format!("cannot remove old snapshots: {problem}"))
        }
    }
}

fn setup(notice: &SetupNotice) -> String {
    match notice {
        SetupNotice::Untracked { paths } => {
            format!("untracked files, never committed: {}", first_few(paths, MOST))
        }
        SetupNotice::UncommittedEdits { paths } => {
            format!("uncommitted edits, never committed: {}", first_few(paths, MOST))
        }
        SetupNotice::Hooks { paths, pre_commit } => hooks(paths, pre_commit.as_deref()),
        SetupNotice::Attributes { names } => format!(
            "git attributes that ralph cannot apply: {}; a story that changes such a file is not \
             closed automatically",
            first_few(names, MOST)
        ),
        SetupNotice::SparseCheckout => {
            "sparse checkout: excluded files stay as committed".to_owned()
        }
        SetupNotice::Submodules { paths } => format!(
            "submodules: {}; ralph commits their commit ids, not changes inside them",
            first_few(paths, MOST)
        ),
        SetupNotice::CommitsSigned => "commits will be signed".to_owned(),
        SetupNotice::BranchCreated { branch } => format!("created branch `{branch}` from HEAD"),
        SetupNotice::BranchSwitched { branch } => format!("switched to branch `{branch}`"),
        SetupNotice::BranchCurrent { branch } => format!("on branch `{branch}`"),
        SetupNotice::OnMainBranch { branch } => {
            format!("committing to `{branch}`; use `--branch NAME` for a separate branch")
        }
    }
}

fn config(notice: &ConfigNotice) -> (Tone, String) {
    match notice {
        ConfigNotice::JournalDamaged { kept } => warning(format!(
            "the journal was damaged and is kept as `{}`; rebuilding it from the backlog, the \
             refs and the commits",
            shown(kept)
        )),
        ConfigNotice::JournalMissing => warning(
            "this backlog was worked on, but its journal was deleted; rebuilding it from the backlog, \
             the refs and the commits"
                .to_owned(),
        ),
        ConfigNotice::CommandFinished { command } => {
            info(format!("`{command}` was interrupted; finished it"))
        }
        ConfigNotice::SettingsRestored { kept } => warning(settings_restored(kept.as_deref())),
        ConfigNotice::SettingsChanged => info("the run continues with the changed ralph.toml"),
        ConfigNotice::AgentCommand { command } => {
            info(format!("agent: `{}`", visible_line(command)))
        }
        ConfigNotice::PermissionsRemembered { mode } => info(format!(
            "agent permissions: {mode}, your earlier choice; change it with `permission_mode` in \
             ralph.toml"
        )),
        ConfigNotice::PermissionsAssumed { mode, meaning } => info(format!(
            "agent permissions: {mode} ({meaning}), the default without an answer; allow more \
             with `allowed_tools` or `permission_mode` in ralph.toml"
        )),
        ConfigNotice::PermissionsDoubt { message } => warning(message.as_str()),
        ConfigNotice::NoGates => info("no gates: ralph only checks that a claim has changes"),
        ConfigNotice::GatesNotRun => info("a dry run does not run gates"),
        ConfigNotice::UserCostsNotKept { problem } => {
            warning(format!("cannot record your costs over all repositories: {problem}"))
        }
        ConfigNotice::BudgetsBetweenIterations { agent } => info(format!(
            "budgets are checked between iterations only: `{agent}` cannot limit its own cost"
        )),
    }
}

fn settings_restored(kept: Option<&Path>) -> String {
    let kept = kept.map(|kept| format!(" (the changed version is `{}`)", shown(kept)));
    format!(
        "ralph.toml is not as it was in this run; the run keeps its settings, and the file is \
         restored{}. To change settings during a run, edit the file and run `ralph trust`",
        kept.unwrap_or_default()
    )
}

fn hooks(paths: &[PathBuf], pre_commit: Option<&Path>) -> String {
    let offer = pre_commit.map(|hook| {
        format!("; to run pre-commit as a gate, add `verify = [\"{}\"]` to ralph.toml", shown(hook))
    });
    let names = first_few(paths, MOST);
    format!("git hooks that ralph does not run: {names}{}", offer.unwrap_or_default())
}

fn resumed(found: &Resumed) -> String {
    match found {
        Resumed::After { died, attempt } => {
            let how = if *died { "died" } else { "was interrupted" };
            match attempt {
                Some((iteration, story)) => {
                    format!("the last process {how} in iteration {iteration} ({story})")
                }
                None => format!("the last process {how} while no agent was running"),
            }
        }
        Resumed::Accepted(story) => {
            format!("{story} was accepted: checking for its commit, and creating it if needed")
        }
        Resumed::ToSkip(story) => format!("{story} is to be skipped: committing its mark"),
        Resumed::Question(story) => format!("{story} has an open question: asking it again"),
        Resumed::Claimed(story) => format!("an agent claimed {story}: checking the claim"),
        Resumed::InTree(story) => {
            format!("unfinished work on {story} is in the work tree: its next attempt continues it")
        }
        Resumed::Shelved { story, reference } => {
            format!("work on {story} is shelved at `{reference}`: its next attempt restores it")
        }
        Resumed::More { count } => format!("and {count} more; see `ralph status`"),
    }
}
