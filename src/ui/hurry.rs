//! Enter during a wait: try now.
//!
//! A whole line is read, as any program reads one. The terminal's modes are not touched, so there is
//! nothing to put back, and Ctrl-C, Ctrl-Z and a kill do what they always do.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use console::Term;

use super::display;
use super::keyboard::Keyboard;

/// How soon the end of the wait, or a move to the foreground, is noticed.
const GLANCE: Duration = Duration::from_millis(100);

/// True when Enter was pressed before the wait was over.
pub fn wanted(over: &AtomicBool) -> bool {
    if !Term::stderr().is_term() || console::is_dumb() {
        return false;
    }
    let is_wanted = Keyboard::open().and_then(|keyboard| listen(&keyboard, over));
    display::keys_are_read(false);
    is_wanted.unwrap_or(false)
}

fn listen(keyboard: &Keyboard, over: &AtomicBool) -> io::Result<bool> {
    let mut listening = false;
    while !over.load(Ordering::SeqCst) {
        let is_ours = !keyboard.is_in_background();
        if is_ours && !listening {
            keyboard.forget()?;
        }
        if is_ours != listening {
            display::keys_are_read(is_ours);
            listening = is_ours;
        }
        if !is_ours {
            thread::sleep(GLANCE);
        } else if keyboard.is_readable(GLANCE)? && is_enter(keyboard)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn is_enter(keyboard: &Keyboard) -> io::Result<bool> {
    // It may have been moved to the background while it waited.
    if keyboard.is_in_background() {
        return Ok(false);
    }
    match keyboard.read(&mut [0; 1024])? {
        // Ctrl-D, or the terminal is gone; then it would be readable all the time.
        Some([]) => {
            thread::sleep(GLANCE);
            Ok(false)
        }
        Some(bytes) => Ok(bytes.iter().any(|byte| matches!(byte, b'\n' | b'\r'))),
        None => Ok(false),
    }
}
