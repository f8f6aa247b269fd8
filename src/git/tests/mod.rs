//! Real repositories in temporary folders, set up and checked by the git binary.

mod altered;
mod belongings;
mod beside;
mod bring_back;
mod commit;
mod cut_short;
mod holders;
mod kept;
mod locks;
mod odd_files;
mod open;
mod own_locks;
mod place;
mod sandbox;
mod seen;
mod set_aside;
mod setup;
mod sign;
mod snapshot;
mod staging;
mod summary;
mod surroundings;
mod switch;
mod undo;
mod work_trees;
