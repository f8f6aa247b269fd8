//! Which permission mode the settings say, if any.

use super::file::SettingsFile;
use super::plan::{AgentChoice, Flags, Origin, Plan, PlanError};
use crate::core::permission::PermissionMode;

impl Plan {
    /// Claude Code runs, and no setting says what it may do.
    pub fn lacks_permissions(&self) -> bool {
        let settings = &self.agent_settings;
        self.agent == AgentChoice::Claude
            && settings.permission_mode.is_none()
            && !settings.args_have_mode()
    }
}

/// Which of two modes Claude Code would take is a riddle, so there must be one.
pub fn permission_mode(
    flags: &Flags,
    file: &SettingsFile,
    agent: &AgentChoice,
) -> Result<Option<PermissionMode>, PlanError> {
    if flags.permission_mode.is_some() && *agent != AgentChoice::Claude {
        return Err(PlanError::ModeWithoutClaude);
    }
    let origin = match flags.permission_mode {
        Some(_) => Origin::Flag("--permission-mode"),
        None => Origin::File("agent.permission_mode"),
    };
    match flags.permission_mode.or(file.agent.permission_mode) {
        Some(_) if file.agent.args_have_mode() => Err(PlanError::TwoModes { origin }),
        mode => Ok(mode),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::settings::{AgentKind, AgentSettings};

    fn plan(flags: Flags, file: SettingsFile) -> Result<Plan, PlanError> {
        Plan::new(flags, &|_| None, file, Path::new("/"))
    }

    fn with_agent(agent: AgentSettings) -> SettingsFile {
        SettingsFile { agent, ..SettingsFile::default() }
    }

    fn with_args(args: &[&str]) -> SettingsFile {
        let args = args.iter().map(|arg| (*arg).to_owned()).collect();
        with_agent(AgentSettings { args, ..AgentSettings::default() })
    }

    fn in_mode(mode: PermissionMode) -> AgentSettings {
        AgentSettings { permission_mode: Some(mode), ..AgentSettings::default() }
    }

    #[test]
    fn permissions_are_lacking_where_no_setting_says_them() {
        let flag = |mode| Flags { permission_mode: mode, ..Flags::default() };
        let auto = Some(PermissionMode::Auto);
        let file = |mode| with_agent(in_mode(mode));
        for (flags, file, lacks, mode) in [
            (flag(None), SettingsFile::default(), true, None),
            (flag(None), with_args(&["--debug", "--allowedTools", "Bash"]), true, None),
            (flag(None), with_args(&["--permission-mode", "plan"]), false, None),
            (flag(None), with_args(&["--permission-mode=plan"]), false, None),
            (flag(None), with_args(&["--dangerously-skip-permissions"]), false, None),
            (flag(None), file(PermissionMode::Auto), false, auto),
            (flag(auto), file(PermissionMode::DontAsk), false, auto),
            (flag(auto), SettingsFile::default(), false, auto),
        ] {
            let plan = plan(flags, file).unwrap();
            let found = (plan.lacks_permissions(), plan.agent_settings.permission_mode);
            assert_eq!(found, (lacks, mode), "{:?}", plan.agent_settings.args);
        }
        let mock = Flags { agent: Some(AgentKind::Mock), ..Flags::default() };
        assert!(!plan(mock, SettingsFile::default()).unwrap().lacks_permissions());
        let command = Flags { agent_command: Some("my-agent".into()), ..Flags::default() };
        assert!(!plan(command, SettingsFile::default()).unwrap().lacks_permissions());
    }

    #[test]
    fn a_mode_that_would_be_lost_is_an_error() {
        let auto = Some(PermissionMode::Auto);
        let skip = || with_args(&["--dangerously-skip-permissions"]);
        let flags = Flags { permission_mode: auto, ..Flags::default() };
        let error = plan(flags.clone(), skip()).unwrap_err();
        assert!(error.is_usage() && error.to_string().starts_with("--permission-mode: "));
        let mut both = skip();
        both.agent.permission_mode = auto;
        let error = plan(Flags::default(), both).unwrap_err();
        assert!(!error.is_usage() && error.to_string().contains("ralph.toml"), "{error}");
        let mock = Flags { agent: Some(AgentKind::Mock), ..flags };
        let error = plan(mock, SettingsFile::default()).unwrap_err();
        assert!(matches!(error, PlanError::ModeWithoutClaude), "{error}");
    }
}
