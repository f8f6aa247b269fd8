//! What the driver holds, whatever the agent prints.

use std::fs;
use std::io::Read;
use std::process::Stdio;

use crate::measure::{ralph, repository, stories};

pub fn bench() {
    for (what, step, most) in [
        ("nothing much", "{ say = \"x\" }", 20),
        ("200 MB of events", "{ output = { mb = 200 } }", 20),
        ("lines of 1 MB", "{ output = { line_mb = 1 } }, { output = { line_mb = 1 } }", 20),
        ("a line of 1 GB", "{ output = { line_mb = 1000 } }", 100),
    ] {
        println!("  {what:<24} {:>6.1} MB resident at most (under {most})", peak(step));
    }
}

fn peak(step: &str) -> f64 {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("repo");
    repository(&root, 10);
    fs::write(root.join("PRD.json"), stories(1)).unwrap();
    let script = folder.path().join("script.toml");
    // The agent waits at its end, so that the driver can be looked at.
    let hold = "{ run = \"touch ../ready; while [ -e ../ready ]; do sleep 0.01; done\" }";
    fs::write(&script, format!("[default]\nsteps = [{step}, {{ write = \"work\", text = \"x\" }}, {hold}, \"complete\"]\n")).unwrap();
    let mut child = ralph(&root)
        .args(["run", "--quiet", "--mock-script"])
        .arg(&script)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let ready = folder.path().join("ready");
    while !ready.exists() {
        std::thread::yield_now();
    }
    let mut status = String::new();
    let mut file = fs::File::open(format!("/proc/{}/status", child.id())).unwrap();
    file.read_to_string(&mut status).unwrap();
    fs::remove_file(&ready).unwrap();
    assert!(child.wait().unwrap().success());
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<f64>().unwrap() / 1024.0
}
