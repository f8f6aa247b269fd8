//! `ralph --help` beside a program that does nothing.

use std::process::{Command, Stdio};

use crate::measure::{RALPH, Times, ms, tell};

pub fn bench() {
    let (mut help, mut nothing) = (Times::default(), Times::default());
    for _ in 0..100 {
        help.push(Times::of(1, || run(Command::new(RALPH).arg("--help"))).min());
        nothing.push(Times::of(1, || run(&mut Command::new("/bin/true"))).min());
    }
    tell("ralph --help", &help);
    tell("floor: a program that does nothing", &nothing);
    let over = ms(help.median()) - ms(nothing.median());
    println!("  {over:.3} ms over its floor (at most 3)");
}

fn run(command: &mut Command) {
    assert!(command.stdout(Stdio::null()).status().unwrap().success());
}
