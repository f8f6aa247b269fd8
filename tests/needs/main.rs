//! Tests that need what not every machine has. Where it is missing they are ignored, with the
//! reason, or fail when `RALPH_TEST_REQUIRE` names the need: `RALPH_TEST_REQUIRE=claude,tracing`.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "these are tests")]

use std::path::Path;
use std::process::{Command, ExitCode};

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
mod faults;
mod kills;
mod others;

#[derive(Clone, Copy, Debug)]
enum Need {
    /// The real Claude Code.
    Claude,
    /// Linux's ptrace and seccomp.
    Tracing,
    MemoryDisk,
    OrdinaryUser,
    Gpg,
}

impl Need {
    fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Tracing => "tracing",
            Self::MemoryDisk => "memory-disk",
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
            Self::OrdinaryUser => {
                unless(!rustix::process::geteuid().is_root(), "root may write everything")
            }
            Self::Gpg => unless(
                Command::new("gpg").arg("--version").output().is_ok(),
                "gpg is not installed",
            ),
        }
    }

    fn is_required(self) -> bool {
        let named = std::env::var("RALPH_TEST_REQUIRE").unwrap_or_default();
        named.split(',').any(|name| name.trim() == self.name())
    }
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
    let tests = [claude::tests(), kills::tests(), others::tests()];
    libtest_mimic::run(&Arguments::from_args(), tests.into_iter().flatten().collect()).exit_code()
}
