//! A program under a name of the test's own.

use std::fs;
use std::path::PathBuf;

use super::World;

pub struct Daemon {
    program: PathBuf,
    name: String,
}

impl Daemon {
    /// `sleep`, called something else.
    pub fn new(world: &World, name: &str) -> Self {
        let path = std::env::var_os("PATH").unwrap();
        let sleep = std::env::split_paths(&path).map(|folder| folder.join("sleep"));
        let sleep = sleep.into_iter().find(|file| file.exists()).expect("`sleep` on the path");
        let program = world.home().join(name);
        fs::copy(sleep, &program).unwrap();
        Self { program, name: name.to_owned() }
    }

    pub fn command(&self) -> String {
        format!("exec {} 1000", self.program.display())
    }

    pub fn setting(&self) -> String {
        format!("keep_processes = [\"other\", \"{}\"]\n", self.name)
    }
}
