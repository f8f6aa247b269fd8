//! Messages about one story.

use super::*;

#[test]
fn each_problem_of_a_story_is_reported_once() {
    for (from, to, told) in [
        (
            GOOD,
            "1",
            "error 1:54 story number 1 must be an object, found a number (write it as `{ \"id\": …, \"title\": …, … }`)",
        ),
        (r#""id": "A", "#, "", "error 1:54 story number 1 has no `id` (add `\"id\": \"US-001\"`)"),
        (
            r#""A""#,
            "7",
            "error 1:61 `id` of story number 1 must be a string, found a number (write it in double quotes: `\"id\": \"…\"`)",
        ),
        (
            r#""A""#,
            r#""a b""#,
            "error 1:61 `a b` is not a valid story id (a story id has 1 to 64 letters, digits, `.`, `_` or `-`, starts with a letter or digit, has no `..` and does not end in `.` or `.lock`)",
        ),
        (
            r#""A""#,
            r#""x\u001b[2J""#,
            "error 1:61 `x\\x1b[2J` is not a valid story id (a story id has 1 to 64 letters, digits, `.`, `_` or `-`, starts with a letter or digit, has no `..` and does not end in `.` or `.lock`)",
        ),
        (r#""title": "t", "#, "", "error 1:61 story `A` has no `title` (add `\"title\": \"…\"`)"),
        (
            r#""t""#,
            r#"" \n""#,
            "error 1:75 the title of story `A` is empty (describe the story in one line)",
        ),
        (
            r#""t""#,
            r#""\ud800""#,
            "error 1:75 `title` of story `A` has an invalid `\\u` escape (write the character itself)",
        ),
        (
            r#""d", "criteria""#,
            r#"null, "criteria""#,
            "error 1:95 `description` of story `A` must be a string, found `null` (write it in double quotes: `\"description\": \"…\"`)",
        ),
        (
            r#"["c"]"#,
            r#""c""#,
            "error 1:112 `criteria` of story `A` must be an array of strings, found a string (write it as a list: `\"criteria\": [\"…\"]`)",
        ),
        (
            r#"["c"]"#,
            r#"["c", 1, 2]"#,
            "error 1:118 `criteria` of story `A` must be an array of strings, found a number (write every entry in double quotes)",
        ),
        (
            "false",
            "\"false\"",
            "error 1:129 `passes` of story `A` must be `true` or `false`, found a string (write `true` or `false`, without quotes)",
        ),
        (
            r#""passes""#,
            r#""pases""#,
            "error 1:119 story `A` has no `passes` (rename `pases` to `passes`)",
        ),
        (
            "false",
            r#"false, "skipped": 0"#,
            "error 1:147 `skipped` of story `A` must be `true` or `false`, found a number (write `true` or `false`, without quotes)",
        ),
        (
            "false",
            r#"false, "priority": "1""#,
            "error 1:148 `priority` of story `A` must be a number, found a string (write a number without quotes, or remove the field)",
        ),
        (
            "false",
            r#"false, "priority": 1e999"#,
            "error 1:148 `priority` of story `A` is too large (write a smaller number)",
        ),
        (
            "false",
            r#"false, "acceptanceCriteria": []"#,
            "error 1:136 story `A` has both `criteria` and `acceptanceCriteria` (they mean the same; remove one)",
        ),
        (
            "false",
            r#"false, "dependsOn": [], "depends_on": []"#,
            "error 1:136 story `A` has both `depends_on` and `dependsOn` (they mean the same; remove one)",
        ),
        (
            "false",
            r#"false, "completion_promise": "A", "completionPromise": "A""#,
            "error 1:163 story `A` has both `completion_promise` and `completionPromise` (they mean the same; remove one)",
        ),
        (
            "false",
            r#"false, "p\u0061sses": true"#,
            "error 1:136 duplicate field `passes` (keep one of them; the first is on line 1)",
        ),
        (
            "false",
            r#"false, "x": [{"y": {"z": 1, "z": 1}}]"#,
            "error 1:157 duplicate field `z` (keep one of them; the first is on line 1)",
        ),
        (
            "false",
            r#"false, "depends_on": ["A"]"#,
            "error 1:151 story `A` depends on itself: `A` → `A` (remove it from its `depends_on`)",
        ),
        (
            "false",
            r#"false, "dependsOn": ["a"]"#,
            "error 1:150 story `A` depends on `a`, which does not exist (did you mean `A`?)",
        ),
        (
            "false",
            r#"false, "dependsOn": ["zebra"]"#,
            "error 1:150 story `A` depends on `zebra`, which does not exist (add a story `zebra`, or remove it from `depends_on`)",
        ),
        (
            r#"["c"]"#,
            "[]",
            "warning 1:112 story `A` has no criteria (add at least one criterion that an agent can check)",
        ),
        (
            r#"["c"]"#,
            r#"["c", " ", ""]"#,
            "warning 1:118 a criterion of story `A` is empty (fill it in, or remove it)",
        ),
        (
            "false",
            r#"true, "skipped": true"#,
            "warning 1:146 story `A` both passes and is skipped (it counts as passed: remove `skipped`)",
        ),
        (
            "false",
            r#"false, "dependson": ["x"]"#,
            "warning 1:136 story `A` has an unknown field `dependson` (did you mean `depends_on`? Unknown fields are ignored)",
        ),
        (
            "false",
            r#"false, "criterias": []"#,
            "warning 1:136 story `A` has an unknown field `criterias` (did you mean `criteria`? Unknown fields are ignored)",
        ),
        (
            "false",
            r#"false, "max_attempts": 0"#,
            "error 1:152 `max_attempts` of story `A` must be a number of at least 1 (write a number such as `5`, or remove the field)",
        ),
        (
            "false",
            r#"false, "maxAttempts": "3""#,
            "error 1:151 `max_attempts` of story `A` must be a number of at least 1 (write a number such as `5`, or remove the field)",
        ),
    ] {
        let story = GOOD.replacen(from, to, 1);
        assert_ne!(story, GOOD);
        assert_eq!(problems(&file_with(&story)), [told], "{story}");
    }
}

#[test]
fn two_names_of_an_empty_list_are_reported_once() {
    let story = GOOD.replacen(r#"["c"]"#, r#"[], "acceptanceCriteria": []"#, 1);
    assert_eq!(
        problems(&file_with(&story)),
        [
            "error 1:116 story `A` has both `criteria` and `acceptanceCriteria` (they mean the same; remove one)",
            "warning 1:112 story `A` has no criteria (add at least one criterion that an agent can check)",
        ]
    );
}

#[test]
fn valid_stories_have_no_diagnostics() {
    for more in [
        "",
        r#", "skipped": null, "depends_on": null, "priority": null"#,
        r#", "skipped": true, "dependsOn": [], "priority": -1.5e3"#,
        r#", "max_attempts": 3"#,
        r#", "maxAttempts": null"#,
        r#", "notes": {"a": [{"b": 1e999}]}, "estimate": "\ud800", "": 1"#,
    ] {
        let story = GOOD.replacen("false", &format!("false{more}"), 1);
        assert_eq!(problems(&file_with(&story)), Vec::<String>::new(), "{story}");
    }
}
