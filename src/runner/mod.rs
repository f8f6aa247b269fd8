//! The loop.
//!
//! `dispatcher` decides, starts, waits and concludes; `world` has the real effects; `task` has
//! what takes time. Decisions depend on the fold of the journal's events and on the backlog on
//! disk; every fact is in the journal before it is acted on.

mod claims;
mod conclude;
mod config;
pub mod dispatcher;
pub mod effects;
mod error;
mod human;
mod interrupts;
mod lane;
mod leave;
pub mod log;
pub mod task;
pub mod trust;
mod world;

use std::sync::Arc;

use crate::model::{AgentNotice, Notice};
use crate::ports::Reporter;
use crate::process::sweep::{RunMark, Swept, sweep};
use crate::store::OpenRun;

use self::effects::Effects;
use self::log::{JournalHistory, RunLog};
use self::world::recovery::is_same;

pub use config::RunConfig;
pub use dispatcher::{Dispatcher, Ending};
use error::Result;
pub use error::RunnerError;
pub use interrupts::{Interrupts, SIGINT};
pub use lane::Lane;
pub use task::EventSink;
pub use task::gate_guard::GateGuard;
pub use task::inspect::Ran;
pub use task::transcript;
pub use world::backlog::{BacklogFile, shown_path};
pub use world::between_runs::{EditsBetweenRuns, edits_between_runs};
pub use world::held_backlog::BacklogVersions;
pub use world::observe::CostStores;
pub use world::prompt::notes_for;
pub use world::recovery::{as_next_process, base_on_branch};
pub use world::{Env, World};

#[cfg(test)]
mod tests;

/// `history`: all of this backlog's events.
pub fn begin(
    mut log: RunLog,
    mut history: JournalHistory,
    env: Env,
    mut config: RunConfig,
) -> Result<Dispatcher<World>> {
    let interrupts = Interrupts::listen()?;
    env.supervisor.prepare();
    let is_new = history.events.is_empty();
    let repaired = std::mem::take(&mut history.repaired);
    log.replay(history);
    let resumed = log.state.is_open() && is_same(&log.state, env.backlog.current());
    let cut_off = resumed && log.state.cut_off;
    log.run = match &log.state.run {
        Some(run) if resumed => run.run.clone(),
        _ => (env.new_id)(),
    };
    config.policy.attempts_before = if resumed { log.state.attempts.started } else { 0 };
    let config = Arc::new(config);
    let mut world = World::new(env, Arc::clone(&config), interrupts);
    world.take_up(&mut log, cut_off)?;
    if resumed {
        world.resume(&mut log, cut_off)?;
    } else {
        world.start_anew(&mut log, is_new)?;
    }
    log.record(world.backlog(), repaired)?;
    world.finish_taking_up(&mut log)?;
    Ok(Dispatcher::new(world, log, config))
}

/// Ends processes of runs without an end in the journal. A run with an end has left none.
pub fn end_earlier_runs(
    runs: &[OpenRun],
    keep: &[String],
    reporter: &mut dyn Reporter,
) -> Result<()> {
    let marks: Vec<RunMark> =
        runs.iter().filter_map(|open| RunMark::new(&open.run, open.began.as_ref())).collect();
    match sweep(&marks, keep) {
        Swept::Gone { ended } if ended.is_empty() => Ok(()),
        Swept::Gone { ended } => {
            reporter.on_notice(&Notice::Agent(AgentNotice::EarlierRunEnded { names: ended }));
            Ok(())
        }
        Swept::Survivors(names) => Err(RunnerError::Survivors(names)),
        Swept::Above(names) => Err(RunnerError::InsideItself(names)),
    }
}
