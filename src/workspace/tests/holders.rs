use std::process::Command;

use crate::workspace::holders::Writer;

#[test]
fn a_process_is_itself_as_long_as_it_lives() {
    let me = Writer::this_process();
    assert!(me.is_alive());
    assert_eq!(Writer::parse(&me.to_string()), Some(me.clone()));
    for bad in ["", "7", "7-", "7-x-boot", "x-7-boot"] {
        assert_eq!(Writer::parse(bad), None, "{bad}");
    }
}

#[test]
fn a_process_that_ended_is_dead() {
    let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
    let child_as = |me: Writer| Writer { pid: child.id(), ..me.clone() };
    let started = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).ok();
    let started = started.and_then(|stat| stat.split(' ').nth(21)?.parse().ok());
    let writer =
        Writer { started: started.unwrap_or_default(), ..child_as(Writer::this_process().clone()) };
    assert!(writer.is_alive());
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!writer.is_alive());
}

#[test]
#[cfg(target_os = "linux")]
fn a_number_that_somebody_else_got_is_not_the_same_process() {
    let me = Writer::this_process();
    assert!(!Writer { started: me.started + 1, ..me.clone() }.is_alive());
    assert!(!Writer { boot: "another start of the system".to_owned(), ..me.clone() }.is_alive());
}
