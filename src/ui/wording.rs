//! What each event is in words. Pure: the same events always read the same.

use crate::decide::forecast::forecast;
use crate::model::{
    Answer, AttemptEnded, AttemptStarted, Cause, Event, EvidenceItem, GateReport, Health, NudgedBy,
    Recorded, StoryId, StuckEvent, Usage, Verdict, shorten, visible_line,
};
use crate::ports::View;
use crate::state::StoryState;

use super::ending::{self, StoryCounts};
use super::figures::{cost, duration, short_commit, short_run, stories, to_go, to_go_in_short};
use super::look::{Line, TextLine, Tone};

/// The longest error or summary that one line shows.
const LONGEST: usize = 300;

pub fn lines(recorded: &Recorded, view: View<'_>) -> Vec<Line> {
    let at = recorded.at;
    match &recorded.event {
        Event::RunStarted(start) => vec![title(&start.project, view), progress(at, view)],
        Event::RunContinued => continued(at, view),
        Event::AttemptStarted(start) => attempt_started(at, start, view),
        Event::AttemptEnded(end) => attempt_ended(at, end),
        Event::BudgetNear { level } => vec![ending::budget_near(at, level)],
        // Nobody saw the one's end; that it waits is told as long as it does.
        Event::AttemptLost { .. } | Event::Throttled { .. } => vec![],
        // The commit says the one; the other changes nothing that people see.
        Event::ClosePlanned { .. } | Event::BaseSet { .. } => vec![],
        // A notice says the one; the human knows the other.
        Event::WorkLetGo { .. } | Event::MarksSeen { .. } => vec![],
        Event::BaselineTaken { reports } => reports.iter().map(|one| baseline(at, one)).collect(),
        Event::ClaimChecked { items, .. } => items.iter().map(|item| checked(at, item)).collect(),
        Event::ClaimRejected { story, error, .. } => vec![rejected(at, story, error)],
        Event::CloseRefused { story, error, .. } => vec![not_closed(at, story, error)],
        Event::StoryClosed(closed) => {
            vec![complete(at, &closed.story, &closed.commit, view), progress(at, view)]
        }
        Event::QuestionRaised { story, question } => vec![asks(at, story, &question.summary)],
        Event::QuestionAnswered { story, answer } => answered(at, story, answer),
        Event::StoryParked { story } => vec![parked(at, story)],
        Event::WorkSetAside { story, reference } => set_aside(at, story, reference.as_deref()),
        Event::AttemptKept { story, reference, .. } => set_aside(at, story, Some(reference)),
        Event::ReturnPlanned { story, why, .. } => vec![goes_back(at, story, *why)],
        Event::Returned { story, reference } => set_aside(at, story, reference.as_deref()),
        Event::FilesPutBack { paths, snapshot, .. } => {
            vec![put_back(at, paths, snapshot.as_deref())]
        }
        Event::SetupPutBack { names, kept, .. } => vec![setup_put_back(at, names, kept)],
        Event::Nudged { story, by, delivered, .. } => vec![nudged(at, story, *by, *delivered)],
        Event::Stuck { story, step } => vec![stuck(at, story, *step)],
        Event::StageReached { story, stage } => {
            let text = TextLine::at(at).with(Tone::Good, "✓ ");
            vec![text.plain(format!("{story} reached the stage {}", brief(stage))).into()]
        }
        Event::SecondLookWanted { story } => {
            let text = format!("{story} is claimed complete; checking it a second time");
            vec![TextLine::at(at).plain(text).into()]
        }
        Event::InstructionsPutBack { path, kept, .. } => {
            vec![instructions_put_back(at, path, kept.as_deref())]
        }
        Event::StoryReopened { story, .. } => {
            vec![TextLine::at(at).plain(format!("{story} is open again")).into()]
        }
        Event::WorkBroughtBack { story, reference, conflicts } => {
            vec![brought_back(at, story, reference, conflicts)]
        }
        Event::StorySkipped { story, commit } => {
            vec![skipped(at, story, commit.as_deref()), progress(at, view)]
        }
        Event::WaitCutShort => vec![TextLine::at(at).plain("Wait skipped; retrying now").into()],
        Event::BreakerOpened { why, until } => vec![paused(at, why, *until)],
        Event::RunInterrupted { .. } => vec![interrupted(at)],
        Event::RunEnded { reason } => ending::lines(at, reason, view),
    }
}

/// What `--quiet` shows too: questions and the end.
pub fn is_essential(event: &Event) -> bool {
    matches!(
        event,
        Event::QuestionRaised { .. }
            | Event::FilesPutBack { .. }
            | Event::SetupPutBack { .. }
            | Event::BreakerOpened { .. }
            | Event::BudgetNear { .. }
            | Event::InstructionsPutBack { .. }
            | Event::RunInterrupted { .. }
            | Event::RunEnded { .. }
    )
}

fn title(project: &str, view: View<'_>) -> Line {
    let count = stories(view.backlog.stories.len());
    Line::Rule(format!("ralph · {} · {count}", visible_line(project)))
}

