//! Gates: commands that a claim must pass, one after the other.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::{oneshot, watch};
use tokio::task::yield_now;
use tokio::time::Instant;

use crate::decide::recheck::{DueGate, in_order};
use crate::decide::weigh::turned_green;
use crate::model::{
    Base, Event, EvidenceItem, Exit, GATE_TAIL, Gate, GateCommand, GateEnd, GateReport, HeldChange,
    first_few, millis,
};
use crate::ports::{Activity, Clock, Doing};
use crate::process::pump::{Deadline, Pump, Pumped, SupervisedEnd};
use crate::process::{NO_INPUT, Order, Spec, Supervisor};
use crate::runner::config::RunConfig;
use crate::runner::effects::{GatesFound, GatesOf, Happened};
use crate::runner::error::{Result, RunnerError};
use crate::runner::lane::Lane;
use crate::runner::task::gate_guard::{ArmedGates, GateGuard};
use crate::runner::task::tail::Tail;
use crate::runner::task::transcript::Transcript;
use crate::runner::task::{EventSink, Mailbox, Message, held_files};
use crate::text::redact::{Redactor, SecretRules};
use crate::workspace::WorkTree;

pub struct GatesTask {
    pub of: GatesOf,
    pub due: Vec<DueGate>,
    pub supervisor: Supervisor,
    pub lane: Lane,
    /// The base of the story whose claim is checked.
    pub base: Option<Base>,
    /// Changes of files that the human accepted and that are not in the tree yet.
    pub accepted: Vec<HeldChange>,
    /// What the story's changes are counted from.
    pub counted: Option<Base>,
    /// The story's gates that failed when they ran last, and on what.
    pub red: Vec<(String, Base)>,
    /// Its changes in the work tree are no work.
    pub backlog: Option<PathBuf>,
    /// The branch tip that the attempt left.
    pub began: Option<String>,
    pub guard: GateGuard,
    /// Set, or removed when None.
    pub env: Vec<(OsString, Option<OsString>)>,
    pub stop: watch::Receiver<Option<Order>>,
    /// Redacts the gates' output.
    pub secrets: Arc<SecretRules>,
    /// The gates' output.
    pub log: Transcript,
    pub mailbox: Mailbox,
    pub clock: Clock,
    pub config: Arc<RunConfig>,
}

const HIDDEN: &str = "not there for the gates, because no commit would have them";
/// More files are only counted.
const NAMED: usize = 10;

/// How one process of a gate ended.
struct Tried {
    end: SupervisedEnd,
    timed_out: bool,
    stopped: bool,
    tail: Tail,
}

impl GatesTask {
    /// Whatever becomes of the gates, what they left behind is put back.
    pub async fn run(mut self) -> Result<Happened> {
        let hidden = self.hide_unseen().await?;
        let ran = self.run_guarded(&hidden).await;
        // Else that is done, and they are not armed any more.
        if ran.is_err() {
            self.guarded(move |guard, tree, log| guard.show(tree, &hidden, log)).await?;
        }
        let (items, before) = ran?;
        let found = match &items {
            Some(items) => self.found(items, before).await?,
            None => GatesFound::default(),
        };
        // A full disk must not decide about a claim.
        let _ = self.log.finish().await;
        Ok(Happened::GatesEnded { of: self.of, items, found })
    }

    /// What gates write is no work, not even with the story's next claim.
    async fn found(&mut self, items: &[EvidenceItem], before: Base) -> Result<GatesFound> {
        let Some(base) = self.base.clone() else {
            return Ok(GatesFound {
                changed: true,
                checked: Some(before),
                ..GatesFound::default()
            });
        };
        let (head, backlog) = (self.began.clone(), self.backlog.clone());
        let (counted, red) = (self.counted.take(), std::mem::take(&mut self.red));
        let look = move |tree: &WorkTree| -> Result<(GatesFound, Vec<String>)> {
            let differ = |one: &Base, other: &Base| -> Result<bool> {
                let paths = tree.difference(one, other)?.paths;
                Ok(paths.iter().any(|path| Some(path) != backlog.as_ref()))
            };
            let mut red_at_base = Vec::new();
            for (gate, at) in red {
                if tree.has_tree(&at) && !differ(&at, &base)? {
                    red_at_base.push(gate);
                }
            }
            let from = counted.filter(|counted| tree.has_tree(counted)).unwrap_or(base);
            let changed = differ(&from, &before)?;
            let checked = tree.checked(head.as_deref())?;
            let counted = Some(tree.with_writes(&from, &before, &checked)?);
            let checked = Some(checked);
            Ok((GatesFound { changed, counted, checked, turned_green: None }, red_at_base))
        };
        let (found, red) = self.lane.with(look).await??;
        let turned_green = turned_green(items, &red).map(str::to_owned);
        Ok(GatesFound { turned_green, ..found })
    }

