//! Questions, answers, nudges and requests.

use std::time::Duration;

use crate::decide::situation::StuckDue;
use crate::decide::stuck::{self, HAND_OVER, MORE_TIME, StuckStep};
use crate::model::{
    AgentNotice, Answer, AttemptStarted, EndedBy, Escalation, Event, Notice, NudgedBy, Request,
    StoryId, StuckEvent,
};
use crate::ports::Asked;
use crate::runner::dispatcher::Dispatcher;
use crate::runner::effects::{About, Effects};
use crate::runner::error::Result;
use crate::runner::interrupts::SIGINT;
use crate::state::Stage;

impl<E: Effects> Dispatcher<E> {
    pub(super) fn ask(&mut self, story: StoryId) {
        let known = self.log.state.story(&story).and_then(|known| known.question().cloned());
        let Some(question) = known else { return };
        self.tasks.asking.insert(story.clone());
        let patience = self.config.settings.answer_timeout;
        self.open(About::Story(story.clone()), &story, question.escalation, patience);
    }

    fn open(&mut self, about: About, story: &StoryId, question: Escalation, patience: Duration) {
        self.questions.insert(about.clone(), None);
        self.effects.ask(about, story, question, patience);
    }

    pub(super) fn close_all(&mut self) {
        for about in self.questions.keys().cloned().collect::<Vec<_>>() {
            self.withdraw(&about, true);
        }
    }

    /// The question stays open until its task has ended. Unless `at_once`, a text that the human is
    /// writing may still arrive.
    pub(super) fn withdraw(&mut self, about: &About, at_once: bool) {
        let question = self.questions.get_mut(about);
        if let Some(withdrawn) = question.filter(|withdrawn| **withdrawn < Some(at_once)) {
            *withdrawn = Some(at_once);
            self.effects.withdraw(about, at_once);
        }
    }

    /// Of stories that were settled or removed while their question was open.
    pub(super) fn withdraw_moot_questions(&mut self) {
        for story in self.tasks.asking.clone() {
            if !self.is_answer_wanted(&story) {
                self.withdraw(&About::Story(story), false);
            }
        }
    }

    fn is_answer_wanted(&self, story: &StoryId) -> bool {
        self.backlog().is_open(story) && self.log.state.is_asking(story)
    }

    pub(super) fn answered(&mut self, about: About, asked: Asked) -> Result<()> {
        self.questions.remove(&about);
        if asked == Asked::Interrupted {
            self.take_interrupt(SIGINT);
        }
        match about {
            About::Story(story) => {
                self.tasks.asking.remove(&story);
                self.story_answered(story, asked)
            }
            About::Attempt { attempt, story } => self.stuck_answered(&attempt, story, asked),
        }
    }

    fn story_answered(&mut self, story: StoryId, asked: Asked) -> Result<()> {
        if !self.is_answer_wanted(&story) {
            return Ok(());
        }
        match asked {
            Asked::Answered(answer) => self.record(vec![Event::QuestionAnswered { story, answer }]),
            Asked::NoAnswer if self.is_interrupted() || self.is_stopping => Ok(()),
            Asked::NoAnswer => self.record(vec![Event::StoryParked { story }]),
            Asked::Interrupted => Ok(()),
        }
    }

    pub(super) fn unstick(&mut self, due: &StuckDue) -> Result<()> {
        let Some(flight) = self.log.state.attempts.get(&due.attempt) else { return Ok(()) };
        let start = flight.start.clone();
        let busy = self.effects.busy(&due.attempt);
        self.effects.stuck_step(&due.attempt, Some(due.step));
        match due.step {
            StuckStep::Nudge => {
                let text = stuck::reminder(&start.story, busy);
                self.nudge(&start, text, NudgedBy::Driver)
            }
            StuckStep::Ask => {
                let minutes = stuck::minutes(busy);
                self.stuck(&start.story, StuckEvent::Asked { minutes })?;
                let question = stuck::question(&self.config.policy.agent, busy);
                let (attempt, story) = (due.attempt.clone(), start.story.clone());
                let about = About::Attempt { attempt, story };
                self.open(about, &start.story, question, self.config.settings.stuck.answer);
                Ok(())
            }
            StuckStep::Terminate => {
                let (attempt, story) = (due.attempt.clone(), start.story.clone());
                self.withdraw(&About::Attempt { attempt, story }, false);
                self.terminate(&start, busy)
            }
        }
    }

