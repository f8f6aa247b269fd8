//! Whole sessions as people read them, and what must never reach a terminal.

mod changes;
mod endings;
mod menus;
mod notices;
mod typing;

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use jiff::tz::TimeZone;

use crate::model::{
    AgentSignals, Answer, AttemptCost, AttemptEnded, AttemptNotice, AttemptReason, AttemptStarted,
    Backlog, Base, Because, Blocked, ChangeKind, CompletionMarkers, DiffStat, Escalation,
    EscalationKind, Event, Footprint, HeldChange, LaneId, Notice, Outcome, Recorded, Role,
    RunStarted, SetupNotice, StepKind, StopReason, Story, StoryChange, StoryClosed, StoryId, Usage,
    Verdict, Wait, WaitFor,
};
use crate::ports::{Activity, Asked, Clock, Doing, Moment, Reporter, View};
use crate::state::RunState;

use super::display::Display;
use super::look::Look;
use super::printer::{ColorChoice, Printer};
use super::screen::Screen;
use super::{UiOptions, events};

const NASTY: &str = "x\x1b]52;c;aGk=\x07\r\u{9b}2J\u{202e}\n\u{1b}[31my\u{200b}";

fn id(text: &str) -> StoryId {
    StoryId::try_from(text).unwrap()
}

fn story(text: &str, title: &str) -> Story {
    Story {
        id: id(text),
        title: title.into(),
        description: String::new(),
        criteria: vec![],
        passes: false,
        skipped: false,
        depends_on: vec![],
        priority: None,
        verify: vec![],
        max_attempts: None,
        markers: CompletionMarkers::default(),
    }
}

fn doing(doing: Doing) -> Activity {
    Activity { attempt: "a".into(), doing }
}

fn backlog(title: &str) -> Backlog {
    let stories = ["US-001", "US-002", "US-003"].map(|id| story(id, title)).to_vec();
    Backlog::new("demo".into(), String::new(), stories)
}

fn started(project: &str) -> Event {
    Event::RunStarted(RunStarted {
        description: String::new(),
        run: "0199a8b0-5c1d-7000-8000-000000000000".into(),
        backlog: "PRD.json".into(),
        project: project.into(),
        agent: "claude".into(),
        branch: None,
        allow_dirty: false,
        boot: None,
        carried: vec![],
    })
}

fn attempt(iteration: u32, story: &str, guided: bool) -> Event {
    Event::AttemptStarted(Box::new(AttemptStarted {
        lane: LaneId::HOME,
        allowance: None,
        attempt: "a".into(),
        iteration,
        role: Role::Implement,
        story: id(story),
        title: "Short title".into(),
        agent: "claude".into(),
        base: Base { commit: None, tree: "t".into() },
        criteria: None,
        before: None,
        snapshot: None,
        guided,
        why: AttemptReason::FirstTry,
        stable: None,
        held: None,
    }))
}

fn ended(story: &str, verdict: Verdict, elapsed_ms: u64, cost_usd: Option<f64>) -> Event {
    Event::AttemptEnded(Box::new(AttemptEnded {
        attempt: "a".into(),
        story: id(story),
        outcome: Outcome::Completed,
        head: None,
        concerns: vec![],
        agent_version: None,
        model: None,
        footprint: Footprint::default(),
        cost: AttemptCost::default(),
        said: None,
        context: None,
        triggers: vec![],
        denied: [].into(),
        signals: AgentSignals::default(),
        verdict,
        usage: Usage { cost_usd, ..Usage::default() },
        elapsed_ms,
    }))
}

fn failed(story: &str, error: &str, elapsed_ms: u64) -> Event {
    let verdict = Verdict::Failed { error: error.into(), fingerprint: "f".into() };
    ended(story, verdict, elapsed_ms, None)
}

fn closed(story: &str, commit: &str) -> Event {
    let (attempt, commit) = ("a".into(), commit.into());
    let stat = DiffStat { files: 3, added: 40, removed: 2 };
    let change = Some(StoryChange::new(stat, None));
    Event::StoryClosed(StoryClosed { attempt, story: id(story), commit, change })
}

fn escalation(text: &str) -> Escalation {
    Escalation {
        kind: EscalationKind::Deviation,
        summary: text.into(),
        context: "The story wants PostgreSQL, but there is no server.".into(),
        options: vec!["Use SQLite".into(), "Start a server in a container and use that".into()],
        question: "Which one?".into(),
        unread: None,
    }
}

