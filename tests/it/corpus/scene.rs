//! Where an attack happens: a repository with work of the user's of every kind, an earlier run that
//! closed a story, and a home and a folder that are nobody's business.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::OnceLock;

use crate::support::world::RALPH;
use crate::support::{Prd, World};

use super::attack::{Case, End, Then};

/// A story's id, its file, and the file's only line.
pub const STORIES: [(&str, &str, &str); 3] =
    [("US-001", "one.txt", "one"), ("US-002", "two.txt", "two"), ("US-003", "three.txt", "three")];
/// The user's own files, as they are before the run.
pub const USERS: [(&str, &str); 6] = [
    ("notes.txt", "edited by the user\n"),
    ("staged.txt", "staged by the user\n"),
    ("added.txt", "new and staged\n"),
    ("mine.txt", "not in git\n"),
    ("deep/er/mine.txt", "not in git either\n"),
    ("own.local", "ignored\n"),
];
/// Gates and files of the repository that no story is about.
pub const COMMITTED: [(&str, &str); 6] = [
    ("check.sh", "test -e README.md || exit 1\ntest ! -e ../control/gate || sh ../control/gate\n"),
    ("check-one.sh", "grep -qx one one.txt\n"),
    (".gitignore", "*.local\nbuild/\n"),
    ("lib/keep.txt", "kept\n"),
    ("notes.txt", "committed\n"),
    ("staged.txt", "committed\n"),
];
const GATE: &str = "verify = [{ run = \"sh check.sh\", timeout = \"TIME\" }]\n";
const LIMITS: &str = "max_attempts = 3\nmax_iterations = 12\niteration_timeout = \"TIME\"\n";

/// Made once, and copied for each case.
#[derive(Default)]
pub struct Scenes {
    patient: OnceLock<World>,
    /// Longer than an attack takes while other tests run.
    hasty: OnceLock<World>,
}

impl Scenes {
    pub fn of(&self, case: &Case) -> World {
        if case.end == End::TimeOut {
            Self::copy(self.hasty.get_or_init(|| scene("4s")))
        } else {
            self.any()
        }
    }

    pub fn any(&self) -> World {
        Self::copy(self.patient.get_or_init(|| scene("10m")))
    }

    fn copy(world: &World) -> World {
        let world = world.copy();
        symlink(RALPH, world.path("../control/ralph")).unwrap();
        world
    }
}

/// The command of a story's own gate.
pub fn gate((id, file, line): (&str, &str, &str)) -> String {
    if id == "US-001" { "sh check-one.sh".to_owned() } else { format!("grep -qx {line} {file}") }
}

/// A file and its text: the story's work, or none.
pub fn work_of((_, file, line): (&str, &str, &str), then: Then) -> (String, String) {
    match then {
        Then::Work => (file.to_owned(), format!("{line}\n")),
        Then::Lie => ("lie.txt".to_owned(), "lie\n".to_owned()),
    }
}

/// The same as a step of the mock agent.
pub fn step((file, text): (String, String)) -> String {
    format!("{{ write = {file:?}, text = {text:?} }}")
}

fn scene(time: &str) -> World {
    let prd = STORIES.iter().fold(Prd::stories(0), |prd, story| {
        prd.story(&format!("\"verify\": [\"{}\"]", gate(*story)))
    });
    let world = World::with(&prd);
    for folder in ["control", "outside"] {
        fs::create_dir(world.path("..").join(folder)).unwrap();
    }
    world.write("../outside/letter.txt", "a letter\n");
    for (name, text) in [(".bashrc", "alias ll='ls -l'\n"), (".netrc", "machine example.org\n")] {
        fs::write(world.home().join(name), text).unwrap();
    }
    world.write("ralph.toml", &format!("{LIMITS}{GATE}").replace("TIME", time));
    for (name, text) in COMMITTED {
        world.write(name, text);
    }
    world.git(&["add", "."]);
    world.git(&["commit", "-qm", "the user's"]);
    let work = step(work_of(STORIES[0], Then::Work));
    fs::write(world.script(), format!("[default]\nsteps = [{work}, \"complete\"]\n")).unwrap();
    let said = world.run(&["--once"]);
    assert_eq!(world.passing(), ["US-001"], "{}", said.err);
    world.git(&["branch", "other", "HEAD~1"]);
    world.git(&["tag", "v1"]);
    world.write("README.md", "stashed\n");
    world.git(&["stash", "push", "-q", "-m", "mine"]);
    for (name, text) in USERS {
        world.write(name, text);
    }
    world.git(&["add", "staged.txt", "added.txt"]);
    world
}