    /// Returns the state that they began with, too.
    async fn run_guarded(
        &mut self,
        hidden: &[PathBuf],
    ) -> Result<(Option<Vec<EvidenceItem>>, Base)> {
        let accepted = std::mem::take(&mut self.accepted);
        let arm = move |guard: &GateGuard, tree: &WorkTree, log: &mut dyn EventSink| {
            if let Some(story) = &guard.ran.story {
                held_files::apply(tree, story, &accepted, log)?;
            }
            guard.arm(tree, log)
        };
        let mut armed = self.guarded(arm).await?;
        let before = armed.before.clone();
        let mut ran = self.run_all(&mut armed).await;
        if !matches!(ran, Ok(Some(_))) {
            // One may have been interrupted on the story's base: all is as before them.
            self.guard.keep.clear();
            self.settle(&armed, false).await?;
        }
        let away = hidden.to_owned();
        self.guarded(move |guard, tree, log| {
            guard.show(tree, &away, log)?;
            guard.repair_held(tree, &armed, log)?;
            guard.disarm(tree, &armed, log);
            Ok(())
        })
        .await?;
        if ran.is_err() {
            // The loop ends without hearing that they are over.
            self.guarded(|_, _, log| log.record(Event::GatesOver)).await?;
        }
        if let Ok(Some(items)) = &mut ran {
            items.iter_mut().for_each(|item| tell_hidden(item, hidden));
        }
        Ok((ran?, before))
    }

    /// What no commit would have is away while they run.
    async fn hide_unseen(&self) -> Result<Vec<PathBuf>> {
        let Some(base) = self.base.clone() else { return Ok(Vec::new()) };
        let config = Arc::clone(&self.config);
        self.guarded(move |guard, tree, log| guard.hide(tree, &base, &config, log)).await
    }

