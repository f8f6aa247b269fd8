//! Questions to the human: one menu at a time, the others wait behind it.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::ports::{Ask, Asked, Human};
use crate::runner::effects::{About, Happened};
use crate::runner::task::human::{OpenQuestion, QuestionTask};
use crate::runner::task::{self, Mailbox};

pub struct Questions {
    human: Arc<dyn Human>,
    mailbox: Mailbox,
    /// The one that is shown.
    open: Option<(About, OpenQuestion)>,
    queue: VecDeque<(About, Ask)>,
    /// Ends of questions that were never shown.
    over: VecDeque<Happened>,
}

impl Questions {
    pub fn new(human: Arc<dyn Human>, mailbox: Mailbox) -> Self {
        Self { human, mailbox, open: None, queue: VecDeque::new(), over: VecDeque::new() }
    }

    pub fn ask(&mut self, about: About, ask: Ask) {
        self.queue.push_back((about, ask));
        self.show_next();
    }

    fn show_next(&mut self) {
        if self.open.is_none()
            && let Some((about, ask)) = self.queue.pop_front()
        {
            let (open, task) = QuestionTask::new(about.clone(), ask, Arc::clone(&self.human));
            self.open = Some((about, open));
            task::spawn(&self.mailbox, task.run());
        }
        self.human.open_questions(self.queue.len() + usize::from(self.open.is_some()));
    }

    /// `at_once`: even if the human is writing.
    pub fn withdraw(&mut self, about: &About, at_once: bool) {
        match self.open.as_ref().filter(|(open, _)| open == about) {
            Some((_, open)) if at_once => open.close(),
            Some((_, open)) => open.withdrawal.withdraw(),
            None => {}
        }
        let queued = self.queue.len();
        self.queue.retain(|(queued, _)| queued != about);
        if self.queue.len() < queued {
            self.is_over(about.clone());
            self.show_next();
        }
    }

    /// The menu was closed. If nobody answered in time, nobody is there for the others either.
    pub fn ended(&mut self, asked: &Asked) {
        let was_withdrawn =
            self.open.take().is_some_and(|(_, open)| open.withdrawal.is_withdrawn());
        if *asked == Asked::NoAnswer && !was_withdrawn {
            for (about, _) in std::mem::take(&mut self.queue) {
                self.is_over(about);
            }
        }
        self.show_next();
    }

    fn is_over(&mut self, about: About) {
        self.over.push_back(Happened::Answered { about, asked: Asked::NoAnswer });
    }

    /// The end of a question that was never shown.
    pub fn next_over(&mut self) -> Option<Happened> {
        self.over.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;
    use crate::decide::samples::{escalation, id, story};
    use crate::runner::task::Message;

    /// Answers as it is told to, and notes what it is asked.
    struct Scripted {
        replies: Mutex<mpsc::Receiver<Asked>>,
        asked: Mutex<Vec<String>>,
        counts: Mutex<Vec<usize>>,
    }

    impl Human for Scripted {
        fn ask(&self, ask: &Ask) -> Asked {
            self.asked.lock().unwrap().push(ask.story.id.to_string());
            self.replies.lock().unwrap().recv().unwrap()
        }

        fn open_questions(&self, count: usize) {
            self.counts.lock().unwrap().push(count);
        }
    }

    struct Scene {
        runtime: tokio::runtime::Runtime,
        questions: Questions,
        messages: tokio::sync::mpsc::Receiver<Message>,
        human: Arc<Scripted>,
        replies: mpsc::Sender<Asked>,
    }

    fn scene(stories: &[&str]) -> Scene {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (replies, received) = mpsc::channel();
        let (asked, counts) = (Mutex::default(), Mutex::default());
        let human = Arc::new(Scripted { replies: Mutex::new(received), asked, counts });
        let (mailbox, messages) = tokio::sync::mpsc::channel(8);
        let shown: Arc<dyn Human> = Arc::<Scripted>::clone(&human);
        let mut questions = Questions::new(shown, mailbox);
        let guard = runtime.enter();
        for name in stories {
            let ask = Ask {
                story: story(name),
                question: escalation("which?"),
                patience: Duration::from_mins(1),
                ends_agent: false,
                withdrawal: Arc::default(),
            };
            questions.ask(About::Story(id(name)), ask);
        }
        drop(guard);
        Scene { runtime, questions, messages, human, replies }
    }

    impl Scene {
        fn replies(&mut self, asked: Asked) {
            self.replies.send(asked).unwrap();
            let message = self.runtime.block_on(self.messages.recv()).unwrap();
            let Message::Ended(Ok(Happened::Answered { asked, .. })) = message else {
                panic!("another message")
            };
            let _guard = self.runtime.enter();
            self.questions.ended(&asked);
        }

        fn over(&mut self) -> Vec<String> {
            let over = std::iter::from_fn(|| self.questions.next_over());
            over.map(|happened| match happened {
                Happened::Answered { about: About::Story(story), asked: Asked::NoAnswer } => {
                    story.to_string()
                }
                _ => panic!("another end"),
            })
            .collect()
        }

        fn asked(&self) -> Vec<String> {
            self.human.asked.lock().unwrap().clone()
        }

        fn counts(&self) -> Vec<usize> {
            self.human.counts.lock().unwrap().clone()
        }
    }

    fn retry() -> Asked {
        Asked::Answered(crate::model::Answer::Retry)
    }

    #[test]
    fn one_question_is_shown_at_a_time_with_the_number_of_all() {
        let mut scene = scene(&["A", "B", "C"]);
        assert_eq!(scene.counts(), [1, 2, 3]);
        for _ in 0..3 {
            scene.replies(retry());
        }
        assert_eq!(scene.asked(), ["A", "B", "C"]);
        assert_eq!(scene.counts(), [1, 2, 3, 2, 1, 0]);
        assert_eq!(scene.over(), [""; 0]);
    }

    #[test]
    fn after_one_unanswered_question_the_others_are_not_shown() {
        let mut scene = scene(&["A", "B", "C"]);
        scene.replies(Asked::NoAnswer);
        assert_eq!(scene.over(), ["B", "C"]);
        assert_eq!((scene.asked(), scene.counts().pop()), (vec!["A".to_owned()], Some(0)));
    }

    #[test]
    fn a_withdrawn_question_leaves_the_others_alone() {
        let mut scene = scene(&["A", "B", "C"]);
        scene.questions.withdraw(&About::Story(id("B")), false);
        assert_eq!(scene.over(), ["B"]);
        scene.questions.withdraw(&About::Story(id("A")), false);
        scene.replies(Asked::NoAnswer);
        assert_eq!(scene.over(), [""; 0]);
        scene.replies(retry());
        assert_eq!(scene.asked(), ["A", "C"]);
    }
}
