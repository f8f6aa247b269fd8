//! The product as its users meet it: the real binary, real repositories, real
//! child processes, a real pseudo-terminal.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "these are tests")]

#[path = "../support/mod.rs"]
mod support;

/// Nothing here is about the disk.
const IN_MEMORY: bool = true;

mod after_kill;
mod after_result;
mod architecture;
mod as_checked;
mod backlog_edits;
mod between_runs;
mod budget;
mod budgets;
mod check;
mod commands;
mod commits;
mod compat;
mod configured;
mod corpus;
mod cost;
mod damage;
mod disk;
mod dry_run;
mod earlier_runs;
mod escalation;
mod evidence;
mod faults;
mod forged;
mod garbage;
mod gate_writes;
mod gates;
mod head_moved;
mod held_changes;
mod held_files;
mod hostile;
mod ignored;
mod index;
mod interrupt;
mod journal_tables;
mod keep;
mod kept;
mod limits;
mod linked;
mod links;
mod lost_journal;
mod mark;
mod markers;
mod memory;
mod modules;
mod moved_branch;
mod new_files;
mod nights;
mod not_for_agents;
mod nudge;
mod objects;
mod one_run;
mod own_commits;
mod own_folder;
mod permissions;
mod preflight;
mod private;
mod processes;
mod prompt;
mod protocol;
mod quotes;
mod recordings;
mod recovery;
mod refs;
mod replaced;
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
mod unseen;
mod untrusted_backlog;
mod waiting;