    async fn guarded<T: Send + 'static>(
        &self,
        work: impl FnOnce(&GateGuard, &WorkTree, &mut dyn EventSink) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (guard, mut log) = (self.guard.clone(), self.mailbox.clone());
        self.lane.with(move |tree| work(&guard, tree, &mut log)).await?
    }

    /// Until one fails; the baseline runs them all. None: ordered to stop.
    async fn run_all(&mut self, armed: &mut ArmedGates) -> Result<Option<Vec<EvidenceItem>>> {
        let mut items = Vec::new();
        for DueGate { gate, guards, .. } in self.in_order().await? {
            self.tell(&gate).await;
            let Some(mut report) = self.run_gate(&gate).await? else { return Ok(None) };
            report.guards = guards;
            let undone = self.look(gate.fix && report.passed(), armed).await?;
            if !undone.is_empty() {
                let paths = undone.iter().map(|path| path.to_string_lossy().into_owned());
                report.end = GateEnd::Undid { paths: paths.collect() };
            }
            if undone.is_empty() && report.guards.is_some() && report.counts_against() {
                match self.was_red(&gate, armed).await? {
                    None => return Ok(None),
                    Some(true) => report.end = GateEnd::RedBefore { how: report.end.describe() },
                    Some(false) => {}
                }
            }
            let failed = report.counts_against();
            items.push(EvidenceItem::Gate(report));
            if failed && matches!(self.of, GatesOf::Claim { .. }) {
                break;
            }
        }
        Ok(Some(items))
    }

    async fn in_order(&mut self) -> Result<Vec<DueGate>> {
        let due = std::mem::take(&mut self.due);
        let Some(base) = self.base.clone() else { return Ok(due) };
        let is_about_a_folder = |due: &DueGate| due.guards.is_some() && due.gate.dir.is_some();
        if !due.iter().any(is_about_a_folder) {
            return Ok(in_order(due, &[]));
        }
        let changed = self.lane.with(move |tree| tree.difference_since(&base)).await??;
        Ok(in_order(due, &changed.paths))
    }

    /// Returns what of the story's work a gate undid. `may_change`: it passed, and may change files.
    async fn look(&self, may_change: bool, armed: &mut ArmedGates) -> Result<Vec<PathBuf>> {
        let mut undone = self.settle(armed, may_change).await?;
        if may_change && undone.is_empty() {
            let gates = armed.clone();
            let accept = move |guard: &GateGuard, tree: &WorkTree, log: &mut dyn EventSink| {
                guard.accept(tree, &gates, log)
            };
            (*armed, undone) = self.guarded(accept).await?;
        }
        Ok(undone)
    }

    /// The tree, and all round it, is as before the gate. `may_change`: except for what it wrote.
    async fn settle(&self, armed: &ArmedGates, may_change: bool) -> Result<Vec<PathBuf>> {
        let gates = armed.clone();
        let repair = move |guard: &GateGuard, tree: &WorkTree, log: &mut dyn EventSink| {
            guard.repair(tree, &gates, may_change, log)
        };
        let mut undone = self.guarded(repair).await?;
        // Before a look reads it.
        let (looked, is_over) = oneshot::channel();
        if self.mailbox.send(Message::GateOver(looked)).await.is_ok() {
            let _ = is_over.await;
        }
        if !may_change || !undone.is_empty() {
            let gates = armed.clone();
            let undo = move |guard: &GateGuard, tree: &WorkTree, log: &mut dyn EventSink| {
                guard.undo(tree, &gates, log)
            };
            undone.extend(self.guarded(undo).await?);
        }
        Ok(undone)
    }

    /// A closed story's gate, on what this story began with. None: ordered to stop.
    async fn was_red(&mut self, gate: &Gate, armed: &ArmedGates) -> Result<Option<bool>> {
        let gates = armed.clone();
        let (mut at_base, now) =
            self.guarded(move |guard, tree, _| guard.to_base(tree, &gates)).await?;
        let report = self.run_gate(gate).await?;
        self.look(false, &mut at_base).await?;
        let gates = armed.clone();
        self.guarded(move |guard, tree, _| guard.return_files(tree, &gates, &now)).await?;
        Ok(report.map(|report| !report.passed()))
    }

    async fn tell(&self, gate: &Gate) {
        let attempt = match &self.of {
            GatesOf::Baseline | GatesOf::FirstLook { .. } => String::new(),
            GatesOf::Claim { attempt, .. } => attempt.clone(),
        };
        let doing = Doing::Checking { at: self.clock.now().wall, gate: gate.to_string() };
        let _ = self.mailbox.send(Message::Activity(Activity { attempt, doing })).await;
    }

    /// With its retries.
    async fn run_gate(&mut self, gate: &Gate) -> Result<Option<GateReport>> {
        let started = self.clock.now().steady;
        let mut tries = gate.retries + 1;
        loop {
            // An order that came while something else was done: nothing is started any more.
            if self.stop.borrow().is_some() {
                return Ok(None);
            }
            let tried = self.once(gate).await?;
            if tried.stopped {
                return Ok(None);
            }
            tries -= 1;
            let end = tried.gate_end();
            if end != GateEnd::Passed && tries > 0 {
                continue;
            }
            let elapsed = self.clock.now().steady.saturating_sub(started);
            let elapsed_ms = millis(elapsed);
            let (gate, tail) = (self.shown(gate), tried.tail.text());
            return Ok(Some(GateReport { gate, guards: None, end, elapsed_ms, tail }));
        }
    }

    async fn once(&mut self, gate: &Gate) -> Result<Tried> {
        self.log.output(format!("$ {}\n", self.shown(gate)).into_bytes()).await;
        let running = self.supervisor.spawn(&self.spec(gate))?;
        let mut pump = Pump::new(running, self.stop.clone());
        let redactor = || Redactor::new(Arc::clone(&self.secrets));
        let (mut output, mut errors) = (redactor(), redactor());
        let deadline = Deadline { at: Instant::now() + gate.timeout, silence: false };
        let (mut timed_out, mut stopped) = (false, false);
        let mut tail = Tail::new(GATE_TAIL);
        loop {
            match pump.next(deadline).await {
                Pumped::Output(chunk) => self.hear(&mut output, Some(chunk), &mut tail).await,
                Pumped::Errors(chunk) => self.hear(&mut errors, Some(chunk), &mut tail).await,
                Pumped::Started => {}
                Pumped::Ordered => stopped = true,
                Pumped::Due => {
                    timed_out = true;
                    pump.order(Order::Stop).await;
                }
                Pumped::Over => break,
            }
        }
        self.hear(&mut output, None, &mut tail).await;
        self.hear(&mut errors, None, &mut tail).await;
        let end = pump.finish();
        if !end.kept.is_empty() {
            let _ = self.mailbox.send(Message::Kept).await;
        }
        match &end.survivors {
            Some(survivors) if survivors.is_empty() => Ok(Tried { end, timed_out, stopped, tail }),
            Some(survivors) => Err(RunnerError::GateSurvivors(survivors.clone())),
            None => Err(RunnerError::GateLost),
        }
    }

    /// Redacted, for log, prompt and commit.
    fn shown(&self, gate: &Gate) -> String {
        self.secrets.redact(&gate.to_string()).into_owned()
    }

    fn spec(&self, gate: &Gate) -> Spec {
        let (program, args) = match &gate.run {
            GateCommand::Shell(command) => ("/bin/sh".into(), vec!["-c".into(), command.into()]),
            GateCommand::Program(words) => {
                let mut words = words.iter().map(OsString::from);
                (words.next().unwrap_or_default(), words.collect())
            }
        };
        let root = self.lane.root();
        let own = gate.env.iter().map(|(key, value)| (key.into(), Some(value.into())));
        Spec {
            program,
            args,
            dir: gate.dir.as_ref().map_or_else(|| root.to_owned(), |dir| root.join(dir)),
            env: self.env.iter().cloned().chain(own).collect(),
            input: Some(PathBuf::from(NO_INPUT)),
        }
    }

    /// No chunk: the end.
    async fn hear(&mut self, redactor: &mut Redactor, chunk: Option<&[u8]>, tail: &mut Tail) {
        let mut clean = self.log.buffer();
        match chunk {
            Some(chunk) => redactor.push(chunk, &mut clean),
            None => redactor.finish(&mut clean),
        }
        tail.push(&clean);
        self.log.output(clean).await;
        // The loop runs on the same thread.
        yield_now().await;
    }
}

/// The next agent has to know why a gate failed that passed for the agent.
fn tell_hidden(item: &mut EvidenceItem, hidden: &[PathBuf]) {
    let EvidenceItem::Gate(report) = item;
    if !report.passed() && !hidden.is_empty() {
        let paths = first_few(hidden, NAMED);
        report.tail.push_str(&format!("\nralph: {HIDDEN}: {paths}\n"));
    }
}

impl Tried {
    fn gate_end(&self) -> GateEnd {
        match self.end.exit.clone() {
            Exit::NotSpawned { error } => GateEnd::NotStarted { error: not_started(error) },
            _ if self.timed_out => GateEnd::TimedOut,
            Exit::Code(0) => GateEnd::Passed,
            Exit::Code(code) => GateEnd::Failed { code },
            Exit::Signal(signal) => GateEnd::Killed { signal },
            Exit::Unknown => GateEnd::NotStarted { error: "it never ran".to_owned() },
        }
    }
}

/// The program, or the folder to run it in: the work may bring either.
fn not_started(error: String) -> String {
    let missing = io::Error::from(rustix::io::Errno::NOENT).to_string();
    if error == missing { "it is not there yet".to_owned() } else { error }
}
