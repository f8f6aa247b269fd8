//! Taking up what other processes want.

use std::time::Duration;

use tokio::time::Instant;

use crate::core::event::{Event, Nudger};
use crate::core::wish::Wish;

use super::Engine;
use super::error::EngineError;
use super::ports::Notice;

/// Nobody waits longer than this for a wish to be seen.
pub const LOOK: Duration = Duration::from_millis(250);

impl Engine {
    pub(super) fn take_wishes(&mut self) -> Result<(), EngineError> {
        let is_recent = self.wishes_seen.is_some_and(|seen| seen.elapsed() < LOOK);
        // Between two attempts a wish must not wait for the next one's end.
        if is_recent && !self.state.in_flight.is_empty() {
            return Ok(());
        }
        self.wishes_seen = Some(Instant::now());
        for (number, wish) in self.parts.wishes.pending()? {
            if self.fulfil(wish)? {
                self.parts.wishes.settle(number)?;
            }
        }
        Ok(())
    }

    /// What was meant for a run before this process is not meant for it.
    pub(super) fn forget_old_wishes(&self) -> Result<(), EngineError> {
        for (number, _) in self.parts.wishes.pending()? {
            self.parts.wishes.settle(number)?;
        }
        Ok(())
    }

    /// False: not now.
    fn fulfil(&mut self, wish: Option<Wish>) -> Result<bool, EngineError> {
        match wish {
            Some(Wish::Nudge { text }) => {
                let Some(attempt) = self.state.in_flight.keys().next().cloned() else {
                    return Ok(false);
                };
                self.nudge(&attempt, text, Nudger::Human)?;
                self.give_time(&attempt);
                Ok(true)
            }
            Some(Wish::Mark { story, passes, skipped }) => {
                if !self.state.in_flight.is_empty() || self.state.is_returning() {
                    return Ok(false);
                }
                self.mark(&story, passes, skipped)?;
                Ok(true)
            }
            None => {
                let text = "a newer ralph wants something of this run that this one does not know";
                self.notice(Notice::Warning(text.to_owned()));
                Ok(true)
            }
        }
    }

    /// Says it to the agent, or has it told to the next one.
    pub(super) fn nudge(
        &mut self,
        attempt: &str,
        text: String,
        by: Nudger,
    ) -> Result<(), EngineError> {
        let Some(started) = self.state.in_flight.get(attempt) else { return Ok(()) };
        let (story, watch) = (started.story.clone(), self.under_way.get(attempt));
        let delivered = watch.is_some_and(|under_way| under_way.watch.takes_messages());
        let event = Event::Nudged { story, text: text.clone(), by, delivered };
        self.record(vec![event])?;
        if let Some(under_way) = self.under_way.get(attempt) {
            under_way.watch.say(&text);
        }
        Ok(())
    }
}
