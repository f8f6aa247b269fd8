use std::path::Path;
use std::process::Command;

use super::super::script::Scene;
use super::stage;

#[test]
fn a_process_is_left_behind_in_the_session_asked_for() {
    for (kinship, own_session) in [("plain", false), ("setsid", true), ("double-fork", true)] {
        let stage = stage();
        stage.steps(&format!(
            "{{ grandchild = \"{kinship}\", command = \"exec sleep 30\", pid_file = \"pid\" }}"
        ));
        let pid = stage.file("pid").trim().to_owned();
        let session = settled_session(&pid);
        Command::new("kill").args(["-9", &pid]).status().unwrap();
        assert_eq!(session == pid, own_session, "{kinship}: {pid} in {session}");
    }
}

/// The session of a process once its command runs; `setsid` needs a moment to get there.
fn settled_session(pid: &str) -> String {
    for _ in 0..500 {
        let show = Command::new("ps").args(["-o", "sid=,comm=", "-p", pid]).output().unwrap();
        let shown = String::from_utf8(show.stdout).unwrap();
        if let Some((session, "sleep")) = shown.trim().split_once(' ').map(|(s, c)| (s, c.trim())) {
            return session.to_owned();
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("process {pid} never ran its command");
}

#[test]
fn the_environment_is_read_with_care() {
    let with = |name: &'static str, value: &'static str| {
        let variable = move |asked: &str| (asked == name).then(|| value.to_owned());
        Scene::new(variable, Path::new("/").to_owned())
    };
    let nothing = with("", "").unwrap();
    assert_eq!((nothing.story.as_str(), nothing.attempt, nothing.iteration), ("unnamed", 1, 1));
    for (text, attempt) in [("3", 3), ("0", 1), ("x", 1), ("", 1)] {
        assert_eq!(with("RALPH_ATTEMPT", text).unwrap().attempt, attempt, "{text:?}");
    }
    assert!(with("RALPH_STORY", "../x").is_err());
}
