//! The file during a run.

use crate::model::Backlog;
use std::sync::Arc;

use super::*;

const THREE: &str = r#"{"project": "p", "description": "d", "userStories": [
  {"id": "A", "title": "t", "description": "", "criteria": ["c"], "passes": false},
  {"skipped": null, "id": "B", "title": "ü", "description": "", "criteria": ["c"], "passes": true},
  {"id": "C", "title": "t", "description": "", "criteria": ["c"],
   "passes": false, "skipped": true}]}"#;

fn tracked() -> (tempfile::TempDir, TrackedPrd, Backlog) {
    let (folder, file) = folder_with(THREE.as_bytes());
    age(file.path());
    let (tracked, loaded) = TrackedPrd::open(file).unwrap();
    (folder, tracked, loaded.backlog)
}

/// Waits until it is old enough for its stamp to be trusted.
fn age(path: &Path) {
    while PrdFile::new(path).text().is_ok_and(|(_, stamp)| stamp.is_none()) {
        std::thread::yield_now();
    }
}

fn is_unchanged(tracked: &mut TrackedPrd) -> bool {
    matches!(tracked.look(), PrdLook::Unchanged)
}

/// The known text and marks are those of the file.
fn agrees(tracked: &TrackedPrd) {
    let loaded = tracked.file.load().unwrap();
    assert_eq!(*loaded.text, *tracked.text);
    let marks = |backlog: &Backlog| -> Vec<(bool, bool)> {
        backlog.stories.iter().map(|story| (story.passes, story.skipped)).collect()
    };
    assert_eq!(marks(&loaded.backlog), tracked.marks());
}

#[test]
fn marks_follow_each_other_without_reading_the_file_again() {
    let (_folder, mut tracked, _) = tracked();
    for (story, mark) in [
        ((0, "A"), Mark::Passes(true)),
        ((2, "C"), Mark::Skipped(false)),
        ((0, "A"), Mark::Skipped(true)),
        ((1, "B"), Mark::Skipped(true)),
        ((1, "B"), Mark::Passes(false)),
        ((2, "C"), Mark::Passes(true)),
        ((0, "A"), Mark::Passes(false)),
    ] {
        let expected = set_mark(&tracked.text, &id(story.1), mark).unwrap();
        let marked = tracked.marked((story.0, &id(story.1)), mark).unwrap();
        assert_eq!(marked.text(), expected);
        tracked.take_written(marked.write().unwrap());
        agrees(&tracked);
        assert!(is_unchanged(&mut tracked), "its own version is known at once");
    }
}

#[test]
fn a_prepared_mark_is_the_same_and_leaves_no_other_file() {
    let (folder, mut tracked, _) = tracked();
    fs::set_permissions(tracked.file.path(), fs::Permissions::from_mode(0o640)).unwrap();
    let (a, b) = (id("A"), id("B"));
    let ahead = tracked.prepare((0, &a), Mark::Passes(true)).unwrap().unwrap();
    if let Some(on_disk) = ahead.prepare() {
        tracked.take_prepared(on_disk);
    }
    assert!(tracked.prepare((0, &a), Mark::Passes(true)).unwrap().is_none(), "it is there");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    let prepared = tracked.marked((0, &a), Mark::Passes(true)).unwrap();
    assert!(prepared.was_prepared);
    tracked.take_written(prepared.write().unwrap());
    assert_eq!(*tracked.text, *set_mark(THREE, &a, Mark::Passes(true)).unwrap());
    agrees(&tracked);
    assert!(is_unchanged(&mut tracked));
    assert_eq!(fs::metadata(tracked.file.path()).unwrap().mode() & 0o777, 0o640);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    // It is dropped for another mark or another text.
    tracked.prepare((1, &b), Mark::Passes(false)).unwrap();
    assert!(!tracked.marked((1, &b), Mark::Skipped(true)).unwrap().was_prepared);
    tracked.prepare((1, &b), Mark::Passes(false)).unwrap();
    fs::write(tracked.file.path(), THREE.replace("ü", "new")).unwrap();
    assert!(matches!(tracked.look(), PrdLook::Changed(_)));
    let marked = tracked.marked((1, &b), Mark::Passes(false)).unwrap();
    assert!(marked.text().contains("new") && !marked.was_prepared);
}

