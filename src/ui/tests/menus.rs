//! Open questions on a terminal, as people see them.

use std::collections::BTreeSet;
use std::num::NonZeroU16;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use vt100::Parser;

use super::*;
use crate::ui::look::{Line, LiveAgent, TextLine};
use crate::ui::menu::{Menu, MenuBody, sections};

/// A terminal whose window can change.
struct Terminal {
    emulator: Emulator,
    window: Arc<Mutex<(usize, usize)>>,
    /// Seconds since ten o'clock.
    time: Arc<AtomicU64>,
    screen: Screen,
}

#[derive(Clone)]
struct Emulator(Arc<Mutex<Parser>>, Arc<Typing>);

#[derive(Default)]
struct Typing {
    /// Bytes of lines that were typed and not read.
    unread: AtomicU64,
    /// Enter is pressed right before the next bytes arrive.
    enter_next: AtomicBool,
}

impl Write for Emulator {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        // The terminal's own driver begins a new line at its start.
        let text = String::from_utf8_lossy(bytes).replace('\n', "\r\n");
        if self.1.enter_next.swap(false, Ordering::Relaxed) {
            self.echo("");
        }
        self.0.lock().unwrap().process(text.as_bytes());
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Emulator {
    /// As a terminal echoes what is typed.
    fn echo(&self, line: &str) {
        self.0.lock().unwrap().process(format!("{line}\r\n").as_bytes());
        self.1.unread.fetch_add(line.len() as u64 + 1, Ordering::Relaxed);
    }
}

fn cells(count: usize) -> NonZeroU16 {
    u16::try_from(count).unwrap().try_into().unwrap()
}

impl Terminal {
    fn new(rows: usize, columns: usize) -> Self {
        let parser = Arc::new(Mutex::new(Parser::new(cells(rows), cells(columns), 100)));
        let emulator = Emulator(parser, Arc::default());
        let window = Arc::new(Mutex::new((rows, columns)));
        let seen = Arc::clone(&window);
        let look = Look { colors: false, columns: None, zone: TimeZone::UTC };
        let window_size = Box::new(move || Some(*seen.lock().unwrap()));
        let typing = Arc::clone(&emulator.1);
        let printer = Printer::to(Box::new(emulator.clone()), look, window_size)
            .with_typed(Box::new(move || Some(typing.unread.load(Ordering::Relaxed))));
        let time = Arc::new(AtomicU64::new(0));
        let seconds = Arc::clone(&time);
        let clock = Clock::new(TimeZone::UTC, move || {
            let steady = Duration::from_secs(seconds.load(Ordering::Relaxed));
            Moment { wall: 8 * 3_600_000 + steady.as_millis() as i64, steady }
        });
        Self { emulator, window, time, screen: Screen::new(printer, true, clock) }
    }

    /// With a question about a database.
    fn asking(rows: usize, columns: usize) -> Self {
        let mut terminal = Self::new(rows, columns);
        let (heading, patience) = ("US-001 Store users".into(), Duration::from_mins(10));
        let question = escalation("which database?");
        let menu = Menu::new(heading, sections(&question), patience, "the question is parked");
        terminal.screen.open_menu(menu);
        terminal.choose(0);
        terminal
    }

    fn choose(&mut self, selected: usize) {
        let labels = ["[1] Use SQLite", "[2] Start a server in a container and use that"];
        let always =
            ["[c] write guidance", "[s] skip this story", "[r] retry", "[a] abort the run"];
        let labels = labels.into_iter().chain(always).map(str::to_owned).collect();
        self.screen.change_menu(MenuBody::Choices { labels, selected });
    }

    fn type_in(&mut self, lines: &[&str]) {
        let lines = lines.iter().map(|&line| line.to_owned()).collect();
        let help = "Finish with an empty line; Esc goes back; `e` + Enter opens vi.".to_owned();
        self.screen.change_menu(MenuBody::Typing { help, lines });
    }

    fn tell(&mut self, text: &str) {
        self.screen.fact(vec![TextLine::at(0).plain(text).into()], &BTreeSet::new());
    }

    fn resize(&mut self, rows: usize, columns: usize) {
        *self.window.lock().unwrap() = (rows, columns);
        let mut parser = self.emulator.0.lock().unwrap();
        parser.screen_mut().set_size(cells(rows), cells(columns));
    }

    fn text(&self) -> String {
        self.emulator.0.lock().unwrap().screen().contents()
    }

