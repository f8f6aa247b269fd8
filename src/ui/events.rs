//! Events in words. Pure: the same events always read the same.

use crate::decide::figures::forecast;
use crate::model::{
    Answer, AttemptEnded, AttemptStarted, Budget, BudgetLevel, Cause, CommitName, Event,
    HeldChange, LeftOut, NudgedBy, Recorded, StoryClosed, StoryId, StuckEvent, Usage, Verdict,
    WhyLeftOut, shorten, visible_line,
};
use crate::ports::View;
use crate::state::Health;

use super::ending;
use super::figures::{cost, duration, short_commit, short_run, stories, to_go_in_short};
use super::look::{LONGEST, Line, LiveAgent, TextLine, Tone, labeled, listed};
use super::{gates, repairs, replaced};

const OUTDATED: &str = "the gates saw an earlier state; running them again";

pub fn lines(recorded: &Recorded, view: View<'_>) -> Vec<Line> {
    let at = recorded.at;
    let progress = || ending::progress(at, "Progress", view);
    let notable = || notable(at, &recorded.event);
    match &recorded.event {
        Event::RunStarted(start) => vec![title(&start.project, view), progress()],
        Event::RunContinued => continued(at, view),
        Event::AttemptStarted(start) => attempt_started(at, start, view),
        Event::AttemptEnded(end) => attempt_ended(at, end),
        Event::BudgetNear { level } => vec![budget_near(at, level)],
        // A commit, a wait or a notice shows them, the human made them, or they are internal.
        Event::AttemptLost { .. } | Event::Throttled { .. } | Event::WorkLetGo { .. } => vec![],
        Event::ClosePlanned { .. } | Event::BaseSet { .. } | Event::ApprovalsSeen { .. } => vec![],
        Event::CommitsTaken { .. } | Event::SettingsTaken(_) | Event::MarksSeen { .. } => vec![],
        Event::BacklogTaken(_) | Event::TreeLeft { .. } | Event::TreeTaken { .. } => vec![],
        Event::UserEditsFound { .. } | Event::FilesHidden { .. } | Event::GatesOver => vec![],
        Event::CommitPrepared { .. } | Event::UndoPlanned { .. } | Event::GatesStarted(_) => vec![],
        Event::BaselineTaken { reports, story, .. } => gates::baseline(at, reports, story.as_ref()),
        Event::ClaimChecked { items, .. } => gates::checked(at, items, view),
        Event::ClaimOutdated { story } => vec![warning(at, format!("{story}: {OUTDATED}"))],
        Event::ConfirmationWanted { story, commit } => vec![to_confirm(at, story, commit)],
        Event::ConfirmationFailed { story, error } => vec![rejected(at, story, error)],
        Event::ClaimRejected { story, error, .. } => vec![rejected(at, story, error)],
        Event::CloseRefused { story, error, .. } => vec![not_closed(at, story, error)],
        Event::StoryClosed(closed) => vec![complete(at, closed, view), progress()],
        Event::QuestionRaised { story, question } => vec![asks(at, story, &question.summary)],
        Event::QuestionAnswered { story, answer } => answered(at, story, answer),
        Event::StoryParked { story } => vec![parked(at, story)],
        Event::WorkSetAside { story, reference, .. } | Event::Returned { story, reference } => {
            reference.iter().map(|reference| work_kept(at, story, reference)).collect()
        }
        Event::AttemptKept { story, reference, .. } => vec![work_kept(at, story, reference)],
        Event::ReturnPlanned { story, why, .. } => vec![rolled_back(at, story, *why)],
        Event::Repaired { .. } | Event::FilesPutBack { .. } => notable(),
        Event::SetupPutBack { .. } | Event::StashesPutBack { .. } => notable(),
        Event::InstructionsPutBack { .. } | Event::MarksPutBack { .. } => notable(),
        Event::BacklogPutBack { .. } | Event::StoriesRemoved { .. } => notable(),
        Event::RequestsIgnored { .. } | Event::HumanCommitted { .. } => notable(),
        Event::CommitsReplaced(_) | Event::FilesLeftOut { .. } => notable(),
        Event::ChangesHeld { .. } | Event::ChangesApplied { .. } => notable(),
        Event::ApprovalsPutBack { .. } => notable(),
        Event::Nudged { story, by, delivered, .. } => vec![nudged(at, story, *by, *delivered)],
        Event::MessageKept { .. } => vec![warning(at, "the next attempt gets your message")],
        Event::Stuck { story, step } => vec![stuck(at, story, *step)],
        Event::StageReached { story, stage } => vec![reached(at, story, stage)],
        Event::SecondLookWanted { story } => {
            plain(at, format!("the agent claims {story}; the next attempt checks it again"))
        }
        Event::StoryReopened { story, .. } => plain(at, format!("{story} reopened")),
        Event::WorkBroughtBack { story, reference, conflicts } => {
            vec![unshelved(at, story, reference, conflicts)]
        }
        Event::StorySkipped { story, commit } => {
            vec![skipped(at, story, commit.as_deref()), progress()]
        }
        Event::WaitCutShort => plain(at, "Wait skipped; continuing"),
        Event::BreakerOpened { why, until } => vec![paused(at, why, *until)],
        Event::RunInterrupted { .. } => plain(at, "Interrupted. Run `ralph run` to continue."),
        Event::RunEnded { reason } => ending::lines(at, reason, view),
    }
}