fn continued(at: i64, view: View<'_>) -> Vec<Line> {
    let Some(run) = &view.state.run else {
        return vec![];
    };
    let next = view.state.attempts.iterations.saturating_add(1);
    let text = TextLine::at(at)
        .plain(format!("Continuing run {} with iteration {next}", short_run(&run.run)));
    vec![title(&run.project, view), text.into(), progress(at, view)]
}

fn attempt_started(at: i64, start: &AttemptStarted, view: View<'_>) -> Vec<Line> {
    let guided = if start.guided { " (with guidance)" } else { "" };
    let title = visible_line(&start.title);
    let heading = format!("Iteration {} · {}{guided} {title}", start.iteration, start.story);
    let outlook = forecast(view.state, StoryCounts::of(view.backlog).remaining());
    let to_go = outlook.as_ref().map(to_go_in_short);
    let health = view.state.recent.health();
    let health = (health != Health::Healthy).then(|| health.word());
    let running = Line::Running { at, agent: start.agent.clone(), to_go, health };
    vec![Line::Blank, Line::Rule(heading), running]
}

fn attempt_ended(at: i64, end: &AttemptEnded) -> Vec<Line> {
    let text = match &end.verdict {
        Verdict::Failed { error, .. }
        | Verdict::NotTheStory { error, .. }
        | Verdict::PromptTooLong { error } => {
            TextLine::at(at).with(Tone::Bad, format!("✗ {}: ", end.story)).plain(brief(error))
        }
        Verdict::Progress => {
            TextLine::at(at).plain(format!("… {} not complete yet; continuing", end.story))
        }
        // What follows from these says more.
        Verdict::Done | Verdict::Escalated { .. } | Verdict::Interrupted => return vec![],
    };
    vec![text.figures(time_and_cost(end.elapsed_ms, &end.usage)).into()]
}

fn complete(at: i64, story: &StoryId, commit: &str, view: View<'_>) -> Line {
    let none = StoryState::default();
    let figures = view.state.story(story).unwrap_or(&none);
    TextLine::at(at)
        .with(Tone::Good, "✓ ")
        .plain(format!("Task {story} complete"))
        .figures(time_and_cost(figures.totals.elapsed_ms, &figures.totals.usage))
        .figures([short_commit(commit)])
        .into()
}

/// Red tests are normal before the work; a suite that is not there is not.
fn baseline(at: i64, report: &GateReport) -> Line {
    let text = match (report.passed(), report.cannot_run()) {
        (true, _) => TextLine::at(at).with(Tone::Good, "✓ ").plain(report.describe()),
        (_, true) => TextLine::at(at).with(Tone::Bad, format!("✗ {}", report.describe())),
        _ => TextLine::at(at).plain(format!("○ {}, before any work", report.describe())),
    };
    text.figures([duration(report.elapsed_ms)]).into()
}

fn checked(at: i64, item: &EvidenceItem) -> Line {
    let EvidenceItem::Gate(report) = item;
    let text = if report.passed() {
        TextLine::at(at).with(Tone::Good, "✓ ").plain(report.describe())
    } else {
        TextLine::at(at).with(Tone::Bad, "✗ ").plain(report.describe())
    };
    text.figures([duration(report.elapsed_ms)]).into()
}

fn rejected(at: i64, story: &StoryId, error: &str) -> Line {
    let first = error.lines().next().unwrap_or_default();
    let text = TextLine::at(at).with(Tone::Bad, format!("✗ {story} is not done: "));
    text.plain(brief(first)).into()
}

fn not_closed(at: i64, story: &StoryId, error: &str) -> Line {
    let text = TextLine::at(at).with(Tone::Bad, format!("✗ {story} cannot be closed: "));
    text.plain(brief(error)).into()
}

fn asks(at: i64, story: &StoryId, summary: &str) -> Line {
    TextLine::at(at).with(Tone::Question, format!("? {story} asks: ")).plain(brief(summary)).into()
}

/// Skipping and aborting show themselves in the event that follows.
fn answered(at: i64, story: &StoryId, answer: &Answer) -> Vec<Line> {
    let what = match answer {
        Answer::Option { number, .. } => format!("{story} continues with option {number}"),
        Answer::Guidance { .. } => format!("{story} continues with your guidance"),
        Answer::Accept => format!("you accepted {story}"),
        Answer::Retry => format!("retrying {story}"),
        Answer::Skip | Answer::Abort => return vec![],
    };
    vec![TextLine::at(at).plain(what).into()]
}

fn parked(at: i64, story: &StoryId) -> Line {
    TextLine::at(at)
        .with(Tone::Warning, format!("⏸ {story} parked: "))
        .plain("waiting for your answer")
        .into()
}

fn set_aside(at: i64, story: &StoryId, reference: Option<&str>) -> Vec<Line> {
    let line =
        |kept| TextLine::at(at).with(Tone::Dim, format!("work on {story} kept at {kept}")).into();
    reference.map(line).into_iter().collect()
}

