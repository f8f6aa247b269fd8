//! Real repositories in temporary folders, set up and checked by the git binary.

mod branch;
mod commit;
mod diff;
mod git_files;
mod guard;
mod held;
mod ignored;
mod index;
mod integrate;
mod linked_folders;
mod locks;
#[path = "../../../tests/support/memory.rs"]
mod memory;
mod object_copies;
mod objects;
mod odd_files;
mod open;
mod own_commits;
mod refs;
mod sandbox;
mod scan;
mod shelve;
mod sign;
mod snapshots;
mod staging;
mod user_edits;
mod user_files;
