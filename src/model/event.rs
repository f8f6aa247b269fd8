//! The durable facts of a run.
//!
//! Only the driver appends them, one transaction per decision, before it acts. The display, the
//! reports and recovery are folds over them. They are stored as JSON for years: add fields with a
//! default, never change the meaning of an existing one.

use serde::{Deserialize, Serialize};

use super::attempt::{AttemptEnded, AttemptStarted, Base, Cause};
use super::budget::BudgetLevel;
use super::change::{BacklogText, HeldChange};
use super::closed::StoryClosed;
use super::gate::{EvidenceItem, GateReport};
use super::id::{LaneId, StoryId};
use super::left_out::LeftOut;
use super::money::Usd;
use super::question::{Answer, Escalation};
use super::replaced::CommitsReplaced;
use super::started::{GatesStarted, RunStarted};
use super::stop::StopReason;
use super::violation::{Untrusted, Violation};

/// The version of the event format that this program writes.
pub const EVENT_VERSION: u32 = 1;

/// An event with its time in the journal.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// Milliseconds since the Unix epoch, by the machine's clock.
    pub at: i64,
    pub event: Event,
}

/// Times are in milliseconds since the Unix epoch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Event {
    /// `ralph run` started a new run.
    RunStarted(RunStarted),
    /// `ralph run` continued an interrupted run.
    RunContinued,
    /// The ralph.toml that is in force from here on: recorded when a run starts, and when it
    /// continues with another one that the human approved.
    SettingsTaken(SettingsText),
    /// The backlog file as it is the human's from here on: recorded at each start, and when the human
    /// edited it.
    BacklogTaken(BacklogText),
    /// An agent is about to be started.
    AttemptStarted(Box<AttemptStarted>),
    /// The agent's processes are gone, and the verdict is known.
    AttemptEnded(Box<AttemptEnded>),
    /// Its driver died before its end; the cost is an estimate.
    AttemptLost { attempt: String, story: StoryId, counted: Usd },
    /// A budget is nearly used up.
    BudgetNear { level: BudgetLevel },
    /// The next attempt waits to make the budget last.
    Throttled { level: BudgetLevel, until: i64 },
    /// The marks that count from here on, as set by the human.
    MarksSeen { passing: Vec<StoryId>, skipped: Vec<StoryId> },
    /// Gates are about to run. If the driver dies, the next one compares with this.
    GatesStarted(Box<GatesStarted>),
    /// Their processes are gone, and what they changed is put back.
    GatesOver,
    /// Files that no commit gets are about to be hidden from the gates. The hash of the list of them:
    /// nothing else moves back. None: they are back.
    FilesHidden { list: Option<String> },
    /// Results of all gates before any work, to tell old failures from new ones.
    BaselineTaken {
        reports: Vec<GateReport>,
        /// The branch tip and the work tree then.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<Base>,
        /// Of some gates before the story's first attempt.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        story: Option<StoryId>,
    },
    /// The evidence for a claim.
    ClaimChecked {
        attempt: String,
        story: StoryId,
        items: Vec<EvidenceItem>,
        /// What the story's changes are counted from: its base, with what gates wrote.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        counted: Option<Base>,
        /// The branch tip and the work tree after the gates.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        checked: Option<Base>,
        /// A gate that failed at the story's base and passes now.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        turned_green: Option<String>,
    },
    /// The gates of an accepted claim saw another state than the branch has now: they run again.
    ClaimOutdated { story: StoryId },
    /// The journal was lost, and only the trailers of this commit say that the story is closed: its
    /// gates decide.
    ConfirmationWanted { story: StoryId, commit: String },
    /// They failed: the story is open again, and no attempt is to blame.
    ConfirmationFailed { story: StoryId, error: String },
    /// The evidence contradicts the claim. `unfounded`: it had no changes to show.
    ClaimRejected { story: StoryId, error: String, fingerprint: String, unfounded: bool },
    /// A claim is accepted and about to be committed.
    ClosePlanned { attempt: String, story: StoryId },
    /// The commit of a close or of a skip is ready, and the branch is about to move to it.
    CommitPrepared { story: StoryId, commit: String },
    /// The work cannot be committed as it is; the claim is not accepted.
    CloseRefused {
        story: StoryId,
        error: String,
        /// Because of its content: the second time the human is asked.
        #[serde(default)]
        unfit: bool,
    },
    /// The work was committed with its mark.
    StoryClosed(StoryClosed),
    /// The story needs the human.
    QuestionRaised { story: StoryId, question: Escalation },
    /// The human answered.
    QuestionAnswered { story: StoryId, answer: Answer },
    /// No answer in time: the question waits, other stories continue.
    StoryParked { story: StoryId },
    /// The work was shelved at the ref, if there was any, and the tree is back at the story's base.
    /// `claimed`: its claim stands, and waits to be checked and integrated.
    WorkSetAside {
        story: StoryId,
        reference: Option<String>,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        claimed: bool,
    },
    /// The human settled the story; its work in the tree is the human's now.
    WorkLetGo { story: StoryId },
    /// A failed attempt's work is stored at the ref; it stays in the tree too. `changes` says in a
    /// few words how much changed.
    AttemptKept { story: StoryId, reference: String, changes: String },
    /// Branch and tree are about to be rolled back.
    ReturnPlanned { story: StoryId, to: Base, why: Cause },
    /// They were rolled back; the work since then, if any, is at the ref.
    Returned { story: StoryId, reference: Option<String> },
    /// Something that must be left alone was changed by what ran; it is about to be put back.
    Repaired {
        after: Untrusted,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        story: Option<StoryId>,
        violation: Violation,
    },
    /// Marks in the backlog file were reverted: they changed during an attempt, or the journal was
    /// lost and no commit confirms them.
    MarksPutBack { stories: Vec<StoryId> },
    /// The backlog file was unusable after an attempt or its gates; the last good version is there
    /// again. `kept` is where the other one is, if there was anything.
    BacklogPutBack { problem: String, kept: Option<String> },
    /// These changes are about to be taken out of the work tree. The human decides about them before
    /// the story goes on; a later change of the same path replaces an earlier one.
    ChangesHeld { story: StoryId, changes: Vec<HeldChange> },
    /// Changes that the human accepted: those of these paths are in the work tree. The `refused` ones do
    /// not fit what is there now: the human is asked again.
    ChangesApplied {
        story: StoryId,
        applied: Vec<String>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        refused: Vec<String>,
    },
    /// These stories were removed from the backlog during an attempt at another.
    StoriesRemoved { story: StoryId, removed: Vec<StoryId> },
    /// Checksums of everything that the human approved or chose until here. After a crash, whatever
    /// else is approved was not by the human.
    ApprovalsSeen { sums: Vec<String> },
    /// Approvals that appeared, disappeared or changed while something untrusted ran: as before.
    ApprovalsPutBack { names: Vec<String> },
    /// Requests to the run that came from no command of the human's: they do not count.
    RequestsIgnored { asked: Vec<String> },
    /// Changed files that are not in the commits, each once per process.
    FilesLeftOut { files: Vec<LeftOut> },
    /// A story was closed with one commit in the place of its agent's own.
    CommitsReplaced(CommitsReplaced),
    /// A message was sent to the running agent, or will be given to the next one.
    Nudged { story: StoryId, text: String, by: NudgedBy, delivered: bool },
    /// A message of the human's while no agent ran: the next attempt gets it.
    MessageKept { text: String },
    /// Its agent prints output but makes no progress.
    Stuck { story: StoryId, step: StuckEvent },
    /// Not the story's last stage, which is a claim.
    StageReached { story: StoryId, stage: String },
    /// Two claims are required, and this was the first: the next attempt checks again.
    SecondLookWanted { story: StoryId },
    /// The story is about to be reverted: branch, index and files move to this commit, from the tip
    /// that it is made for.
    UndoPlanned { story: StoryId, commit: String, from: String },
    /// A human reverted the closed story.
    StoryReopened { story: StoryId, commit: Option<String> },
    /// Shelved work is in the tree again, or conflicts with it.
    WorkBroughtBack { story: StoryId, reference: String, conflicts: Vec<String> },
    /// The human skipped the story.
    StorySkipped { story: StoryId, commit: Option<String> },
    /// The story's base, set outside an attempt: before unshelving, and when the branch moved
    /// while no attempt ran.
    BaseSet {
        story: StoryId,
        base: Base,
        #[serde(default, skip_serializing_if = "LaneId::is_home")]
        lane: LaneId,
    },
    /// The process waits or ends while nothing runs, and the story's unfinished work is in the human's
    /// tree: the branch tip and the work tree then. What differs at the next start is the user's.
    TreeLeft { story: StoryId, left: Base },
    /// That tree is about to be changed by ralph.
    TreeTaken { story: StoryId },
    /// The user changed files between two processes: they are in the story's base from here on.
    /// `roll_back`: the same of the base that a planned roll-back goes to. `rest`: of the work tree
    /// that shelving returns to, if it is not the base's.
    UserEditsFound {
        story: StoryId,
        base: Base,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        roll_back: Option<Base>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rest: Option<String>,
    },
    /// The human made these `commits` while the story's agent worked: they are no part of the story.
    /// `below`: commits of the story's that stay on the branch, because later ones that are not are
    /// on top of them. `rest`: the work tree that shelving returns to then.
    HumanCommitted {
        story: StoryId,
        commits: Vec<CommitName>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        below: Vec<CommitName>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rest: Option<String>,
    },
    /// After a crash: commits up to this branch tip count as the story's.
    CommitsTaken { story: StoryId, head: Option<String> },
    /// The human skipped the wait.
    WaitCutShort,
    /// More than one story fails: the run pauses.
    BreakerOpened { why: String, until: i64 },
    /// A signal stopped the process; the run stays open.
    RunInterrupted { signal: i32 },
    /// The run is over.
    RunEnded { reason: StopReason },
    /// Earlier versions recorded these instead of `Repaired`. The attempt deleted or reset
    /// uncommitted files of the user's.
    FilesPutBack {
        story: StoryId,
        paths: Vec<String>,
        snapshot: Option<String>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        blocked: Vec<String>,
    },
    /// The attempt dropped stashes of the user's.
    StashesPutBack { story: StoryId, messages: Vec<String> },
    /// The attempt changed git's configuration or hooks.
    SetupPutBack { story: StoryId, names: Vec<String>, kept: String },
    /// The attempt changed PROMPT.md.
    InstructionsPutBack { story: StoryId, path: String, kept: Option<String> },
}

