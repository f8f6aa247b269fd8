//! Parsers for untrusted text: PRD.json, an agent's signals, secrets.
//!
//! Pure functions from text to values of [`crate::model`]; they decide nothing.

#![cfg_attr(not(test), deny(clippy::disallowed_types))]

pub mod backlog;
pub mod redact;
pub mod signals;
pub mod similarity;
