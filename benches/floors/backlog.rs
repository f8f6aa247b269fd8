//! A backlog of 10,000 stories: checked, and one of them closed.

use std::hint::black_box;

use ralph::core::backlog::parse;
use ralph::core::id::StoryId;
use ralph::store::prd::{Mark, PrdFile, set_mark};

use crate::measure::{Times, stories, tell};

pub fn bench() {
    let text = stories(10_000);
    println!("  {:.1} MB", text.len() as f64 / 1e6);
    let checked = Times::of(15, || assert!(parse(black_box(&text)).backlog.is_some()));
    tell("checked (under 100)", &checked);
    let floor = Times::of(15, || {
        black_box(serde_json::from_str::<serde_json::Value>(black_box(&text)).unwrap());
    });
    tell("floor: serde_json to a Value", &floor);
    let folder = tempfile::tempdir().unwrap();
    let file = PrdFile::new(folder.path().join("PRD.json"));
    let story = StoryId::try_from("US-09999").unwrap();
    let closed = Times::of(15, || {
        let marked = set_mark(black_box(&text), &story, Mark::Passes(true)).unwrap();
        file.write(&marked).unwrap();
    });
    tell("one closed and written (under 20)", &closed);
    let written = Times::of(15, || file.write(black_box(&text)).unwrap());
    tell("floor: written, unchanged", &written);
}
