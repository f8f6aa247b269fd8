//! How files are opened, read and replaced where something untrusted may have been.
//!
//! At a path that an agent can write there can be anything: a link to a file of the user's, a pipe
//! that blocks whoever opens it, a device, ten gigabytes of zeros. Here nothing blocks, and no
//! more is read than was asked for.

#![allow(clippy::disallowed_methods, reason = "the other rooms go through this one")]

pub mod atomic;
mod dir;
pub mod follow;
mod keep;
pub mod nofollow;
mod read;
mod write_below;

pub use dir::{Dir, FileKind, FolderEntry};
pub use keep::{free_name, keep};
pub use read::{ReadError, ReadResult, find, open, open_place, read, read_from, read_text};
