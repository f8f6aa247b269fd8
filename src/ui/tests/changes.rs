//! Held changes, and the question about them.

use super::*;
use crate::decide::concerns;
use crate::ui::events::is_essential;
use crate::ui::menu::{MenuChoice, items};

#[test]
fn the_original_is_the_first_choice() {
    let question = concerns::question(&id("US-001"), &[held_change("x changed")]).unwrap();
    let all = items(&question);
    assert_eq!(all[0].choice, MenuChoice::Answer(Answer::Restore));
    let keys: String = all.iter().filter_map(|item| item.key).collect();
    assert_eq!(keys, "rycsa", "each key once, and as in other menus");
}

#[test]
fn a_held_change_is_told_with_quiet_too() {
    let held = Event::ChangesHeld { story: id("US-001"), changes: vec![held_change("a")] };
    assert!(is_essential(&held));
}
