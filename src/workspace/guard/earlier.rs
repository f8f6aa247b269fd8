//! What the development version held: only git's setup, by its names in the git folder.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use serde::Deserialize;

use crate::files::nofollow;
use crate::model::HeldKind;
use crate::workspace::{OWN_GIT_FOLDER, WorkTree};

use super::held::{HeldContent, HeldFiles, HeldPlace, MOST_STORED};

const HELD_SETUP: &str = "setup.json";
const HELD: [&str; 4] = ["config", "hooks", "info/attributes", "info/exclude"];
const OWN: &str = "config.worktree";

#[derive(Deserialize)]
enum Part {
    File { bytes: Vec<u8>, mode: u32 },
    Link(PathBuf),
    Large { size: u64 },
}

impl WorkTree {
    pub(super) fn held_by_earlier_version(&self) -> Option<HeldFiles> {
        let text = nofollow::read(&self.git_dir.join(OWN_GIT_FOLDER).join(HELD_SETUP), MOST_STORED);
        let parts: BTreeMap<String, Part> = serde_json::from_slice(&text.ok()?).ok()?;
        let path = |name: &str| {
            let folder = if name == OWN { &self.git_dir } else { &self.common_dir };
            folder.join(name)
        };
        let kind = HeldKind::GitSetup;
        let place = |name: &str| HeldPlace { kind, path: path(name) };
        let places = HELD.into_iter().chain([OWN]).map(place).collect();
        let parts = parts.into_iter().map(|(name, part)| {
            let content = match part {
                Part::File { bytes, mode } => HeldContent::File { bytes, mode },
                Part::Link(target) => HeldContent::Link(target.into_os_string().into_vec()),
                Part::Large { size } => HeldContent::Large { size },
            };
            (path(&name), content)
        });
        Some(HeldFiles::of(kind, places, parts))
    }
}
