//! What Claude Code may do by itself. Nobody is there to be asked.

use serde::Deserialize;

/// The modes that make sense unattended, by Claude Code's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PermissionMode {
    /// Files of the work tree may be edited; of commands, only what is listed or harmless.
    AcceptEdits,
    /// Claude Code judges each step itself.
    Auto,
    /// Only what is listed or harmless, edits included.
    DontAsk,
    /// Anything.
    BypassPermissions,
}

impl PermissionMode {
    pub const ALL: [Self; 4] =
        [Self::AcceptEdits, Self::Auto, Self::DontAsk, Self::BypassPermissions];

    pub fn name(self) -> &'static str {
        match self {
            Self::AcceptEdits => "acceptEdits",
            Self::Auto => "auto",
            Self::DontAsk => "dontAsk",
            Self::BypassPermissions => "bypassPermissions",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_name_everywhere() {
        for mode in PermissionMode::ALL {
            assert_eq!(PermissionMode::named(mode.name()), Some(mode));
            let quoted = format!("{:?}", mode.name());
            assert_eq!(serde_json::from_str::<PermissionMode>(&quoted).unwrap(), mode);
        }
        assert_eq!(PermissionMode::named("acceptedits"), None);
    }
}
