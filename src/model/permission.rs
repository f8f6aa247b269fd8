//! What an agent may do without asking.

/// An agent's modes that make sense unattended, the usual one first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PermissionModes {
    /// The agent's name.
    pub agent: &'static str,
    pub modes: &'static [PermissionMode],
}

/// One mode, by the agent's own name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PermissionMode {
    pub name: &'static str,
    /// What the agent may do in it.
    pub meaning: &'static str,
    /// Advice for choosing.
    pub advice: &'static str,
}