impl Event {
    /// Parses the stored form. serde buffers a whole tagged enum, so the two large kinds, which
    /// make up most of a journal, are parsed directly.
    pub fn from_json(text: &str) -> serde_json::Result<Self> {
        if text.starts_with(r#"{"kind":"attempt_started","#) {
            serde_json::from_str(text).map(Self::AttemptStarted)
        } else if text.starts_with(r#"{"kind":"attempt_ended","#) {
            serde_json::from_str(text).map(Self::AttemptEnded)
        } else {
            serde_json::from_str(text)
        }
    }

    /// The story it concerns.
    pub fn story(&self) -> Option<&StoryId> {
        match self {
            Self::AttemptStarted(start) => Some(&start.story),
            Self::AttemptEnded(end) => Some(&end.story),
            Self::StoryClosed(closed) => Some(&closed.story),
            Self::AttemptLost { story, .. }
            | Self::ClaimChecked { story, .. }
            | Self::ClaimOutdated { story }
            | Self::ConfirmationWanted { story, .. }
            | Self::ConfirmationFailed { story, .. }
            | Self::ClaimRejected { story, .. }
            | Self::ClosePlanned { story, .. }
            | Self::CommitPrepared { story, .. }
            | Self::CloseRefused { story, .. }
            | Self::QuestionRaised { story, .. }
            | Self::QuestionAnswered { story, .. }
            | Self::StoryParked { story }
            | Self::WorkSetAside { story, .. }
            | Self::WorkLetGo { story }
            | Self::AttemptKept { story, .. }
            | Self::ReturnPlanned { story, .. }
            | Self::Returned { story, .. }
            | Self::FilesPutBack { story, .. }
            | Self::SetupPutBack { story, .. }
            | Self::StashesPutBack { story, .. }
            | Self::StoriesRemoved { story, .. }
            | Self::ChangesHeld { story, .. }
            | Self::ChangesApplied { story, .. }
            | Self::Nudged { story, .. }
            | Self::Stuck { story, .. }
            | Self::StageReached { story, .. }
            | Self::InstructionsPutBack { story, .. }
            | Self::SecondLookWanted { story }
            | Self::StoryReopened { story, .. }
            | Self::UndoPlanned { story, .. }
            | Self::WorkBroughtBack { story, .. }
            | Self::StorySkipped { story, .. }
            | Self::CommitsTaken { story, .. }
            | Self::HumanCommitted { story, .. }
            | Self::TreeLeft { story, .. }
            | Self::TreeTaken { story }
            | Self::UserEditsFound { story, .. }
            | Self::BaseSet { story, .. } => Some(story),
            Self::Repaired { story, .. } => story.as_ref(),
            _ => None,
        }
    }

