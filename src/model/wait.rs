//! Waits of the run.

/// Why nothing can start, and until when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    pub what: WaitFor,
    /// The reason, in words.
    pub error: String,
    /// Milliseconds since the Unix epoch.
    pub until: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitFor {
    /// The end of the account's usage limit.
    Limit,
    /// The service to recover.
    Service,
    /// The next try, after a failure.
    Retry,
    /// The end of the breaker's pause.
    CoolDown,
    /// A budget to last longer.
    Budget,
}
