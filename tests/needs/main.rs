//! Tests that need what not every machine has. Where it is missing they are ignored, with the
//! reason, or fail when `RALPH_TEST_REQUIRE` names the need: `RALPH_TEST_REQUIRE=claude,tracing`.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "these are tests")]

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use libtest_mimic::{Arguments, Completion, Trial};

/// One test per function, named by module and function.
macro_rules! trials {
    ($need:expr; $($module:ident :: $test:ident),* $(,)?) => {
        vec![$($crate::trial(
            concat!(stringify!($module), "::", stringify!($test)),
            $need,
            $crate::$module::$test,
        )),*]
    };
}

#[path = "../support/mod.rs"]
#[expect(dead_code, unused_imports, reason = "the other tests use the rest")]
mod support;

mod api;
mod claude;
mod command_kills;
mod faults;
mod kills;
mod others;

/// The disk in memory is what some of these tests fill.
const IN_MEMORY: bool = false;

#[derive(Clone, Copy, Debug)]
enum Need {
    /// The real Claude Code.
    Claude,
    /// Linux's ptrace and seccomp.
    Tracing,
    MemoryDisk,
    Root,
    /// A user who is not root, or root who can become one.
    OrdinaryUser,
    Gpg,
}

impl Need {
    fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Tracing => "tracing",
            Self::MemoryDisk => "memory-disk",
            Self::Root => "root",
            Self::OrdinaryUser => "ordinary-user",
            Self::Gpg => "gpg",
        }
    }

    /// Why this machine cannot run the test.
    fn is_missing(self) -> Option<String> {
        let unless = |there: bool, why: &str| (!there).then(|| why.to_owned());
        match self {
            Self::Claude => claude::program().err(),
            Self::Tracing => faults::program().err(),
            Self::MemoryDisk => unless(
                Path::new(others::MEMORY_DISK).is_dir(),
                &format!("there is no {} to fill", others::MEMORY_DISK),
            ),
            Self::Root => unless(is_root(), "only root can give files away"),
            Self::OrdinaryUser => {
                let mut command = Command::new("true");
                let becomes = command.uid(others::NOBODY).gid(others::NOBODY).status().is_ok();
                unless(
                    !is_root() || becomes,
                    "root may write everything, and cannot be another user",
                )
            }
            Self::Gpg => {
                let mut command = Command::new("gpg");
                let runs = command.arg("--version").stdout(Stdio::null()).status().is_ok();
                unless(runs, "gpg is not installed")
            }
        }
    }

    fn is_required(self) -> bool {
        required().iter().any(|name| name == self.name())
    }
}

const NEEDS: [Need; 6] =
    [Need::Claude, Need::Tracing, Need::MemoryDisk, Need::Root, Need::OrdinaryUser, Need::Gpg];

fn required() -> Vec<String> {
    let named = std::env::var("RALPH_TEST_REQUIRE").unwrap_or_default();
    named.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect()
}

pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn trial(name: &str, need: Need, test: fn()) -> Trial {
    Trial::ignorable_test(name, move || match need.is_missing() {
        None => {
            test();
            Ok(Completion::Completed)
        }
        Some(why) if need.is_required() => Err(format!("it cannot run: {why}").into()),
        Some(why) => Ok(Completion::ignored_with(why)),
    })
}

fn main() -> ExitCode {
    let is_known = |name: &String| NEEDS.iter().any(|need| need.name() == name);
    let unknown = required().into_iter().find(|name| !is_known(name));
    assert_eq!(unknown, None, "RALPH_TEST_REQUIRE names what no test needs");
    let tests = [claude::tests(), command_kills::tests(), kills::tests(), others::tests()];
    libtest_mimic::run(&Arguments::from_args(), tests.into_iter().flatten().collect()).exit_code()
}
