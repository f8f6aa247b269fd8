//! With a shell script in the supervisor's place: what it reports, and when, is up to the test.

use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;
use tokio::task::yield_now;

use super::*;
use crate::process::{Spec, Supervisor};

/// Its pipes stay open until the pump is dropped.
const STAYS: &str = "echo y > there; read -r more";

fn pump(folder: &TempDir, script: &str) -> (Pump, watch::Sender<Option<Order>>) {
    let (text, program) = (folder.path().join("text"), folder.path().join("supervisor"));
    let begin = format!("cd {}; read -r spec", folder.path().display());
    fs::write(&text, format!("#!/bin/sh\n{begin}\n{script}\n{STAYS}\n")).unwrap();
    // By another process: a file that is open for writing cannot be started.
    let mut copy = Command::new("install");
    assert!(copy.args(["-m", "755"]).args([&text, &program]).status().unwrap().success());
    let (program, dir) = (program.to_owned(), folder.path().to_owned());
    let spec = Spec { program: "true".into(), args: vec![], dir, env: vec![], input: None };
    let running = Supervisor::new(program, vec![], String::new()).spawn(&spec).unwrap();
    let (orders, stop) = watch::channel(None);
    (Pump::new(running, stop), orders)
}

/// Then the runtime has seen what the script wrote before.
async fn wait_for(file: &Path) {
    while !fs::read(file).is_ok_and(|text| text == b"y\n") {
        yield_now().await;
    }
    yield_now().await;
}

/// What the pump yields at a deadline that has passed.
async fn next(pump: &mut Pump, silence: bool) -> String {
    match pump.next(Deadline { at: long_ago(DRAIN), silence }).await {
        Pumped::Started => "started".to_owned(),
        Pumped::Output(chunk) | Pumped::Errors(chunk) => String::from_utf8_lossy(chunk).into(),
        Pumped::Ordered => "ordered".to_owned(),
        Pumped::Due => "due".to_owned(),
        Pumped::Over => "over".to_owned(),
    }
}

fn long_ago(patience: Duration) -> Instant {
    Instant::now() - patience
}

/// If ralph was suspended, the deadline has passed and the output is there.
#[tokio::test]
async fn output_that_waits_is_no_silence() {
    let folder = tempfile::tempdir().unwrap();
    for silence in [true, false] {
        let (mut pump, _orders) = pump(&folder, "echo output");
        wait_for(&folder.path().join("there")).await;
        let expected = if silence { ["output\n", "due"] } else { ["due", "due"] };
        let found = [next(&mut pump, silence).await, next(&mut pump, silence).await];
        assert_eq!(found, expected, "{silence}");
        fs::remove_file(folder.path().join("there")).unwrap();
    }
}

/// A process that is kept may hold the pipes open.
#[tokio::test]
async fn after_the_end_what_is_in_the_pipes_is_read_and_nothing_is_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let (mut pump, orders) = pump(&folder, "echo the rest");
    wait_for(&folder.path().join("there")).await;
    pump.gone_since = Some(long_ago(2 * DRAIN));
    orders.send_replace(Some(Order::Stop));
    assert_eq!(next(&mut pump, false).await, "the rest\n");
    assert_eq!(next(&mut pump, false).await, "over");
}

#[tokio::test]
async fn a_supervisor_that_does_not_report_the_end_is_lost_after_a_while() {
    for begins in ["order", "report"] {
        let folder = tempfile::tempdir().unwrap();
        let exited = serde_json::to_string(&SupervisorReport::Exited { exit: Exit::Code(0) });
        let script = format!("echo '{}' >&0", exited.unwrap());
        let (mut pump, _orders) = pump(&folder, if begins == "report" { &script } else { "" });
        if begins == "order" {
            pump.order(Order::Stop).await;
        } else {
            let report = pump.running.reports.next_line().await.unwrap();
            pump.take(report.as_deref());
            assert!(pump.has_exited());
        }
        pump.ending_since = pump.ending_since.map(|_| long_ago(END_PATIENCE));
        assert_eq!(next(&mut pump, false).await, "over", "{begins}");
        assert_eq!(pump.finish().survivors, None, "{begins}");
    }
}
