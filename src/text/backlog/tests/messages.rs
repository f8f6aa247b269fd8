//! Messages about the file as a whole, and about stories against each other.

use super::*;

#[test]
fn a_file_of_the_wrong_shape_is_an_error() {
    for (text, told) in [
        (
            "[]",
            vec![
                "error 1:1 the file must contain one object, found an array (write `{ \"project\": …, \"description\": …, \"userStories\": [ … ] }`)",
            ],
        ),
        (
            "{}",
            vec![
                "error 1:1 the file has no `project` (add `\"project\": \"…\"`)",
                "error 1:1 the file has no `description` (add `\"description\": \"…\"`)",
                "error 1:1 the file has no `userStories` (add `\"userStories\": [ … ]`)",
            ],
        ),
        (
            r#"{"project": 1, "description": null, "userStories": {}}"#,
            vec![
                "error 1:13 `project` must be a string, found a number (write it in double quotes: `\"project\": \"…\"`)",
                "error 1:31 `description` must be a string, found `null` (write it in double quotes: `\"description\": \"…\"`)",
                "error 1:52 `userStories` must be an array, found an object (write the stories as a list: `[ { … }, { … } ]`)",
            ],
        ),
        (
            r#"{"project": "", "description": "", "userStories": []}"#,
            vec!["error 1:51 `userStories` is empty (add at least one story)"],
        ),
        (
            r#"{"project": "", "description": "", "x": [{"y": 1, "y": 1}], "userStories": []}"#,
            vec![
                "error 1:51 duplicate field `y` (keep one of them; the first is on line 1)",
                "error 1:76 `userStories` is empty (add at least one story)",
            ],
        ),
        (
            r#"{"project": "", "description": "", "userstories": []}"#,
            vec![
                "error 1:36 the file has no `userStories` (rename `userstories` to `userStories`)",
            ],
        ),
    ] {
        assert_eq!(problems(text), told, "{text}");
    }
}

#[test]
fn two_stories_with_one_id_are_an_error() {
    let told = |second: &str| {
        let other = GOOD.replacen("\"A\"", second, 1);
        problems(&file_with(&format!("\n{GOOD},\n\n{other}")))
    };
    assert_eq!(
        told(r#""\u0041""#),
        [
            "error 4:8 duplicate id `A`; the story on line 2 has it too (change the id of one of them)"
        ]
    );
    assert_eq!(
        told(r#""a""#),
        [
            "error 4:8 the id `a` differs only by case from `A` on line 2 (change the id of one of them)"
        ]
    );
}

#[test]
fn cycles_are_named_and_long_ones_shortened() {
    let story = |id: &str, on: &str| {
        let story = GOOD.replacen("\"A\"", &format!("{id:?}"), 1);
        story.replacen("false", &format!("false, \"depends_on\": [{on:?}]"), 1)
    };
    let two = format!("\n{},\n{}", story("A", "B"), story("B", "A"));
    assert_eq!(
        problems(&file_with(&two)),
        ["error 2:98 dependency cycle: `A` → `B` → `A` (remove one of these dependencies)"]
    );
    let ring: Vec<String> =
        (0..20).map(|n| story(&format!("S{n}"), &format!("S{}", (n + 1) % 20))).collect();
    let told = problems(&file_with(&ring.join(",")));
    assert_eq!(told.len(), 1);
    let named = "`S0` → `S1` → `S2` → `S3` → … 13 more … → `S17` → `S18` → `S19` → `S0` (";
    assert!(told[0].contains(named), "{}", told[0]);
}

#[test]
fn each_limit_is_one_error() {
    let large = " ".repeat(MAX_BYTES + 1);
    assert_eq!(
        problems(&large),
        ["error - the file is larger than 8 MB (split it into several backlogs)"]
    );
    let stories = vec!["1"; MAX_STORIES + 1].join(",");
    assert_eq!(
        problems(&file_with(&stories)),
        [
            "error 1:20054 too many stories: 10001 (maximum 10000) (split the file into several backlogs)"
        ]
    );
    let allowed = "[".repeat(MAX_DEPTH - 1) + &"]".repeat(MAX_DEPTH - 1);
    let nested = |value: &str| file_with(GOOD).replacen('{', &format!("{{\"x\": {value}, "), 1);
    assert_eq!(problems(&nested(&allowed)), Vec::<String>::new());
    assert_eq!(
        problems(&nested(&format!("[{allowed}]"))),
        ["error 1:70 brackets are nested more than 64 deep (a backlog needs only 4 levels)"]
    );
}
