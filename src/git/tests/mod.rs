//! Real repositories in temporary folders, set up and checked by the git binary.

mod altered;
mod beside;
mod bring_back;
mod commit;
mod locks;
mod odd_files;
mod open;
mod place;
mod sandbox;
mod set_aside;
mod sign;
mod snapshot;
mod staging;
mod surroundings;
mod switch;
mod work_trees;