fn notable(at: i64, event: &Event) -> Vec<Line> {
    if let Some((after, violation)) = repairs::violation_in(event) {
        return repairs::lines(at, after, &violation);
    }
    vec![match event {
        Event::FilesLeftOut { files } => {
            return files.iter().map(|one| left_out(at, one)).collect();
        }
        Event::CommitsReplaced(replaced) => replaced::line(at, replaced),
        Event::HumanCommitted { story, commits, below, .. } => {
            return human_committed(at, story, commits, below);
        }
        Event::MarksPutBack { stories } => marks_reverted(at, stories),
        Event::BacklogPutBack { problem, kept } => backlog_repaired(at, problem, kept.as_deref()),
        Event::ChangesApplied { refused, .. } => {
            return refused.iter().map(|path| refused_again(at, path)).collect();
        }
        Event::ChangesHeld { changes, .. } => {
            return changes.iter().map(|change| held_back(at, change)).collect();
        }
        Event::StoriesRemoved { removed, .. } => {
            let gone = listed(removed);
            warned(at, format!("{gone} disappeared from the backlog"))
        }
        Event::ApprovalsPutBack { names } => warned(
            at,
            format!("restored your approvals, which something else changed: {}", listed(names)),
        ),
        Event::RequestsIgnored { asked } => {
            warned(at, format!("ignored what no command of yours asked for: {}", listed(asked)))
        }
        _ => return vec![],
    }]
}

/// What `--quiet` shows too: questions, warnings and the end.
pub fn is_essential(event: &Event) -> bool {
    event.is_notable()
        || matches!(
            event,
            Event::QuestionRaised { .. }
                | Event::BreakerOpened { .. }
                | Event::BudgetNear { .. }
                | Event::RunInterrupted { .. }
                | Event::RunEnded { .. }
        )
}

fn plain(at: i64, text: impl Into<String>) -> Vec<Line> {
    vec![TextLine::at(at).plain(text).into()]
}

fn title(project: &str, view: View<'_>) -> Line {
    let count = stories(view.backlog.stories.len());
    Line::Rule(format!("ralph · {} · {count}", visible_line(project)))
}

fn continued(at: i64, view: View<'_>) -> Vec<Line> {
    let Some(run) = &view.state.run else { return vec![] };
    let next = view.state.attempts.iterations.saturating_add(1);
    let text = format!("Continuing run {} with iteration {next}", short_run(&run.run));
    let text = TextLine::at(at).plain(text).into();
    vec![title(&run.project, view), text, ending::progress(at, "Progress", view)]
}

fn attempt_started(at: i64, start: &AttemptStarted, view: View<'_>) -> Vec<Line> {
    let guided = if start.guided { " (with guidance)" } else { "" };
    let title = visible_line(&start.title);
    let heading = format!("Iteration {} · {}{guided} {title}", start.iteration, start.story);
    let to_go = forecast(view.state, view.backlog.remaining()).as_ref().map(to_go_in_short);
    let health = view.state.recent.health();
    let health = (health != Health::Healthy).then(|| health.word());
    let (story, name) = (Some(start.story.clone()), start.agent.clone());
    let agent = LiveAgent { story, name, to_go, health, doing: String::new() };
    let running = Line::Running { at, attempt: start.attempt.clone(), agent };
    vec![Line::Blank, Line::Rule(heading), running]
}

fn attempt_ended(at: i64, end: &AttemptEnded) -> Vec<Line> {
    let text = match &end.verdict {
        Verdict::Failed { error, .. }
        | Verdict::NotTheStory { error, .. }
        | Verdict::PromptTooLong { error } => {
            labeled(at, Tone::Bad, format!("✗ {}: ", end.story), brief(error))
        }
        Verdict::Progress => {
            TextLine::at(at).plain(format!("… {} is not complete yet; continuing", end.story))
        }
        // The next event says more.
        Verdict::Done | Verdict::Escalated { .. } | Verdict::Interrupted => return vec![],
    };
    vec![text.figures(time_and_cost(end.elapsed_ms, &end.usage)).into()]
}

