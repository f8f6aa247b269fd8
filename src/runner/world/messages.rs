//! What tasks tell the loop.

use crate::model::{Event, LaneId, StuckEvent};
use crate::runner::effects::{About, Effects, Happened};
use crate::runner::error::Result;
use crate::runner::log::RunLog;
use crate::runner::task::Message;

use super::World;

impl World {
    /// None: it was not the end of a task.
    pub(super) fn take_message(
        &mut self,
        log: &mut RunLog,
        message: Message,
    ) -> Result<Option<Happened>> {
        match message {
            Message::Activity(activity) => log.reporter.on_activity(&activity),
            Message::Notice(notice) => log.notice(notice),
            Message::Record(event, recorded) => {
                self.record(log, *event)?;
                // The task may have been given up.
                let _ = recorded.send(log.sync_point());
            }
            Message::Scanned { attempt, changed } => self.scanned(log, attempt, changed)?,
            Message::Prepared(prepared) => {
                self.prepared.insert(prepared.lane, *prepared);
            }
            Message::Landed(landed) => self.landed(log, *landed),
            Message::StoredAhead { text, blob } => {
                self.stored_ahead = blob;
                self.env.backlog.take_prepared(text);
            }
            Message::Ended(happened) => {
                let happened = happened?;
                self.forget(&happened);
                return Ok(Some(happened));
            }
        }
        Ok(None)
    }

    fn forget(&mut self, happened: &Happened) {
        match happened {
            Happened::GatesEnded { of, .. } => self.gates.retain(|(running, ..)| running != of),
            Happened::Answered { asked, .. } => self.questions.ended(asked),
            Happened::JobEnded { lane: LaneId::HOME, .. } => self.is_landing = false,
            _ => {}
        }
    }

    /// A running attempt's tree was scanned.
    fn scanned(&mut self, log: &mut RunLog, attempt: String, changed: bool) -> Result<()> {
        let running = self.running.get_mut(&attempt);
        let recovered = running.is_some_and(|running| running.scanned(changed));
        let flight = log.state.attempts.get(&attempt).filter(|_| recovered);
        let Some(story) = flight.map(|flight| flight.start.story.clone()) else { return Ok(()) };
        self.withdraw(&About::Attempt { attempt, story: story.clone() });
        self.record(log, Event::Stuck { story, step: StuckEvent::Recovered })
    }
}
