//! Reading recorded stream-json: lines, decoding, signals.

use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use ralph::agent::{StreamReader, any_decoder};
use ralph::model::{Exit, StoryId};
use ralph::text::signals::Scanner;

const MEGABYTES: usize = 200;
pub const CHUNK: usize = 256 * 1024;

pub fn bench() {
    let recorded = recordings(|_| true);
    let megabytes = recorded.len() as f64 / 1e6;
    let floor = megabytes
        / best(5, || {
            black_box(memchr::memchr_iter(b'\n', black_box(&recorded)).count());
        });
    let ours = megabytes
        / best(5, || {
            let story = StoryId::try_from("US-001").unwrap();
            let scanner = || Scanner::new(&story, ralph::model::CompletionMarkers::default(), 0);
            let mut reading = StreamReader::new(any_decoder(), scanner, "prompt");
            for chunk in recorded.chunks(CHUNK) {
                reading.push(chunk, &mut |heard| {
                    black_box(heard);
                });
            }
            black_box(reading.finish(&Exit::Code(0), &mut |_| {}));
        });
    println!(
        "  decode and scan {megabytes:.0} MB of recorded events: {ours:.0} MB/s (at least 800)"
    );
    println!("  floor: counting its lines: {floor:.0} MB/s");
}

/// In seconds.
pub fn best(rounds: usize, mut what: impl FnMut()) -> f64 {
    let time = |what: &mut dyn FnMut()| {
        let start = Instant::now();
        what();
        start.elapsed().as_secs_f64()
    };
    (0..rounds).map(|_| time(&mut what)).fold(f64::INFINITY, f64::min)
}

/// Every recording of the real CLI, again and again, as far as its lines are wanted.
pub fn recordings(wanted: fn(&str) -> bool) -> Vec<u8> {
    let once = recordings_once(wanted);
    once.repeat(times(&once))
}

/// How often that is 200 MB.
pub fn times(once: &[u8]) -> usize {
    MEGABYTES * 1_000_000 / once.len() + 1
}

pub fn recordings_once(wanted: fn(&str) -> bool) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/recordings");
    let mut once = Vec::new();
    let mut paths: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths.iter().filter(|path| path.extension().is_some_and(|e| e == "jsonl")) {
        let text = String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned();
        once.extend(text.split_inclusive('\n').filter(|line| wanted(line)).flat_map(str::bytes));
    }
    once
}
