//! Keys at an open menu, on a pseudo-terminal.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use super::*;
use crate::ports::Withdrawal;
use crate::ui::conversation::{Conversation, Reply, TYPING_PAUSE};
use crate::ui::display::DisplayQueue;
use crate::ui::human::TerminalHuman;
use crate::ui::keyboard::{Keyboard, RawKeyboard};
use crate::ui::menu::{Menu, MenuChoice, items, sections};

const PATIENCE: Duration = Duration::from_secs(10);

/// A display, and a terminal that only has keys.
struct Desk {
    keys: File,
    input: OwnedFd,
    shown: Shown,
    display: DisplayQueue,
    /// Time stands still until then. After that, every look at the clock is half a pause later.
    goes: Arc<AtomicBool>,
    withdrawal: Withdrawal,
}

#[derive(Clone, Default)]
struct Shown(Arc<Mutex<Vec<u8>>>);

impl Write for Shown {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Desk {
    /// It shows nothing more when the display is dropped.
    fn new() -> (Self, Display) {
        let keys = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&keys).unwrap();
        unlockpt(&keys).unwrap();
        let name = ptsname(&keys, Vec::new()).unwrap();
        let input = rustix::fs::open(name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
        let (goes, looks) = (Arc::new(AtomicBool::new(false)), AtomicU32::new(0));
        let is_going = Arc::clone(&goes);
        let clock = Clock::new(TimeZone::UTC, move || {
            let looks =
                looks.fetch_add(u32::from(is_going.load(Ordering::SeqCst)), Ordering::SeqCst);
            Moment { wall: 0, steady: TYPING_PAUSE / 2 * looks }
        });
        let shown = Shown::default();
        let look = Look { colors: false, columns: None, zone: TimeZone::UTC };
        let printer = Printer::to(Box::new(shown.clone()), look, Box::new(|| Some((40, 80))));
        let screen = Screen::new(printer, true, clock.clone());
        let display = Display::start(screen, &UiOptions { clock, ..options(false, false) });
        let keys = File::from(keys);
        let (queue, withdrawal) = (display.queue.clone(), Withdrawal::default());
        (Self { keys, input, shown, display: queue, goes, withdrawal }, display)
    }

    fn press(&self, keys: &str) {
        (&self.keys).write_all(keys.as_bytes()).unwrap();
    }

    fn await_shown(&self, text: &str, times: usize) {
        let is_shown = || {
            let shown = self.shown.0.lock().unwrap();
            String::from_utf8_lossy(&shown).matches(text).count() >= times
        };
        let is_so = until(is_shown);
        // Otherwise the menu would stay open.
        if !is_so {
            self.withdrawal.close();
        }
        assert!(is_so, "waited in vain for {text}");
    }

    fn keyboard(&self) -> Keyboard {
        Keyboard { input: self.input.try_clone().unwrap() }
    }

    fn talk<T>(&self, talk: impl FnOnce(&mut Conversation<'_>) -> Reply<T>) -> Reply<T> {
        let question = sections(&escalation("which database?"));
        let menu = Menu::new("US-001".into(), question, Duration::from_hours(9), "it is parked");
        let keyboard = RawKeyboard::open(self.keyboard()).unwrap();
        talk(&mut Conversation::new(keyboard, &self.display, menu, &self.withdrawal))
    }
}

/// False if it takes too long.
fn until(is_so: impl Fn() -> bool) -> bool {
    let start = Instant::now();
    while !is_so() && start.elapsed() < PATIENCE {
        thread::sleep(Duration::from_millis(2));
    }
    is_so()
}

#[test]
fn a_menu_that_opens_while_somebody_types_takes_no_key_until_they_pause() {
    let (desk, _display) = Desk::new();
    desk.press("the te\n");
    assert!(until(|| desk.keyboard().is_readable(Duration::ZERO).unwrap()));
    let items = items(&escalation("which database?"));
    let chosen = thread::scope(|scope| {
        let chosen = scope.spawn(|| desk.talk(|talk| talk.choose(&items).cloned()));
        desk.await_shown("Your keys are ignored", 1);
        desk.press("s");
        desk.await_shown("Your keys are ignored", 2);
        desk.goes.store(true, Ordering::SeqCst);
        desk.await_shown("[r] retry", 1);
        desk.press("r");
        chosen.join().unwrap()
    });
    assert_eq!(chosen, Ok(MenuChoice::Answer(Answer::Retry)));
}

#[test]
fn a_text_can_be_finished_after_its_question_was_withdrawn() {
    for (keys, text) in [("tests\r\r", Some("keep the tests".to_owned())), ("\x1b", None)] {
        let (desk, _display) = Desk::new();
        let written = thread::scope(|scope| {
            let written = scope.spawn(|| desk.talk(|talk| talk.write()));
            desk.await_shown("Finish with", 1);
            desk.press("keep the ");
            desk.await_shown("> keep the ", 1);
            desk.withdrawal.withdraw();
            desk.await_shown("The question was withdrawn.", 1);
            desk.press(keys);
            written.join().unwrap()
        });
        assert_eq!(written, Ok(text));
    }
}

#[test]
fn a_text_that_cannot_be_finished_stays_on_the_terminal() {
    let closed: fn(&Desk) = |desk| desk.withdrawal.close();
    let ctrl_c: fn(&Desk) = |desk| desk.press("\x03");
    for (end, asked) in [(closed, Asked::NoAnswer), (ctrl_c, Asked::Interrupted)] {
        let (desk, _display) = Desk::new();
        let written = thread::scope(|scope| {
            let written = scope.spawn(|| desk.talk(|talk| talk.write()));
            desk.await_shown("Finish with", 1);
            desk.press("keep the ");
            desk.await_shown("> keep the ", 1);
            end(&desk);
            written.join().unwrap()
        });
        assert_eq!(written, Err(asked));
        desk.await_shown("This text was not sent:\n  keep the ", 1);
    }
}

/// They are probably meant for the wait, not for a question that comes right after it.
#[test]
fn keys_after_a_skipped_wait_choose_nothing_for_a_while() {
    let (desk, _display) = Desk::new();
    let (human, over) = (TerminalHuman::new(desk.display.clone()), AtomicBool::new(false));
    let keyboard = desk.keyboard();
    thread::scope(|scope| {
        let listening = scope.spawn(|| human.listen_for_enter(&keyboard, &over));
        // What was typed before it listens is dropped.
        while !listening.is_finished() {
            desk.press("\r");
            thread::sleep(Duration::from_millis(1));
        }
        assert!(listening.join().unwrap().unwrap());
    });
    let busy_until = *human.keyboard.lock().unwrap();
    assert!(!desk.display.is_over(Some(busy_until)));
}
