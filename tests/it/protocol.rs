//! An agent with a protocol of its own: a handshake, one prompt, and an input that stays open. It is
//! a backend of this test in the real loop.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use ralph::agent::{
    AgentEnd, AgentError, AgentEvent, AgentIdentity, Backend, Capabilities, Decoder, EventListener,
    Launch, LaunchRequest,
};
use ralph::decide::weigh::Gates;
use ralph::model::{AttemptEnded, Event, Outcome, Policy, Recorded, RunMarkers, SettingsText};
use ralph::ports::{Ask, Asked, Clock, Human, Reporter, View};
use ralph::process::Supervisor;
use ralph::runner::log::{JournalHistory, RunLog};
use ralph::runner::{BacklogFile, CostStores, Env, Lane, RunConfig, begin};
use ralph::settings::{Flags, RunSettings};
use ralph::store::prd::PrdFile;
use ralph::store::ralph_dir::RalphDir;
use ralph::text::redact::SecretRules;
use ralph::workspace::WorkTree;

use crate::support::world::{RALPH, until};
use crate::support::{Prd, World};

/// Answers `session FOLDER` and then takes one `prompt`. It ends when its input does.
const SHAKES_HANDS: &str = r#"
    read -r word folder
    test "$word $folder" = "session $(pwd -P)" || exit 3
    echo ready
    read -r word
    test "$word" = prompt || exit 4
    echo y > ../here
    while ! test -e ../go; do sleep 0.05; done
    echo work > work.txt
    echo "Task US-001 complete"
    echo end
    read -r more || echo y > ../closed
"#;

/// Says only on standard error why it waits, and waits on.
const RETRIES: &str = r#"
    read -r word folder
    echo ready
    printf 'login refused, retrying in ' >&2
    sleep 0.05
    echo '60 s' >&2
    exec sleep 10
"#;

/// Says only on standard error why it fails, without an end of the line.
const FAILS: &str = "read -r word folder; printf 'no such model' >&2; exit 1";

