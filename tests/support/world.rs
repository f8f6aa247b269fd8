//! A repository in a folder of its own, and the programs that are run in it.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ralph::model::{Event, Recorded};
use ralph::store::{Journal, Store, StorePlace};

use super::{Prd, memory};

pub const RALPH: &str = env!("CARGO_BIN_EXE_ralph");
/// No test waits longer than this for a fact.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// No program that a test waits for runs longer than this: one that hangs is killed, and the test
/// fails with what it said.
const LONGEST: Duration = Duration::from_secs(120);
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
        Self::empty_in(&place())
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
        let said = tar.said();
        assert_eq!(said.code, 0, "{}: {}", archive.display(), said.err);
        world
    }

    /// The same files in a folder of their own.
    pub fn copy(&self) -> Self {
        let folder = tempfile::tempdir_in(self.folder.path().parent().unwrap()).unwrap();
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

    /// By another process: a program that is still open for writing cannot be started, and a child
    /// of another test may have inherited our handle.
    pub fn copy_program(&self, from: &Path, to: &Path) {
        let said = self.command("cp").arg(from).arg(to).said();
        assert_eq!(said.code, 0, "{}", said.err);
    }

    pub fn git(&self, args: &[&str]) -> String {
        let said = self.command("git").args(args).said();
        assert_eq!(said.code, 0, "git {args:?}: {}", said.err);
        said.out
    }

    pub fn ralph(&self, args: &[&str]) -> Said {
        self.command(RALPH).args(args).said()
    }

    /// `ralph run` with the mock agent, scripted when there is a script.
    pub fn run(&self, args: &[&str]) -> Said {
        self.run_command(args).said()
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

    /// Starts a run, and kills its driver as soon as something is in the journal.
    pub fn kill_run_at(&self, is_it: impl Fn(&Event) -> bool) {
        let mut child = self.start(&[]);
        until("the event", || {
            // Before that the driver may be making its journal, and must not meet another reader.
            let has_begun = self.path(".ralph/runs").exists();
            let journal = if has_begun { self.journal() } else { Vec::new() };
            journal.iter().any(|one| is_it(&one.event)).then_some(())
        });
        child.kill().unwrap();
        child.code();
    }

    /// What `ralph status` knows.
    pub fn state(&self) -> serde_json::Value {
        serde_json::from_str(&self.ralph(&["status", "--json"]).out).unwrap()
    }

    /// What the report says that people should know of.
    pub fn notices(&self) -> Vec<serde_json::Value> {
        let report: serde_json::Value =
            serde_json::from_str(&self.read(".ralph/report.json")).unwrap();
        report["notices"].as_array().unwrap().clone()
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
        self.store().journal("PRD.json").unwrap().read(0).unwrap().0
    }

    pub fn store(&self) -> Store {
        Self::store_in(&self.path(".git/ralph"))
    }

    pub fn store_in(folder: &Path) -> Store {
        let [shared, own, anchor] = [(); 3].map(|()| folder.to_owned());
        Store::new(StorePlace { shared, own, work_tree: String::new(), anchor })
    }

    /// Nothing that was said was taken for a claim.
    pub fn heard_no_claim(&self) {
        let journal = self.journal();
        let is_claim = |one: &&Recorded| {
            matches!(
                one.event,
                Event::ClaimChecked { .. }
                    | Event::ClaimRejected { .. }
                    | Event::ClosePlanned { .. }
            )
        };
        assert_eq!(journal.iter().find(is_claim), None);
        let ended = |one: &Recorded| matches!(one.event, Event::AttemptEnded(_));
        assert!(journal.iter().any(ended), "no agent has worked");
    }

    /// A file that an iteration left, by how its name ends.
    pub fn iteration_file(&self, ending: &str) -> PathBuf {
        let runs = entries(&self.path(".ralph/runs"));
        let mut files = runs.iter().flat_map(|run| entries(run));
        files.find(|path| path.to_str().unwrap().ends_with(ending)).expect("a file")
    }

    /// What the agent of an iteration was given, in the newest run.
    pub fn prompt(&self, iteration: u32) -> String {
        let start = format!("{iteration:04}-");
        let mut runs: Vec<PathBuf> = entries(&self.path(".ralph/runs"));
        runs.sort();
        let files = entries(runs.last().expect("a run"));
        let is_it = |path: &&PathBuf| {
            let name = path.file_name().unwrap().to_str().unwrap();
            name.starts_with(&start) && name.ends_with(".prompt.md")
        };
        fs::read_to_string(files.iter().find(is_it).expect("a prompt")).unwrap()
    }

    /// What the iterations of the newest run left in files of one kind, in order.
    pub fn iteration_files(&self, kind: &str) -> Vec<String> {
        let mut runs: Vec<PathBuf> = entries(&self.path(".ralph/runs"));
        runs.sort();
        let mut files = entries(runs.last().expect("a run"));
        files.sort();
        let of_kind = files.iter().filter(|path| path.to_str().is_some_and(|p| p.ends_with(kind)));
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

/// Where the worlds are.
pub fn place() -> PathBuf {
    if crate::IN_MEMORY { memory::place() } else { std::env::temp_dir() }
}

/// Waits for a fact. Polling is the test's clock, not its synchronization: only the fact ends it.
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

/// Runs a program to its end, which has to come.
pub trait Runs {
    fn said(&mut self) -> Said;
}

impl Runs for Command {
    fn said(&mut self) -> Said {
        self.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap().ended()
    }
}

/// Waits for the end of a program. One that does not end is killed; what it started ends with it.
pub trait Ends {
    /// And for the end of what it says.
    fn ended(self) -> Said;
    /// Nobody reads what it says.
    fn code(&mut self) -> i32 {
        self.code_or(String::new)
    }
    /// Somebody else reads it.
    fn code_or(&mut self, heard: impl Fn() -> String) -> i32;
}

impl Ends for Child {
    fn ended(mut self) -> Said {
        drop(self.stdin.take());
        let (out, err) = (Heard::of(self.stdout.take()), Heard::of(self.stderr.take()));
        let is_whole = || out.is_whole() && err.is_whole();
        let code = code_within(&mut self, Instant::now() + LONGEST, is_whole);
        let (out, err) = (out.text(), err.text());
        assert!(code.is_some(), "it did not end in {LONGEST:?}\n{out}{err}");
        Said { code: code.unwrap(), out, err }
    }

    fn code_or(&mut self, heard: impl Fn() -> String) -> i32 {
        let code = code_within(self, Instant::now() + LONGEST, || true);
        assert!(code.is_some(), "it did not end in {LONGEST:?}\n{}", heard());
        code.unwrap()
    }
}

fn code_within(child: &mut Child, end: Instant, is_over: impl Fn() -> bool) -> Option<i32> {
    loop {
        if let Some(status) = child.try_wait().unwrap()
            && is_over()
        {
            return Some(status.code().unwrap_or(-1));
        }
        if Instant::now() > end {
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// What comes out of a pipe, read as it comes.
struct Heard {
    bytes: Arc<Mutex<Vec<u8>>>,
    reader: Option<JoinHandle<()>>,
}

impl Heard {
    fn of(pipe: Option<impl Read + Send + 'static>) -> Self {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&bytes);
        let reader = pipe.map(|mut pipe| {
            std::thread::spawn(move || {
                let mut buffer = vec![0; 65_536];
                while let Ok(count @ 1..) = pipe.read(&mut buffer) {
                    heard.lock().unwrap().extend_from_slice(&buffer[..count]);
                }
            })
        });
        Self { bytes, reader }
    }

    fn is_whole(&self) -> bool {
        self.reader.as_ref().is_none_or(JoinHandle::is_finished)
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes.lock().unwrap()).into_owned()
    }
}

/// Ends a process the way a shell would.
pub fn signal(child: &Child, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_child(child);
    rustix::process::kill_process(pid, signal).unwrap();
}
