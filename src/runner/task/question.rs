//! A question to the human.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;
use tokio::time::timeout;

use crate::ports::{Ask, Asked, Human, WITHDRAWAL};
use crate::runner::effects::{About, Happened};

/// The loop's handle on an open question.
pub struct OpenQuestion {
    flag: Arc<AtomicBool>,
    withdrawal: Arc<Notify>,
}

impl OpenQuestion {
    pub fn withdraw(&self) {
        self.flag.store(true, Ordering::SeqCst);
        self.withdrawal.notify_one();
    }
}

pub struct QuestionTask {
    about: About,
    ask: Ask,
    human: Arc<dyn Human>,
    withdrawal: Arc<Notify>,
}

impl QuestionTask {
    pub fn new(about: About, ask: Ask, human: Arc<dyn Human>) -> (OpenQuestion, Self) {
        let withdrawal = Arc::new(Notify::new());
        let flag = Arc::clone(&ask.withdrawn);
        let open = OpenQuestion { flag, withdrawal: Arc::clone(&withdrawal) };
        (open, Self { about, ask, human, withdrawal })
    }

    pub async fn run(self) -> Happened {
        let (human, ask) = (self.human, self.ask);
        let mut asking = tokio::task::spawn_blocking(move || human.ask(&ask));
        let asked = tokio::select! {
            asked = &mut asking => asked.unwrap_or(Asked::NoAnswer),
            // The menu releases the terminal; one that does not is abandoned. An answer that was
            // just given counts.
            () = self.withdrawal.notified() => match timeout(WITHDRAWAL, asking).await {
                Ok(Ok(asked)) => asked,
                _ => Asked::NoAnswer,
            },
        };
        Happened::Answered { about: self.about, asked }
    }
}
