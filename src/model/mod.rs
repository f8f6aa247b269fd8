//! Values and events.
//!
//! Uses no other room, and no clock, file, environment or process.

#![cfg_attr(not(test), deny(clippy::disallowed_types))]

mod attempt;
mod backlog;
mod budget;
mod change;
mod closed;
mod event;
mod gate;
mod id;
mod ignored;
mod left_out;
mod money;
mod notice;
mod outcome;
mod policy;
mod question;
mod replaced;
mod signals;
mod started;
mod stop;
mod text;
mod violation;

pub use attempt::{
    AttemptEnded, AttemptReason, AttemptStarted, Base, BranchLoss, Cause, Footprint, Role, StepKind,
};
pub use backlog::{Backlog, Story};
pub use budget::{Budget, BudgetLevel, Budgets, MINUTE, SpentToday};
pub use change::{BacklogText, ChangeKind, HeldChange};
pub use closed::{DiffStat, StoryChange, StoryClosed};
pub use event::{CommitName, EVENT_VERSION, Event, NudgedBy, Recorded, SettingsText, StuckEvent};
pub use gate::{Concern, EvidenceItem, GATE_TAIL, Gate, GateCommand, GateEnd, GateReport, Recheck};
pub use id::{BadStoryId, LaneId, StoryId, unique_id};
pub use ignored::IgnoredLimits;
pub use left_out::{LeftOut, WhyLeftOut};
pub use money::{AttemptCost, CostCertainty, ModelUse, Tokens, Usage, Usd};
pub use notice::{
    AgentNotice, AttemptNotice, ConfigNotice, EndCause, Notice, Resumed, SetupNotice, TreeNotice,
};
pub use outcome::{EndedBy, Exit, IterationResult, Outcome, ServiceFault, Verdict};
pub use policy::{
    LONGEST_KEPT, Limits, MOST_KEPT, MemoryLimits, OnEscalation, OnLimit, PermissionMode,
    PermissionModes, Policy, Timeouts, millis,
};
pub use question::{Answer, Approval, Escalation, EscalationKind, Request, Requester};
pub use replaced::{CommitsReplaced, Unclean, WhyUnclean};
pub use signals::{
    AgentSignals, Changes, CompletionMarkers, ContextUsage, FileChange, Handoff, HandoffTrigger,
    RunMarkers,
};
pub use started::{BootMoment, GatesStarted, RunStarted};
pub use stop::{Because, Blocked, RunResult, StopReason, Wait, WaitFor};
pub use text::{A_TIME, both_ends, duration, first_few, shorten, visible, visible_line};
pub use violation::{HeldKind, Untrusted, Violation};
