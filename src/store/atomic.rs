//! Replaces a file so that a reader, a kill or a power cut sees the old or the new one, whole.
//!
//! Owns the temporary file beside it and its name. It never writes into the
//! file itself, and never turns a symlink into a file. Hard links, access
//! lists and extended attributes do not survive a replacement.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata, Permissions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::{AtFlags, CWD, Gid, Uid};

use super::files::naming;

const RANDOM_LEN: usize = 6;
const SUFFIX: &str = ".tmp";
const NEW_FILE_MODE: u32 = 0o644;

/// Writes the whole file anew, through symlinks, with the mode (and, if allowed, the owner) it has.
///
/// What the file system says of the new file, when its times tell it from any later version.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<Option<Metadata>> {
    let target = resolve(path)?;
    let old = existing_file(&target)?;
    let folder = folder_of(&target);
    let mut temporary = tempfile::Builder::new()
        .prefix(&prefix_for(&target)?)
        .suffix(SUFFIX)
        .rand_bytes(RANDOM_LEN)
        .permissions(Permissions::from_mode(NEW_FILE_MODE))
        .tempfile_in(folder)?;
    temporary.write_all(bytes)?;
    if let Some(old) = old {
        keep_owner_and_mode(temporary.as_file(), &old)?;
    }
    let own_time = set_own_time(temporary.as_file());
    temporary.as_file().sync_all()?;
    let file = temporary.persist(&target).map_err(|failed| failed.error)?;
    sync_folder(folder)?;
    Ok(as_written(&file, own_time, bytes.len()))
}

/// The next version of a file, on the disk already and without a name: a kill leaves nothing.
pub struct Prepared {
    file: File,
    target: PathBuf,
    own_time: Option<SystemTime>,
    size: usize,
}

/// None where the system has no files without a name.
#[cfg(target_os = "linux")]
pub fn prepare(path: &Path, bytes: &[u8]) -> Option<Prepared> {
    use rustix::fs::{Mode, OFlags};
    let target = resolve(path).ok()?;
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let mode = Mode::from_raw_mode(NEW_FILE_MODE);
    let mut file = File::from(rustix::fs::open(folder_of(&target), flags, mode).ok()?);
    file.write_all(bytes).ok()?;
    if let Some(old) = existing_file(&target).ok()? {
        keep_owner_and_mode(&file, &old).ok()?;
    }
    let own_time = set_own_time(&file);
    file.sync_all().ok()?;
    Some(Prepared { file, target, own_time, size: bytes.len() })
}

#[cfg(not(target_os = "linux"))]
pub fn prepare(_: &Path, _: &[u8]) -> Option<Prepared> {
    None
}

impl Prepared {
    /// As `replace` does it, with one rename instead of writing.
    pub fn replace(self, path: &Path) -> io::Result<Option<Metadata>> {
        let target = resolve(path)?;
        if target != self.target {
            return Err(io::Error::other("the file is elsewhere now"));
        }
        if let Some(old) = existing_file(&target)? {
            keep_owner_and_mode(&self.file, &old)?;
        }
        let folder = folder_of(&target);
        let own = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        let named = tempfile::Builder::new()
            .prefix(&prefix_for(&target)?)
            .suffix(SUFFIX)
            .rand_bytes(RANDOM_LEN)
            .make_in(folder, |name| {
                Ok(rustix::fs::linkat(CWD, own.as_str(), CWD, name, AtFlags::SYMLINK_FOLLOW)?)
            })?;
        named.persist(&target).map_err(|failed| failed.error)?;
        sync_folder(folder)?;
        Ok(as_written(&self.file, self.own_time, self.size))
    }
}

/// To the nanosecond, where the system's own stamps are some milliseconds apart: whatever is
/// written to the file later has another one.
fn set_own_time(file: &File) -> Option<SystemTime> {
    let now = SystemTime::now();
    file.set_modified(now).ok().map(|()| now)
}

fn as_written(file: &File, own_time: Option<SystemTime>, size: usize) -> Option<Metadata> {
    let found = file.metadata().ok()?;
    let is_own = found.modified().ok() == Some(own_time?) && found.len() == size as u64;
    is_own.then_some(found)
}