    /// After the attempt's end, only answers about the story count.
    fn stuck_answered(&mut self, attempt: &str, story: StoryId, asked: Asked) -> Result<()> {
        let Asked::Answered(answer) = asked else { return Ok(()) };
        let Some(flight) = self.log.state.attempts.get(attempt) else {
            return self.answered_late(story, answer);
        };
        let (start, busy) = (flight.start.clone(), self.effects.busy(attempt));
        match answer {
            Answer::Option { number: MORE_TIME, .. } => {
                self.stuck(&start.story, StuckEvent::MoreTime)?;
                self.effects.stuck_step(attempt, None);
                Ok(())
            }
            Answer::Guidance { text } => {
                self.nudge(&start, text, NudgedBy::Human)?;
                self.effects.stuck_step(attempt, None);
                Ok(())
            }
            Answer::Option { number: HAND_OVER, .. } | Answer::Retry | Answer::Restore => {
                self.terminate(&start, busy)
            }
            Answer::Skip | Answer::Abort => {
                let story = start.story.clone();
                self.record(vec![Event::QuestionAnswered { story, answer }])?;
                self.terminate(&start, busy)
            }
            // The story is the human's from here on.
            Answer::Option { .. } | Answer::Accept => {
                let (story, question) = (start.story.clone(), stuck::given_up(busy));
                let parked = Event::StoryParked { story: story.clone() };
                self.record(vec![Event::QuestionRaised { story, question }, parked])?;
                self.terminate(&start, busy)
            }
        }
    }

    /// Guidance is for the agent that works on the story by now, if there is one.
    fn answered_late(&mut self, story: StoryId, answer: Answer) -> Result<()> {
        let next = self.log.state.attempts.at(&story).map(|flight| flight.start.clone());
        if let (Answer::Guidance { text }, Some(start)) = (&answer, next) {
            return self.nudge(&start, text.clone(), NudgedBy::Human);
        }
        let known = self.log.state.story(&story).map(|known| &known.stage);
        let follows = stuck::late_answer(story, known.unwrap_or(&Stage::Open), answer);
        self.record(follows.into_iter().collect())
    }

    fn terminate(&mut self, start: &AttemptStarted, busy: Duration) -> Result<()> {
        self.stuck(&start.story, StuckEvent::Ended { minutes: stuck::minutes(busy) })?;
        self.effects.stuck_step(&start.attempt, Some(StuckStep::Terminate));
        self.effects.end_attempt(&start.attempt, EndedBy::Stuck);
        Ok(())
    }

    fn stuck(&mut self, story: &StoryId, step: StuckEvent) -> Result<()> {
        self.record(vec![Event::Stuck { story: story.clone(), step }])
    }

    /// Sends the message to the agent, or keeps it for the next one.
    fn nudge(&mut self, start: &AttemptStarted, text: String, by: NudgedBy) -> Result<()> {
        let delivered = self.effects.takes_messages(&start.attempt);
        let (story, said) = (start.story.clone(), text.clone());
        self.record(vec![Event::Nudged { story, text, by, delivered }])?;
        self.effects.say(&start.attempt, &said);
        Ok(())
    }

    pub(super) fn take_requests(&mut self) -> Result<()> {
        for (number, request) in self.effects.requests(&mut self.log)? {
            if self.take_request(request)? {
                self.effects.settle_request(number)?;
            }
        }
        Ok(())
    }

    /// False: try again later.
    fn take_request(&mut self, request: Option<Request>) -> Result<bool> {
        match request {
            Some(Request::Nudge { text }) => {
                let starts: Vec<AttemptStarted> =
                    self.log.state.attempts.iter().map(|flight| flight.start.clone()).collect();
                for start in &starts {
                    self.nudge(start, text.clone(), NudgedBy::Human)?;
                    self.effects.stuck_step(&start.attempt, None);
                }
                if starts.is_empty() {
                    self.record(vec![Event::MessageKept { text }])?;
                }
                Ok(true)
            }
            Some(Request::Mark { backlog, story, passes, skipped }) => {
                if backlog != self.config.backlog_key || self.log.state.is_rolling_back() {
                    return Ok(false);
                }
                let is_taken = self.effects.mark(&mut self.log, &story, passes, skipped)?;
                if is_taken && !passes && !skipped && self.is_claimed(&story) {
                    let error = "the human marked it as not done".to_owned();
                    self.record(vec![Event::CloseRefused { story, error, unfit: false }])?;
                }
                Ok(is_taken)
            }
            Some(Request::Approved { all }) => {
                self.effects.approved(&mut self.log, all)?;
                Ok(true)
            }
            None => {
                self.log.notice(Notice::Agent(AgentNotice::UnknownRequest));
                Ok(true)
            }
        }
    }
}
