//! Why the store cannot be used.

use std::io;

/// Opaque, so that another database behind the store needs no other error.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct StoreError(#[from] Problem);

#[derive(Debug, thiserror::Error)]
pub(super) enum Problem {
    #[error("the journal `{path}` cannot be used: {source}")]
    Open { path: String, source: rusqlite::Error },
    #[error(
        "the journal `{path}` was written by a newer ralph (version {found}, this one knows \
         {known}); use that one, nothing was changed"
    )]
    Newer { path: String, found: i64, known: i64 },
    #[error(
        "the journal is damaged ({0}): `ralph run` sets it aside and goes on with a new one, \
         rebuilt from the backlog, the refs and the commits' trailers"
    )]
    Damaged(String),
    #[error("the journal could not be written, is the disk full? {0}")]
    Write(rusqlite::Error),
    #[error("the journal could not be brought to the disk, is it full? {0}")]
    Sync(io::Error),
    #[error("the journal could not be read: {0}")]
    Read(rusqlite::Error),
    #[error("the journal holds an event that this ralph does not understand: {0}")]
    Payload(serde_json::Error),
    #[error("another `ralph run` works in this work tree ({holder}); wait for it or stop it")]
    Held { holder: String },
    #[error("the lock `{path}` cannot be used: {source}")]
    Lock { path: String, source: io::Error },
    #[error("`{path}`: {problem}")]
    UserCosts { path: String, problem: String },
    #[error("{0}")]
    Folder(io::Error),
}

impl StoreError {
    /// The bytes of the journal are not what was written.
    pub fn is_damage(&self) -> bool {
        matches!(self.0, Problem::Damaged(_))
    }

    /// Another run has the lease.
    pub fn is_held(&self) -> bool {
        matches!(self.0, Problem::Held { .. })
    }
}