/// Two stories can be prepared from the same text, and the first be on the disk after the second.
#[test]
fn a_text_that_is_on_the_disk_too_late_is_not_written_for_another_mark() {
    let (_folder, mut tracked, _) = tracked();
    let (a, b) = (id("A"), id("B"));
    let first = tracked.prepare((0, &a), Mark::Passes(true)).unwrap().unwrap();
    let second = tracked.prepare((1, &b), Mark::Skipped(true)).unwrap().unwrap();
    let (first_text, second_text) = (Arc::clone(&first.text), Arc::clone(&second.text));
    for ahead in [second, first] {
        ahead.prepare().into_iter().for_each(|text| tracked.take_prepared(text));
    }
    let marked = tracked.marked((1, &b), Mark::Skipped(true)).unwrap();
    assert!(marked.is(&second_text) && !marked.is(&first_text));
    tracked.take_written(marked.write().unwrap());
    assert_eq!(fs::read_to_string(tracked.file.path()).unwrap(), *second_text);
    agrees(&tracked);
}

#[test]
fn every_mark_is_set_in_one_pass() {
    let (_folder, mut tracked, backlog) = tracked();
    for wanted in [(true, false), (false, true), (true, true), (false, false)] {
        let (marked, touched) = tracked.with_marks(&backlog.stories, |_| wanted).unwrap();
        assert!(!touched.is_empty());
        tracked.take_written(marked.write().unwrap());
        agrees(&tracked);
        assert_eq!(tracked.marks(), [wanted; 3]);
        assert_eq!(tracked.with_marks(&backlog.stories, |_| wanted).unwrap().1, []);
    }
}

#[test]
fn a_look_sees_every_change_and_reads_only_then() {
    let (folder, mut tracked, _) = tracked();
    assert!(is_unchanged(&mut tracked));
    let path = tracked.file.path().to_owned();
    // The same size, at the same moment as the version before it.
    for text in [THREE.replace("\"t\"", "\"u\""), THREE.replace("\"t\"", "\"v\"")] {
        fs::write(&path, &text).unwrap();
        assert!(matches!(tracked.look(), PrdLook::Changed(_)), "{text}");
        assert_eq!(*tracked.text, *text);
    }
    let text = Arc::clone(&tracked.text);
    fs::write(&path, "{").unwrap();
    age(&path);
    assert!(matches!(tracked.look(), PrdLook::Broken(_)));
    assert!(is_unchanged(&mut tracked), "it is broken as before");
    fs::write(&path, &*tracked.text).unwrap();
    assert!(matches!(tracked.look(), PrdLook::Known));
    assert!(Arc::ptr_eq(&tracked.text, &text));
    fs::rename(&path, folder.path().join("away")).unwrap();
    assert!(matches!(tracked.look(), PrdLook::Broken(LoadError::NotFound { .. })));
}

/// Whatever somebody wrote since the last look is not overwritten, be it broken or good.
#[test]
fn an_edit_at_the_same_moment_is_not_lost() {
    for (edit, prepares) in [("{", false), ("{", true), ("", false), ("new", true)] {
        let (_folder, mut tracked, _) = tracked();
        let path = tracked.file.path().to_owned();
        if prepares {
            let ahead = tracked.prepare((0, &id("A")), Mark::Passes(true)).unwrap().unwrap();
            ahead.prepare().into_iter().for_each(|text| tracked.take_prepared(text));
        }
        let marked = tracked.marked((0, &id("A")), Mark::Passes(true)).unwrap();
        let edit = if edit == "new" { THREE.replace("ü", "new") } else { edit.to_owned() };
        fs::write(&path, &edit).unwrap();
        assert!(matches!(marked.write(), Err(WriteError::Changed { .. })));
        assert_eq!(fs::read_to_string(&path).unwrap(), edit);
    }
}