/// Writes a small file that is worth nothing after a power cut: whole for every reader, for its
/// owner only, not synced. What stands there, a link for example, is replaced and not followed.
pub fn publish(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut temporary = tempfile::Builder::new()
        .prefix(&prefix_for(path)?)
        .suffix(SUFFIX)
        .rand_bytes(RANDOM_LEN)
        .tempfile_in(folder_of(path))?;
    temporary.write_all(bytes)?;
    temporary.persist(path).map_err(|failed| failed.error)?;
    Ok(())
}

/// Removes what a killed `replace` of this file left behind, and says how many files that were.
///
/// Only for whoever holds the lock: the temporary file of a running `replace` goes too.
pub fn remove_leftovers(path: &Path) -> io::Result<usize> {
    let target = resolve(path)?;
    let prefix = prefix_for(&target)?;
    let mut removed = 0;
    for entry in fs::read_dir(folder_of(&target))? {
        let entry = entry?;
        if is_leftover(&entry.file_name(), &prefix) && entry.file_type()?.is_file() {
            fs::remove_file(entry.path()).map_err(naming(&entry.path()))?;
            removed += 1;
        }
    }
    Ok(removed)
}

/// Where the file really is. A path where nothing is yet stays as it is; a symlink to nothing is
/// an error.
pub fn resolve(path: &Path) -> io::Result<PathBuf> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_symlink() => fs::canonicalize(path),
        Ok(_) => Ok(path.to_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(path.to_owned()),
        Err(error) => Err(error),
    }
}

/// The folder a file is in; for a bare name the current one.
pub fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

