//! Lets the Nth write of `ralph` to the file system go wrong.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::support::World;
use crate::support::world::{RALPH, Runs, Said};

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/needs/faults.c");
const TARGET: &str = env!("CARGO_TARGET_TMPDIR");
/// What the program says when the system does not let it do its work.
const CANNOT: i32 = 98;
/// Something of the run was still alive a minute after its driver.
const STILL_ALIVE: i32 = 97;
pub const KILLED: i32 = 137;

/// What happens at the Nth write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    Kill,
    Error(&'static str),
}

impl Fault {
    fn word(self) -> &'static str {
        match self {
            Self::Kill => "kill",
            Self::Error(name) => name,
        }
    }
}

pub struct Faulty {
    pub said: Said,
    /// How many writes there were, up to the end.
    pub writes: usize,
}

/// The program that does it, or why the system does not let it.
pub fn program() -> Result<PathBuf, String> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    BUILT.get_or_init(build).clone()
}

fn build() -> Result<PathBuf, String> {
    if !cfg!(target_os = "linux") {
        return Err("it needs Linux's ptrace and seccomp".to_owned());
    }
    let made = Path::new(TARGET).join("faults");
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let mut compile = Command::new(&compiler);
    compile.args(["-O1", "-Wall", "-Wextra", "-Werror", "-o"]).args([&made, Path::new(SOURCE)]);
    let problem = match compile.output() {
        Ok(output) if output.status.success() => None,
        Ok(output) => Some(String::from_utf8_lossy(&output.stderr).into_owned()),
        Err(error) => Some(format!("{error}; install one, or name it in CC")),
    };
    assert_eq!(problem, None, "faults need a C compiler, and `{compiler}` does not do");
    let mut try_it = Command::new(&made);
    let tried = try_it.args(["kill", "0", "/dev/null", "true"]).said();
    if tried.code == CANNOT { Err(tried.err) } else { Ok(made) }
}

/// `ralph run` in this world, with the fault at its Nth write; 0: never.
pub fn run(world: &World, args: &[&str], fault: Fault, n: usize) -> Faulty {
    ralph(world, &world.run_words(args), fault, n)
}

/// The same with any command.
pub fn ralph(world: &World, words: &[String], fault: Fault, n: usize) -> Faulty {
    let count = tempfile::NamedTempFile::new_in(TARGET).unwrap();
    let mut command = world.command(program().unwrap().to_str().unwrap());
    command.args([fault.word(), &n.to_string(), count.path().to_str().unwrap(), RALPH]);
    let said = command.args(words).said();
    assert_ne!(said.code, CANNOT, "{}", said.err);
    assert_ne!(said.code, STILL_ALIVE, "{fault:?} at {n}: {}", said.err);
    let writes = fs::read_to_string(count.path()).unwrap();
    let writes = writes.trim().parse().expect("the number of writes");
    Faulty { said, writes }
}