fn complete(at: i64, closed: &StoryClosed, view: View<'_>) -> Line {
    let totals = view.state.story(&closed.story).map(|story| story.totals.clone());
    let totals = totals.unwrap_or_default();
    good(at, format!("Task {} complete", closed.story))
        .figures(closed.change.as_ref().map(|change| visible_line(&change.to_string())))
        .figures(time_and_cost(totals.elapsed_ms, &totals.usage))
        .figures([short_commit(&closed.commit)])
        .into()
}

fn to_confirm(at: i64, story: &StoryId, commit: &str) -> Line {
    let commit = short_commit(commit);
    warning(at, format!("{story} is to be confirmed: only its commit {commit} calls it closed"))
}

pub(super) fn good(at: i64, text: String) -> TextLine {
    labeled(at, Tone::Good, "✓ ", text)
}

/// Failing tests are normal before any work; a suite that cannot run is not.
fn rejected(at: i64, story: &StoryId, error: &str) -> Line {
    let first = error.lines().next().unwrap_or_default();
    labeled(at, Tone::Bad, format!("✗ {story} is not done: "), brief(first)).into()
}

fn not_closed(at: i64, story: &StoryId, error: &str) -> Line {
    labeled(at, Tone::Bad, format!("✗ {story} cannot be closed: "), brief(error)).into()
}

fn asks(at: i64, story: &StoryId, summary: &str) -> Line {
    labeled(at, Tone::Question, format!("? {story} asks: "), brief(summary)).into()
}

/// The next event shows a skip or an abort.
fn answered(at: i64, story: &StoryId, answer: &Answer) -> Vec<Line> {
    let what = match answer {
        Answer::Option { number, .. } => format!("{story} continues with option {number}"),
        Answer::Guidance { .. } => format!("{story} continues with your guidance"),
        Answer::Accept => format!("you accepted {story}"),
        Answer::Retry => format!("retrying {story}"),
        Answer::Restore => format!("{story} goes on with the original"),
        Answer::Skip => format!("skipping {story}"),
        Answer::Abort => return vec![],
    };
    plain(at, what)
}

fn parked(at: i64, story: &StoryId) -> Line {
    labeled(at, Tone::Warning, format!("⏸ {story} parked: "), "waiting for your answer").into()
}

fn work_kept(at: i64, story: &StoryId, reference: &str) -> Line {
    TextLine::at(at).with(Tone::Dim, format!("work on {story} kept at {reference}")).into()
}

fn rolled_back(at: i64, story: &StoryId, why: Cause) -> Line {
    let did = match why {
        Cause::FreshStart => {
            let text = format!("{story} starts over: branch and work tree are reset to its base");
            return TextLine::at(at).plain(text).into();
        }
        Cause::Elsewhere => "left the branch",
        Cause::Rewritten => "rewrote older commits",
        Cause::Unfinished => "was killed in the middle of a merge or rebase",
    };
    let text =
        format!("the agent {did} while working on {story}; restored the branch and the work tree");
    warning(at, text)
}

fn warned(at: i64, text: String) -> Line {
    TextLine::at(at).with(Tone::Warning, text).into()
}

fn marks_reverted(at: i64, ids: &[StoryId]) -> Line {
    let (all, first) = (listed(ids), ids.first().map_or("STORY", StoryId::as_str));
    let text = "neither a commit nor `ralph mark` confirms them; if one is correct, set it with";
    warned(at, format!("reverted the marks of {all}: {text} `ralph mark {first} pass`"))
}

fn human_committed(
    at: i64,
    story: &StoryId,
    commits: &[CommitName],
    below: &[CommitName],
) -> Vec<Line> {
    let named = |one: &CommitName| {
        format!("{} `{}`", short_commit(&one.commit), visible_line(&one.subject))
    };
    let yours = |one| format!("your commit {} stays, and is no part of {story}", named(one));
    let stays = |one| format!("commit {} of {story} stays below it on the branch", named(one));
    let texts = commits.iter().map(yours).chain(below.iter().map(stays));
    texts.map(|text| warned(at, text)).collect()
}

