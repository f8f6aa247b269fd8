//! Files of the work tree that git's configuration names: what it includes, its rules, its hooks,
//! and the programs that it has git run.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use git2::Config;

use crate::model::{Gate, HeldKind};
use crate::workspace::error::{GitContext, LibResult};
use crate::workspace::{Result, WorkTree};

use super::held::HeldPlace;

/// Keys whose value is a file, by their last part.
const FILES: [&str; 5] =
    ["attributesfile", "excludesfile", "signingkey", "allowedsignersfile", "template"];
/// Keys whose value is a command, by their last part.
const COMMANDS: [&str; 20] = [
    "askpass",
    "clean",
    "cmd",
    "command",
    "defaultkeycommand",
    "difffilter",
    "driver",
    "editor",
    "external",
    "fsmonitor",
    "gitproxy",
    "helper",
    "pager",
    "process",
    "program",
    "receivepack",
    "smudge",
    "sshcommand",
    "textconv",
    "uploadpack",
];
/// A command of git's own, or one for a shell.
const ALIAS: &str = "alias.";
const SHELL: char = '!';
const HOOKS: &str = "core.hookspath";
/// The folder that husky makes; what it runs is in the folder above.
const HUSKY: &str = "_";
#[rustfmt::skip]
const HOOK_NAMES: [&str; 16] = [
    "applypatch-msg", "commit-msg", "fsmonitor-watchman", "post-applypatch", "post-checkout",
    "post-commit", "post-merge", "post-rewrite", "pre-applypatch", "pre-auto-gc", "pre-commit",
    "pre-merge-commit", "pre-push", "pre-rebase", "prepare-commit-msg", "reference-transaction",
];
/// Files that include files.
const DEEPEST: usize = 10;

/// What the configuration names.
#[derive(Default)]
struct Named {
    includes: Vec<String>,
    files: Vec<PathBuf>,
    commands: Vec<String>,
    hooks: Option<PathBuf>,
}

impl Named {
    fn of(config: &Config) -> LibResult<Self> {
        let mut named = Self::default();
        let mut entries = config.entries(None)?;
        while let Some(entry) = entries.next() {
            let entry = entry?;
            let (Ok(name), Ok(value)) = (entry.name(), entry.value()) else { continue };
            named.add(&name.to_ascii_lowercase(), value);
        }
        Ok(named)
    }

    fn add(&mut self, name: &str, value: &str) {
        let last = name.rsplit('.').next().unwrap_or(name);
        let is_include = name == "include.path" || name.starts_with("includeif.");
        if is_include && last == "path" {
            self.includes.push(value.to_owned());
        } else if name == HOOKS {
            self.hooks = Some(PathBuf::from(value));
        } else if FILES.contains(&last) {
            self.files.push(PathBuf::from(value));
        } else if name.starts_with(ALIAS) || COMMANDS.contains(&last) {
            let text = value.strip_prefix(SHELL);
            let is_for_shell = text.is_some() || !name.starts_with(ALIAS);
            self.commands.extend(is_for_shell.then(|| text.unwrap_or(value).to_owned()));
        }
    }
}

impl WorkTree {
    /// Those that git runs only at a commit or the like could be meant; all else could not.
    pub(super) fn configured_files(&self) -> Result<Vec<HeldPlace>> {
        let config = self.repo.config().doing("read the configuration")?;
        let named = Named::of(&config).doing("read the configuration")?;
        let mut setup = self.files_included(&named.includes);
        setup.extend(named.files.iter().map(|path| self.root.join(path)));
        setup.extend(self.run_by(&named.commands));
        let (ignored, meant) = named.hooks.map(|path| self.hook_files(&path)).unwrap_or_default();
        setup.extend(ignored);
        let place = |kind| move |path| HeldPlace { kind, path };
        let setup = setup.into_iter().map(place(HeldKind::GitSetup));
        let all = setup.chain(meant.into_iter().map(place(HeldKind::AgentSettings)));
        Ok(all.filter(|place| self.is_ours(&place.path)).collect())
    }

    /// What is elsewhere, an agent in a sandbox cannot change.
    fn is_ours(&self, path: &Path) -> bool {
        let is_below = |folder: &Path| path.starts_with(folder) && path != folder;
        is_below(&self.root) || is_below(&self.common_dir)
    }

    /// A path is from the folder of the file that has it, which libgit2 does not say.
    fn files_included(&self, paths: &[String]) -> BTreeSet<PathBuf> {
        let mut found = BTreeSet::new();
        let mut folders = BTreeSet::from([self.common_dir.clone(), self.git_dir.clone()]);
        for _ in 0..DEEPEST {
            let before = found.len();
            for folder in &folders {
                let plain = paths.iter().filter_map(|path| resolved(&folder.join(path)));
                found.extend(plain.filter(|path| self.is_ours(path)));
            }
            if found.len() == before {
                break;
            }
            folders.extend(found.iter().filter_map(|path| path.parent()).map(Path::to_owned));
        }
        found
    }

    /// The files of the work tree that shell commands run.
    fn run_by(&self, commands: &[String]) -> Vec<PathBuf> {
        // A bare name is a program of the system's.
        let may_be_ours = commands.iter().filter(|text| text.trim().contains(['/', ' ']));
        let gates: Vec<Gate> = may_be_ours.map(|text| Gate::shell(text)).collect();
        let scripts = self.gate_files(&gates).scripts;
        scripts.into_keys().map(|path| self.root.join(path)).collect()
    }

    /// Ignored ones, which a tool made, and those that a story could be about.
    fn hook_files(&self, path: &Path) -> (Vec<PathBuf>, Vec<PathBuf>) {
        let Some(folder) = resolved(&self.root.join(path)) else { return Default::default() };
        let Ok(inside) = folder.strip_prefix(&self.root) else { return Default::default() };
        let (mut ignored, mut hooks) = (Vec::new(), Vec::new());
        let mut folders = vec![inside];
        if inside.ends_with(HUSKY) {
            folders.extend(inside.parent());
        }
        for folder in folders {
            if self.is_ignored(folder).unwrap_or(false) {
                ignored.push(self.root.join(folder));
            } else {
                hooks.extend(HOOK_NAMES.iter().map(|name| folder.join(name)));
            }
        }
        let commands = hooks.iter().map(|hook| format!("./{}", hook.display())).collect::<Vec<_>>();
        let mut meant = self.run_by(&commands);
        meant.extend(hooks.into_iter().map(|hook| self.root.join(hook)));
        (ignored, meant)
    }
}

/// Without `..`; the files need not exist.
fn resolved(path: &Path) -> Option<PathBuf> {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::ParentDir => plain.pop().then_some(())?,
            std::path::Component::CurDir => {}
            part => plain.push(part),
        }
    }
    Some(plain)
}
