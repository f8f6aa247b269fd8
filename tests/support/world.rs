//! A repository in a folder of its own, and the programs that are run in it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use ralph::model::Recorded;
use ralph::store::{Journal, Store, StorePlace};

use super::Prd;

pub const RALPH: &str = env!("CARGO_BIN_EXE_ralph");
/// No test waits longer than this for a fact.
pub const PATIENCE: Duration = Duration::from_secs(60);

pub struct World {
    folder: tempfile::TempDir,
}

/// What a program said and how it ended.
pub struct Said {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl World {
    /// A repository with one commit and no backlog.
    pub fn new() -> Self {
        Self::without_repository().init()
    }

    pub fn without_repository() -> Self {
        Self::empty_in(&std::env::temp_dir())
    }

    /// With this backlog, committed.
    pub fn with(prd: &Prd) -> Self {
        Self::new().add(prd)
    }

    /// The same on another disk.
    pub fn with_in(parent: &Path, prd: &Prd) -> Self {
        Self::empty_in(parent).init().add(prd)
    }

    fn empty_in(parent: &Path) -> Self {
        let world = Self { folder: tempfile::tempdir_in(parent).unwrap() };
        fs::create_dir(world.root()).unwrap();
        fs::create_dir(world.home()).unwrap();
        world
    }

    fn init(self) -> Self {
        self.git(&["init", "-q", "-b", "work"]);
        self.git(&["config", "user.name", "Tester"]);
        self.git(&["config", "user.email", "tester@example.org"]);
        self.write("README.md", "hello\n");
        self.commit("first")
    }

    fn add(self, prd: &Prd) -> Self {
        self.write("PRD.json", &prd.text());
        self.commit("backlog")
    }

    fn commit(self, subject: &str) -> Self {
        self.git(&["add", "."]);
        self.git(&["commit", "-qm", subject]);
        self
    }

    /// And with this script for the mock agent, outside the repository.
    pub fn scripted(prd: &Prd, script: &str) -> Self {
        let world = Self::with(prd);
        fs::write(world.script(), script).unwrap();
        world
    }

    /// A repository out of an archive.
    pub fn unpacked(archive: &Path) -> Self {
        let world = Self::without_repository();
        let mut tar = world.command("tar");
        tar.arg("-xzof").arg(archive).arg("-C").arg(world.folder.path());
        let said = said(&tar.output().unwrap());
        assert_eq!(said.code, 0, "{}: {}", archive.display(), said.err);
        world
    }

    /// The same files in a folder of their own.
    pub fn copy(&self) -> Self {
        let folder = tempfile::tempdir().unwrap();
        copy(self.folder.path(), folder.path());
        Self { folder }
    }

    pub fn root(&self) -> PathBuf {
        self.folder.path().join("repo")
    }

