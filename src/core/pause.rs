//! Moments before which the run does nothing.

/// A wait, and what for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    pub what: WaitFor,
    /// Why, in words.
    pub error: String,
    /// Milliseconds since the Unix epoch.
    pub until: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitFor {
    /// The end of the account's usage limit.
    Limit,
    /// A better day of the service.
    Service,
    /// The next try, after a failure.
    Retry,
    /// The end of the breaker's pause.
    CoolDown,
    /// A budget that is to last longer.
    Budget,
}