fn existing_file(target: &Path) -> io::Result<Option<Metadata>> {
    match fs::symlink_metadata(target) {
        Ok(found) if found.is_file() => Ok(Some(found)),
        Ok(_) => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// `.PRD.json.ralph-`
fn prefix_for(target: &Path) -> io::Result<OsString> {
    let no_name = || io::Error::new(io::ErrorKind::InvalidInput, "the path names no file");
    let mut prefix = OsString::from(".");
    prefix.push(target.file_name().ok_or_else(no_name)?);
    prefix.push(".ralph-");
    Ok(prefix)
}

fn is_leftover(name: &OsStr, prefix: &OsStr) -> bool {
    let rest = name.as_encoded_bytes().strip_prefix(prefix.as_encoded_bytes());
    let random = rest.and_then(|rest| rest.strip_suffix(SUFFIX.as_bytes()));
    random.is_some_and(|random| {
        random.len() == RANDOM_LEN && random.iter().all(u8::is_ascii_alphanumeric)
    })
}

fn keep_owner_and_mode(file: &File, old: &Metadata) -> io::Result<()> {
    let new = file.metadata()?;
    if (new.uid(), new.gid()) != (old.uid(), old.gid()) {
        // Only root may give a file away; for others the file becomes theirs.
        let (owner, group) = (Uid::from_raw(old.uid()), Gid::from_raw(old.gid()));
        let _ = rustix::fs::fchown(file, Some(owner), Some(group));
    }
    // After the owner, because giving a file away clears bits of its mode.
    file.set_permissions(Permissions::from_mode(old.mode() & 0o7777))
}

fn sync_folder(folder: &Path) -> io::Result<()> {
    match File::open(folder)?.sync_all() {
        // Some network file systems cannot; the new file is in place all the same.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
        synced => synced,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn names_in(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    #[test]
    fn keeps_the_mode_and_leaves_nothing_else_behind() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("PRD.json");
        for mode in [0o600, 0o640, 0o664, 0o755] {
            fs::write(&path, "old").unwrap();
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            replace(&path, b"new").unwrap();
            assert_eq!(fs::read(&path).unwrap(), b"new");
            assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, mode, "{mode:o}");
        }
        assert_eq!(names_in(folder.path()), ["PRD.json"]);
    }

    #[test]
    fn a_new_file_can_be_read_by_others() {
        let folder = tempfile::tempdir().unwrap();
        let (ours, plain) = (folder.path().join("ours"), folder.path().join("plain"));
        replace(&ours, b"new").unwrap();
        File::create(&plain).unwrap();
        let umasked = fs::metadata(&plain).unwrap().mode() & 0o777 & NEW_FILE_MODE;
        assert_eq!(fs::metadata(&ours).unwrap().mode() & 0o777, umasked);
    }

    #[test]
    fn what_was_written_is_known_by_a_time_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("PRD.json");
        let written = replace(&path, b"new").unwrap().unwrap();
        assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), written.modified().unwrap());
        let file = File::options().write(true).open(&path).unwrap();
        let own_time = set_own_time(&file);
        assert!(as_written(&file, own_time, 3).is_some());
        assert!(as_written(&file, own_time, 4).is_none());
        assert!(as_written(&file, None, 3).is_none());
        // As whoever writes to it now does.
        file.set_modified(own_time.unwrap() - std::time::Duration::from_millis(1)).unwrap();
        assert!(as_written(&file, own_time, 3).is_none());
    }

    #[test]
    fn writes_through_a_chain_of_relative_links() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("real")).unwrap();
        let real = folder.path().join("real/backlog.json");
        fs::write(&real, "old").unwrap();
        symlink("real/backlog.json", folder.path().join("middle")).unwrap();
        symlink("middle", folder.path().join("PRD.json")).unwrap();
        replace(&folder.path().join("PRD.json"), b"new").unwrap();
        assert_eq!(fs::read(&real).unwrap(), b"new");
        assert_eq!(fs::read_link(folder.path().join("PRD.json")).unwrap(), Path::new("middle"));
        assert_eq!(names_in(&folder.path().join("real")), ["backlog.json"]);
        assert_eq!(names_in(folder.path()), ["PRD.json", "middle", "real"]);
    }

    #[test]
    fn refuses_a_link_to_nothing_and_what_is_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let dangling = folder.path().join("PRD.json");
        symlink("nowhere", &dangling).unwrap();
        assert_eq!(replace(&dangling, b"").unwrap_err().kind(), io::ErrorKind::NotFound);
        assert!(fs::symlink_metadata(&dangling).unwrap().is_symlink());
        let error = replace(folder.path(), b"").unwrap_err();
        assert_eq!(error.to_string(), "it is not a regular file");
        assert_eq!(names_in(folder.path()), ["PRD.json"]);
    }

    #[test]
    fn a_published_file_is_private_and_replaces_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("status.json"), folder.path().join("other"));
        fs::write(&other, "mine").unwrap();
        symlink("other", &path).unwrap();
        for text in ["{}", "{ }"] {
            publish(&path, text.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
            assert_eq!(fs::symlink_metadata(&path).unwrap().mode() & 0o7777, 0o600);
        }
        assert_eq!(fs::read_to_string(&other).unwrap(), "mine");
        assert_eq!(names_in(folder.path()), ["other", "status.json"]);
    }

    #[test]
    fn nobody_ever_reads_half_of_what_is_published() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("status.json");
        let page = |number: u8| vec![b'a' + number % 26; 100_000 + usize::from(number)];
        publish(&path, &page(0)).unwrap();
        let writing = std::thread::spawn({
            let path = path.clone();
            move || (1..=200).for_each(|number| publish(&path, &page(number)).unwrap())
        });
        let mut reads = 0;
        while !writing.is_finished() || reads == 0 {
            let text = fs::read(&path).unwrap();
            let number = u8::try_from(text.len() - 100_000).unwrap();
            assert!(text == page(number), "mixed or cut");
            reads += 1;
        }
        writing.join().unwrap();
    }

    #[test]
    fn removes_leftovers_of_this_file_by_their_exact_name() {
        let folder = tempfile::tempdir().unwrap();
        let gone = [".PRD.json.ralph-a1B2c3.tmp", ".PRD.json.ralph-zzzzzz.tmp"];
        let stay = [
            ".PRD.json.ralph-a1B2c.tmp",
            ".PRD.json.ralph-a1-2c3.tmp",
            ".PRD.json.ralph-a1B2c3.tmp2",
            ".other.json.ralph-a1B2c3.tmp",
            "PRD.json",
            "x.PRD.json.ralph-a1B2c3.tmp",
        ];
        for name in gone.iter().chain(&stay) {
            fs::write(folder.path().join(name), "").unwrap();
        }
        fs::create_dir(folder.path().join(".PRD.json.ralph-folder.tmp")).unwrap();
        assert_eq!(remove_leftovers(&folder.path().join("PRD.json")).unwrap(), 2);
        let mut left = vec![".PRD.json.ralph-folder.tmp"];
        left.extend(stay);
        left.sort_unstable();
        assert_eq!(names_in(folder.path()), left);
    }
}