fn raised(story: &str) -> Event {
    Event::QuestionRaised { story: id(story), question: escalation("which database?") }
}

fn answered(story: &str, answer: Answer) -> Event {
    Event::QuestionAnswered { story: id(story), answer }
}

fn end(reason: StopReason) -> Event {
    Event::RunEnded { reason }
}

#[derive(Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Sink {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }

    fn reporter(
        &self,
        columns: Option<usize>,
        colors: bool,
        quiet: bool,
        verbose: bool,
    ) -> Display {
        let look = Look { colors, columns, zone: TimeZone::fixed(jiff::tz::offset(2)) };
        let options = options(quiet, verbose);
        let window = Box::new(move || columns.map(|columns| (24, columns)));
        let printer = Printer::to(Box::new(self.clone()), look, window);
        Display::start(Screen::new(printer, false, clock()), &options)
    }
}

fn options(quiet: bool, verbose: bool) -> UiOptions {
    let (color, terminal) = (ColorChoice::Never, false);
    UiOptions { color, quiet, verbose, terminal, clock: clock() }
}

/// It is always ten o'clock.
fn clock() -> Clock {
    Clock::new(TimeZone::UTC, || Moment { wall: 8 * 3_600_000, steady: Duration::ZERO })
}

/// Plays the events, one every ten seconds from ten o'clock, as the driver would.
fn play(reporter: &mut Display, mut backlog: Backlog, events: &[Event]) {
    let mut state = RunState::default();
    for (number, event) in events.iter().enumerate() {
        let at = 8 * 3_600_000 + i64::try_from(number).unwrap() * 10_000;
        let recorded = Recorded { at, event: event.clone() };
        state.apply(&recorded);
        for story in &mut backlog.stories {
            match event {
                Event::StoryClosed(closed) if closed.story == story.id => story.passes = true,
                Event::StorySkipped { story: id, .. } if *id == story.id => story.skipped = true,
                _ => {}
            }
        }
        reporter.on_event(&recorded, View { backlog: &backlog, state: &state });
    }
}

fn shown(columns: Option<usize>, events: &[Event]) -> String {
    let sink = Sink::default();
    play(&mut sink.reporter(columns, false, false, false), backlog("Short title"), events);
    sink.text()
}

fn quietly(events: &[Event]) -> String {
    let sink = Sink::default();
    play(&mut sink.reporter(None, false, true, true), backlog("Short title"), events);
    sink.text()
}

fn whole_session() -> Vec<Event> {
    let option = Answer::Option { number: 1, text: "Use SQLite".into() };
    vec![
        started("demo"),
        attempt(1, "US-001", false),
        ended("US-001", Verdict::Progress, 40_000, Some(0.1)),
        attempt(2, "US-001", false),
        ended("US-001", Verdict::Done, 42_000, Some(0.21)),
        Event::ClosePlanned { attempt: "a".into(), story: id("US-001") },
        closed("US-001", "3f2a9c1d0e"),
        attempt(3, "US-002", false),
        failed("US-002", "tests fail:\n  left 1, right 2", 12_000),
        attempt(4, "US-002", false),
        ended("US-002", Verdict::Escalated { escalation: escalation("x") }, 9_000, Some(0.004)),
        raised("US-002"),
        answered("US-002", option),
        attempt(5, "US-002", true),
        ended("US-002", Verdict::Done, 3_900_000, Some(12.4)),
        closed("US-002", "beefbeefbeef"),
        raised("US-003"),
        answered("US-003", Answer::Skip),
        Event::WorkSetAside {
            story: id("US-003"),
            reference: Some("refs/ralph/attempts/US-003/1".into()),
            claimed: false,
        },
        Event::StorySkipped { story: id("US-003"), commit: Some("abc1234abc".into()) },
        end(StopReason::AllDone),
    ]
}

