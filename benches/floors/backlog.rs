//! A backlog as it grows: checked, looked at, one of its stories closed, all of its marks put back.

use std::fs;
use std::hint::black_box;
use std::time::Duration;

use ralph::model::StoryId;
use ralph::store::prd::{Mark, PrdFile, PrdLook, TrackedPrd};
use ralph::text::backlog::parse;

use crate::measure::{Times, stories, tell};

const ROUNDS: usize = 15;

pub fn bench() {
    for count in [1_000, 3_000, 10_000] {
        let text = stories(count);
        println!("  {count} stories, {:.1} MB", text.len() as f64 / 1e6);
        let checked = Times::of(ROUNDS, || assert!(parse(black_box(&text)).backlog.is_some()));
        tell("checked (10,000: under 100)", &checked);
        let floor = Times::of(ROUNDS, || {
            black_box(serde_json::from_str::<serde_json::Value>(black_box(&text)).unwrap());
        });
        tell("floor: serde_json to a Value", &floor);
        file(count, &text);
    }
}

fn file(count: usize, text: &str) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("PRD.json");
    fs::write(&path, text).unwrap();
    let (mut prd, loaded) = TrackedPrd::open(PrdFile::new(&path)).unwrap();
    let story = StoryId::try_from(format!("US-{count:05}").as_str()).unwrap();
    let last = (count - 1, &story);
    let close = |prd: &mut TrackedPrd, value: bool| {
        let marked = prd.marked(last, Mark::Passes(value)).unwrap();
        prd.take_written(marked.write().unwrap());
        assert!(matches!(prd.look(), PrdLook::Unchanged));
    };
    close(&mut prd, true);
    let looks = Times::of(ROUNDS, || assert!(matches!(prd.look(), PrdLook::Unchanged)));
    tell("looked at, unchanged", &looks);
    let mut value = false;
    let closed = Times::of(ROUNDS, || {
        close(&mut prd, value);
        value = !value;
    });
    tell("one closed, written and looked at (10,000: under 20)", &closed);
    let mut prepared = Times::default();
    for _ in 0..ROUNDS {
        prd.prepare(last, Mark::Passes(value)).unwrap();
        prepared.push(Times::of(1, || close(&mut prd, value)).min());
        value = !value;
    }
    tell("the same, prepared ahead", &prepared);
    let file = PrdFile::new(folder.path().join("floor.json"));
    let written = Times::of(ROUNDS, || {
        file.write(black_box(text)).unwrap();
    });
    tell("floor: written, unchanged", &written);
    let flipped = text.replace("\"passes\": false", "\"passes\": true");
    let mut put_back = Times::default();
    for _ in 0..5 {
        fs::write(&path, &flipped).unwrap();
        assert!(matches!(prd.look(), PrdLook::Changed(_)));
        put_back.push(
            Times::of(1, || {
                let (marked, touched) =
                    prd.with_marks(&loaded.backlog.stories, |_| (false, false)).unwrap();
                assert_eq!(touched.len(), count);
                prd.take_written(marked.write().unwrap());
            })
            .min(),
        );
    }
    assert!(put_back.min() < Duration::from_secs(60));
    tell("every mark put back (10,000: under 200)", &put_back);
}
