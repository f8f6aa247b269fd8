//! Asking the human.

use std::sync::Arc;

use tokio::time::timeout;

use crate::core::event::Event;
use crate::core::id::StoryId;

use super::Engine;
use super::error::EngineError;
use super::ports::{Asked, WITHDRAWAL};
use super::signals::SIGINT;

impl Engine {
    pub(super) async fn ask(&mut self, id: &StoryId) -> Result<(), EngineError> {
        let story = self.parts.backlog.current().story(id).cloned();
        let question = self.state.story(id).and_then(|known| known.question.clone());
        let (Some(story), Some(question)) = (story, question) else { return Ok(()) };
        let human = Arc::clone(&self.parts.human);
        let patience = self.orders.answer_patience;
        let mut asking =
            tokio::task::spawn_blocking(move || human.ask(&story, &question.escalation, patience));
        let asked = tokio::select! {
            asked = &mut asking => asked.unwrap_or(Asked::NobodyThere),
            signal = self.signals.next() => {
                self.take_signal(signal);
                self.parts.human.withdraw();
                // The menu gives the terminal back; one that does not is left behind. An answer
                // that was just given counts.
                match timeout(WITHDRAWAL, asking).await {
                    Ok(Ok(answered @ Asked::Answered(_))) => answered,
                    _ => return Ok(()),
                }
            }
        };
        match asked {
            Asked::Answered(answer) => {
                self.record(vec![Event::QuestionAnswered { story: id.clone(), answer }])
            }
            Asked::NobodyThere => self.record(vec![Event::StoryParked { story: id.clone() }]),
            Asked::Interrupted => {
                self.take_signal(SIGINT);
                Ok(())
            }
        }
    }
}