#[test]
fn a_broken_file_is_not_overwritten() {
    let (_folder, mut tracked, _) = tracked();
    fs::write(tracked.file.path(), "{").unwrap();
    age(tracked.file.path());
    assert!(matches!(tracked.look(), PrdLook::Broken(_)));
    let marked = tracked.marked((0, &id("A")), Mark::Passes(true)).unwrap();
    assert!(matches!(marked.write(), Err(WriteError::Changed { .. })));
    assert_eq!(fs::read_to_string(tracked.file.path()).unwrap(), "{");
}

#[test]
fn a_written_mark_can_be_reverted_unless_somebody_edited_it_since() {
    let (_folder, mut tracked, _) = tracked();
    let path = tracked.file.path().to_owned();
    let marked = tracked.marked((0, &id("A")), Mark::Passes(true)).unwrap();
    marked.write().unwrap().revert().unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), THREE);
    let marked = tracked.marked((0, &id("A")), Mark::Passes(true)).unwrap();
    let written = marked.write().unwrap();
    fs::write(&path, "mine").unwrap();
    written.revert().unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
}

#[test]
fn an_edit_right_after_its_own_write_is_seen() {
    let (_folder, mut tracked, _) = tracked();
    for round in 0..50 {
        let mark = Mark::Passes(round % 2 == 0);
        let marked = tracked.marked((0, &id("A")), mark).unwrap();
        tracked.take_written(marked.write().unwrap());
        let titles = if round % 2 == 0 { ("\"t\"", "\"u\"") } else { ("\"u\"", "\"t\"") };
        let other = tracked.text.replace(titles.0, titles.1);
        fs::write(tracked.file.path(), &other).unwrap();
        assert!(matches!(tracked.look(), PrdLook::Changed(_)), "round {round}");
    }
}

/// The text that another thread wrote is not always the last one that was read.
#[test]
fn places_in_one_text_are_not_used_for_another() {
    let (_folder, mut tracked, _) = tracked();
    let (a, b) = (id("A"), id("B"));
    let written = tracked.marked((0, &a), Mark::Passes(true)).unwrap().write().unwrap();
    fs::write(tracked.file.path(), THREE.replace("ü", "a longer title")).unwrap();
    assert!(matches!(tracked.look(), PrdLook::Changed(_)));
    tracked.marked((1, &b), Mark::Passes(false)).unwrap();
    tracked.take_written(written);
    let expected = set_mark(&tracked.text, &b, Mark::Passes(false)).unwrap();
    assert_eq!(tracked.marked((1, &b), Mark::Passes(false)).unwrap().text(), expected);
}

/// The place was known from an earlier text: what is there now has to be the story.
#[test]
fn a_mark_is_never_set_at_another_story() {
    let (_folder, mut tracked, _) = tracked();
    for at in [(1, "A"), (0, "B"), (3, "A"), (0, "Z")] {
        let refused = tracked.marked((at.0, &id(at.1)), Mark::Passes(true));
        assert!(
            matches!(refused, Err(EditError::NoSuchStory(story)) if story == id(at.1)),
            "{at:?}"
        );
    }
}

#[test]
fn a_text_that_changed_while_it_was_read_has_no_stamp() {
    let (_folder, file) = folder_with(THREE.as_bytes());
    age(file.path());
    let before = fs::metadata(file.path()).unwrap();
    assert!(Stamp::of_read(&before, &before).is_some());
    fs::write(file.path(), THREE.replace("\"t\"", "\"u\"")).unwrap();
    age(file.path());
    let after = fs::metadata(file.path()).unwrap();
    assert!(Stamp::of_read(&before, &after).is_none());
    let tomorrow = SystemTime::now() + Duration::from_hours(24);
    fs::File::options().write(true).open(file.path()).unwrap().set_modified(tomorrow).unwrap();
    assert!(file.text().unwrap().1.is_none(), "it may change again at the same moment");
}
