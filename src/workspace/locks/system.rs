//! What the operating system says about processes.

pub(super) use platform::{boot, git_is_running_in, started};

#[cfg(target_os = "linux")]
mod platform {
    use std::io::ErrorKind;
    use std::path::Path;

    use crate::files::{self, follow};

    /// Of what the system says about one; a command line may be long.
    const LONGEST: u64 = 16 << 20;

    /// None if there is no such process, or it is a zombie.
    pub fn started(pid: u32) -> Option<u64> {
        let stat = files::read(Path::new(&format!("/proc/{pid}/stat")), LONGEST).ok()?;
        let stat = String::from_utf8_lossy(&stat);
        // The name is in parentheses and may contain any character, even `)`.
        let (_, after) = stat.rsplit_once(')')?;
        let mut fields = after.split_ascii_whitespace();
        let is_dead = matches!(fields.next()?, "Z" | "X");
        fields.nth(18)?.parse().ok().filter(|_| !is_dead)
    }

    pub fn boot() -> String {
        let id = Path::new("/proc/sys/kernel/random/boot_id");
        let id = files::read_text(id, LONGEST).unwrap_or_default();
        id.trim().to_owned()
    }

    /// Whether a git process runs in one of the folders or names one, or any process has the file open.
    pub fn git_is_running_in(folders: &[&Path], file: &Path) -> bool {
        let proc = Path::new("/proc");
        let is_process = |path: &Path| {
            let name = path.file_name().unwrap_or_default().as_encoded_bytes();
            name.iter().all(u8::is_ascii_digit) && name != std::process::id().to_string().as_bytes()
        };
        let mut processes = follow::names(proc).map(|name| proc.join(name)).peekable();
        if processes.peek().is_none() {
            return true;
        }
        processes.filter(|path| is_process(path)).any(|process| {
            let name = files::read_text(&process.join("comm"), LONGEST).unwrap_or_default();
            let is_git = name.trim_end() == "git" || name.starts_with("git-");
            let is_about_it = || {
                let words = files::read(&process.join("cmdline"), LONGEST).unwrap_or_default();
                let names = |folder: &&Path| {
                    memchr::memmem::find(&words, folder.as_os_str().as_encoded_bytes()).is_some()
                };
                folders.iter().any(names)
            };
            // The folder of another user's process is unknown: it may be here. A dead process has
            // none.
            let is_here = || match follow::read_link(&process.join("cwd")) {
                Ok(place) => folders.iter().any(|folder| place.starts_with(folder)),
                Err(error) => error.kind() == ErrorKind::PermissionDenied,
            };
            let opened = process.join("fd");
            let names = follow::names(&opened);
            let mut opened = names.filter_map(|name| follow::read_link(&opened.join(name)).ok());
            (is_git && (is_here() || is_about_it())) || opened.any(|path| path == file)
        })
    }
}

/// Without `/proc`, a living process with the same pid counts as the same one, and other processes
/// cannot be listed.
#[cfg(not(target_os = "linux"))]
mod platform {
    use std::path::Path;

    use rustix::process::{Pid, test_kill_process};

    pub fn started(pid: u32) -> Option<u64> {
        let pid = Pid::from_raw(i32::try_from(pid).ok()?)?;
        let gone = test_kill_process(pid) == Err(rustix::io::Errno::SRCH);
        (!gone).then_some(0)
    }

    pub fn boot() -> String {
        String::new()
    }

    pub fn git_is_running_in(_folders: &[&Path], _file: &Path) -> bool {
        false
    }
}