/// A shell script that speaks the protocol.
struct Protocol(&'static str);

struct ProtocolDecoder {
    work_tree: PathBuf,
    is_refused: bool,
}

impl Backend for Protocol {
    fn label(&self) -> String {
        "protocol".to_owned()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    fn command(&self, _: &LaunchRequest<'_>) -> Result<Launch, AgentError> {
        Ok(Launch::new("/bin/sh".into(), vec!["-c".into(), self.0.into()], None))
    }

    fn decoder(&self, request: &LaunchRequest<'_>) -> Box<dyn Decoder> {
        Box::new(ProtocolDecoder { work_tree: request.work_tree.to_owned(), is_refused: false })
    }
}

impl Decoder for ProtocolDecoder {
    fn line(&mut self, line: &str, tell: EventListener<'_>) -> bool {
        if line == "ready" {
            tell(&AgentEvent::Started(AgentIdentity::default()));
            tell(&AgentEvent::Reply("prompt\n"));
        } else if line == "end" {
            tell(&AgentEvent::Ended(&end(Ok(()))));
        } else {
            tell(&AgentEvent::Said(line));
        }
        true
    }

    fn error_line(&mut self, line: &str, tell: EventListener<'_>) {
        match line {
            "login refused, retrying in 60 s" => self.is_refused = true,
            _ => tell(&AgentEvent::Ended(&end(Err(no_model(line))))),
        }
    }

    fn hopeless(&self) -> Option<Outcome> {
        self.is_refused.then(refused)
    }

    fn message(&mut self, _text: &str, tell: EventListener<'_>) {
        tell(&AgentEvent::Reply(&format!("session {}\n", self.work_tree.display())));
    }
}

fn end(result: Result<(), Outcome>) -> AgentEnd {
    AgentEnd { result, text: String::new(), usage: None, models: Vec::new(), denied: Vec::new() }
}

fn refused() -> Outcome {
    Outcome::Login { detail: "refused".to_owned() }
}

fn no_model(detail: &str) -> Outcome {
    Outcome::ModelNotFound { detail: detail.to_owned() }
}

struct Nobody;

impl Human for Nobody {
    fn ask(&self, _: &Ask) -> Asked {
        Asked::NoAnswer
    }
}

impl Reporter for Nobody {
    fn on_event(&mut self, _: &Recorded, _: View<'_>) {}
}

/// The loop in this process, with this agent and one attempt.
fn run(root: &Path, agent: Protocol) {
    let tree = WorkTree::open(root).unwrap();
    let store = World::store_in(&root.join(".git/ralph"));
    let flags = Flags { once: true, ..Flags::default() };
    let settings = RunSettings::new("", &flags, &|_| None).unwrap();
    let policy = Policy { agent: agent.label(), baseline: false, ..settings.policy() };
    let config = RunConfig {
        policy,
        settings,
        settings_text: SettingsText::default(),
        instructions: String::new(),
        instructions_file: None,
        markers: RunMarkers::default(),
        gates: Gates::default(),
        allow_dirty: false,
        held: Vec::new(),
        human_files: Vec::new(),
        verbose: false,
        backlog_name: "PRD.json".to_owned(),
        backlog_in_tree: Some("PRD.json".into()),
        backlog_key: "PRD.json".to_owned(),
        branch: Some("work".to_owned()),
        journal_was_damaged: false,
        agent_keeps_allowance: false,
    };
    let (journal, clock) = (store.journal("PRD.json").unwrap(), Clock::system());
    let log = RunLog::new(Box::new(journal), Box::new(Nobody), clock.clone());
    let env = Env {
        backlog: BacklogFile::open(PrdFile::new(root.join("PRD.json"))).unwrap(),
        home: Lane::new(tree),
        ralph_dir: RalphDir::open(root).unwrap(),
        requests: store.requests().unwrap(),
        answers: store.answers().unwrap(),
        agent: Arc::new(agent),
        supervisor: Supervisor::new(RALPH.into(), Vec::new(), "--repository=".to_owned()),
        secrets: Arc::new(SecretRules::new([])),
        human: Arc::new(Nobody),
        costs: CostStores { repository: store.costs().unwrap(), user: None },
        clock,
        new_id: || uuid::Uuid::now_v7().to_string(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let run = async { begin(log, JournalHistory::default(), env, config).unwrap().run().await };
    runtime.block_on(run).unwrap();
}

fn ended(world: &World) -> AttemptEnded {
    let ended = world.journal().into_iter().find_map(|recorded| match recorded.event {
        Event::AttemptEnded(ended) => Some(*ended),
        _ => None,
    });
    ended.unwrap()
}

#[test]
fn an_open_input_is_no_promise_to_take_messages() {
    let world = World::with(&Prd::stories(1));
    let root = world.path("");
    let loops = thread::spawn(move || run(&root, Protocol(SHAKES_HANDS)));
    world.await_file("../here");
    let _lease = world.store().lease("the run in this process").unwrap();
    let nudged = world.ralph(&["nudge", "mind the gap"]);
    assert_eq!(nudged.code, 0, "{}", nudged.err);
    let delivered = until("the word to be taken up", || {
        world.journal().iter().find_map(|recorded| match recorded.event {
            Event::Nudged { delivered, .. } => Some(delivered),
            _ => None,
        })
    });
    world.write("../go", "");
    loops.join().unwrap();
    assert!(!delivered);
    assert_eq!(ended(&world).outcome, Outcome::Completed);
    assert!(world.path("../closed").exists(), "its input is closed after its result");
    assert_eq!(world.passing(), ["US-001"]);
}

#[test]
fn standard_error_says_why_an_agent_waits_or_failed() {
    for (agent, outcome) in [(RETRIES, refused()), (FAILS, no_model("no such model"))] {
        let world = World::with(&Prd::stories(1));
        run(&world.path(""), Protocol(agent));
        assert_eq!(ended(&world).outcome, outcome);
    }
}
