//! A real pseudo-terminal with a person's eyes and fingers.

use std::fs::File;
use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::Signal;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcgetattr, tcsetwinsize};

use super::world::{Ends, PATIENCE, signal};

const ROWS: NonZeroU16 = NonZeroU16::new(50).unwrap();
const COLUMNS: NonZeroU16 = NonZeroU16::new(100).unwrap();

pub struct Terminal {
    child: Child,
    keys: File,
    /// Everything that was ever shown, as it came.
    raw: Arc<Mutex<Vec<u8>>>,
    screen: Arc<Mutex<vt100::Parser>>,
    reader: JoinHandle<()>,
}

/// How long the last of what was shown may take to be read, should something hold the terminal.
const LAST_READ: Duration = Duration::from_secs(5);

impl Terminal {
    pub fn start(mut command: Command) -> Self {
        let (master, slave) = open();
        tcsetwinsize(&master, size(ROWS, COLUMNS)).unwrap();
        let end = |fd: &OwnedFd| Stdio::from(fd.try_clone().unwrap());
        command.stdin(end(&slave)).stdout(end(&slave)).stderr(end(&slave));
        if command.get_envs().all(|(name, _)| name != "TERM") {
            command.env("TERM", "xterm");
        }
        take_control(&mut command);
        let child = command.spawn().unwrap();
        drop((command, slave));
        let raw = Arc::new(Mutex::new(Vec::new()));
        let screen = Arc::new(Mutex::new(vt100::Parser::new(ROWS, COLUMNS, 10_000)));
        let mut output = File::from(master.try_clone().unwrap());
        let (raw_too, screen_too) = (Arc::clone(&raw), Arc::clone(&screen));
        let reader = thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = output.read(&mut buffer) {
                raw_too.lock().unwrap().extend_from_slice(&buffer[..count]);
                screen_too.lock().unwrap().process(&buffer[..count]);
            }
        });
        Self { child, keys: File::from(master), raw, screen, reader }
    }

    pub fn screen(&self) -> String {
        self.screen.lock().unwrap().screen().contents()
    }

    pub fn raw(&self) -> String {
        String::from_utf8_lossy(&self.raw.lock().unwrap()).into_owned()
    }

    pub fn cursor_is_hidden(&self) -> bool {
        self.screen.lock().unwrap().screen().hide_cursor()
    }

    /// Waits until the text is on the screen.
    pub fn await_text(&self, text: &str) -> String {
        let start = Instant::now();
        loop {
            let screen = self.screen();
            if screen.contains(text) {
                return screen;
            }
            assert!(start.elapsed() < PATIENCE, "waited in vain for `{text}` on\n{screen}");
            thread::sleep(Duration::from_millis(5));
        }
    }

    pub fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// How the terminal treats what is typed: echo, lines, signals.
    pub fn modes(&self) -> String {
        format!("{:?}", tcgetattr(&self.keys).unwrap())
    }

    pub fn signal(&self, which: Signal) {
        signal(&self.child, which);
    }

    pub fn resize(&self, rows: u16, columns: u16) {
        let (rows, columns) = (rows.try_into().unwrap(), columns.try_into().unwrap());
        tcsetwinsize(&self.keys, size(rows, columns)).unwrap();
        self.screen.lock().unwrap().screen_mut().set_size(rows, columns);
    }

    /// Waits for the end and returns the exit code and the last screen.
    pub fn finish(mut self) -> (i32, String) {
        let code = self.child.code_or(|| self.screen.lock().unwrap().screen().contents());
        let end = Instant::now() + LAST_READ;
        while !self.reader.is_finished() && Instant::now() < end {
            thread::sleep(Duration::from_millis(1));
        }
        (code, self.screen())
    }
}

fn size(rows: NonZeroU16, columns: NonZeroU16) -> Winsize {
    Winsize { ws_row: rows.get(), ws_col: columns.get(), ws_xpixel: 0, ws_ypixel: 0 }
}

fn open() -> (OwnedFd, OwnedFd) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    // A child that had it too would never be hung up on when a test fails.
    fcntl_setfd(&master, FdFlags::CLOEXEC).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let slave = rustix::fs::open(name, flags, Mode::empty()).unwrap();
    (master, slave)
}

#[expect(unsafe_code, reason = "the child needs the terminal as its own, and only it can say so")]
fn take_control(command: &mut Command) {
    // SAFETY: both are plain system calls, which are safe between fork and exec.
    unsafe {
        command.pre_exec(|| {
            rustix::process::setsid()?;
            rustix::process::ioctl_tiocsctty(rustix::stdio::stdin())?;
            Ok(())
        });
    }
}
