//! One setting: its names, its default and what it is for.

/// What the flags, the file, the environment and the documentation of a setting are made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    pub group: SettingGroup,
    /// In ralph.toml: `budget.per_run` is `per_run` in `[budget]`.
    pub key: &'static str,
    /// Without the `--`.
    pub flag: Option<&'static str>,
    /// What the flag takes, `N` in `--max-iterations N`. Empty: it is a switch.
    pub takes: &'static str,
    pub env: Option<&'static str>,
    /// As ralph.toml would have it. Empty: there is none.
    pub default: &'static str,
    /// What happens by default, where a value cannot tell.
    pub default_note: &'static str,
    pub help: &'static str,
    /// The only values there are.
    pub choices: Vec<SettingChoice>,
    /// What a value looks like: `a number of at least 1, or `none``.
    pub expected: &'static str,
}

/// A value, and what it means where its name does not say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SettingChoice {
    pub name: &'static str,
    pub help: &'static str,
}

/// Settings that belong together in the help and in the documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SettingGroup {
    Run,
    Limits,
    Budget,
    Questions,
    Agent,
    Timeouts,
    Stories,
    Completion,
    Commits,
    Memory,
    Storage,
}

impl SettingGroup {
    pub fn title(self) -> &'static str {
        match self {
            Self::Run => "Run",
            Self::Limits => "Limits",
            Self::Budget => "Budget",
            Self::Questions => "Questions and waits",
            Self::Agent => "Agent",
            Self::Timeouts => "Time-outs",
            Self::Stories => "Stories without progress",
            Self::Completion => "Gates and completion",
            Self::Commits => "Commits",
            Self::Memory => "Memory",
            Self::Storage => "Processes, logs and snapshots",
        }
    }
}

/// Begins a declaration.
pub(super) fn setting(group: SettingGroup, key: &'static str, help: &'static str) -> Setting {
    Setting {
        group,
        key,
        flag: None,
        takes: "",
        env: None,
        default: "",
        default_note: "",
        help,
        choices: Vec::new(),
        expected: "",
    }
}

impl Setting {
    pub(super) fn flag(self, flag: &'static str, takes: &'static str) -> Self {
        Self { flag: Some(flag), takes, ..self }
    }

    pub(super) fn env(self, name: &'static str) -> Self {
        Self { env: Some(name), ..self }
    }

    pub(super) fn default(self, value: &'static str) -> Self {
        Self { default: value, ..self }
    }

    pub(super) fn by_default(self, note: &'static str) -> Self {
        Self { default_note: note, ..self }
    }

    /// `none` is a value, and means that there is no limit.
    pub fn takes_none(&self) -> bool {
        self.expected.ends_with("or `none`") && self.choices.is_empty()
    }

    /// For people: the note, or the value.
    pub fn shown_default(&self) -> &'static str {
        if self.default_note.is_empty() { self.default } else { self.default_note }
    }
}