fn goes_back(at: i64, story: &StoryId, why: Cause) -> Line {
    let (tone, text) = match why {
        Cause::FreshStart => (
            Tone::Normal,
            format!("{story} starts over: the work tree is reset to where the story began"),
        ),
        Cause::Elsewhere => (
            Tone::Warning,
            format!(
                "the agent left the branch while working on {story}; restored the branch and the work tree"
            ),
        ),
        Cause::Rewritten => (
            Tone::Warning,
            format!(
                "the agent rewrote older commits while working on {story}; restored the branch and the work tree"
            ),
        ),
    };
    TextLine::at(at).with(tone, text).into()
}

fn put_back(at: i64, paths: &[String], snapshot: Option<&str>) -> Line {
    let paths: Vec<String> = paths.iter().map(|path| visible_line(path)).collect();
    let text = TextLine::at(at)
        .with(Tone::Warning, "restored uncommitted files that the agent deleted or changed: ")
        .plain(shorten(&paths.join(", "), LONGEST));
    text.figures(snapshot.map(ToOwned::to_owned)).into()
}

fn setup_put_back(at: i64, names: &[String], kept: &str) -> Line {
    let names: Vec<String> = names.iter().map(|name| visible_line(name)).collect();
    TextLine::at(at)
        .with(Tone::Warning, "restored git settings that the agent changed: ")
        .plain(shorten(&names.join(", "), LONGEST))
        .figures([format!("the agent's version: {}", visible_line(kept))])
        .into()
}

fn nudged(at: i64, story: &StoryId, by: NudgedBy, delivered: bool) -> Line {
    let why = match by {
        NudgedBy::Driver => format!("{story} is not making progress: "),
        NudgedBy::Human => String::new(),
    };
    let how = match (by, delivered) {
        (NudgedBy::Driver, true) => "reminded its agent of the story",
        (NudgedBy::Human, true) => "message delivered to the agent",
        (_, false) => "this agent takes no messages; the next one gets it",
    };
    TextLine::at(at).with(Tone::Warning, format!("{why}{how}")).into()
}

fn stuck(at: i64, story: &StoryId, step: StuckEvent) -> Line {
    let text = match step {
        StuckEvent::Asked { minutes } => {
            format!("{story} has made no progress for a long time ({minutes} min into the attempt)")
        }
        StuckEvent::Recovered => format!("{story} is making progress again"),
        StuckEvent::MoreTime => format!("{story} gets more time"),
        StuckEvent::Ended { minutes } => {
            format!("stopped the agent of {story} after {minutes} min; its work stays")
        }
    };
    TextLine::at(at).with(Tone::Warning, text).into()
}

fn instructions_put_back(at: i64, path: &str, kept: Option<&str>) -> Line {
    let text = format!("restored {}, which the agent changed", visible_line(path));
    let kept = kept.map(|kept| format!("the agent's version: {}", visible_line(kept)));
    TextLine::at(at).with(Tone::Warning, text).figures(kept).into()
}

fn brought_back(at: i64, story: &StoryId, reference: &str, conflicts: &[String]) -> Line {
    if conflicts.is_empty() {
        let what = format!("restored the work on {story}");
        return TextLine::at(at).with(Tone::Dim, what).into();
    }
    let conflicting: Vec<String> = conflicts.iter().map(|path| visible_line(path)).collect();
    TextLine::at(at)
        .with(
            Tone::Warning,
            format!("cannot restore the work on {story} (kept at {reference}); conflicts in: "),
        )
        .plain(shorten(&conflicting.join(", "), LONGEST))
        .into()
}

fn skipped(at: i64, story: &StoryId, commit: Option<&str>) -> Line {
    TextLine::at(at).plain(format!("→ {story} skipped")).figures(commit.map(short_commit)).into()
}

fn paused(at: i64, why: &str, until: i64) -> Line {
    let ms = u64::try_from(until.saturating_sub(at)).unwrap_or_default();
    let pause = duration(ms);
    TextLine::at(at)
        .with(Tone::Warning, format!("⏸ {}: ", brief(why)))
        .plain(format!("pausing for {pause}, then trying one iteration"))
        .into()
}

fn interrupted(at: i64) -> Line {
    TextLine::at(at).plain("Interrupted. Run `ralph run` to continue.").into()
}

fn time_and_cost(elapsed_ms: u64, usage: &Usage) -> impl Iterator<Item = String> {
    std::iter::once(duration(elapsed_ms)).chain(cost(usage.cost_usd))
}

fn brief(text: &str) -> String {
    shorten(&visible_line(text), LONGEST)
}

fn progress(at: i64, view: View<'_>) -> Line {
    let counts = StoryCounts::of(view.backlog);
    let outlook = forecast(view.state, counts.remaining()).map(|forecast| to_go(&forecast));
    TextLine::at(at).plain(format!("Progress: {counts}")).figures(outlook).into()
}
