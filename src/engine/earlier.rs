//! Before anything else: no process of an earlier run is alive.

use crate::process::Keep;
use crate::process::sweep::{Mark, Swept, sweep};
use crate::store::journal::OpenRun;

use super::error::EngineError;
use super::names::some_of;
use super::ports::{Notice, Reporter};

/// Ends what still runs of runs that have no end in the journal. A run that has one was proven to
/// have left nothing.
pub fn end_earlier_runs(
    runs: &[OpenRun],
    keep: &[String],
    reporter: &mut dyn Reporter,
) -> Result<(), EngineError> {
    let marks: Vec<Mark> =
        runs.iter().filter_map(|open| Mark::new(&open.run, open.began)).collect();
    match sweep(&marks, &Keep::new(keep)) {
        Swept::Gone { ended } if ended.is_empty() => Ok(()),
        Swept::Gone { ended } => {
            let text = format!("ended what an earlier run left behind: {}", some_of(&ended));
            reporter.on_notice(&Notice::Warning(text));
            Ok(())
        }
        Swept::Survivors(names) => Err(EngineError::Survivors(names)),
        Swept::Above(names) => Err(EngineError::InsideItself(names)),
    }
}