    /// Something of the user's was changed or is not as expected: a report lists the event.
    pub fn is_notable(&self) -> bool {
        matches!(
            self,
            Self::Repaired { .. }
                | Self::FilesPutBack { .. }
                | Self::SetupPutBack { .. }
                | Self::StashesPutBack { .. }
                | Self::InstructionsPutBack { .. }
                | Self::MarksPutBack { .. }
                | Self::BacklogPutBack { .. }
                | Self::StoriesRemoved { .. }
                | Self::RequestsIgnored { .. }
                | Self::ChangesHeld { .. }
                | Self::ApprovalsPutBack { .. }
                | Self::FilesLeftOut { .. }
                | Self::CommitsReplaced(_)
                | Self::HumanCommitted { .. }
        )
    }

    /// The human did something that may have fixed the problem. Skipping a story or stopping does
    /// not, and may have been decided before the run.
    pub fn is_human_action(&self) -> bool {
        match self {
            Self::QuestionAnswered { answer: Answer::Skip | Answer::Abort, .. } => false,
            Self::QuestionAnswered { .. } | Self::MarksSeen { .. } => true,
            Self::MessageKept { .. } => true,
            Self::Nudged { by, .. } => *by == NudgedBy::Human,
            _ => false,
        }
    }
}

/// The text of a ralph.toml. Its size is limited where it is read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingsText {
    /// None: there was no file.
    pub text: Option<String>,
    /// As `git hash-object` makes it.
    pub hash: Option<String>,
}

/// Who sent a message to the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NudgedBy {
    Driver,
    Human,
}

/// Steps against a stuck agent, after the reminder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StuckEvent {
    /// The human was asked what to do.
    Asked { minutes: u64 },
    /// The human gave it more time.
    MoreTime,
    /// It made progress by itself.
    Recovered,
    /// It was ended.
    Ended { minutes: u64 },
}

/// A commit, for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitName {
    /// Its full id.
    pub commit: String,
    pub subject: String,
}
