use super::*;

/// As by default.
impl Default for Rules {
    fn default() -> Self {
        Self {
            never_commit: Pattern::built_in().collect(),
            max_file_size: Some(10 * MEGABYTE),
            max_new_files: Some(2000),
        }
    }
}

fn content(path: &str, size: u64) -> Content {
    Content { path: path.into(), size, is_new: true, is_private: false, secret: None }
}

#[test]
fn what_is_private_or_litter_by_its_name_is_left_out() {
    let rules = Rules::default();
    for (path, left_out) in [
        (".env", Some(".env")),
        ("app/.env.local", Some("app/.env.local")),
        (".env.example", None),
        ("app/.env.sample", None),
        ("certs/server.pem", Some("certs/server.pem")),
        ("id_rsa", Some("id_rsa")),
        ("id_rsa.pub", None),
        ("web/node_modules/x/index.js", Some("web/node_modules")),
        ("target/debug/ralph", Some("target")),
        ("target", None),
        ("src/targets.rs", None),
        ("a/__pycache__/b.pyc", Some("a/__pycache__")),
        (".venv/bin/python", Some(".venv")),
        ("docs/.DS_Store", Some("docs/.DS_Store")),
        ("src/.main.rs.swp", Some("src/.main.rs.swp")),
        (".idea/x.xml", Some(".idea")),
        ("src/environment.rs", None),
        ("monkey.rs", None),
    ] {
        assert_eq!(rules.never(Path::new(path)), left_out.map(PathBuf::from), "{path}");
    }
}

#[test]
fn settings_add_and_take_out() {
    let patterns =
        ["*.log", "!target/", "/out", "data/*.db"].map(|text| Pattern::new(text).unwrap());
    let mut rules = Rules::default();
    rules.never_commit.extend(patterns);
    for (path, is_left_out) in [
        ("a/b.log", true),
        ("target/x", false),
        ("out/x", true),
        ("a/out", false),
        ("data/x.db", true),
        ("a/data/x.db", false),
        (".env", true),
    ] {
        assert_eq!(rules.never(Path::new(path)).is_some(), is_left_out, "{path}");
    }
    for nothing in ["", " ", "!", "/", "a//b"] {
        assert_eq!(Pattern::new(nothing), None, "{nothing:?}");
    }
}

#[test]
fn stars_and_question_marks() {
    for (glob, name, is_alike) in [
        ("*", "x", true),
        ("a*c", "abc", true),
        ("a*c", "ab", false),
        ("a*b*c", "a-b-b-c", true),
        ("?b", "äb", true),
        ("??", "x", false),
        ("*a*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false),
    ] {
        let pattern = Pattern::new(glob).unwrap();
        assert_eq!(pattern.matches(Path::new(name)).is_some(), is_alike, "{glob} {name}");
    }
}

#[test]
fn sizes_and_counts_have_limits() {
    let rules = Rules::default();
    let tenth = MEGABYTE / 10;
    assert_eq!(rules.objections(&[content("a", 99 * tenth), content("b", 10 * MEGABYTE)]), []);
    let over = rules.objections(&[content("a", 10 * MEGABYTE + 1)]);
    assert_eq!(over.len(), 1);
    assert_eq!(over[0].to_string(), "`a` is too large: 10.1 MB (limit 10 MB)");
    let many = |count| vec![content("f", 1); count];
    assert_eq!(rules.objections(&many(1999)), []);
    assert_eq!(rules.objections(&many(2000)), []);
    let over = rules.objections(&many(2001));
    assert_eq!(over, [Objection::TooMany { count: 2001, limit: 2000 }]);
    let mut changed = many(3000);
    changed.iter_mut().for_each(|content| content.is_new = false);
    assert_eq!(rules.objections(&changed), [], "files that were there count for nothing");
    let none = Rules { max_file_size: None, max_new_files: None, ..Rules::default() };
    assert_eq!(none.objections(&[many(3000), vec![content("a", u64::MAX)]].concat()), []);
}

#[test]
fn secrets_and_private_files_are_named() {
    let secret = Content { secret: Some("AWS key".into()), ..content("a.txt", 1) };
    let private = Content { is_private: true, ..content(".env", 1) };
    let said: Vec<String> =
        Rules::default().objections(&[secret, private]).iter().map(ToString::to_string).collect();
    assert_eq!(said[0], "`a.txt` seems to contain a secret (AWS key)");
    assert!(said[1].starts_with("`.env` must not be committed (`never_commit`)"), "{}", said[1]);
}

#[test]
fn only_what_is_new_in_a_file_is_looked_at() {
    assert_eq!(added_lines(b"a\nb\n", b"b\nc\na\nd"), b"c\nd");
    assert_eq!(added_lines(b"", b"x\xff"), b"x\xff");
    assert_eq!(added_lines(b"a\n", b"a\n"), b"");
}
