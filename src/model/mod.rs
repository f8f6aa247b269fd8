//! Values and facts that everything else is built from.
//!
//! A leaf: it uses no other room, and no clock, file, environment or process.

pub mod backlog;
pub mod budget;
pub mod cost;
pub mod event;
pub mod evidence;
pub mod footprint;
pub mod gate;
pub mod handoff;
pub mod health;
pub mod id;
pub mod lane;
pub mod memory;
pub mod money;
pub mod notice;
pub mod outcome;
pub mod permission;
pub mod policy;
pub mod question;
pub mod reason;
pub mod request;
pub mod service;
pub mod signals;
pub mod stop;
pub mod text;
pub mod time;
pub mod usage;
pub mod verdict;
pub mod violation;
pub mod wait;