fn left_out(at: i64, one: &LeftOut) -> Line {
    let why = match one.why {
        WhyLeftOut::Size => "it is larger than 1 GiB",
        WhyLeftOut::Repository => "it is a nested repository",
        WhyLeftOut::Name => "it matches `never_commit` (see ralph.toml)",
        WhyLeftOut::Users => "it was untracked before the story, and the agent changed it",
        WhyLeftOut::Ignored => "git ignored it when the story began",
        WhyLeftOut::Filter => "it needs a git filter; commit it yourself with git",
    };
    let count = if one.files > 1 { format!(" ({} files)", one.files) } else { String::new() };
    warned(at, format!("{} was not committed{count}: {why}", visible_line(&one.path)))
}

fn backlog_repaired(at: i64, problem: &str, kept: Option<&str>) -> Line {
    let problem = problem.lines().next().unwrap_or_default();
    let text = format!("restored the backlog: {}", visible_line(problem));
    let kept = kept.map(|kept| format!("what was there: {}", visible_line(kept)));
    TextLine::at(at).with(Tone::Warning, text).figures(kept).into()
}

fn held_back(at: i64, change: &HeldChange) -> Line {
    let text = format!("{}: taken out until you decide", visible_line(&change.what));
    let kept = change.changed.as_ref();
    let version = kept.map(|kept| format!("the changed version: {}", visible_line(kept)));
    TextLine::at(at).with(Tone::Warning, text).figures(version).into()
}

fn refused_again(at: i64, path: &str) -> Line {
    let text = "changed again meanwhile, so the accepted change does not fit any more";
    warned(at, format!("{} {text}", visible_line(path)))
}

fn unshelved(at: i64, story: &StoryId, reference: &str, conflicts: &[String]) -> Line {
    if conflicts.is_empty() {
        return TextLine::at(at).with(Tone::Dim, format!("restored the work on {story}")).into();
    }
    let what = format!("cannot restore the work on {story} (kept at {reference}); conflicts in: ");
    labeled(at, Tone::Warning, what, listed(conflicts)).into()
}

fn warning(at: i64, text: impl Into<String>) -> Line {
    TextLine::at(at).with(Tone::Warning, text).into()
}

fn nudged(at: i64, story: &StoryId, by: NudgedBy, delivered: bool) -> Line {
    let why = match by {
        NudgedBy::Driver => format!("{story} is not making progress: "),
        NudgedBy::Human => String::new(),
    };
    let how = match (by, delivered) {
        (NudgedBy::Driver, true) => "reminded its agent of the story",
        (NudgedBy::Human, true) => "message delivered to the agent",
        (NudgedBy::Driver, false) => {
            "its agent takes no messages now; the next attempt is reminded"
        }
        (NudgedBy::Human, false) => {
            "the agent takes no messages now; the story's next attempt gets yours"
        }
    };
    warning(at, format!("{why}{how}"))
}

fn stuck(at: i64, story: &StoryId, step: StuckEvent) -> Line {
    let text = match step {
        StuckEvent::Asked { minutes } => {
            format!("{story}: no progress for a long time ({minutes} min into the attempt)")
        }
        StuckEvent::Recovered => format!("{story} is making progress again"),
        StuckEvent::MoreTime => format!("{story} gets more time"),
        StuckEvent::Ended { minutes } => {
            format!("ended the agent of {story} after {minutes} min; its work stays")
        }
    };
    warning(at, text)
}

fn reached(at: i64, story: &StoryId, stage: &str) -> Line {
    good(at, format!("{story} reached stage {}", brief(stage))).into()
}

fn skipped(at: i64, story: &StoryId, commit: Option<&str>) -> Line {
    TextLine::at(at).plain(format!("→ {story} skipped")).figures(commit.map(short_commit)).into()
}

fn paused(at: i64, why: &str, until: i64) -> Line {
    let pause = duration(u64::try_from(until.saturating_sub(at)).unwrap_or_default());
    let then = format!("pausing for {pause}, then trying one iteration");
    labeled(at, Tone::Warning, format!("⏸ {}: ", brief(why)), then).into()
}

/// Reported once, before the budget is used up.
fn budget_near(at: i64, level: &BudgetLevel) -> Line {
    let BudgetLevel { budget, limit, .. } = level;
    let then = match budget {
        _ if !level.binding => format!("with a subscription the run does not stop at {limit}"),
        Budget::Story(_) => format!("ralph asks you at {limit}"),
        _ => format!("the run stops at {limit}"),
    };
    let then = format!("; {then} (change it with {})", budget.flag());
    labeled(at, Tone::Warning, level.to_string(), then).into()
}

fn time_and_cost(elapsed_ms: u64, usage: &Usage) -> impl Iterator<Item = String> {
    std::iter::once(duration(elapsed_ms)).chain(cost(usage.cost_usd))
}

fn brief(text: &str) -> String {
    shorten(&visible_line(text), LONGEST)
}
