//! A disk in memory: on another one, most of a test's time would be the disk's.

use std::path::PathBuf;

/// Where tests make their folders: in memory where there is room, unless `TMPDIR` says something.
pub fn place() -> PathBuf {
    let disk = if std::env::var_os("TMPDIR").is_none() { disk() } else { None };
    disk.unwrap_or_else(std::env::temp_dir)
}

#[cfg(target_os = "linux")]
fn disk() -> Option<PathBuf> {
    use rustix::fs::{Access, StatVfsMountFlags, access, statvfs};
    const DISK: &str = "/dev/shm";
    // Some tests write hundreds of megabytes, and most run scripts.
    const ROOM: u64 = 4_000_000_000;
    let found = statvfs(DISK).ok()?;
    let does = found.f_bavail * found.f_frsize > ROOM
        && !found.f_flag.contains(StatVfsMountFlags::NOEXEC)
        && access(DISK, Access::WRITE_OK).is_ok();
    does.then(|| DISK.into())
}

#[cfg(not(target_os = "linux"))]
fn disk() -> Option<PathBuf> {
    None
}
