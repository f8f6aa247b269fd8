//! Taking secrets out of recorded stream-json, alone and before it is read.

use std::hint::black_box;
use std::sync::Arc;

use ralph::agent::{StreamReader, any_decoder};
use ralph::model::{Exit, StoryId};
use ralph::text::redact::{Redactor, SecretRules};
use ralph::text::signals::Scanner;

use crate::scan::{CHUNK, best, recordings};

/// Short rounds, and many of them: on a busy machine a few are undisturbed.
const PART: usize = 2_000_000;
const ROUNDS: usize = 500;

pub fn bench() {
    let mut recorded = recordings(|_| true);
    recorded.truncate(PART);
    let megabytes = recorded.len() as f64 / 1e6;
    let rules = Arc::new(SecretRules::new(environment()));
    let alone = megabytes
        / best(ROUNDS, || {
            each_chunk(&rules, &recorded, |clean| {
                black_box(clean);
            });
        });
    let read = megabytes
        / best(ROUNDS, || {
            let story = StoryId::try_from("US-001").unwrap();
            let scanner = || Scanner::new(&story, ralph::model::CompletionMarkers::default(), 0);
            let mut reading = StreamReader::new(any_decoder(), scanner, "prompt");
            each_chunk(&rules, &recorded, |clean| {
                reading.push(clean, &mut |heard| {
                    black_box(heard);
                });
            });
            black_box(reading.finish(&Exit::Code(0), &mut |_| {}));
        });
    let floor = megabytes
        / best(ROUNDS, || {
            let mut copy = Vec::with_capacity(CHUNK);
            for chunk in recorded.chunks(CHUNK) {
                copy.clear();
                copy.extend_from_slice(black_box(chunk));
                black_box(&copy);
            }
        });
    println!("  redact {megabytes:.0} MB of recorded events: {alone:.0} MB/s (at least 400)");
    println!("  redact, decode and scan them: {read:.0} MB/s (at least 400)");
    println!("  floor: copying them: {floor:.0} MB/s");
}

fn each_chunk(rules: &Arc<SecretRules>, bytes: &[u8], mut each: impl FnMut(&[u8])) {
    let mut redactor = Redactor::new(Arc::clone(rules));
    let mut clean = Vec::with_capacity(CHUNK);
    for chunk in bytes.chunks(CHUNK) {
        clean.clear();
        redactor.push(chunk, &mut clean);
        each(&clean);
    }
    clean.clear();
    redactor.finish(&mut clean);
    each(&clean);
}

/// As many secrets as a well-used machine has.
fn environment() -> impl Iterator<Item = (String, String)> {
    (0..12).map(|n| (format!("SERVICE_{n}_TOKEN"), format!("{n}-sample-{n}-value-{n}")))
}
