//! Values and facts that everything else is built from.
//!
//! A leaf: it uses no other room, and no clock, file, environment or process.

mod backlog;
mod budget;
mod cost;
mod event;
mod evidence;
mod footprint;
mod gate;
mod handoff;
mod health;
mod id;
mod lane;
mod memory;
mod money;
mod notice;
mod outcome;
mod permission;
mod policy;
mod question;
mod reason;
mod request;
mod service;
mod signals;
mod stop;
mod text;
mod time;
mod usage;
mod verdict;
mod violation;
mod wait;

pub use backlog::{Backlog, Story};
pub use budget::{Budget, BudgetLevel, Budgets, MINUTE, SpentToday};
pub use cost::{AttemptCost, CostCertainty, ModelUse};
pub use event::{
    AttemptEnded, AttemptStarted, Base, BranchLoss, Cause, Event, NudgedBy, Recorded, Role,
    RunStarted, StoryClosed, StuckEvent, VERSION,
};
pub use evidence::{Concern, EvidenceItem, GateEnd, GateReport, TAIL};
pub use footprint::Footprint;
pub use gate::{Gate, GateCommand, Recheck};
pub use handoff::{Changes, ContextUsage, FileChange, HandoffTrigger};
pub use health::{Health, LAST, TOO_MANY, WATCHED, health};
pub use id::{BadStoryId, MAX_LEN, StoryId};
pub use lane::LaneId;
pub use memory::{LONGEST_KEPT, MOST_KEPT, MemoryLimits};
pub use money::Usd;
pub use notice::{
    AgentNotice, BacklogNotice, ConfigNotice, NotCommitted, Notice, Resumed, SetupNotice,
    TreeNotice,
};
pub use outcome::{EndedBy, Exit, Outcome};
pub use permission::{PermissionMode, PermissionModes};
pub use policy::{Limits, OnEscalation, OnLimit, Policy, Timeouts};
pub use question::Answer;
pub use reason::AttemptReason;
pub use request::Request;
pub use service::ServiceFault;
pub use signals::{
    AgentSignals, CompletionMarkers, Escalation, EscalationKind, Handoff, RunMarkers,
};
pub use stop::{Because, Blocked, RunResult, StopReason};
pub use text::{both_ends, first_few, shorten, visible, visible_line};
pub use time::{A_TIME, duration};
pub use usage::Usage;
pub use verdict::Verdict;
pub use violation::Violation;
pub use wait::{Wait, WaitFor};
