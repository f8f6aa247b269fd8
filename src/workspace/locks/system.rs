//! What the operating system says about processes.

pub(super) use platform::{boot, git_is_running_in, started};

#[cfg(target_os = "linux")]
mod platform {
    use std::fs;
    use std::io::ErrorKind;
    use std::path::Path;

    /// None if there is no such process, or it is a zombie.
    pub fn started(pid: u32) -> Option<u64> {
        let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
        let stat = String::from_utf8_lossy(&stat);
        // The name is in parentheses and may contain any character, even `)`.
        let (_, after) = stat.rsplit_once(')')?;
        let mut fields = after.split_ascii_whitespace();
        let is_dead = matches!(fields.next()?, "Z" | "X");
        fields.nth(18)?.parse().ok().filter(|_| !is_dead)
    }

    pub fn boot() -> String {
        let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        id.trim().to_owned()
    }

    /// Whether a git process runs in one of the folders or names one, or any process has the file open.
    pub fn git_is_running_in(folders: &[&Path], file: &Path) -> bool {
        let Ok(processes) = fs::read_dir("/proc") else { return true };
        let is_process = |path: &Path| {
            let name = path.file_name().unwrap_or_default().as_encoded_bytes();
            name.iter().all(u8::is_ascii_digit) && name != std::process::id().to_string().as_bytes()
        };
        let processes = processes.flatten().map(|entry| entry.path());
        processes.into_iter().filter(|path| is_process(path)).any(|process| {
            let name = fs::read_to_string(process.join("comm")).unwrap_or_default();
            let is_git = name.trim_end() == "git" || name.starts_with("git-");
            let is_about_it = || {
                let words = fs::read(process.join("cmdline")).unwrap_or_default();
                let names = |folder: &&Path| {
                    memchr::memmem::find(&words, folder.as_os_str().as_encoded_bytes()).is_some()
                };
                folders.iter().any(names)
            };
            // The folder of another user's process is unknown: it may be here. A dead process has
            // none.
            let is_here = || match fs::read_link(process.join("cwd")) {
                Ok(place) => folders.iter().any(|folder| place.starts_with(folder)),
                Err(error) => error.kind() == ErrorKind::PermissionDenied,
            };
            let opened = fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
            let mut opened = opened.filter_map(|entry| fs::read_link(entry.path()).ok());
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
