//! Where PRD.json was when it was opened: nothing is read or written through a later link.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::files::{ReadError, atomic, follow, nofollow};
use crate::text::backlog::MAX_BYTES;

use super::PrdFile;

/// Of a file that is made anew.
const NEW_MODE: u32 = 0o644;
/// More are a circle.
const MOST_LINKS: usize = 40;

pub(super) struct Place {
    /// Symlinks on the way to the file, or at its path, and what they were.
    links: Vec<(PathBuf, PathBuf)>,
    /// Without links.
    pub target: PathBuf,
    mode: u32,
}

impl Place {
    pub fn of(file: &PrdFile) -> io::Result<Self> {
        let (links, target) = way(file.path())?;
        let mode = nofollow::look(&target)?.permissions().mode();
        Ok(Self { links, target, mode })
    }

    /// Of a file that may be anything by now. `link`: its path was a symlink to this.
    pub fn known(path: &Path, link: Option<PathBuf>) -> io::Result<Self> {
        let at = real_folder(path)?;
        let target = link.as_ref().map(|link| real_folder(&atomic::folder_of(&at).join(link)));
        let target = target.transpose()?.unwrap_or_else(|| at.clone());
        let found = nofollow::look(&target).ok().filter(|found| found.is_file());
        let mode = found.map_or(NEW_MODE, |found| found.permissions().mode());
        Ok(Self { links: link.map(|link| (at, link)).into_iter().collect(), target, mode })
    }

    /// No part of the way to the file is another symlink than it was then.
    pub fn is_at(&self) -> bool {
        let is_kept =
            |(at, to): &(PathBuf, PathBuf)| nofollow::read_link(at).ok().as_ref() == Some(to);
        self.links.iter().all(is_kept) && !is_diverted(&self.target)
    }

    pub fn put_back(&self, text: &str, keep: &Path) -> io::Result<PutBack> {
        let mut kept = None;
        for (at, to) in &self.links {
            kept = clear_way(at, keep)?.or(kept);
            if nofollow::read_link(at).ok().as_ref() != Some(to) {
                kept = set_aside(at, keep)?.or(kept);
                nofollow::make_link(to, at)?;
            }
        }
        kept = clear_way(&self.target, keep)?.or(kept);
        let was_file = match nofollow::read(&self.target, MAX_BYTES as u64) {
            Ok(bytes) => {
                let copy = free(keep);
                atomic::publish(&copy, &bytes)?;
                kept = Some(copy);
                true
            }
            Err(ReadError::Io(error)) if error.kind() == ErrorKind::NotFound => false,
            Err(_) => {
                kept = set_aside(&self.target, keep)?.or(kept);
                false
            }
        };
        let metadata = atomic::replace_real(&self.target, text.as_bytes())?;
        if !was_file {
            nofollow::set_mode(&self.target, self.mode)?;
            return Ok(PutBack { kept, metadata: None });
        }
        Ok(PutBack { kept, metadata })
    }
}

pub(super) struct PutBack {
    pub kept: Option<PathBuf>,
    pub metadata: Option<std::fs::Metadata>,
}

/// The links that lead to a file, and where they lead.
fn way(path: &Path) -> io::Result<(Vec<(PathBuf, PathBuf)>, PathBuf)> {
    let parts = |path: &Path| path.components().map(|part| part.as_os_str().to_owned()).collect();
    let mut rest: VecDeque<OsString> = parts(&std::path::absolute(path)?);
    let (mut links, mut way) = (Vec::new(), PathBuf::new());
    while let Some(part) = rest.pop_front() {
        match part.to_str() {
            Some(".") => continue,
            Some("..") => {
                way.pop();
                continue;
            }
            _ => way.push(part),
        }
        let Ok(target) = follow::read_link(&way) else { continue };
        if links.len() == MOST_LINKS {
            return Err(ErrorKind::InvalidInput.into());
        }
        let mut next: VecDeque<OsString> = parts(&target);
        next.append(&mut rest);
        rest = next;
        links.push((way.clone(), target));
        way.pop();
    }
    Ok((links, way))
}

/// The path with a real folder, if there is one.
fn real_folder(path: &Path) -> io::Result<PathBuf> {
    let path = std::path::absolute(path)?;
    let folder = follow::real(atomic::folder_of(&path));
    let name = path.file_name().unwrap_or_default();
    Ok(folder.map_or_else(|_| path.clone(), |folder| folder.join(name)))
}

fn is_diverted(path: &Path) -> bool {
    match nofollow::look(path) {
        Ok(found) => found.is_symlink(),
        Err(error) => error.kind() == ErrorKind::NotADirectory,
    }
}

/// Makes the folders on the way. What is in the place of one, mostly a link, is kept.
fn clear_way(path: &Path, keep: &Path) -> io::Result<Option<PathBuf>> {
    let folder = atomic::folder_of(path);
    let mut folders: Vec<&Path> = folder.ancestors().collect();
    folders.reverse();
    let in_the_way = folders.into_iter().find(|folder| nofollow::kind(folder).is_in_the_way());
    let kept = in_the_way.map(|it| set_aside(it, keep)).transpose()?.flatten();
    nofollow::make_folders(folder)?;
    Ok(kept)
}

/// A folder, pipe or link is moved and not read.
fn set_aside(path: &Path, keep: &Path) -> io::Result<Option<PathBuf>> {
    let beside = || {
        let beside = free(&with_suffix(path, ".replaced"));
        nofollow::rename(path, &beside).map(|()| Some(beside))
    };
    if keep.starts_with(path) {
        return beside();
    }
    let keep = free(keep);
    match nofollow::rename(path, &keep) {
        Ok(()) => Ok(Some(keep)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) if error.kind() == ErrorKind::CrossesDevices => beside(),
        Err(error) => Err(error),
    }
}

/// The name itself, or with a number if it is taken.
fn free(name: &Path) -> PathBuf {
    let numbered = (2..).map(|number| with_suffix(name, &format!("-{number}")));
    let mut names = std::iter::once(name.to_owned()).chain(numbered);
    names.find(|name| !nofollow::exists(name)).unwrap_or_default()
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}