    /// Row and column, and whether it can be seen.
    fn cursor(&self) -> ((u16, u16), bool) {
        let parser = self.emulator.0.lock().unwrap();
        (parser.screen().cursor_position(), !parser.screen().hide_cursor())
    }
}

#[test]
fn a_question_fits_80_columns() {
    let mut terminal = Terminal::asking(24, 80);
    terminal.screen.count_questions(1);
    insta::assert_snapshot!(terminal.text(), @r"
    ┌─ US-001 Store users ─────────────────────────────────────────────────────────┐
    │ Deviation: which database?                                                   │
    │                                                                              │
    │ The story wants PostgreSQL, but there is no server.                          │
    │                                                                              │
    │ [1] Use SQLite                                                               │
    │ [2] Start a server in a container and use that                               │
    │                                                                              │
    │ Which one?                                                                   │
    └──────────────────────────────────────────────────────────────────────────────┘
    Without an answer within 10 minutes, the question is parked.
    ❯ [1] Use SQLite
      [2] Start a server in a container and use that
      [c] write guidance
      [s] skip this story
      [r] retry
      [a] abort the run
    ");
}

#[test]
fn the_heading_counts_open_questions() {
    let mut terminal = Terminal::asking(24, 80);
    terminal.screen.count_questions(3);
    terminal.choose(2);
    insta::assert_snapshot!(terminal.text(), @r"
    ┌─ 1 of 3 · US-001 Store users ────────────────────────────────────────────────┐
    │ Deviation: which database?                                                   │
    │                                                                              │
    │ The story wants PostgreSQL, but there is no server.                          │
    │                                                                              │
    │ [1] Use SQLite                                                               │
    │ [2] Start a server in a container and use that                               │
    │                                                                              │
    │ Which one?                                                                   │
    └──────────────────────────────────────────────────────────────────────────────┘
    Without an answer within 10 minutes, the question is parked.
      [1] Use SQLite
      [2] Start a server in a container and use that
    ❯ [c] write guidance
      [s] skip this story
      [r] retry
      [a] abort the run
    ");
    terminal.screen.count_questions(1);
    assert!(!terminal.text().contains(" of "), "{}", terminal.text());
}

#[test]
fn a_question_in_a_low_window_scrolls_by_and_leaves_a_short_menu() {
    let mut terminal = Terminal::asking(12, 40);
    terminal.screen.count_questions(2);
    terminal.choose(4);
    insta::assert_snapshot!(terminal.text(), @r"
    │     and use that                     │
    │                                      │
    │ Which one?                           │
    └──────────────────────────────────────┘
    1 of 2 · US-001 Store users
    Deviation: which database?
      [1] Use SQLite
      [2] Start a server in a container an…
      [c] write guidance
      [s] skip this story
    ❯ [r] retry
      [a] abort the run
    ");
}

#[test]
fn other_stories_scroll_by_above_an_open_menu() {
    let mut terminal = Terminal::asking(24, 80);
    terminal.choose(1);
    let before = terminal.text();
    terminal.tell("✓ US-002 complete · 12s");
    terminal.screen.print(&[TextLine::new().plain("warning: something else").into()]);
    insta::assert_snapshot!(terminal.text(), @r"
    [00:00:00] ✓ US-002 complete · 12s
    warning: something else

    ┌─ US-001 Store users ─────────────────────────────────────────────────────────┐
    │ Deviation: which database?                                                   │
    │                                                                              │
    │ The story wants PostgreSQL, but there is no server.                          │
    │                                                                              │
    │ [1] Use SQLite                                                               │
    │ [2] Start a server in a container and use that                               │
    │                                                                              │
    │ Which one?                                                                   │
    └──────────────────────────────────────────────────────────────────────────────┘
    Without an answer within 10 minutes, the question is parked.
      [1] Use SQLite
    ❯ [2] Start a server in a container and use that
      [c] write guidance
      [s] skip this story
      [r] retry
      [a] abort the run
    ");
    assert!(terminal.text().ends_with(before.trim_start()), "the menu is whole");
    for number in 0..100 {
        terminal.tell(&format!("line {number}"));
    }
    assert!(terminal.text().ends_with(before.trim_start()), "{}", terminal.text());
}

#[test]
fn an_agent_that_starts_does_not_change_the_menu() {
    let mut terminal = Terminal::asking(24, 80);
    let before = terminal.text();
    terminal.screen.start(vec![running("A1", "claude")]);
    terminal.screen.doing("A1", "Bash cargo test");
    assert_eq!(terminal.screen.tick(), None);
    terminal.screen.tick();
    assert_eq!(terminal.text(), before);
    terminal.screen.close_menu(&[TextLine::new().plain("› [1] Use SQLite").into()]);
    terminal.screen.tick();
    insta::assert_snapshot!(terminal.text(), @r"
    ┌─ US-001 Store users ─────────────────────────────────────────────────────────┐
    │ Deviation: which database?                                                   │
    │                                                                              │
    │ The story wants PostgreSQL, but there is no server.                          │
    │                                                                              │
    │ [1] Use SQLite                                                               │
    │ [2] Start a server in a container and use that                               │
    │                                                                              │
    │ Which one?                                                                   │
    └──────────────────────────────────────────────────────────────────────────────┘
    › [1] Use SQLite
    ⠋ Running claude · 0s · Bash cargo test
    ");
    assert!(terminal.cursor().1, "the cursor is back");
}

#[test]
fn typed_text_stays_while_other_events_scroll_by() {
    let mut terminal = Terminal::asking(24, 80);
    terminal.type_in(&["Use what is there: ü 漢字", "and mind the"]);
    let cursor = terminal.cursor();
    terminal.tell("✓ US-002 complete · 12s");
    insta::assert_snapshot!(terminal.text(), @r"
    [00:00:00] ✓ US-002 complete · 12s

    ┌─ US-001 Store users ─────────────────────────────────────────────────────────┐
    │ Deviation: which database?                                                   │
    │                                                                              │
    │ The story wants PostgreSQL, but there is no server.                          │
    │                                                                              │
    │ [1] Use SQLite                                                               │
    │ [2] Start a server in a container and use that                               │
    │                                                                              │
    │ Which one?                                                                   │
    └──────────────────────────────────────────────────────────────────────────────┘
    Without an answer within 10 minutes, the question is parked.
    Finish with an empty line; Esc goes back; `e` + Enter opens vi.
    > Use what is there: ü 漢字
    > and mind the
    ");
    let ((row, column), shown) = terminal.cursor();
    assert_eq!(((row, column), shown), ((cursor.0.0 + 1, cursor.0.1), true));
}

#[test]
fn long_guidance_keeps_its_end_in_view() {
    let mut terminal = Terminal::asking(12, 40);
    let long = "a line that is longer than the window is wide, so that it wraps";
    terminal.type_in(&["first", "second", long, long, "the end"]);
    insta::assert_snapshot!(terminal.text(), @r"
    └──────────────────────────────────────┘
    US-001 Store users
    Deviation: which database?
    Finish with an empty line; Esc goes
    back; `e` + Enter opens vi.
    > first
    > second
    > a line that is longer than the window 
    is wide, so that it wraps
    > a line that is longer than the window 
    is wide, so that it wraps
    > the end
    ");
}

#[test]
fn a_menu_fits_a_window_that_changed() {
    let mut terminal = Terminal::asking(24, 80);
    terminal.tell("✓ US-002 complete · 12s");
    terminal.resize(12, 40);
    terminal.choose(1);
    terminal.tell("✓ US-003 complete · 15s");
    insta::assert_snapshot!(terminal.text(), @r"
    │                                      │
    │ Which one?                           │
    └──────────────────────────────────────┘
    [00:00:00] ✓ US-003 complete · 15s
    US-001 Store users
    Deviation: which database?
      [1] Use SQLite
    ❯ [2] Start a server in a container an…
      [c] write guidance
      [s] skip this story
      [r] retry
      [a] abort the run
    ");
    terminal.resize(30, 160);
    terminal.choose(1);
    let text = terminal.text();
    assert!(text.ends_with("[a] abort the run") && text.contains("❯ [2]"), "{text}");
}

#[test]
fn an_answered_question_stays_in_the_scrollback() {
    let mut terminal = Terminal::asking(24, 80);
    terminal.screen.close_menu(&[TextLine::new().plain("› [1] Use SQLite").into()]);
    terminal.tell("✓ US-001 complete · 12s");
    insta::assert_snapshot!(terminal.text(), @r"
    ┌─ US-001 Store users ─────────────────────────────────────────────────────────┐
    │ Deviation: which database?                                                   │
    │                                                                              │
    │ The story wants PostgreSQL, but there is no server.                          │
    │                                                                              │
    │ [1] Use SQLite                                                               │
    │ [2] Start a server in a container and use that                               │
    │                                                                              │
    │ Which one?                                                                   │
    └──────────────────────────────────────────────────────────────────────────────┘
    › [1] Use SQLite
    [00:00:00] ✓ US-001 complete · 12s
    ");
}

#[test]
fn the_moving_line_follows_the_injected_clock() {
    let mut terminal = Terminal::new(24, 80);
    terminal.screen.start(vec![running("A1", "claude")]);
    let mut seen = vec![terminal.text()];
    for (seconds, doing) in [(62, "Bash cargo test"), (3_600, "Edit a.rs")] {
        terminal.screen.doing("A1", doing);
        terminal.time.store(seconds, Ordering::Relaxed);
        assert!(terminal.screen.tick().is_some());
        seen.push(terminal.text());
    }
    terminal.screen.doing("A1", "not drawn before its time");
    assert_eq!(terminal.screen.tick(), Some(Duration::from_millis(100)));
    seen.push(terminal.text());
    terminal.screen.fact(vec![], &BTreeSet::new());
    terminal.screen.wait(Wait { until: 8 * 3_600_000 + 3_661_000, ..wait("overloaded") });
    seen.push(terminal.text());
    insta::assert_snapshot!(seen.join("\n"), @r"
    ⠋ Running claude · 0s
    ⠋ Running claude · 1m02s · Bash cargo test
    ⠋ Running claude · 1h00m · Edit a.rs
    ⠋ Running claude · 1h00m · Edit a.rs
    ⠋ Waiting for the service: 1m01s left, until Thu 09:01
    ");
}

#[test]
fn an_enter_leaves_no_copy_of_the_moving_line() {
    // In the middle of the window, and at its bottom, where the Enter scrolls.
    for rows in [8, 3] {
        let mut terminal = Terminal::new(rows, 80);
        terminal.screen.print(&[TextLine::new().plain("first").into()]);
        terminal.screen.print(&[TextLine::new().plain("second").into()]);
        terminal.screen.start(vec![running("A1", "claude")]);
        for (seconds, typed) in [(1, ""), (2, "ls"), (3, "")] {
            terminal.emulator.echo(typed);
            terminal.time.store(seconds, Ordering::Relaxed);
            terminal.screen.tick();
        }
        let moving = "second\n⠋ Running claude · 3s";
        assert!(terminal.text().trim_end().ends_with(moving), "{}", terminal.text());
        assert_eq!(terminal.text().matches("claude").count(), 1, "{}", terminal.text());
        terminal.emulator.echo("");
        terminal.screen.print(&[TextLine::new().plain("third").into()]);
        let moving = "second\nthird\n⠋ Running claude · 3s";
        assert!(terminal.text().trim_end().ends_with(moving), "{}", terminal.text());
    }
}

/// The reader of the keyboard saw it first.
#[test]
fn an_enter_that_ends_a_wait_leaves_no_copy_either() {
    let mut terminal = Terminal::new(8, 80);
    terminal.screen.print(&[TextLine::new().plain("first").into()]);
    terminal.screen.wait(wait("overloaded"));
    terminal.screen.keys_are_read(true);
    terminal.emulator.echo("");
    terminal.time.store(1, Ordering::Relaxed);
    terminal.screen.tick();
    terminal.emulator.1.unread.store(0, Ordering::Relaxed);
    terminal.screen.line_was_typed();
    terminal.tell("Wait skipped");
    assert_eq!(terminal.text().trim_end(), "first\n[00:00:00] Wait skipped");
}

/// It may have been echoed before them: nothing that was printed is ever wiped.
#[test]
fn an_enter_while_lines_are_written_wipes_none_of_them() {
    let mut terminal = Terminal::new(8, 80);
    terminal.screen.start(vec![running("A1", "claude")]);
    terminal.emulator.1.enter_next.store(true, Ordering::Relaxed);
    terminal.screen.print(&[TextLine::new().plain("first").into()]);
    terminal.screen.print(&[TextLine::new().plain("second").into()]);
    assert!(terminal.text().contains("first\nsecond\n"), "{}", terminal.text());
}

#[test]
fn many_options_fit_into_a_low_window() {
    let mut terminal = Terminal::asking(6, 18);
    let labels = (1..=16).map(|number| format!("[ ] option {number}\x1b[2J")).collect();
    terminal.screen.change_menu(MenuBody::Choices { labels, selected: 11 });
    insta::assert_snapshot!(terminal.text(), @r"
    ─┘
    US-001 Store use…
    Deviation: which…
      [ ] option 11\…
    ❯ [ ] option 12\…
      [ ] option 13\…
    ");
}

fn running(attempt: &str, agent: &str) -> Line {
    let (attempt, name) = (attempt.to_owned(), agent.to_owned());
    let agent = LiveAgent {
        story: Some(id(attempt.trim_end_matches(char::is_numeric))),
        name,
        ..LiveAgent::default()
    };
    Line::Running { at: 0, attempt, agent }
}

#[test]
fn every_attempt_has_a_moving_line_of_its_own() {
    let mut terminal = Terminal::new(12, 80);
    let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    let mut seen = vec![];
    terminal.screen.start(vec![running("A1", "claude"), running("B2", "claude")]);
    terminal.screen.doing("B2", "Bash cargo test");
    let told: Vec<Line> = vec![TextLine::at(0).plain("C is skipped").into()];
    terminal.screen.fact(told, &names(&["A1", "B2"]));
    seen.push(terminal.text());
    terminal.screen.start(vec![running("A1", "cargo test"), running("C3", "claude")]);
    seen.push(terminal.text());
    let told: Vec<Line> = vec![TextLine::at(0).plain("✓ A complete").into()];
    terminal.screen.fact(told, &names(&["B2", "C3"]));
    seen.push(terminal.text());
    terminal.screen.fact(vec![], &names(&["C3"]));
    seen.push(terminal.text());
    insta::assert_snapshot!(seen.join("\n---\n"), @r"
    [00:00:00] C is skipped
    ⠋ A: Running claude · 0s
    ⠋ B: Running claude · 0s · Bash cargo test
    ---
    [00:00:00] C is skipped
    ⠋ A: Running cargo test · 0s
    ⠋ B: Running claude · 0s · Bash cargo test
    ⠋ C: Running claude · 0s
    ---
    [00:00:00] C is skipped
    [00:00:00] ✓ A complete
    ⠋ B: Running claude · 0s · Bash cargo test
    ⠋ C: Running claude · 0s
    ---
    [00:00:00] C is skipped
    [00:00:00] ✓ A complete
    ⠋ Running claude · 0s
    ");
    let many = (0..9).map(|number| running(&format!("D{number}"), "claude"));
    terminal.screen.start(many.collect());
    assert_eq!(terminal.text().matches("Running").count(), 4, "a third of the window");
}

#[test]
fn text_of_several_agents_names_their_stories() {
    let mut second = attempt(2, "US-002", false);
    if let Event::AttemptStarted(start) = &mut second {
        (start.attempt, start.lane) = ("b".into(), LaneId(1));
    }
    let sink = Sink::default();
    let mut display = sink.reporter(None, false, false, true);
    let events = [started("demo"), attempt(1, "US-001", false), second];
    for count in [2, 3] {
        play(&mut display, backlog("Short title"), &events[..count]);
        display.on_activity(&doing(Doing::Said("I look\n\nat it".into())));
    }
    drop(display);
    let text = sink.text();
    let said: Vec<&str> = text.lines().filter(|line| line.starts_with("  ")).collect();
    assert_eq!(said, ["  I look", "  at it", "  US-001: I look", "  at it"]);
}

#[test]
fn what_happens_to_another_story_does_not_end_a_moving_line() {
    let asked = || {
        vec![
            attempt(1, "US-001", false),
            ended("US-001", Verdict::Escalated { escalation: escalation("which?") }, 1000, None),
            Event::QuestionRaised { story: id("US-001"), question: escalation("which?") },
            Event::WorkSetAside { story: id("US-001"), reference: None, claimed: false },
            attempt(2, "US-002", false),
        ]
    };
    let answered = Event::QuestionAnswered { story: id("US-001"), answer: Answer::Retry };
    let done = ended("US-002", Verdict::Done, 1000, None);
    for (case, more, moves) in [
        ("it runs", vec![], true),
        ("another story's answer", vec![answered.clone()], true),
        ("it ended", vec![done], false),
        ("the run ends", vec![answered, Event::RunInterrupted { signal: 2 }], false),
    ] {
        let terminal = Terminal::new(60, 80);
        let mut display = Display::start(terminal.screen, &options(false, false));
        play(&mut display, backlog("Short title"), &[asked(), more].concat());
        drop(display);
        let text = terminal.emulator.0.lock().unwrap().screen().contents();
        assert_eq!(text.contains("⠋ Running"), moves, "{case}: {text}");
    }
}
