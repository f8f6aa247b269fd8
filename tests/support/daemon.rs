//! Programs that a test itself runs beside the run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;

use super::World;
use super::world::until;

pub struct Daemon<'a> {
    world: &'a World,
    program: PathBuf,
    name: String,
}

impl<'a> Daemon<'a> {
    /// `sleep`, called something else.
    pub fn new(world: &'a World, name: &str) -> Self {
        let path = std::env::var_os("PATH").unwrap();
        let sleep = std::env::split_paths(&path).map(|folder| folder.join("sleep"));
        let sleep = sleep.into_iter().find(|file| file.exists()).expect("`sleep` on the path");
        let program = world.home().join(name);
        world.copy_program(&sleep, &program);
        Self { world, program, name: name.to_owned() }
    }

    pub fn program(&self) -> &Path {
        &self.program
    }

    pub fn command(&self) -> String {
        format!("exec {} 1000", self.program.display())
    }

    pub fn setting(&self) -> String {
        format!("keep_processes = [\"other\", \"{}\"]\n", self.name)
    }

    pub fn start(&self, name: &str, value: &str) -> Sleeper {
        Sleeper::start(self.world, self.program.to_str().unwrap(), name, value)
    }
}

/// Ended with the test, however the test ends.
pub struct Sleeper(Child);

impl Sleeper {
    pub fn new(world: &World, name: &str, value: &str) -> Self {
        Self::start(world, "sleep", name, value)
    }

    /// With one more variable in its environment. Returns when it has that: a process that has only
    /// just started still has its parent's name, and no environment.
    fn start(world: &World, program: &str, name: &str, value: &str) -> Self {
        let child = world.command(program).arg("1000").env(name, value).spawn().unwrap();
        let environment = PathBuf::from(format!("/proc/{}/environ", child.id()));
        until("the process to have an environment", || {
            fs::read(&environment).unwrap().ends_with(b"\0").then_some(())
        });
        Self(child)
    }

    pub fn id(&self) -> u32 {
        self.0.id()
    }

    pub fn lives(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
