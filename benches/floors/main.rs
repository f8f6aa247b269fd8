//! What ralph costs, each figure beside its floor in the same run.
//!
//! `cargo bench` runs all of them, `cargo bench -- gap scan` some. Only ratios of
//! one run mean anything: the machine is never the same twice.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a bench that cannot go on has failed"
)]

mod agent;
mod backlog;
mod gap;
mod guard;
mod help;
mod journal;
mod load;
mod measure;
mod memory;
mod nights;
mod pipe;
mod redact;
mod refs;
mod report;
mod response;
mod scan;
mod snapshot;
mod start;
#[path = "../../tests/support/mod.rs"]
#[expect(dead_code, unused_imports, clippy::expect_used, reason = "it is the tests' own")]
mod support;

/// What the disk costs is part of the figures.
const IN_MEMORY: bool = false;

const ALL: [(&str, fn()); 18] = [
    ("gap", gap::bench),
    ("growth", gap::growth),
    ("iterations", gap::iterations),
    ("start", start::bench),
    ("load", load::bench),
    ("response", response::bench),
    ("scan", scan::bench),
    ("pipe", pipe::bench),
    ("redact", redact::bench),
    ("memory", memory::bench),
    ("help", help::bench),
    ("backlog", backlog::bench),
    ("journal", journal::bench),
    ("report", report::bench),
    ("snapshot", snapshot::bench),
    ("refs", refs::bench),
    ("guard", guard::bench),
    ("nights", nights::bench),
];

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.first().is_some_and(|word| word == agent::WORD) {
        return agent::play();
    }
    if let [word, recorded, ..] = words.as_slice()
        && word == pipe::WORD
    {
        return pipe::play(recorded);
    }
    // Cargo itself adds `--bench`.
    let wanted: Vec<&String> = words.iter().filter(|word| !word.starts_with('-')).collect();
    for (name, bench) in ALL {
        if wanted.is_empty() || wanted.iter().any(|word| *word == name) {
            println!("\n{name}");
            bench();
        }
    }
}