    pub fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// Where ralph keeps what is the user's and no repository's.
    pub fn state_home(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    pub fn script(&self) -> PathBuf {
        self.folder.path().join("script.toml")
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.root().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// Nothing of the machine's settings reaches a test.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.root())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.home())
            .env("XDG_STATE_HOME", self.state_home())
            .env("TMPDIR", self.folder.path())
            .env("TZ", "UTC")
            .env("LANG", "C.UTF-8")
            // What fails here fails on purpose: nobody waits for it to mend.
            .env("RALPH_BACKOFF", "none")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CEILING_DIRECTORIES", self.folder.path())
            .stdin(Stdio::null());
        command
    }

    pub fn git(&self, args: &[&str]) -> String {
        let output = self.command("git").args(args).output().unwrap();
        let said = said(&output);
        assert_eq!(said.code, 0, "git {args:?}: {}", said.err);
        said.out
    }

    pub fn ralph(&self, args: &[&str]) -> Said {
        said(&self.command(RALPH).args(args).output().unwrap())
    }

    /// `ralph run` with the mock agent, scripted when there is a script.
    pub fn run(&self, args: &[&str]) -> Said {
        said(&self.run_command(args).output().unwrap())
    }

    pub fn run_command(&self, args: &[&str]) -> Command {
        let mut command = self.command(RALPH);
        command.args(self.run_words(args));
        command
    }

    pub fn run_words(&self, args: &[&str]) -> Vec<String> {
        let mut words: Vec<String> =
            ["run", "--trust", "--agent", "mock"].map(str::to_owned).to_vec();
        if self.script().exists() {
            words.push("--mock-script".to_owned());
            words.push(self.script().to_str().unwrap().to_owned());
        }
        words.extend(args.iter().map(|arg| (*arg).to_owned()));
        words
    }

    /// A run that goes on in the background.
    pub fn start(&self, args: &[&str]) -> Child {
        let mut command = self.run_command(args);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// What `ralph status` knows.
    pub fn state(&self) -> serde_json::Value {
        serde_json::from_str(&self.ralph(&["status", "--json"]).out).unwrap()
    }

    pub fn subjects(&self) -> Vec<String> {
        self.git(&["log", "--format=%s"]).lines().map(str::to_owned).collect()
    }

    pub fn status(&self) -> String {
        self.git(&["status", "--porcelain"])
    }

    /// The ids of the stories that pass, by the file on the disk.
    pub fn passing(&self) -> Vec<String> {
        let prd: serde_json::Value = serde_json::from_str(&self.read("PRD.json")).unwrap();
        let stories = prd["userStories"].as_array().unwrap();
        stories
            .iter()
            .filter(|story| story["passes"] == true)
            .map(|story| story["id"].as_str().unwrap().to_owned())
            .collect()
    }

    /// Everything that happened.
    pub fn journal(&self) -> Vec<Recorded> {
        let store = Store::new(StorePlace::in_folder(&self.path(".git/ralph")));
        store.journal("PRD.json").unwrap().read(0).unwrap().0
    }

    /// A file that an iteration left, by how its name ends.
    pub fn page(&self, ending: &str) -> PathBuf {
        let runs = entries(&self.path(".ralph/runs"));
        let mut pages = runs.iter().flat_map(|run| entries(run));
        pages.find(|path| path.to_str().unwrap().ends_with(ending)).expect("a page")
    }

    /// What the agent of an iteration was given, in the newest run.
    pub fn prompt(&self, iteration: u32) -> String {
        let start = format!("{iteration:04}-");
        let mut runs: Vec<PathBuf> = entries(&self.path(".ralph/runs"));
        runs.sort();
        let pages = entries(runs.last().expect("a run"));
        let is_it = |path: &&PathBuf| {
            let name = path.file_name().unwrap().to_str().unwrap();
            name.starts_with(&start) && name.ends_with(".prompt.md")
        };
        fs::read_to_string(pages.iter().find(is_it).expect("a prompt")).unwrap()
    }

    /// The pages of one kind of the newest run, in order.
    pub fn pages(&self, kind: &str) -> Vec<String> {
        let mut runs: Vec<PathBuf> = entries(&self.path(".ralph/runs"));
        runs.sort();
        let mut pages = entries(runs.last().expect("a run"));
        pages.sort();
        let of_kind = pages.iter().filter(|path| path.to_str().is_some_and(|p| p.ends_with(kind)));
        of_kind.map(|path| fs::read_to_string(path).unwrap()).collect()
    }

    /// Waits until a file is there and has something in it.
    pub fn await_file(&self, name: &str) -> String {
        let path = self.path(name);
        until(&format!("{name} to be written"), || {
            fs::read_to_string(&path).ok().filter(|text| text.ends_with('\n'))
        })
    }

    /// Processes that were started with this world's run: their environment names its folder.
    pub fn processes(&self) -> Vec<String> {
        let home = format!("HOME={}", self.home().display());
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let Ok(environ) = fs::read(entry.path().join("environ")) else { continue };
            let is_ours = environ.split(|byte| *byte == 0).any(|entry| entry == home.as_bytes());
            if is_ours {
                let name = fs::read(entry.path().join("cmdline")).unwrap_or_default();
                found.push(String::from_utf8_lossy(&name).replace('\0', " "));
            }
        }
        found
    }
}

/// Waits for a fact. Polling is the test's clock, not its synchronisation: only the fact ends it.
pub fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < PATIENCE, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn copy(from: &Path, to: &Path) {
    for path in entries(from) {
        let place = to.join(path.file_name().unwrap());
        if path.is_dir() {
            fs::create_dir(&place).unwrap();
            copy(&path, &place);
        } else {
            fs::copy(&path, &place).unwrap();
        }
    }
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

pub fn said(output: &Output) -> Said {
    Said {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Ends a process the way a shell would.
pub fn signal(child: &Child, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_child(child);
    rustix::process::kill_process(pid, signal).unwrap();
}
