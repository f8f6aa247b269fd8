//! The product as its users meet it: the real binary, real repositories, real
//! child processes, a real pseudo-terminal.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "these are tests")]

#[path = "../support/mod.rs"]
mod support;

mod after_result;
mod architecture;
mod backlog_edits;
mod between_runs;
mod budget;
mod budgets;
mod check;
mod commands;
mod commits;
mod compat;
mod corpus;
mod cost;
mod damage;
mod disk;
mod dry_run;
mod earlier_runs;
mod escalation;
mod evidence;
mod faults;
mod gate_writes;
mod gates;
mod held_changes;
mod hostile;
mod index;
mod interrupt;
mod journal_tables;
mod keep;
mod kept;
mod limits;
mod links;
mod mark;
mod markers;
mod memory;
mod moved_branch;
mod nights;
mod not_for_agents;
mod nudge;
mod one_run;
mod own_commits;
mod permissions;
mod preflight;
mod processes;
mod prompt;
mod protocol;
mod quotes;
mod recordings;
mod recovery;
mod refs;
mod report;
mod responsive;
mod run;
mod secrets;
mod service;
mod settings_docs;
mod settings_in_force;
mod snapshots;
mod staging;
mod stagnation;
mod terminal;
mod trust;
mod waiting;
