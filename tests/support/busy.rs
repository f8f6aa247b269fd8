//! Runs in a terminal that wait for something, so that anything else can come in between.

use std::path::Path;

use ralph::model::{Event, Recorded};

use super::pty::Terminal;
use super::world::{RALPH, place, until};
use super::{Prd, World};

/// What a run waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Busy {
    /// The gates of US-001 run.
    Gates,
    /// US-001 asks, and an agent works on US-002.
    Question,
    /// The service limits US-001.
    Wait,
    /// The agent of US-001 makes no progress, and the human is asked about it.
    Stuck,
}

pub const EACH: [Busy; 4] = [Busy::Gates, Busy::Question, Busy::Wait, Busy::Stuck];

/// The gates pass before there is work; then they wait for `../go`.
const GATE: &str = "if [ -e done ]; then touch ../checking; \
                    until [ -e ../go ]; do sleep 0.02; done; fi";
const CLAIMS: &str = r#"
    [story.US-001]
    steps = [{ write = "done", text = "x" }, "complete"]
"#;
const ASKS: &str = r#"
    [[story.US-001.attempts]]
    steps = [{ escalate = { type = "stuck", summary = "Which?", context = "c", options = ["Yes"], question = "q" } }]
    [story.US-002]
    steps = [{ run = "touch new ../working; until [ -e ../go ]; do sleep 0.02; done" }, "complete"]
"#;
const LIMITED: &str = r#"
    [[story.US-001.attempts]]
    steps = [{ fail = "usage-limit", resets_in = "1s" }]
"#;
/// Talks on and on, and changes nothing.
const TALKS: &str = "sh -c 'while :; do echo still at it; sleep 0.05; done'";
const STUCK: &str = "stuck_after = \"600ms\"\nstuck_question_after = \"300ms\"\n";

pub struct BusyRun {
    pub busy: Busy,
    pub world: World,
    pub terminal: Terminal,
}

impl BusyRun {
    pub fn start(busy: Busy, args: &[&str]) -> Self {
        Self::start_in(&place(), busy, "", args)
    }

    /// In another folder, and with more settings.
    pub fn start_in(parent: &Path, busy: Busy, settings: &str, args: &[&str]) -> Self {
        let (script, own) = match busy {
            Busy::Gates => (CLAIMS, format!("verify = ['{GATE}']\n")),
            Busy::Question => (ASKS, String::new()),
            Busy::Wait => (LIMITED, String::new()),
            Busy::Stuck => ("", STUCK.to_owned()),
        };
        let world = World::with_in(parent, &Prd::stories(3));
        std::fs::write(world.script(), script).unwrap();
        world.write("ralph.toml", &format!("{own}{settings}"));
        world.git(&["add", "."]);
        world.git(&["commit", "-qm", "settings"]);
        let command = match busy {
            Busy::Stuck => {
                let mut command = world.command(RALPH);
                command.args(["run", "--trust", "--agent-command", TALKS]).args(args);
                command
            }
            _ => world.run_command(args),
        };
        let run = Self { busy, terminal: Terminal::start(command), world };
        let is_there = |name: &str| {
            until(name, || run.world.path(name).exists().then_some(()));
        };
        match busy {
            Busy::Gates => is_there("../checking"),
            Busy::Question => {
                run.terminal.await_text("[a]");
                is_there("../working");
            }
            Busy::Wait => drop(run.terminal.await_text(" left, until ")),
            Busy::Stuck => drop(run.terminal.await_text("Give it more time")),
        }
        run
    }

    /// It still waits for the same thing. A menu may just be drawn again.
    pub fn require_busy(&self) {
        let shows = |texts: &[&str]| {
            let screen = self.terminal.screen();
            texts.iter().all(|text| screen.contains(text)).then_some(())
        };
        match self.busy {
            Busy::Gates => assert!(!self.world.path("../go").exists()),
            Busy::Question => until("the question", || shows(&["[a]", "Which?"])),
            Busy::Wait => {
                let starts = |one: &Recorded| matches!(one.event, Event::AttemptStarted(_));
                assert_eq!(self.world.journal().into_iter().filter(starts).count(), 1);
            }
            Busy::Stuck => until("the question", || shows(&["Give it more time"])),
        }
    }

    /// Waits for an event, and returns it.
    pub fn await_event(&self, what: &str, is_it: impl Fn(&Event) -> bool) -> Recorded {
        until(&format!("{what} during {:?}", self.busy), || {
            self.world.journal().into_iter().find(|recorded| is_it(&recorded.event))
        })
    }
}
