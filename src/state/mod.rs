//! Projections of the journal; each folds by itself.

pub mod attempts;
pub mod breaker;
pub mod costs;
pub mod failures;
pub mod lanes;
pub mod marks;
pub mod memory;
pub mod recent;
pub mod run;
pub mod service;
pub mod stagnation;
pub mod stories;
pub mod story;
pub mod work_time;