#[test]
fn a_whole_session_in_a_terminal() {
    insta::assert_snapshot!(shown(Some(62), &whole_session()), @r"
    ━━━ ralph · demo · 3 stories ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━
    [10:00:00] Progress: 0/3 complete (3 remaining)

    ━━━ Iteration 1 · US-001 Short title ━━━━━━━━━━━━━━━━━━━━━━━━━
    [10:00:10] Running claude …
    [10:00:20] … US-001 is not complete yet; continuing · 40s ·
               $0.10

    ━━━ Iteration 2 · US-001 Short title ━━━━━━━━━━━━━━━━━━━━━━━━━
    [10:00:30] Running claude …
    [10:01:00] ✓ Task US-001 complete · 3 files, +40 -2 · 1m22s ·
               $0.31 · 3f2a9c1
    [10:01:00] Progress: 1/3 complete (2 remaining)

    ━━━ Iteration 3 · US-002 Short title ━━━━━━━━━━━━━━━━━━━━━━━━━
    [10:01:10] Running claude …
    [10:01:20] ✗ US-002: tests fail: left 1, right 2 · 12s

    ━━━ Iteration 4 · US-002 Short title ━━━━━━━━━━━━━━━━━━━━━━━━━
    [10:01:30] Running claude …
    [10:01:50] ? US-002 asks: which database?
    [10:02:00] US-002 continues with option 1

    ━━━ Iteration 5 · US-002 (with guidance) Short title ━━━━━━━━━
    [10:02:10] Running claude …
    [10:02:30] ✓ Task US-002 complete · 3 files, +40 -2 · 1h05m ·
               $12.40 · beefbee
    [10:02:30] Progress: 2/3 complete (1 remaining) · about
               $0.31–$12.40 and 1m22s–1h05m to go
    [10:02:40] ? US-003 asks: which database?
    [10:02:50] skipping US-003
    [10:03:00] work on US-003 kept at refs/ralph/attempts/US-003/1
    [10:03:10] → US-003 skipped · abc1234
    [10:03:10] Progress: 2/3 complete, 1 skipped (0 remaining)

    ━━━ All stories settled · 2 complete, 1 skipped ━━━━━━━━━━━━━━
    [10:03:20] Final: 2/3 complete, 1 skipped (0 remaining)

      Story   Result      Iterations   Time    Cost  Commit
      US-001  ✓ complete           2  1m22s   $0.31  3f2a9c1
      US-002  ✓ complete           3  1h05m  $12.40  beefbee
      US-003  → skipped            0
      Total                        5  1h06m  $12.71
    ");
}

#[test]
fn a_whole_session_in_a_log() {
    insta::assert_snapshot!(shown(None, &whole_session()), @r"
    ━━━ ralph · demo · 3 stories ━━━
    [10:00:00] Progress: 0/3 complete (3 remaining)

    ━━━ Iteration 1 · US-001 Short title ━━━
    [10:00:10] Running claude …
    [10:00:20] … US-001 is not complete yet; continuing · 40s · $0.10

    ━━━ Iteration 2 · US-001 Short title ━━━
    [10:00:30] Running claude …
    [10:01:00] ✓ Task US-001 complete · 3 files, +40 -2 · 1m22s · $0.31 · 3f2a9c1
    [10:01:00] Progress: 1/3 complete (2 remaining)

    ━━━ Iteration 3 · US-002 Short title ━━━
    [10:01:10] Running claude …
    [10:01:20] ✗ US-002: tests fail: left 1, right 2 · 12s

    ━━━ Iteration 4 · US-002 Short title ━━━
    [10:01:30] Running claude …
    [10:01:50] ? US-002 asks: which database?
    [10:02:00] US-002 continues with option 1

    ━━━ Iteration 5 · US-002 (with guidance) Short title ━━━
    [10:02:10] Running claude …
    [10:02:30] ✓ Task US-002 complete · 3 files, +40 -2 · 1h05m · $12.40 · beefbee
    [10:02:30] Progress: 2/3 complete (1 remaining) · about $0.31–$12.40 and 1m22s–1h05m to go
    [10:02:40] ? US-003 asks: which database?
    [10:02:50] skipping US-003
    [10:03:00] work on US-003 kept at refs/ralph/attempts/US-003/1
    [10:03:10] → US-003 skipped · abc1234
    [10:03:10] Progress: 2/3 complete, 1 skipped (0 remaining)

    ━━━ All stories settled · 2 complete, 1 skipped ━━━
    [10:03:20] Final: 2/3 complete, 1 skipped (0 remaining)

      Story   Result      Iterations   Time    Cost  Commit
      US-001  ✓ complete           2  1m22s   $0.31  3f2a9c1
      US-002  ✓ complete           3  1h05m  $12.40  beefbee
      US-003  → skipped            0
      Total                        5  1h06m  $12.71
    ");
}

fn parked_session() -> Vec<Event> {
    let blocked = |story: &str, because| Blocked { story: id(story), because };
    vec![
        started("demo"),
        raised("US-001"),
        Event::WorkSetAside { story: id("US-001"), reference: None, claimed: false },
        Event::StoryParked { story: id("US-001") },
        Event::RunInterrupted { signal: 2 },
        Event::RunContinued,
        Event::WorkBroughtBack {
            story: id("US-001"),
            reference: "refs/ralph/attempts/US-001/1".into(),
            conflicts: vec!["a b.rs".into(), "c.rs".into()],
        },
        end(StopReason::NothingToSelect {
            blocked: vec![
                blocked("US-001", Because::Parked),
                blocked("US-002", Because::WaitsForParked { on: id("US-001") }),
                blocked("US-003", Because::WaitsFor { on: id("US-002") }),
            ],
        }),
    ]
}

#[test]
fn open_questions_are_shown_in_full_at_the_end() {
    insta::assert_snapshot!(shown(None, &parked_session()), @r"
    ━━━ ralph · demo · 3 stories ━━━
    [10:00:00] Progress: 0/3 complete (3 remaining)
    [10:00:10] ? US-001 asks: which database?
    [10:00:30] ⏸ US-001 parked: waiting for your answer
    [10:00:40] Interrupted. Run `ralph run` to continue.
    ━━━ ralph · demo · 3 stories ━━━
    [10:00:50] Continuing run 0199a8b0 with iteration 1
    [10:00:50] Progress: 0/3 complete (3 remaining)
    [10:01:00] cannot restore the work on US-001 (kept at refs/ralph/attempts/US-001/1); conflicts in: a b.rs, c.rs

    ━━━ You are needed ━━━
    [10:01:10] Final: 0/3 complete (3 remaining)
    US-001 is parked with an open question
    US-002 waits for US-001, which is parked
    US-003 waits for US-002, which is waiting too
    ┌─ US-001 Short title ───────────────────────────────────────┐
    │ Deviation: which database?                                 │
    │                                                            │
    │ The story wants PostgreSQL, but there is no server.        │
    │                                                            │
    │ [1] Use SQLite                                             │
    │ [2] Start a server in a container and use that             │
    │                                                            │
    │ Which one?                                                 │
    └────────────────────────────────────────────────────────────┘
    Run `ralph run` in a terminal to answer.

      Story   Result           Iterations  Time  Cost  Commit
      US-001  ? open question           0
    ");
}

#[test]
fn quiet_shows_questions_and_the_end() {
    insta::assert_snapshot!(quietly(&whole_session()), @r"
    [10:01:50] ? US-002 asks: which database?
    [10:02:40] ? US-003 asks: which database?

    ━━━ All stories settled · 2 complete, 1 skipped ━━━
    [10:03:20] Final: 2/3 complete, 1 skipped (0 remaining)

      Story   Result      Iterations   Time    Cost  Commit
      US-001  ✓ complete           2  1m22s   $0.31  3f2a9c1
      US-002  ✓ complete           3  1h05m  $12.40  beefbee
      US-003  → skipped            0
      Total                        5  1h06m  $12.71
    ");
}

/// From the heading of the end on.
fn ending(reason: StopReason, before: Event) -> String {
    let all = quietly(&[started("demo"), before, end(reason)]);
    all.trim_start().to_owned()
}

#[test]
fn every_end_shows_its_reason() {
    let skip = || Event::StorySkipped { story: id("US-001"), commit: None };
    let waits =
        Blocked { story: id("US-002"), because: Because::WaitsForSkipped { on: id("US-001") } };
    let ends = [
        ending(StopReason::StoryDone { story: id("US-001") }, closed("US-001", "abcdefgh")),
        ending(StopReason::StoryDone { story: id("US-001") }, skip()),
        ending(StopReason::Once, Event::RunContinued),
        ending(StopReason::MaxIterations { limit: 50 }, Event::RunContinued),
        ending(StopReason::Aborted, attempt(1, "US-001", false)),
        ending(StopReason::NothingToSelect { blocked: vec![waits] }, skip()),
    ];
    insta::assert_snapshot!(ends.join("\n"), @r"
    ━━━ US-001 complete ━━━
    [10:00:20] Final: 1/3 complete (2 remaining)

      Story   Result      Iterations  Time  Cost  Commit
      US-001  ✓ complete           0              abcdefg

    ━━━ US-001 skipped ━━━
    [10:00:20] Final: 0/3 complete, 1 skipped (2 remaining)

      Story   Result     Iterations  Time  Cost  Commit
      US-001  → skipped           0

    ━━━ One iteration done ━━━
    [10:00:20] Final: 0/3 complete (3 remaining)
    Run `ralph run` to continue.

    ━━━ Out of iterations ━━━
    [10:00:20] Final: 0/3 complete (3 remaining)
    Stopped: 50 iterations used, 3 stories left
    Raise the limit with --max-iterations N.

    ━━━ Aborted ━━━
    [10:00:20] Final: 0/3 complete (3 remaining)
    `ralph run` starts a new run with the open stories.

      Story   Result  Iterations  Time  Cost  Commit
      US-001  … open           1

    ━━━ You are needed ━━━
    [10:00:20] Final: 0/3 complete, 1 skipped (2 remaining)
    US-002 waits for US-001, which is skipped
    No story can start until you change the backlog: undo a skip, or remove a dependency.

      Story   Result     Iterations  Time  Cost  Commit
      US-001  → skipped           0
    ");
}

#[test]
fn a_story_that_was_skipped_before_the_run_ends_as_skipped() {
    let sink = Sink::default();
    let mut backlog = backlog("Short title");
    backlog.stories[2].skipped = true;
    let reason = StopReason::StoryDone { story: id("US-003") };
    play(&mut sink.reporter(None, false, false, false), backlog, &[started("demo"), end(reason)]);
    assert!(sink.text().contains("━━━ US-003 skipped ━━━"), "{}", sink.text());
}

/// A terminal after Ctrl-S.
struct Stopped;

impl Write for Stopped {
    fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
        loop {
            std::thread::park();
        }
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn stopped() -> Display {
    let options = options(false, true);
    Display::start(Screen::new(stopped_printer(), false, clock()), &options)
}

fn stopped_printer() -> Printer {
    let look = Look { colors: false, columns: None, zone: TimeZone::UTC };
    Printer::to(Box::new(Stopped), look, Box::new(|| None))
}

#[test]
fn a_terminal_that_accepts_nothing_blocks_neither_the_loop_nor_the_exit() {
    let mut display = stopped();
    let start = Instant::now();
    for _ in 0..1_000 {
        display.on_activity(&doing(Doing::Said("x".repeat(100_000))));
        display.on_notice(&Notice::BacklogUsableAgain);
    }
    drop(display);
    stopped_printer().error("and it failed");
    assert!(start.elapsed() < Duration::from_secs(20));
}

#[test]
fn nothing_is_drawn_while_another_program_has_the_terminal() {
    let patience = Duration::from_secs(60);
    let sink = Sink::default();
    let mut display = sink.reporter(None, false, false, false);
    let queue = display.queue.clone();
    display.on_notice(&Notice::BacklogUsableAgain);
    let held = queue.hold(patience, || false).unwrap();
    assert_eq!(sink.text(), "the backlog is valid again\n", "everything before is drawn first");
    display.on_notice(&Notice::Setup(SetupNotice::CommitsSigned));
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(sink.text(), "the backlog is valid again\n", "nothing is drawn in between");
    drop(held);
    drop(display);
    assert_eq!(sink.text(), "the backlog is valid again\ncommits will be signed\n");
    assert!(queue.hold(patience, || false).is_ok(), "a display that has ended is not waited for");

    let mut stopped = stopped();
    let queue = stopped.queue.clone();
    stopped.on_notice(&Notice::BacklogUsableAgain);
    assert_eq!(queue.hold(Duration::ZERO, || false).err(), Some(Asked::NoAnswer));
    assert_eq!(queue.hold(patience, || true).err(), Some(Asked::NoAnswer));
}

#[test]
fn notices_are_labeled() {
    let sink = Sink::default();
    let mut reporter = sink.reporter(None, false, false, true);
    for notice in notices("n\nmore") {
        reporter.on_notice(&notice);
    }
    for _ in 0..3 {
        reporter.on_wait(&wait("n\nmore"));
    }
    reporter.on_activity(&doing(Doing::Said("I look\n\n  at it\n".into())));
    let (kind, what) = (StepKind::Other, "nothing for a log".into());
    reporter.on_activity(&doing(Doing::Step { kind, what }));
    drop(reporter);
    insta::assert_snapshot!(sink.text(), @r"
    warning: the backlog is invalid; using its last valid version
      n
      more
    the backlog is valid again
    warning: n more is updated but not committed: n
      more
    warning: US-001: the agent claimed the whole backlog, but 1 story is left
    warning: US-001: the agent also claimed n more, US-009; only its own story counts
    warning: n
      more
    US-001: the agent committed on `n more`; its commits are now on the run's branch
    warning: n more; waiting until Thu 02:00:00
      I look

        at it
    ");
}

fn notices(text: &str) -> Vec<Notice> {
    let about = |notice| Notice::Attempt(id("US-001"), notice);
    vec![
        Notice::BacklogBroken { problem: text.into() },
        Notice::BacklogUsableAgain,
        Notice::BacklogNotCommitted { path: text.into(), why: text.into() },
        about(AttemptNotice::FalsePromise { remaining: 1 }),
        about(AttemptNotice::OtherClaims { ids: vec![text.into(), "US-009".into()] }),
        Notice::Doubt { message: text.into() },
        about(AttemptNotice::CommitsTakenFrom { branch: text.into() }),
    ]
}

fn wait(error: &str) -> Wait {
    Wait { what: WaitFor::Service, error: error.into(), until: 0 }
}

fn held_change(what: &str) -> HeldChange {
    HeldChange {
        of: ChangeKind::Backlog,
        path: "PRD.json".into(),
        what: what.into(),
        diff: what.into(),
        before: None,
        changed: Some(".git/ralph/changed/1/a".into()),
        hash: None,
    }
}

/// Every text of every event is hostile.
fn hostile_events() -> Vec<Event> {
    let question = Escalation {
        kind: EscalationKind::Unstated,
        summary: NASTY.into(),
        context: NASTY.into(),
        options: vec![NASTY.into()],
        question: NASTY.into(),
        unread: Some(NASTY.into()),
    };
    let mut start = attempt(1, "US-001", true);
    if let Event::AttemptStarted(start) = &mut start {
        (start.title, start.agent) = (NASTY.into(), NASTY.into());
    }
    let mut run = started(NASTY);
    if let Event::RunStarted(run) = &mut run {
        run.run = NASTY.into();
    }
    let blocked = vec![Blocked { story: id("US-002"), because: Because::Parked }];
    vec![
        run,
        Event::RunContinued,
        start,
        failed("US-001", NASTY, 1),
        closed("US-001", NASTY),
        Event::QuestionRaised { story: id("US-002"), question },
        answered("US-003", Answer::Guidance { text: NASTY.into() }),
        Event::WorkSetAside { story: id("US-001"), reference: Some(NASTY.into()), claimed: false },
        Event::WorkBroughtBack {
            story: id("US-001"),
            reference: NASTY.into(),
            conflicts: vec![NASTY.into()],
        },
        Event::StorySkipped { story: id("US-003"), commit: Some(NASTY.into()) },
        Event::BreakerOpened { why: NASTY.into(), until: 0 },
        Event::ChangesHeld { story: id("US-001"), changes: vec![held_change(NASTY)] },
        end(StopReason::BreakerOpen { why: NASTY.into(), error: NASTY.into() }),
        end(StopReason::FailsAtOnce { times: 3, error: NASTY.into() }),
        end(StopReason::ConsecutiveErrors { limit: 5, error: NASTY.into() }),
        end(StopReason::NothingToSelect { blocked }),
    ]
}

fn acts(c: char) -> bool {
    (c.is_control() && c != '\n') || ['\u{202e}', '\u{200b}'].contains(&c)
}

#[test]
fn untrusted_text_never_controls_the_terminal() {
    for columns in [None, Some(20), Some(80)] {
        let sink = Sink::default();
        let mut reporter = sink.reporter(columns, false, false, true);
        play(&mut reporter, backlog(NASTY), &hostile_events());
        for notice in notices(NASTY) {
            reporter.on_notice(&notice);
        }
        reporter.on_wait(&wait(NASTY));
        reporter.on_activity(&doing(Doing::Said(NASTY.into())));
        drop(reporter);
        let text = sink.text();
        assert!(text.contains("\\x1b") && text.contains("\\u{202e}"));
        assert_eq!(text.chars().find(|c| acts(*c)), None, "{text}");
    }
}

#[test]
fn untrusted_text_never_starts_a_line() {
    let mut state = RunState::default();
    let backlog = backlog("t");
    let look = Look { colors: true, columns: Some(60), zone: TimeZone::UTC };
    for event in hostile_events() {
        let recorded = Recorded { at: 0, event };
        state.apply(&recorded);
        for line in events::lines(&recorded, View { backlog: &backlog, state: &state }) {
            let rendered = look.render(&line);
            assert!(rendered.iter().all(|line| !line.contains('\n')), "{rendered:?}");
        }
    }
}
